/* sealer.h - two threads that look after the heads of a node: one makes files of closed ranges and
 * lets go of what nobody can ask for; the other puts the files of partitions that this node leads into
 * the store, for which it may have to wait for hours, and tells it of tenants as soon as they come: who
 * merges their segments must ask for what is not sealed (segments/write/claim.h). */
#ifndef INGEST_SEAL_SEALER_H
#define INGEST_SEAL_SEALER_H

#include "ingest/head/heads.h"
#include "segments/store/store.h"

/* How a proposal ended: QF_OK, or why not. On any thread; must not wait. */
typedef void in_proposed(void *arg, qf_rc rc);

struct in_sealer_options {
    struct in_heads *heads; /* borrowed */
    struct sg_store *store; /* borrowed; NULL: nothing is ever sealed */
    void *ctx;
    uint64_t (*cluster)(void *ctx); /* that this node is in */
    /* This node leads @partition, as far as it knows. */
    bool (*leads)(void *ctx, uint32_t partition);
    /* Have @record appended to the partition's log; @done is called exactly once. */
    void (*propose)(void *ctx, uint32_t partition, struct qf_str record, in_proposed *done,
                    void *arg);
    /* Zero means the default. */
    int64_t pause_ms;       /* between rounds: 200 */
    int64_t retry_ms_max;   /* after errors of the store: up to 10 s */
    int64_t put_timeout_ms; /* for one call to the store: 5 min */
};

struct in_sealer_figures {
    atomic_uint_fast64_t ranges, files, present, bytes; /* sealed */
    atomic_uint_fast64_t failures;                      /* of the store, and of proposals */
    atomic_uint_fast64_t built, build_failures;         /* ranges that became files */
    atomic_bool store_away;                             /* the last try to put something failed */
};

struct in_sealer;

/* QF_EUNAVAILABLE: no threads. */
QF_MUST_CHECK qf_rc in_sealer_start(const struct in_sealer_options *options,
                                    struct in_sealer **ret_sealer, struct qf_err *err);
/* What is under way with the store is given up: the next leader finds it. Accepts NULL, returns
 * NULL. */
struct in_sealer *in_sealer_stop(struct in_sealer *sealer);
struct in_sealer_figures *in_sealer_figures(struct in_sealer *sealer);

#endif
