/* node_scalar.c - numbers, time(), vector(), scalar(), timestamp(), and steps that repeat. */
#include <math.h>

#include "promql/eval/exec.h"

/* A scalar is one series without labels that is always present. */
static qf_rc begin_scalar(struct pq_exec *exec, struct qf_err *err)
{
    qf_rc rc = QF_OK;

    if (exec->set.count == 0)
        rc = pq_exec_add(exec, (struct qf_labels){ 0 }, false, err);
    if (rc == QF_OK)
        rc = pq_exec_begin(exec, err);
    if (rc == QF_OK)
        exec->batch.present[0] = pq_all_steps(exec->batch.steps);
    return rc;
}

static qf_rc number_next(struct pq_exec *exec, struct qf_err *err)
{
    qf_rc rc = begin_scalar(exec, err);

    for (size_t k = 0; rc == QF_OK && k < exec->batch.steps; k++)
        exec->batch.values[k] = exec->plan->number;
    return rc;
}

static const struct pq_exec_ops number_ops = { number_next, NULL };

struct pq_exec *pq_node_number(struct pq_eval *eval, const struct pq_plan_node *plan)
{
    return pq_exec_new(eval, plan, &number_ops, sizeof(struct pq_exec));
}

static qf_rc time_next(struct pq_exec *exec, struct qf_err *err)
{
    qf_rc rc = begin_scalar(exec, err);

    for (size_t k = 0; rc == QF_OK && k < exec->batch.steps; k++)
        exec->batch.values[k] = (double)pq_exec_time(exec, k) / 1000;
    return rc;
}

static const struct pq_exec_ops time_ops = { time_next, NULL };

struct pq_exec *pq_node_time(struct pq_eval *eval, const struct pq_plan_node *plan)
{
    return pq_exec_new(eval, plan, &time_ops, sizeof(struct pq_exec));
}

static qf_rc empty_next(struct pq_exec *exec, struct qf_err *err)
{
    return pq_exec_begin(exec, err);
}

static const struct pq_exec_ops empty_ops = { empty_next, NULL };

struct pq_exec *pq_node_empty(struct pq_eval *eval, const struct pq_plan_node *plan)
{
    return pq_exec_new(eval, plan, &empty_ops, sizeof(struct pq_exec));
}

/* A scalar already is the one series that vector() makes of it. */
static qf_rc to_vector_next(struct pq_exec *exec, struct qf_err *err)
{
    qf_rc rc = pq_exec_next(exec->children[0], err);

    if (rc == QF_OK)
        rc = pq_exec_mirror(exec, exec->children[0], err);
    if (rc == QF_OK)
        pq_exec_alias(exec, exec->children[0]);
    return rc;
}

static const struct pq_exec_ops to_vector_ops = { to_vector_next, NULL };

struct pq_exec *pq_node_to_vector(struct pq_eval *eval, const struct pq_plan_node *plan)
{
    return pq_exec_new(eval, plan, &to_vector_ops, sizeof(struct pq_exec));
}

/* The value of the only float present, NaN if there is not exactly one. */
static qf_rc to_scalar_next(struct pq_exec *exec, struct qf_err *err)
{
    const struct pq_batch *in = &exec->children[0]->batch;
    uint64_t once = 0, twice = 0;
    qf_rc rc = pq_exec_next(exec->children[0], err);

    if (rc == QF_OK)
        rc = begin_scalar(exec, err);
    if (rc != QF_OK)
        return rc;
    for (size_t s = 0; s < in->series_count; s++) {
        uint64_t floats = in->present[s];

        for (size_t k = 0; in->histograms && k < in->steps; k++)
            if (pq_batch_histogram(in, s, k))
                floats &= ~((uint64_t)1 << k);
        twice |= once & floats;
        for (uint64_t bits = floats & ~once; bits; bits &= bits - 1) {
            size_t k = (size_t)__builtin_ctzll(bits);

            exec->batch.values[k] = pq_row(in, s)[k];
        }
        once |= floats;
    }
    for (size_t k = 0; k < exec->batch.steps; k++)
        if (!((once & ~twice) >> k & 1))
            exec->batch.values[k] = NAN;
    return QF_OK;
}

static const struct pq_exec_ops to_scalar_ops = { to_scalar_next, NULL };

struct pq_exec *pq_node_to_scalar(struct pq_eval *eval, const struct pq_plan_node *plan)
{
    return pq_exec_new(eval, plan, &to_scalar_ops, sizeof(struct pq_exec));
}

/* timestamp() of computed values: the time of the step. */
static qf_rc timestamp_next(struct pq_exec *exec, struct qf_err *err)
{
    qf_rc rc = pq_exec_next(exec->children[0], err);

    if (rc == QF_OK)
        rc = pq_exec_mirror(exec, exec->children[0], err);
    if (rc != QF_OK)
        return rc;
    pq_exec_alias(exec, exec->children[0]);
    exec->batch.histograms = NULL;
    for (size_t s = 0; s < exec->batch.series_count; s++)
        for (size_t k = 0; k < exec->batch.steps; k++)
            pq_row(&exec->batch, s)[k] = (double)pq_exec_time(exec, k) / 1000;
    return QF_OK;
}

static const struct pq_exec_ops timestamp_ops = { timestamp_next, NULL };

struct pq_exec *pq_node_timestamp(struct pq_eval *eval, const struct pq_plan_node *plan)
{
    return pq_exec_new(eval, plan, &timestamp_ops, sizeof(struct pq_exec));
}

/* The child has one step; it is asked once. */
static qf_rc repeat_next(struct pq_exec *exec, struct qf_err *err)
{
    struct pq_exec *child = exec->children[0];
    qf_rc rc = exec->position == 0 ? pq_exec_next(child, err) : QF_OK;

    if (rc == QF_OK)
        rc = pq_exec_mirror(exec, child, err);
    if (rc == QF_OK)
        rc = pq_exec_begin(exec, err);
    if (rc != QF_OK)
        return rc;
    for (size_t s = 0; s < child->batch.series_count; s++)
        for (size_t k = 0; k < exec->batch.steps && (child->batch.present[s] & 1); k++) {
            rc = pq_exec_put(exec, s, k, pq_batch_value(&child->batch, s, 0), err);
            if (rc != QF_OK)
                return rc;
        }
    exec->batch.order = child->batch.order;
    exec->batch.order_count = child->batch.order_count;
    return QF_OK;
}

static const struct pq_exec_ops repeat_ops = { repeat_next, NULL };

struct pq_exec *pq_node_repeat(struct pq_eval *eval, const struct pq_plan_node *plan)
{
    return pq_exec_new(eval, plan, &repeat_ops, sizeof(struct pq_exec));
}
