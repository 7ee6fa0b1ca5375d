/* assignment.h - an AssignWork message, kept from its arrival until its run needs it no more. */
#ifndef QUERYWORKER_WORK_ASSIGNMENT_H
#define QUERYWORKER_WORK_ASSIGNMENT_H

#include "proto/codec/control.h"

struct qw_assignment {
    struct qf_arena *arena; /* holds the message's strings */
    struct pb_assign message;
    int64_t received_ns;
};

/* @arena is taken. Never NULL. */
struct qw_assignment *qw_assignment_new(struct qf_arena *arena, const struct pb_assign *message,
                                        int64_t received_ns);
struct qw_assignment *qw_assignment_free(struct qw_assignment *assignment); /* NULL is fine */

/* Is @name that of a file of the tenant's? */
bool qw_assignment_belongs(struct qf_str name, struct qf_str tenant);

/* May this work be done? QF_EINVAL: no tenant, a name no segment has, or sizes whose sum no disk
 * has. QF_EDENIED: a segment of another tenant; whoever assigned it has mixed up two queries, or
 * means to. */
QF_MUST_CHECK qf_rc qw_assignment_check(const struct pb_assign *message, struct qf_err *err);

#endif
