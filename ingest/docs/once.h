/* once.h - requests with an idempotency key that are under way at this node: of a key one at a time. Any thread. */
#ifndef INGEST_DOCS_ONCE_H
#define INGEST_DOCS_ONCE_H

#include "ring/core/sheet.h"

enum {
    IN_ONCE_MAX = 64,     /* at a time */
    IN_ONCE_WAIT_MS = 250 /* a second one waits for the first */
};

struct in_once;

struct in_once *in_once_new(void);
struct in_once *in_once_free(struct in_once *once); /* Accepts NULL, returns NULL. */

/* Begin the request of @tenant's document @key with @repeat_key. False: one of these is under way, and did not end in
 * IN_ONCE_WAIT_MS; or IN_ONCE_MAX are. */
QF_MUST_CHECK bool in_once_begin(struct in_once *once, struct qf_str tenant, struct qf_str key,
                                 struct qf_str repeat_key, uint8_t ret_id[RG_DIGEST_BYTES]);
/* After a begin() that was true. */
void in_once_end(struct in_once *once, const uint8_t id[RG_DIGEST_BYTES]);

#endif
