/* run.c - a leaf over one shard: series in, rows out. */
#include <assert.h>

#include "base/pure/duration.h"
#include "promql/leaf/leaf_int.h"
#include "promql/leaf_reuse.h"

static qf_rc run_all(struct pq_source *source, const struct pq_leaf_limits *limits,
                     struct pq_chain *chain, struct pq_sink *sink, struct pq_leaf_result *result,
                     struct qf_err *err)
{
    uint64_t series_count = 0;

    for (;;) {
        struct pq_series series;
        struct pq_lane lane;
        bool more = false;
        qf_rc rc = pq_poll_look(chain->poll) ? pq_leaf_canceled(err) : QF_OK;

        if (rc == QF_OK)
            rc = source->next(source, &series, &more, err);
        if (rc != QF_OK || !more)
            return rc;
        if (limits->series_max && ++series_count > limits->series_max)
            return qf_err_set(err, QF_ELIMIT, "the query selects more than %llu series",
                              (unsigned long long)limits->series_max);
        result->samples_read += series.count;
        rc = pq_leaf_check_series(chain->leaf, &series, err);
        if (rc == QF_OK)
            rc = pq_chain_run(chain, &series, &lane, err);
        if (rc == QF_OK)
            rc = pq_sink_add(sink, series.labels, &lane, err);
        if (rc == QF_OK && chain->poll->stopped)
            rc = pq_leaf_canceled(err);
        if (rc != QF_OK)
            return rc;
    }
}

qf_rc pq_leaf_run(const struct pq_leaf *leaf, struct pq_source *source,
                  const struct pq_leaf_limits *limits, const atomic_bool *canceled,
                  struct qf_arena *arena, struct pq_leaf_result *ret_result, struct qf_err *err)
{
    struct pq_poll poll = { .canceled = canceled };

    return pq_leaf_run_polled(leaf, source, limits, &poll, arena, ret_result, err);
}

qf_rc pq_leaf_run_polled(const struct pq_leaf *leaf, struct pq_source *source,
                         const struct pq_leaf_limits *limits, struct pq_poll *poll,
                         struct qf_arena *arena, struct pq_leaf_result *ret_result,
                         struct qf_err *err)
{
    static const struct pq_leaf_limits no_limits;
    struct pq_leaf_result result = { .kind = leaf->kind, .notes.arena = arena };
    struct pq_chain chain;
    struct pq_sink sink;
    qf_rc rc;

    if (!limits)
        limits = &no_limits;
    if (leaf->kind == &pq_leaf_samples) {
        rc = pq_samples_run(leaf, source, limits, poll, arena, &result, err);
        if (rc == QF_OK)
            *ret_result = result;
        return rc;
    }
    if (limits->points_by_step) {
        assert(pq_leaf_reusable(leaf));
        result.points_by_step = QF_ARENA_ARRAY(arena, uint32_t, pq_leaf_grid(leaf)->count);
    }
    if (qf_arena_failed(arena) || !pq_sink_init(&sink, leaf, arena, &result.notes, poll))
        return pq_leaf_no_memory(err);
    pq_chain_init(&chain, leaf, limits->samples_max, &result.notes, poll);
    chain.points_by_step = result.points_by_step;
    rc = run_all(source, limits, &chain, &sink, &result, err);
    if (rc == QF_OK)
        rc = pq_sink_rows(&sink, &result, err);
    if (rc == QF_OK && poll->stopped)
        rc = pq_leaf_canceled(err);
    result.points = chain.points;
    pq_chain_done(&chain);
    pq_sink_done(&sink);
    if (rc == QF_OK)
        *ret_result = result;
    return rc;
}

/* Whether any step of @stage looks at the value of sample @i: the first step that could see it
 * decides. A sample is not seen between two windows or behind a newer one. */
static bool sees_sample(const struct pq_stage *stage, const struct pq_series *series, size_t i)
{
    const struct pq_grid *grid = &stage->grid;
    int64_t first = grid->start_ms - stage->offset_ms;
    int64_t last = first + (int64_t)(grid->count - 1) * grid->step_ms;
    int64_t ahead = stage->smoothed ? stage->lookback_ms : 0;
    int64_t back = stage->range_ms;
    int64_t ref = first, ts = series->ts[i];

    if (stage->kind == PQ_STAGE_WINDOW && (stage->anchored || stage->smoothed))
        back += stage->lookback_ms;
    if (ts - ahead > first)
        ref = first + (qf_floor_div(ts - ahead - first - 1, grid->step_ms) + 1) * grid->step_ms;
    if (ref > last || ts <= ref - back)
        return false;
    return stage->kind != PQ_STAGE_INSTANT || stage->smoothed || i + 1 == series->count ||
           series->ts[i + 1] > ref;
}

static qf_rc info_histogram(struct qf_labels labels, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

    qf_labels_print(&text, labels);
    return qf_err_set(err, QF_EEXEC, "this should be an info metric, with float samples: %s",
                      qf_strbuf_cstr(&text));
}

qf_rc pq_leaf_check_series(const struct pq_leaf *leaf, const struct pq_series *series,
                           struct qf_err *err)
{
    const struct pq_stage *stage = &leaf->stages[0];

    if (!series->histograms || stage->take != PQ_TAKE_INFO)
        return QF_OK;
    for (size_t i = 0; i < series->count; i++) {
        if (series->histograms[i] && sees_sample(stage, series, i))
            return info_histogram(series->labels, err);
    }
    return QF_OK;
}
