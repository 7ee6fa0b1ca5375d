/* fake_http.h - a server on loopback that answers what a test tells it and keeps what it was asked.
 *
 * One request per connection. Answers are given in order; the last one is repeated. */
#ifndef TESTS_UNIT_SEGMENTS_STORE_FAKE_HTTP_H
#define TESTS_UNIT_SEGMENTS_STORE_FAKE_HTTP_H

struct fake_http;

struct fake_http *fake_http_new(void);
void fake_http_freep(struct fake_http **fake);
int fake_http_port(const struct fake_http *fake);

/* Add an answer: "200 OK", header lines each ending in \r\n (or ""), and a body. Content-Length is
 * added unless the headers have one. */
void fake_http_answer(struct fake_http *fake, const char *status, const char *headers,
                      const char *body);
/* Forget answers and requests. */
void fake_http_reset(struct fake_http *fake);

unsigned fake_http_count(struct fake_http *fake); /* requests since the last reset */
/* Head and body of request @index, "" if there is none; good until the next reset. */
const char *fake_http_request(struct fake_http *fake, unsigned index);

#endif
