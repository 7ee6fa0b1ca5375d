/* node_function.c - functions of one value, and vector-scalar and scalar-scalar operators. */
#include "promql/eval/exec.h"
#include "promql/func/binary_op.h"
#include "promql/func/kernels.h"
#include "promql/func/value_op.h"
#include "promql/leaf/values.h"

#define ARGS_MAX 2

static qf_rc next_children(struct pq_exec *exec, struct qf_err *err)
{
    for (size_t i = 0; i < exec->child_count; i++) {
        qf_rc rc = pq_exec_next(exec->children[i], err);

        if (rc != QF_OK)
            return rc;
    }
    return QF_OK;
}

static qf_rc function_next(struct pq_exec *exec, struct qf_err *err)
{
    struct pq_scalar_arg args[ARGS_MAX];
    size_t arg_count = QF_MIN(exec->child_count - 1, (size_t)ARGS_MAX);
    enum pq_function_id function = exec->plan->function;
    uint64_t empty = 0;
    qf_rc rc = next_children(exec, err);

    if (rc == QF_OK)
        rc = pq_exec_mirror(exec, exec->children[0], err);
    if (rc != QF_OK)
        return rc;
    pq_exec_alias(exec, exec->children[0]);
    (void)pq_batch_drop_histograms(&exec->batch, NULL);
    for (size_t i = 0; i < arg_count; i++)
        args[i] = (struct pq_scalar_arg){ exec->children[i + 1]->batch.values, 1 };
    for (size_t k = 0; k < exec->batch.steps; k++)
        empty |= (uint64_t)pq_values_function_empty(function, args, arg_count, k) << k;
    for (size_t s = 0; s < exec->batch.series_count; s++) {
        exec->batch.present[s] &= ~empty;
        if (exec->batch.present[s])
            pq_values_function(function, pq_row(&exec->batch, s), exec->batch.steps, args,
                               arg_count);
    }
    return QF_OK;
}

static const struct pq_exec_ops function_ops = { function_next, NULL };

struct pq_exec *pq_node_function(struct pq_eval *eval, const struct pq_plan_node *plan)
{
    return pq_exec_new(eval, plan, &function_ops, sizeof(struct pq_exec));
}

static void compare_rows(struct pq_batch *batch, enum pq_op op, struct pq_scalar_arg arg, bool left,
                         bool return_bool)
{
    for (size_t s = 0; s < batch->series_count; s++) {
        double *row = pq_row(batch, s);
        uint8_t keep[PQ_BLOCK];
        uint64_t kept = 0;

        if (!batch->present[s])
            continue;
        pq_values_compare(op, row, batch->steps, arg, left, keep);
        for (size_t k = 0; k < batch->steps; k++) {
            kept |= (uint64_t)keep[k] << k;
            if (return_bool)
                row[k] = keep[k];
        }
        if (!return_bool)
            batch->present[s] &= kept;
    }
}

/* min_of, max_of: a function of two scalars. */
static void combine_scalars(struct pq_exec *exec)
{
    pq_value2_fn *kernel = pq_kernels_of(exec->plan->function)->value2;
    const double *other = exec->children[1]->batch.values;
    double *values = exec->batch.values;

    for (size_t k = 0; k < exec->batch.steps; k++)
        values[k] = kernel(values[k], other[k]);
}

/* What becomes of the histograms of a vector, step by step; the floats are left alone. */
static qf_rc run_histograms(struct pq_exec *exec, const struct pq_value_op *op,
                            struct pq_scalar_arg scalar, bool left, struct qf_err *err)
{
    struct pq_batch *batch = &exec->batch;
    struct pq_value value;
    bool there, any = false;

    for (size_t s = 0; batch->histograms && s < batch->series_count; s++)
        for (uint64_t bits = batch->present[s]; bits; bits &= bits - 1) {
            size_t k = (size_t)__builtin_ctzll(bits);
            struct pq_value operand = pq_batch_value(batch, s, k);
            struct pq_value number = pq_number(pq_scalar_arg_at(scalar, k));
            qf_rc rc;

            if (!operand.histogram)
                continue;
            rc = left ? pq_value_op(op, number, operand, &there, &value, err)
                      : pq_value_op(op, operand, number, &there, &value, err);
            batch->present[s] &= ~(bits & -bits);
            if (rc == QF_OK && there)
                rc = pq_exec_put(exec, s, k, value, err);
            if (rc != QF_OK)
                return rc;
            any |= there && value.histogram;
        }
    if (!any)
        batch->histograms = NULL;
    return QF_OK;
}

/* The operator knows no floats: they go. */
static void drop_floats(struct pq_exec *exec, const struct pq_value_op *op)
{
    struct pq_batch *batch = &exec->batch;
    bool any = false;

    for (size_t s = 0; s < batch->series_count; s++)
        for (uint64_t bits = batch->present[s]; bits; bits &= bits - 1) {
            if (pq_batch_histogram(batch, s, (size_t)__builtin_ctzll(bits)))
                continue;
            batch->present[s] &= ~(bits & -bits);
            any = true;
        }
    if (any)
        pq_value_op_note(op, pq_number(0), pq_number(0));
}

static qf_rc scalar_op_next(struct pq_exec *exec, struct qf_err *err)
{
    enum pq_op op = exec->plan->op;
    bool left = exec->plan->scalar_left, return_bool = exec->plan->return_bool;
    struct pq_exec *vector = exec->children[left ? 1 : 0], *scalar = exec->children[left ? 0 : 1];
    struct pq_value_op value_op = { .op = op,
                                    .return_bool = return_bool,
                                    .pos = exec->plan->pos,
                                    .notes = &exec->eval->notes,
                                    .scope = exec->scope };
    struct pq_scalar_arg arg;
    qf_rc rc = next_children(exec, err);

    if (rc == QF_OK)
        rc = pq_exec_mirror(exec, vector, err);
    if (rc != QF_OK)
        return rc;
    pq_exec_alias(exec, vector);
    arg = (struct pq_scalar_arg){ scalar->batch.values, 1 };
    rc = run_histograms(exec, &value_op, arg, left, err);
    if (rc != QF_OK)
        return rc;
    if (op == PQ_OP_NONE) {
        combine_scalars(exec);
    } else if (!pq_value_op_takes_floats(op)) {
        drop_floats(exec, &value_op);
    } else if (pq_op_compares(op)) {
        compare_rows(&exec->batch, op, arg, left, return_bool);
    } else {
        for (size_t s = 0; s < exec->batch.series_count; s++)
            if (exec->batch.present[s])
                pq_values_arith(op, pq_row(&exec->batch, s), exec->batch.steps, arg, left);
    }
    return QF_OK;
}

static const struct pq_exec_ops scalar_op_ops = { scalar_op_next, NULL };

struct pq_exec *pq_node_scalar_op(struct pq_eval *eval, const struct pq_plan_node *plan)
{
    return pq_exec_new(eval, plan, &scalar_op_ops, sizeof(struct pq_exec));
}
