/* matrix.h - range vectors above the leaves: samples of every series, read ahead and forgotten.
 *
 * They come raw from a leaf, or are the values of a subquery's expression. */
#ifndef PROMQL_EVAL_MATRIX_H
#define PROMQL_EVAL_MATRIX_H

#include "promql/eval/exec.h"

/* The samples of one series that are in memory, ascending. */
struct pq_queue {
    int64_t *ts;
    double *values;
    const struct pq_histogram **histograms; /* NULL for a float; each a block of its own */
    size_t first, count, capacity;          /* live ones are [first, first + count) */
    size_t histogram_count;                 /* of the live ones */
};

struct pq_matrix {
    struct pq_eval *eval;
    struct pq_exec *child;  /* a subquery's expression, or NULL ... */
    struct pq_merge *merge; /* ... for raw samples */
    struct pq_queue *queues;
    size_t count, capacity; /* series */
    int64_t read_until;     /* of the child: time of the last step read */
    bool started, ended;
    uint64_t held;          /* samples in memory */
    size_t bytes;           /* of the queues and of what is in them ... */
    size_t paid;            /* ... and what the purse has paid for it */
    size_t histogram_bytes; /* of the histograms alone */
};

void pq_matrix_init(struct pq_matrix *matrix, struct pq_eval *eval, struct pq_exec *child,
                    const struct pq_leaf *leaf);
void pq_matrix_done(struct pq_matrix *matrix);
/* Read everything up to and including @until. */
QF_MUST_CHECK qf_rc pq_matrix_read(struct pq_matrix *matrix, int64_t until, struct qf_err *err);
/* Forget everything up to and including @until. */
void pq_matrix_forget(struct pq_matrix *matrix, int64_t until);
/* The series known so far: labels, and whether their names are to be dropped. */
const struct qf_labels *pq_matrix_series(const struct pq_matrix *matrix, size_t *ret_count,
                                         const uint8_t **ret_drop);

#endif
