/* filter.h - which rows somebody who browses a map wants to see. Pure. */
#ifndef STATEMAP_CORE_FILTER_H
#define STATEMAP_CORE_FILTER_H

#include "statemap/core/row.h"

/* What is not set asks for nothing. */
struct sm_filter {
    struct qf_str key, prefix; /* of keyed kinds: the whole key, its beginning; borrowed */
    bool has_number;
    int64_t number; /* of ranged kinds: it is in the range */
    bool has_since, has_until;
    /* Of kinds with times: effective from `since` on, and before `until`; sessions: some of it is between the two. */
    int64_t since, until;
};

/* QF_EINVAL: rows of @kind have nothing to be asked for like this. */
QF_MUST_CHECK qf_rc sm_filter_check(const struct sm_filter *filter, enum sm_kind kind,
                                    struct qf_err *err);
bool sm_filter_passes(const struct sm_filter *filter, enum sm_kind kind, const struct sm_row *row);

#endif
