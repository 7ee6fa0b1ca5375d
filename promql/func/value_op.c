/* value_op.c - operators where an operand is a native histogram. */
#include "promql/func/value_op.h"

#include "promql/func/histogram.h"
#include "promql/func/texts.h"
#include "promql/histogram/arith.h"
#include "promql/histogram/trim.h"

/* What an operator makes of two operands. */
enum outcome {
    NOTHING,  /* no result, with an info */
    COMPUTED, /* a histogram */
    COMPARED, /* equal or not: the left one is kept or goes */
};

/* By operator: what becomes of histogram and histogram, histogram and float, float and histogram.
 * Operators that are not here give nothing. */
static const struct row {
    enum outcome both, left, right;
    bool no_floats;
} rows[] = {
    [PQ_OP_ADD] = { .both = COMPUTED },
    [PQ_OP_SUB] = { .both = COMPUTED },
    [PQ_OP_MUL] = { .left = COMPUTED, .right = COMPUTED },
    [PQ_OP_DIV] = { .left = COMPUTED },
    [PQ_OP_EQLC] = { .both = COMPARED },
    [PQ_OP_NEQ] = { .both = COMPARED },
    [PQ_OP_TRIM_UPPER] = { .left = COMPUTED, .no_floats = true },
    [PQ_OP_TRIM_LOWER] = { .left = COMPUTED, .no_floats = true },
};

static const struct row *row_of(enum pq_op op)
{
    static const struct row none;

    return (size_t)op < QF_COUNT_OF(rows) ? &rows[op] : &none;
}

bool pq_value_op_takes_floats(enum pq_op op)
{
    return !row_of(op)->no_floats;
}

void pq_value_op_note(const struct pq_value_op *op, struct pq_value left, struct pq_value right)
{
    pq_note_binop_types(op->notes, op->pos, pq_value_kind(left), pq_op_text(op->op),
                        pq_value_kind(right));
}

static enum outcome outcome_of(const struct row *row, struct pq_value left, struct pq_value right)
{
    if (left.histogram && right.histogram)
        return row->both;
    return left.histogram ? row->left : row->right;
}

/* What is to be said of an addition or subtraction; false: there is no result. */
static bool note_joined(const struct pq_value_op *op, const struct pq_histogram_joined *joined)
{
    const char *operation = op->op == PQ_OP_ADD ? "addition" : "subtraction";

    if (joined->mixed)
        pq_note_binop_layouts(op->notes, op->pos, pq_op_text(op->op));
    if (joined->conflict && !joined->mixed)
        pq_note_reset_conflict(op->notes, op->pos, operation);
    if (joined->reconciled)
        pq_note_reconciled(op->notes, op->pos, operation);
    return !joined->mixed;
}

static qf_rc compute(const struct pq_value_op *op, struct pq_value left, struct pq_value right,
                     bool *ret_there, struct pq_value *ret_value, struct qf_err *err)
{
    const struct pq_histogram *h = left.histogram ? left.histogram : right.histogram;
    double number = left.histogram ? right.number : left.number;
    struct pq_histogram_joined joined;
    bool ok = true;

    *ret_there = true;
    switch (op->op) {
    case PQ_OP_ADD:
    case PQ_OP_SUB:
        ok = op->op == PQ_OP_ADD
                 ? pq_histogram_add(op->scope, left.histogram, right.histogram, &joined)
                 : pq_histogram_sub(op->scope, left.histogram, right.histogram, &joined);
        h = joined.histogram;
        *ret_there = ok && note_joined(op, &joined);
        break;
    case PQ_OP_MUL:
        h = pq_histogram_mul(op->scope, h, number);
        break;
    case PQ_OP_DIV:
        h = pq_histogram_div(op->scope, h, number);
        break;
    case PQ_OP_TRIM_UPPER:
        h = pq_histogram_trim_upper(op->scope, h, number);
        break;
    case PQ_OP_TRIM_LOWER:
        h = pq_histogram_trim_lower(op->scope, h, number);
        break;
    case PQ_OP_NONE: /* no row of the table says that these compute anything */
    case PQ_OP_MOD:
    case PQ_OP_POW:
    case PQ_OP_ATAN2:
    case PQ_OP_EQLC:
    case PQ_OP_NEQ:
    case PQ_OP_LTE:
    case PQ_OP_LSS:
    case PQ_OP_GTE:
    case PQ_OP_GTR:
    case PQ_OP_AND:
    case PQ_OP_OR:
    case PQ_OP_UNLESS:
    case PQ_OP_STEP:
    case PQ_OP_RANGE:
    case PQ_OP_MIN_OF:
    case PQ_OP_MAX_OF:
        *ret_there = false;
        break;
    }
    *ret_value = (struct pq_value){ .histogram = h };
    return ok && (h || !*ret_there)
               ? QF_OK
               : qf_err_set(err, QF_ELIMIT, "the query needs more memory than its limit");
}

qf_rc pq_value_op(const struct pq_value_op *op, struct pq_value left, struct pq_value right,
                  bool *ret_there, struct pq_value *ret_value, struct qf_err *err)
{
    bool holds;

    *ret_there = false;
    switch (outcome_of(row_of(op->op), left, right)) {
    case NOTHING:
        pq_value_op_note(op, left, right);
        return QF_OK;
    case COMPUTED:
        return compute(op, left, right, ret_there, ret_value, err);
    case COMPARED:
        holds = pq_histogram_equal(left.histogram, right.histogram) == (op->op == PQ_OP_EQLC);
        *ret_there = holds || op->return_bool;
        *ret_value = op->return_bool ? pq_number(holds) : left;
        return QF_OK;
    }
    return QF_OK;
}
