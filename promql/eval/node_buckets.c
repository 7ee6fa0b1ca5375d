/* node_buckets.c - histogram_quantile, histogram_quantiles and histogram_fraction over classic
 * buckets and native histograms; histogram_count and its like, which know native ones only. */
#include <math.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "promql/eval/exec.h"
#include "promql/func/buckets.h"
#include "promql/func/kernels.h"
#include "promql/func/texts.h"
#include "promql/histogram/stats.h"

#define QUANTILES_MAX 10

/* A bucket series of a histogram. */
struct member {
    struct member *next;
    double le;
    uint32_t series;
};

/* What was repaired, for the one note about it at the end. */
struct repairs {
    struct pq_bucket_repair worst;
    uint64_t samples;
    int64_t from, to;
};

struct histogram {
    struct qf_labels labels; /* without le, with the name */
    bool drop;
    struct member *members;
    size_t member_count;
    struct member *natives;      /* series that have native histograms with these labels */
    uint32_t out[QUANTILES_MAX]; /* series; one per quantile */
    double out_q[QUANTILES_MAX]; /* histogram_quantiles: the quantile the label was made for */
    struct repairs repairs;
};

struct buckets {
    struct pq_exec exec;
    struct pq_label_index index; /* labels without le -> histogram */
    struct pq_label_index outs;  /* histogram_quantiles: labels with the quantile -> series */
    struct histogram *histograms;
    size_t count, capacity;
    size_t known;    /* child's series looked at */
    bool *is_native; /* per series of the child: it is among the natives of a histogram */
    size_t native_capacity, native_known;
    struct pq_bucket *scratch;
    size_t scratch_capacity;
};

static bool is_quantiles(const struct pq_exec *exec)
{
    return exec->plan->function == PQ_FN_HISTOGRAM_QUANTILES;
}

static qf_rc find_histogram(struct buckets *self, struct qf_labels labels, bool drop,
                            struct histogram **ret, struct qf_err *err)
{
    static const struct qf_str le = QF_STR_INIT("le");
    struct pq_exec *exec = &self->exec;
    struct qf_labels rest;
    struct histogram *h;
    uint32_t id;
    bool fresh;
    qf_rc rc;

    if (!qf_labels_drop(exec->eval->arena, labels, &le, 1, &rest))
        return pq_eval_no_memory(err);
    rc =
        pq_label_index_put(&self->index, exec->eval, rest, (uint32_t)self->count, &id, &fresh, err);
    if (rc != QF_OK)
        return rc;
    if (fresh) {
        if (!pq_grow(exec->eval->arena, &self->histograms, &self->capacity, self->count + 1,
                     sizeof(*h)))
            return pq_eval_no_memory(err);
        h = &self->histograms[self->count++];
        *h = (struct histogram){ .labels = rest, .drop = drop };
        for (size_t i = 0; i < QUANTILES_MAX; i++)
            h->out[i] = UINT32_MAX;
        if (!is_quantiles(exec)) {
            h->out[0] = (uint32_t)exec->set.count;
            rc = pq_exec_add(exec, rest, drop || exec->plan->drops_names, err);
        }
    }
    *ret = &self->histograms[id];
    return rc;
}

/* Put the series of the child that are new into their histograms; those without a usable bound are
 * marked with a NULL histogram and noted when they first have a value. */
static qf_rc sort_in(struct buckets *self, struct qf_err *err)
{
    const struct pq_exec *child = self->exec.children[0];

    for (; self->known < child->set.count; self->known++) {
        struct qf_labels labels = child->set.labels[self->known];
        struct histogram *h = NULL;
        struct member *member;
        double le;
        qf_rc rc;

        if (!pq_fn_bucket_le(qf_labels_get(labels, QF_STR("le")), &le))
            continue;
        rc = find_histogram(self, labels, child->set.drop[self->known], &h, err);
        if (rc != QF_OK)
            return rc;
        member = QF_ARENA_NEW(self->exec.eval->arena, struct member);
        if (!member)
            return pq_eval_no_memory(err);
        *member = (struct member){ h->members, le, (uint32_t)self->known };
        h->members = member;
        h->member_count++;
        if (h->member_count > self->scratch_capacity) {
            self->scratch_capacity = h->member_count * 2;
            self->scratch =
                qf_xrealloc(self->scratch, self->scratch_capacity * sizeof(*self->scratch));
        }
    }
    return QF_OK;
}

