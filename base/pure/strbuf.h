/* strbuf.h - a growing byte string with a limit and a sticky overflow.
 *
 * The text is always followed by a NUL. Past its limit the buffer keeps what fitted and remembers
 * that it overflowed: check once at the end. */
#ifndef BASE_PURE_STRBUF_H
#define BASE_PURE_STRBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/macros.h"
#include "base/pure/slice.h"

struct qf_strbuf {
    char *data;
    size_t len;
    size_t capacity;
    size_t limit; /* 0: none */
    bool overflowed;
};

#define QF_STRBUF_INIT                                                                             \
    {                                                                                              \
        0                                                                                          \
    }

void qf_strbuf_done(struct qf_strbuf *buf);
void qf_strbuf_reset(struct qf_strbuf *buf); /* Empty it, keep its memory. */

void qf_strbuf_add(struct qf_strbuf *buf, const void *data, size_t len);
void qf_strbuf_str(struct qf_strbuf *buf, struct qf_str s);
void qf_strbuf_puts(struct qf_strbuf *buf, const char *cstr);
void qf_strbuf_putc(struct qf_strbuf *buf, char c);
void qf_strbuf_printf(struct qf_strbuf *buf, const char *fmt, ...) QF_PRINTF(2, 3);
void qf_strbuf_u64(struct qf_strbuf *buf, uint64_t value);
void qf_strbuf_i64(struct qf_strbuf *buf, int64_t value);
void qf_strbuf_varint(struct qf_strbuf *buf, uint64_t value); /* varint.h */

/* A JSON string with its quotes; invalid UTF-8 becomes U+FFFD. */
void qf_strbuf_json(struct qf_strbuf *buf, struct qf_str s);
/* A Go-quoted string ("\n", "\x00", "\u00ad"...), the form in which Prometheus prints labels. */
void qf_strbuf_quote(struct qf_strbuf *buf, struct qf_str s);

/* Make room for @len more bytes and return where to write them; NULL over the limit.
 * The caller then adds what it wrote to buf->len. */
char *qf_strbuf_reserve(struct qf_strbuf *buf, size_t len);

static inline struct qf_str qf_strbuf_view(const struct qf_strbuf *buf)
{
    return (struct qf_str){ buf->data, buf->len };
}
/* The text as a C string, "" when empty. */
const char *qf_strbuf_cstr(const struct qf_strbuf *buf);
/* Give the text away (free() it); the buffer is empty after. Never NULL. */
char *qf_strbuf_take(struct qf_strbuf *buf);

#endif
