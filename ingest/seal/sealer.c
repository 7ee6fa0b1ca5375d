/* sealer.c - the threads around heads: build and let go; put and propose. */
#include "ingest/seal/sealer.h"

#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/sys/log.h"
#include "base/sys/thread.h"
#include "ingest/seal/seal.h"
#include "segments/write/claim.h"

#define PAUSE_MS 200
#define RETRY_MS_MIN 500
#define RETRY_MS_MAX 10000
/* Ranges of tenants that fail one after the other: the store is away, and no more are tried. */
#define FAILURES_MAX 3
#define PUT_TIMEOUT_MS (INT64_C(5) * 60 * 1000)
/* Tenants of a partition that the store is told of in one round. */
#define ANNOUNCED_MAX 64
/* An application that does not hear of its proposal has lost it: the range comes up again. */
#define PROPOSAL_MS 20000

struct in_sealer {
    struct in_sealer_options options;
    struct in_sealer_figures figures;
    struct qf_thread *builder, *putter;
    size_t announced[IN_PARTITIONS_MAX]; /* tenants of the partition that the store was told of */
    struct qf_lock *lock;                /* for waiting, and of a proposal under way */
    atomic_bool stop;
    atomic_uint refs; /* the owner's, and one of each proposal that was not answered yet */
};

/* A proposal and whoever waits for it; the last of the two frees it. */
struct proposal {
    struct in_sealer *sealer;
    atomic_uint refs;
    bool ended; /* behind the sealer's lock */
    qf_rc rc;
};

/* Sleep, unless it is time to stop. */
static void pause_for(struct in_sealer *sealer, int64_t ms)
{
    qf_lock_take(sealer->lock);
    if (!atomic_load(&sealer->stop))
        (void)qf_lock_wait(sealer->lock, ms);
    qf_lock_drop(sealer->lock);
}

/* --- building --- */

static bool build_one(struct in_sealer *sealer, uint32_t partition, struct in_head *head,
                      bool *failing)
{
    struct qf_err err = { 0 };
    bool built = false;
    qf_rc rc = in_head_build(head, &built, &err);

    if (rc == QF_OK) {
        atomic_fetch_add(&sealer->figures.built, built);
        *failing = false;
        return built;
    }
    atomic_fetch_add(&sealer->figures.build_failures, 1);
    if (!*failing)
        QF_LOG_WARN("files of a closed range cannot be written, it stays in memory",
                    QF_KV_U64("partition", partition), QF_KV_STR("error", err.msg));
    *failing = true;
    return false;
}

static void run_builder(void *arg)
{
    struct in_sealer *sealer = arg;
    struct in_heads *heads = sealer->options.heads;
    bool failing = false;

    while (!atomic_load(&sealer->stop)) {
        bool any = false;

        for (uint32_t i = 0; i < in_heads_count(heads) && !atomic_load(&sealer->stop); i++) {
            struct in_head *head = in_heads_get(heads, i, NULL);

            if (!head)
                continue;
            any |= build_one(sealer, i, head, &failing);
            in_head_tick(head);
        }
        in_heads_relieve(heads);
        if (!any)
            pause_for(sealer, failing ? 10 * sealer->options.pause_ms : sealer->options.pause_ms);
    }
}

/* --- sealing --- */

static void drop_sealer(struct in_sealer *sealer)
{
    if (atomic_fetch_sub(&sealer->refs, 1) > 1)
        return;
    (void)qf_lock_free(sealer->lock);
    free(sealer);
}

static void drop_proposal(struct proposal *proposal)
{
    if (atomic_fetch_sub(&proposal->refs, 1) > 1)
        return;
    drop_sealer(proposal->sealer);
    free(proposal);
}

static void proposed(void *arg, qf_rc rc)
{
    struct proposal *proposal = arg;

    qf_lock_take(proposal->sealer->lock);
    proposal->ended = true;
    proposal->rc = rc;
    qf_lock_wake_all(proposal->sealer->lock);
    qf_lock_drop(proposal->sealer->lock);
    drop_proposal(proposal);
}