/* The series of this block that have native histograms go to those they are part of. */
static qf_rc sort_in_natives(struct buckets *self, struct qf_err *err)
{
    const struct pq_exec *child = self->exec.children[0];
    struct qf_arena *arena = self->exec.eval->arena;

    if (!child->batch.histograms)
        return QF_OK;
    if (!pq_grow(arena, &self->is_native, &self->native_capacity, child->set.count, sizeof(bool)))
        return pq_eval_no_memory(err);
    for (; self->native_known < child->set.count; self->native_known++)
        self->is_native[self->native_known] = false;
    for (size_t s = 0; s < child->batch.series_count; s++) {
        uint64_t bits = self->is_native[s] ? 0 : child->batch.present[s];
        struct histogram *h;
        struct member *member;
        qf_rc rc;

        while (bits && !pq_batch_histogram(&child->batch, s, (size_t)__builtin_ctzll(bits)))
            bits &= bits - 1;
        if (!bits)
            continue;
        rc = find_histogram(self, child->set.labels[s], child->set.drop[s], &h, err);
        if (rc != QF_OK)
            return rc;
        member = QF_ARENA_NEW(arena, struct member);
        if (!member)
            return pq_eval_no_memory(err);
        *member = (struct member){ .next = h->natives, .series = (uint32_t)s };
        h->natives = member;
        self->is_native[s] = true;
    }
    return QF_OK;
}

/* The native histogram with these labels at a step, if there is one. */
static const struct pq_histogram *native_at(const struct buckets *self, const struct histogram *h,
                                            size_t k)
{
    const struct pq_batch *in = &self->exec.children[0]->batch;

    for (const struct member *m = h->natives; m; m = m->next)
        if ((in->present[m->series] >> k & 1) && pq_batch_histogram(in, m->series, k))
            return pq_batch_histogram(in, m->series, k);
    return NULL;
}

/* The series has a float at some step of the block. */
static bool has_float(const struct pq_batch *batch, size_t s)
{
    uint64_t bits = batch->present[s];

    while (bits && pq_batch_histogram(batch, s, (size_t)__builtin_ctzll(bits)))
        bits &= bits - 1;
    return bits != 0;
}

static void note_bad_bounds(struct buckets *self)
{
    const struct pq_exec *child = self->exec.children[0];

    for (size_t s = 0; s < child->batch.series_count; s++) {
        struct qf_labels labels = child->set.labels[s];
        struct qf_str le = qf_labels_get(labels, QF_STR("le"));
        double bound;

        if (!pq_fn_bucket_le(le, &bound) && has_float(&child->batch, s))
            pq_note_bad_le(&self->exec.eval->notes, self->exec.plan->child_pos[0], le,
                           qf_labels_get(labels, QF_STR(QF_METRIC_NAME)));
    }
}

/* The buckets of a histogram at a step. */
static size_t gather(struct buckets *self, const struct histogram *h, size_t k)
{
    const struct pq_batch *in = &self->exec.children[0]->batch;
    size_t count = 0;

    for (const struct member *m = h->members; m; m = m->next)
        if ((in->present[m->series] >> k & 1) && !pq_batch_histogram(in, m->series, k))
            self->scratch[count++] = (struct pq_bucket){ m->le, pq_row(in, m->series)[k] };
    return count;
}

static void remember_repair(struct histogram *h, const struct pq_bucket_repair *repair, int64_t ts)
{
    struct repairs *r = &h->repairs;

    if (!repair->forced)
        return;
    if (r->samples++ == 0) {
        r->worst = *repair;
        r->from = r->to = ts;
        return;
    }
    r->worst.min_le = fmin(r->worst.min_le, repair->min_le);
    r->worst.max_le = fmax(r->worst.max_le, repair->max_le);
    r->worst.max_diff = fmax(r->worst.max_diff, repair->max_diff);
    r->from = QF_MIN(r->from, ts);
    r->to = QF_MAX(r->to, ts);
}

/* One note for all histograms of a metric. */
static void note_repairs(struct buckets *self)
{
    for (size_t i = 0; i < self->count; i++) {
        struct histogram *h = &self->histograms[i];
        struct qf_str name = qf_labels_get(h->labels, QF_STR(QF_METRIC_NAME));

        if (h->repairs.samples == 0)
            continue;
        for (size_t j = i + 1; j < self->count; j++) {
            struct histogram *other = &self->histograms[j];
            uint64_t samples = h->repairs.samples + other->repairs.samples - 1;

            if (other->repairs.samples == 0 ||
                !qf_str_eq(name, qf_labels_get(other->labels, QF_STR(QF_METRIC_NAME))))
                continue;
            remember_repair(h, &other->repairs.worst, other->repairs.from);
            h->repairs.to = QF_MAX(h->repairs.to, other->repairs.to);
            h->repairs.samples = samples + 1;
            other->repairs.samples = 0;
        }
        pq_note_monotonicity(&self->exec.eval->notes, self->exec.plan->child_pos[0], name,
                             &h->repairs.worst, h->repairs.samples, h->repairs.from, h->repairs.to);
    }
}

