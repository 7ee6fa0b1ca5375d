/* fresh.c - the sealer of a node and the store it seals into; what came of both and of reads. */
#include "ingest/fresh/fresh.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "ingest/accept/partition.h"
#include "ingest/fresh/fresh_int.h"

#define PROPOSAL_TIMEOUT_MS 10000

static bool leads(void *ctx, uint32_t partition)
{
    return atomic_load(&((struct in_fresh *)ctx)->options.leads[partition]);
}

static uint64_t cluster(void *ctx)
{
    return qn_cluster(((struct in_fresh *)ctx)->options.node);
}

/* A proposal on its way through the node. */
struct proposal {
    in_proposed *done;
    void *arg;
};

static void proposed(void *ctx, struct qn_ask *ask)
{
    struct proposal *proposal = ctx;

    proposal->done(proposal->arg, ask->answer.err.rc);
    free(proposal);
    (void)qn_ask_free(ask);
}

static void propose(void *ctx, uint32_t partition, struct qf_str record, in_proposed *done,
                    void *arg)
{
    struct in_fresh *fresh = ctx;
    struct proposal *proposal = qf_xcalloc(1, sizeof(*proposal));
    struct qn_ask *ask = in_partition_ask(partition, record);

    *proposal = (struct proposal){ done, arg };
    ask->operates = true;
    ask->timeout_ms = PROPOSAL_TIMEOUT_MS;
    ask->done = proposed;
    ask->ctx = proposal;
    if (qn_ask(fresh->options.node, ask))
        return;
    (void)qn_ask_free(ask);
    free(proposal);
    done(arg, QF_EBUSY);
}

static qf_rc start_sealer(struct in_fresh *fresh, struct qf_err *err)
{
    const struct sg_store_options store = { .url = fresh->options.store, .create = true };
    struct in_sealer_options options = { .heads = fresh->options.heads,
                                         .ctx = fresh,
                                         .cluster = cluster,
                                         .leads = leads,
                                         .propose = propose };
    qf_rc rc = QF_OK;

    if (fresh->options.store && *fresh->options.store)
        rc = sg_store_open(&store, &fresh->store, err);
    if (sg_store_is_ring(fresh->store) && fresh->options.handoff)
        sg_ring_set_handoff(fresh->store, fresh->options.handoff);
    options.store = fresh->store;
    return rc == QF_OK ? in_sealer_start(&options, &fresh->sealer, err) : rc;
}

qf_rc in_fresh_start(const struct in_fresh_options *options, struct in_fresh **ret_fresh,
                     struct qf_err *err)
{
    struct in_fresh *fresh = qf_xcalloc(1, sizeof(*fresh));
    qf_rc rc;

    fresh->options = *options;
    rc = in_fresh_reads_start(fresh, err);
    if (rc == QF_OK)
        rc = start_sealer(fresh, err);
    if (rc != QF_OK)
        fresh = in_fresh_stop(fresh);
    *ret_fresh = fresh;
    return rc;
}

struct in_fresh *in_fresh_stop(struct in_fresh *fresh)
{
    if (!fresh)
        return NULL;
    fresh->sealer = in_sealer_stop(fresh->sealer);
    fresh->store = sg_store_free(fresh->store);
    in_fresh_reads_stop(fresh);
    free(fresh);
    return NULL;
}

struct in_fresh_figures in_fresh_figures(struct in_fresh *fresh)
{
    struct in_sealer_figures *sealer = in_sealer_figures(fresh->sealer);
    struct in_fresh_figures figures = { .reads = atomic_load(&fresh->reads),
                                        .reads_refused = atomic_load(&fresh->refused),
                                        .reads_gone = atomic_load(&fresh->gone),
                                        .read_samples = atomic_load(&fresh->samples),
                                        .read_bytes = atomic_load(&fresh->bytes),
                                        .ranges_sealed = atomic_load(&sealer->ranges),
                                        .files_put = atomic_load(&sealer->files),
                                        .files_present = atomic_load(&sealer->present),
                                        .bytes_put = atomic_load(&sealer->bytes),
                                        .seal_failures = atomic_load(&sealer->failures),
                                        .ranges_built = atomic_load(&sealer->built),
                                        .build_failures = atomic_load(&sealer->build_failures),
                                        .store_away = atomic_load(&sealer->store_away) };

    qf_lock_take(fresh->lock);
    figures.reads_waiting = fresh->waiting;
    qf_lock_drop(fresh->lock);
    return figures;
}