/* Have @record in the log, or know that it is not. */
static qf_rc propose(struct in_sealer *sealer, uint32_t partition, struct qf_str record)
{
    struct proposal *proposal = qf_xcalloc(1, sizeof(*proposal));
    qf_rc rc;

    proposal->sealer = sealer;
    atomic_store(&proposal->refs, 2);
    atomic_fetch_add(&sealer->refs, 1);
    sealer->options.propose(sealer->options.ctx, partition, record, proposed, proposal);
    qf_lock_take(sealer->lock);
    while (!proposal->ended && !atomic_load(&sealer->stop))
        if (!qf_lock_wait(sealer->lock, PROPOSAL_MS))
            break;
    rc = proposal->ended ? proposal->rc : QF_ETIMEOUT;
    qf_lock_drop(sealer->lock);
    drop_proposal(proposal);
    return rc;
}

static qf_rc seal_range(struct in_sealer *sealer, uint32_t partition,
                        const struct in_head_sealable *range, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf record = QF_STRBUF_INIT;
    const struct sg_store_call call = { .cancel = &sealer->stop,
                                        .timeout_ms = sealer->options.put_timeout_ms };
    struct in_seal_result result = { 0 };
    uint64_t cluster = sealer->options.cluster(sealer->options.ctx);
    qf_rc rc = in_seal(range, sealer->options.store, cluster, &call, &record, &result, err);

    atomic_store(&sealer->figures.store_away, rc != QF_OK && rc != QF_ECANCELED);
    if (rc != QF_OK)
        return qf_err_prefix(err, rc, "the store");
    rc = propose(sealer, partition, qf_strbuf_view(&record));
    /* Refused since it is not its turn: the leader before this one, or a proposal that nobody heard the end of, was
     * quicker. The head hears of it with the log. */
    if (rc == QF_EINVAL) {
        QF_LOG_DEBUG("a range was sealed already", QF_KV_U64("partition", partition),
                     QF_KV_STR("tenant", range->tenant));
        return rc;
    }
    if (rc != QF_OK)
        return qf_err_set(err, rc, "SEALED was not applied: %s", qf_rc_text(rc));
    atomic_fetch_add(&sealer->figures.ranges, 1);
    atomic_fetch_add(&sealer->figures.files, result.put);
    atomic_fetch_add(&sealer->figures.present, result.present);
    atomic_fetch_add(&sealer->figures.bytes, result.bytes);
    return QF_OK;
}

/* What came of one look at all partitions. */
struct look {
    bool any;          /* something was sealed */
    unsigned failures; /* in a row */
    struct qf_err err; /* the first */
};

static void count(struct in_sealer *sealer, struct look *look, const struct qf_err *err)
{
    look->failures = err->rc ? look->failures + 1 : 0;
    if (err->rc && !look->err.rc)
        look->err = *err;
    atomic_fetch_add(&sealer->figures.failures, err->rc != QF_OK);
}

/* New tenants of a partition. */
static void announce_tenants(struct in_sealer *sealer, uint32_t partition, struct in_head *head,
                             struct look *look)
{
    const struct sg_store_call call = { .cancel = &sealer->stop,
                                        .timeout_ms = sealer->options.put_timeout_ms };
    uint64_t cluster = sealer->options.cluster(sealer->options.ctx);
    size_t *told = &sealer->announced[partition];
    struct qf_err err = { 0 };

    for (int n = 0; n < ANNOUNCED_MAX && !err.rc && !atomic_load(&sealer->stop); n++) {
        char *tenant = in_head_tenant_name(head, *told);

        if (!tenant)
            return;
        *told += sg_claim_ingest(sealer->options.store, qf_str_from(tenant), cluster, &call,
                                 &err) == QF_OK;
        free(tenant);
        count(sealer, look, &err);
    }
}