/* The series of a histogram for quantile number @i; a quantile that changes by step changes it. */
static qf_rc quantile_series(struct buckets *self, struct histogram *h, size_t i, double q,
                             struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    char text[QF_DOUBLE_TEXT_MAX];
    struct qf_labels labels, copy;
    bool fresh;
    qf_rc rc;

    if (h->out[i] != UINT32_MAX && qf_double_bits(h->out_q[i]) == qf_double_bits(q))
        return QF_OK;
    if (!qf_labels_set(exec->eval->arena, h->labels, exec->plan->label,
                       (struct qf_str){ text, pq_fn_quantile_label(q, text) }, &labels) ||
        !qf_labels_copy(exec->eval->arena, labels, &copy))
        return pq_eval_no_memory(err);
    rc = pq_label_index_put(&self->outs, exec->eval, copy, (uint32_t)exec->set.count, &h->out[i],
                            &fresh, err);
    if (rc == QF_OK && fresh)
        rc = pq_exec_add(exec, copy, h->drop || exec->plan->drops_names, err);
    h->out_q[i] = q;
    return rc;
}

static qf_rc make_quantile_series(struct buckets *self, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    qf_rc rc = QF_OK;

    for (size_t h = 0; h < self->count && rc == QF_OK; h++)
        for (size_t i = 1; i < exec->child_count && rc == QF_OK; i++)
            for (size_t k = 0; k < exec->children[i]->batch.steps && rc == QF_OK; k++)
                rc = quantile_series(self, &self->histograms[h], i - 1,
                                     exec->children[i]->batch.values[k], err);
    return rc;
}

static qf_rc put(struct pq_exec *exec, uint32_t out, size_t k, double value, struct qf_err *err)
{
    if (exec->batch.present[out] >> k & 1)
        return qf_err_set(err, QF_EEXEC, PQ_SAME_LABELSET);
    exec->batch.present[out] |= (uint64_t)1 << k;
    pq_row(&exec->batch, out)[k] = value;
    return QF_OK;
}

static double native_fraction(struct buckets *self, const struct pq_histogram *native, size_t k,
                              struct qf_str name)
{
    struct pq_exec *exec = &self->exec;

    if (pq_histogram_has_nan(native))
        pq_note_fraction_nan(&exec->eval->notes, self->exec.plan->child_pos[0], name);
    return pq_histogram_fraction(native, exec->children[1]->batch.values[k],
                                 exec->children[2]->batch.values[k]);
}

static double native_quantile(struct buckets *self, const struct pq_histogram *native, double q,
                              struct qf_str name)
{
    enum pq_nan_effect nan;
    double value = pq_histogram_quantile(native, q, &nan);

    if (nan != PQ_NAN_NONE)
        pq_note_quantile_nan(&self->exec.eval->notes, self->exec.plan->child_pos[0],
                             nan == PQ_NAN_RESULT, name);
    return value;
}

/* A step at which the histogram is a native one. */
static qf_rc run_native_step(struct buckets *self, struct histogram *h,
                             const struct pq_histogram *native, size_t k, struct qf_err *err)
{
    struct qf_str name = qf_labels_get(h->labels, QF_STR(QF_METRIC_NAME));
    struct pq_exec *exec = &self->exec;
    qf_rc rc = QF_OK;

    if (exec->plan->function == PQ_FN_HISTOGRAM_FRACTION)
        return put(exec, h->out[0], k, native_fraction(self, native, k, name), err);
    for (size_t i = 1; i < exec->child_count && rc == QF_OK; i++) {
        double q = exec->children[i]->batch.values[k];

        if (is_quantiles(exec))
            rc = quantile_series(self, h, i - 1, q, err);
        if (rc == QF_OK)
            rc = put(exec, h->out[i - 1], k, native_quantile(self, native, q, name), err);
    }
    return rc;
}

