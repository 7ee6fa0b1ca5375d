/* keep.h - a worker that is a keeper: its disk (ring/keeper/keeper.h) behind the worker's HTTP server, and what it does by
 * itself.
 *
 * Requests that wait for the disk run on a pool of their own, so many at a time and waiting; more are 503. Fetching from
 * other keepers has threads of its own: puts do not wait for it. One more thread verifies checksums at a quiet rate, another one
 * fetches what is missing (mend.h). Works of this worker read blobs that it holds in place. */
#ifndef QUERYWORKER_KEEP_KEEP_H
#define QUERYWORKER_KEEP_KEEP_H

#include "base/http/router.h"
#include "queryworker/metrics.h"
#include "ring/keeper/keeper.h"

struct qw_keep;

struct qw_keep_options {
    const char *dir;
    uint64_t reserve_bytes;
    uint64_t scrub_rate; /* bytes a second; 0: never */
    uint64_t threads;    /* requests at a time; 0: 8 */
    const char
        *key_file; /* who may ask: base/http/tenants.h, with keys for all tenants; NULL: anybody */
    const char *peer_key_file, *peer_ca_file; /* for other keepers; NULL: none, the system's */
    const char *peer_cert_file, *peer_cert_key_file; /* shown to them; NULL: none */
    struct sg_store
        *store; /* the ring that it is in, borrowed; NULL, or another store: it mends nothing */
    const char *name;           /* on that ring */
    int64_t mend_ms;            /* between two comparisons; 0: 10 s */
    struct qw_metrics *metrics; /* borrowed */
};

/* NULL and @err: errors of kp_open(), of the key files; QF_EUNAVAILABLE: no threads. */
struct qw_keep *qw_keep_new(const struct qw_keep_options *options, struct qf_err *err);
/* Requests under way are answered first. Accepts NULL, returns NULL. */
struct qw_keep *qw_keep_free(struct qw_keep *keep);

struct kp_keeper *qw_keep_keeper(struct qw_keep *keep);
struct sg_keep_client *qw_keep_client(struct qw_keep *keep);
struct qh_tenants *qw_keep_tenants(struct qw_keep *keep);
struct qw_metrics *qw_keep_metrics(struct qw_keep *keep);
/* Have fn(arg) run; @slow: on the threads for what takes long. False: too much waits. */
QF_MUST_CHECK bool qw_keep_submit(struct qw_keep *keep, bool slow, void (*fn)(void *arg),
                                  void *arg);

/* For the worker's router, whose role is that of artifact/serve.h. */
extern const struct qh_routes qw_keep_routes;
/* The keeper of that role. */
struct qw_keep *qw_http_keep(void *role);

#endif
