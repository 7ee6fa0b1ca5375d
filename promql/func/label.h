/* label.h - functions of labels, natural order of label values, and checks of names. */
#ifndef PROMQL_FUNC_LABEL_H
#define PROMQL_FUNC_LABEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/labels.h"

struct qf_regex;

/* The strings of one call of a function of labels, and what is made of them once. */
struct pq_label_call {
    const struct qf_str *strings;
    size_t count;
    struct qf_regex *regex; /* label_replace's; freed with the arena */
};

/* A function of labels: LABEL in functions.def. Those are pq_label_replace and pq_label_join.
 *
 * label_replace has the destination, the replacement, the source and the regular expression. Labels
 * stay the same if the expression does not match the whole value of the source. label_join has the
 * destination, the separator and the sources. An empty result removes the destination. */
struct pq_label_function {
    /* QF_EEXEC: the strings make no sense. QF_ELIMIT: out of arena budget. */
    qf_rc (*prepare)(struct pq_label_call *call, struct qf_arena *arena, struct qf_err *err);
    /* The labels after the call, and whether it gave the destination, strings[0], a value. */
    qf_rc (*apply)(const struct pq_label_call *call, struct qf_arena *arena,
                   struct qf_labels labels, struct qf_labels *ret_labels, bool *ret_given,
                   struct qf_err *err);
};

/* A label name in UTF-8, not empty. */
bool pq_label_name_valid(struct qf_str name);

/* The order of sort_by_label: runs of digits by their number, the rest by bytes. Negative, zero or
 * positive; zero only for values that sort the same. */
int pq_label_natural_cmp(struct qf_str a, struct qf_str b);

#endif
