/* value_op.h - operators where an operand is a native histogram.
 *
 * Which operators have a result is written once, in a table by operator and kinds of operands. Leaf
 * stages, vector-scalar nodes and vector-vector nodes all ask here; what two floats give is
 * binary_op.h's. */
#ifndef PROMQL_FUNC_VALUE_OP_H
#define PROMQL_FUNC_VALUE_OP_H

#include "base/pure/err.h"
#include "promql/ast.h"
#include "promql/value.h"

/* One operator of a query, for all its values. */
struct pq_value_op {
    enum pq_op op;
    bool return_bool;
    struct pq_pos pos; /* where notes point to */
    struct pq_notes *notes;
    struct qf_arena *scope; /* where a new histogram is made */
};

/* False: two floats have no result, whatever they are. */
bool pq_value_op_takes_floats(enum pq_op op);

/* left op right, one of which is a histogram at least. *ret_there false: there is no result; if the
 * operator does not know these kinds, that is noted. A histogram that comes out is one of the
 * operands or lives in the scope. QF_ELIMIT: its budget is spent. */
QF_MUST_CHECK qf_rc pq_value_op(const struct pq_value_op *op, struct pq_value left,
                                struct pq_value right, bool *ret_there, struct pq_value *ret_value,
                                struct qf_err *err);

/* Note that the operator has no result for two values of these kinds. */
void pq_value_op_note(const struct pq_value_op *op, struct pq_value left, struct pq_value right);

#endif