static qf_rc run_step(struct buckets *self, struct histogram *h, size_t k, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    const struct pq_histogram *native = native_at(self, h, k);
    size_t count = gather(self, h, k);
    qf_rc rc = QF_OK;

    if (native && count > 0) {
        pq_note_mixed_classic_native(&exec->eval->notes, self->exec.plan->child_pos[0],
                                     qf_labels_get(h->labels, QF_STR(QF_METRIC_NAME)));
        return QF_OK;
    }
    if (native)
        return run_native_step(self, h, native, k, err);
    if (count == 0)
        return QF_OK;
    if (exec->plan->function == PQ_FN_HISTOGRAM_FRACTION)
        return put(exec, h->out[0], k,
                   pq_fn_bucket_fraction(exec->children[1]->batch.values[k],
                                         exec->children[2]->batch.values[k], self->scratch, count),
                   err);
    for (size_t i = 1; i < exec->child_count && rc == QF_OK; i++) {
        double q = exec->children[i]->batch.values[k];
        struct pq_bucket_repair repair = { 0 };
        double value;

        if (i > 1)
            count = gather(self, h, k);
        value = pq_fn_bucket_quantile(q, self->scratch, count, &repair);
        remember_repair(h, &repair, pq_exec_time(exec, k));
        if (is_quantiles(exec))
            rc = quantile_series(self, h, i - 1, q, err);
        if (rc == QF_OK)
            rc = put(exec, h->out[i - 1], k, value, err);
    }
    return rc;
}

static qf_rc run_buckets(struct buckets *self, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    bool fraction = exec->plan->function == PQ_FN_HISTOGRAM_FRACTION;
    qf_rc rc = sort_in(self, err);

    if (rc == QF_OK)
        rc = sort_in_natives(self, err);
    if (rc == QF_OK && is_quantiles(exec))
        rc = make_quantile_series(self, err);
    if (rc == QF_OK)
        rc = pq_exec_begin(exec, err);
    if (rc != QF_OK)
        return rc;
    note_bad_bounds(self);
    for (size_t i = 1; i < exec->child_count && !fraction; i++)
        for (size_t k = 0; k < exec->batch.steps; k++)
            pq_note_quantile(&exec->eval->notes, exec->plan->child_pos[i],
                             exec->children[i]->batch.values[k]);
    for (size_t h = 0; h < self->count && rc == QF_OK; h++)
        for (size_t k = 0; k < exec->batch.steps && rc == QF_OK; k++)
            rc = run_step(self, &self->histograms[h], k, err);
    if (rc == QF_OK && exec->position + exec->batch.steps == exec->plan->grid.count)
        note_repairs(self);
    return rc;
}

/* What is written in the histogram itself; floats are passed over in silence. */
static qf_rc run_native(struct pq_exec *exec, struct qf_err *err)
{
    const struct pq_function *function = pq_function_get(exec->plan->function);
    pq_native_fn *native = pq_kernels_of(function->id)->native;
    struct pq_exec *child = exec->children[0];
    const struct pq_batch *in = &child->batch;
    qf_rc rc = in->histograms ? pq_exec_mirror(exec, child, err) : QF_OK;

    if (rc == QF_OK)
        rc = pq_exec_begin(exec, err);
    for (size_t s = 0; rc == QF_OK && in->histograms && s < in->series_count; s++)
        for (uint64_t bits = in->present[s]; bits && rc == QF_OK; bits &= bits - 1) {
            size_t k = (size_t)__builtin_ctzll(bits);
            const struct pq_histogram *h = pq_batch_histogram(in, s, k);

            if (h)
                rc = put(exec, (uint32_t)s, k, native(h), err);
        }
    return rc;
}

static qf_rc buckets_next(struct pq_exec *exec, struct qf_err *err)
{
    struct buckets *self = (struct buckets *)exec;
    const struct pq_function *function = pq_function_get(exec->plan->function);
    qf_rc rc = QF_OK;

    for (size_t i = 0; i < exec->child_count && rc == QF_OK; i++)
        rc = pq_exec_next(exec->children[i], err);
    if (rc != QF_OK)
        return rc;
    return function->kind == PQ_CLASS_HISTOGRAM ? run_native(exec, err) : run_buckets(self, err);
}

static void buckets_close(struct pq_exec *exec)
{
    struct buckets *self = (struct buckets *)exec;

    pq_label_index_done(&self->index);
    pq_label_index_done(&self->outs);
    free(self->scratch);
}

static const struct pq_exec_ops buckets_ops = { buckets_next, buckets_close };

struct pq_exec *pq_node_buckets(struct pq_eval *eval, const struct pq_plan_node *plan)
{
    return pq_exec_new(eval, plan, &buckets_ops, sizeof(struct buckets));
}
