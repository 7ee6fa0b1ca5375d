/* heads_int.h - what questions about heads share: bodies of JSON, and asking all partitions. */
#ifndef INGEST_HTTP_HEADS_INT_H
#define INGEST_HTTP_HEADS_INT_H

#include <jansson.h>

#include "ingest/head/status.h"
#include "ingest/http/routes_int.h"

/* The body as an object, of somebody who may see all tenants; NULL: answered. */
json_t *in_body_read(struct qh_visit *visit);
void in_body_refuse(struct qh_visit *visit, qf_rc rc, const char *what);
/* Members of it. False: absent, or not what it should be. */
bool in_body_int(const json_t *root, const char *name, int64_t *ret_value);
bool in_body_number(const json_t *root, const char *name, int64_t max, uint64_t *ret_value);
bool in_body_id(const json_t *root, const char *name, uint64_t *ret_id); /* hex */
bool in_body_tenant(const json_t *root, struct qf_str *ret_tenant);      /* borrowed */

/* A question to the leaders of all partitions; the last answer makes the whole. */
struct in_round {
    struct in_routes *routes;
    struct qh_stream *stream;
    /* On a thread of the pool, or, if it is full, of the node: every part has its text. */
    void (*whole)(struct in_round *round);
    void *ctx; /* freed after it with: */
    void (*free_ctx)(void *ctx);
    uint32_t count;
    atomic_uint open;
    struct in_round_part {
        struct in_round *round;
        struct qf_strbuf text; /* of a status, without its closing brace; of BELOW, digits */
        struct qf_err err;
    } parts[];
};
/* Answer 503, naming @partition, whose part has an error. */
void in_round_failed(struct in_round *round, uint32_t partition);
/* Ask them, and free @ctx if there is nobody to ask; a part that fails is answered with 503 and its
 * number. @covered may be NULL. */
void in_round_begin(struct qh_visit *visit, struct in_status_ask *ask, const json_t *covered,
                    void (*whole)(struct in_round *round), void *ctx, void (*free_ctx)(void *ctx));
/* Ask them any other @question. */
void in_round_ask(struct qh_visit *visit, struct qf_str question,
                  void (*whole)(struct in_round *round));
/* Have them all write @record instead. */
void in_round_write(struct qh_visit *visit, struct qf_str record,
                    void (*whole)(struct in_round *round));

#endif
