/* label.h - label_replace, label_join, natural order of label values, and checks of names. */
#ifndef PROMQL_FUNC_LABEL_H
#define PROMQL_FUNC_LABEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/labels.h"

struct qf_regex;

/* The arguments of one label_replace call, checked once. */
struct pq_label_replace {
    struct qf_regex *regex; /* freed with the arena */
    struct qf_str destination, replacement, source;
};

/* QF_EEXEC: the regular expression or the destination's name is not valid. */
QF_MUST_CHECK qf_rc pq_label_replace_init(struct pq_label_replace *replace, struct qf_arena *arena,
                                          struct qf_str destination, struct qf_str replacement,
                                          struct qf_str source, struct qf_str regex,
                                          struct qf_err *err);
/* The labels after the call; the same ones if the expression does not match the whole value of the
 * source. An empty result removes the destination. QF_ELIMIT: out of arena budget. */
QF_MUST_CHECK qf_rc pq_label_replace_apply(const struct pq_label_replace *replace,
                                           struct qf_arena *arena, struct qf_labels labels,
                                           struct qf_labels *ret_labels, struct qf_err *err);

/* label_join's names. QF_EEXEC: one of them is not valid. */
QF_MUST_CHECK qf_rc pq_label_join_check(struct qf_str destination, const struct qf_str *sources,
                                        size_t source_count, struct qf_err *err);
/* The values of the sources, joined, become the destination. QF_ELIMIT as above. */
QF_MUST_CHECK qf_rc pq_label_join_apply(struct qf_arena *arena, struct qf_labels labels,
                                        struct qf_str destination, struct qf_str separator,
                                        const struct qf_str *sources, size_t source_count,
                                        struct qf_labels *ret_labels, struct qf_err *err);

/* A label name in UTF-8, not empty. */
bool pq_label_name_valid(struct qf_str name);

/* Expand @replacement as Go's Regexp.Expand does: $1, ${1}, $name, ${name}, $$; a name runs as far
 * as letters, digits and underscores go, an unknown one is empty. Appends to @buf. */
void pq_label_expand(struct qf_strbuf *buf, const struct qf_regex *regex, struct qf_str replacement,
                     struct qf_str text, const long (*groups)[2], size_t group_count);

/* The order of sort_by_label: runs of digits by their number, the rest by bytes. Negative, zero or
 * positive; zero only for values that sort the same. */
int pq_label_natural_cmp(struct qf_str a, struct qf_str b);

#endif
