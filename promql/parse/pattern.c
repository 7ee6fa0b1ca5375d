/* pattern.c - regular expressions that belong to a query. */
#include "promql/parse/pattern.h"

#include "base/regex/regex.h"

static void free_regex(void *regex)
{
    (void)qf_regex_free(regex);
}

qf_rc pq_pattern_compile(struct qf_arena *arena, struct qf_str text, struct qf_regex **ret_regex,
                         char *msg, size_t msg_size)
{
    struct qf_regex *regex = qf_regex_new(text.data, text.len, msg, msg_size);

    if (!regex)
        return QF_EPARSE;
    if (!qf_arena_charge(arena, qf_regex_size(regex)) ||
        !qf_arena_defer(arena, free_regex, regex)) {
        (void)qf_regex_free(regex);
        return QF_ELIMIT;
    }
    *ret_regex = regex;
    return QF_OK;
}