static void try_range(struct in_sealer *sealer, uint32_t partition,
                      const struct in_head_sealable *range, struct look *look)
{
    struct qf_err err = { 0 };

    look->any |= seal_range(sealer, partition, range, &err) == QF_OK;
    count(sealer, look, &err);
}

/* The oldest range of every tenant of a partition. One that fails does not hold up the others'. */
static void seal_partition(struct in_sealer *sealer, uint32_t partition, struct look *look)
{
    struct in_head *head = in_heads_get(sealer->options.heads, partition, NULL);
    struct in_head_sealable range;
    char *after = NULL;

    if (head && sealer->options.leads(sealer->options.ctx, partition))
        announce_tenants(sealer, partition, head, look);
    else
        sealer->announced[partition] = 0; /* whoever leads has told of them meanwhile, or not */
    while (head && look->failures < FAILURES_MAX && !atomic_load(&sealer->stop) &&
           sealer->options.leads(sealer->options.ctx, partition) &&
           in_head_next_sealable(head, after, &range)) {
        try_range(sealer, partition, &range, look);
        free(after);
        after = qf_xstrdup(range.tenant);
        in_head_sealable_done(&range);
    }
    free(after);
}

static void run_putter(void *arg)
{
    struct in_sealer *sealer = arg;
    int64_t retry_ms = 0;

    while (!atomic_load(&sealer->stop)) {
        struct look look = { 0 };

        for (uint32_t i = 0; i < in_heads_count(sealer->options.heads); i++)
            seal_partition(sealer, i, &look);
        if (look.err.rc && !atomic_load(&sealer->stop)) {
            if (!retry_ms)
                QF_LOG_WARN("a range cannot be sealed, will be tried again",
                            QF_KV_STR("error", look.err.msg));
            /* If others went well the store is there: soon again. */
            retry_ms = QF_MIN(retry_ms && !look.any ? 2 * retry_ms : (int64_t)RETRY_MS_MIN,
                              sealer->options.retry_ms_max);
            pause_for(sealer, retry_ms);
        } else {
            if (retry_ms && look.any)
                QF_LOG_INFO("ranges are sealed again");
            retry_ms = look.any ? 0 : retry_ms;
            if (!look.any)
                pause_for(sealer, sealer->options.pause_ms);
        }
    }
}

/* --- life --- */

qf_rc in_sealer_start(const struct in_sealer_options *options, struct in_sealer **ret_sealer,
                      struct qf_err *err)
{
    struct in_sealer *sealer = qf_xcalloc(1, sizeof(*sealer));

    sealer->options = *options;
    atomic_store(&sealer->refs, 1);
    if (!sealer->options.pause_ms)
        sealer->options.pause_ms = PAUSE_MS;
    if (!sealer->options.retry_ms_max)
        sealer->options.retry_ms_max = RETRY_MS_MAX;
    if (!sealer->options.put_timeout_ms)
        sealer->options.put_timeout_ms = PUT_TIMEOUT_MS;
    sealer->lock = qf_lock_new();
    sealer->builder = qf_thread_start("build", run_builder, sealer);
    if (options->store && sealer->builder)
        sealer->putter = qf_thread_start("seal", run_putter, sealer);
    if (!sealer->builder || (options->store && !sealer->putter)) {
        (void)in_sealer_stop(sealer);
        return qf_err_set(err, QF_EUNAVAILABLE, "cannot start threads");
    }
    *ret_sealer = sealer;
    return QF_OK;
}

struct in_sealer *in_sealer_stop(struct in_sealer *sealer)
{
    if (!sealer)
        return NULL;
    qf_lock_take(sealer->lock);
    atomic_store(&sealer->stop, true);
    qf_lock_wake_all(sealer->lock);
    qf_lock_drop(sealer->lock);
    (void)qf_thread_join(sealer->builder);
    (void)qf_thread_join(sealer->putter);
    drop_sealer(sealer);
    return NULL;
}

struct in_sealer_figures *in_sealer_figures(struct in_sealer *sealer)
{
    return &sealer->figures;
}
