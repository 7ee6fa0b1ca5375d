/* assignment.c - an AssignWork message, kept from its arrival until its run needs it no more. */
#include "queryworker/work/assignment.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/tenant.h"
#include "segments/store/store.h"
#include "statemap/core/kind.h"

struct qw_assignment *qw_assignment_new(struct qf_arena *arena, const struct pb_assign *message,
                                        int64_t received_ns)
{
    struct qw_assignment *assignment = qf_xcalloc(1, sizeof(*assignment));

    *assignment = (struct qw_assignment){ arena, *message, received_ns };
    return assignment;
}

struct qw_assignment *qw_assignment_free(struct qw_assignment *assignment)
{
    if (!assignment)
        return NULL;
    (void)qf_arena_free(assignment->arena);
    free(assignment);
    return NULL;
}

/* "tenant=T/...": names are valid, so nothing in the rest leads back out of it. */
bool qw_assignment_belongs(struct qf_str name, struct qf_str tenant)
{
    static const struct qf_str prefix = QF_STR_INIT("tenant=");
    struct qf_str rest = qf_str_sub(name, prefix.len, name.len);

    return sg_store_name_valid(name) && qf_str_starts(name, prefix) &&
           qf_str_starts(rest, tenant) && rest.len > tenant.len && rest.data[tenant.len] == '/';
}

/* Tenant and name become a header and a path. */
static qf_rc check_maps(const struct pb_assign *message, struct qf_err *err)
{
    for (size_t i = 0; i < message->maps.count; i++) {
        struct qf_str name = message->maps.inputs[i].name;
        char folded[SM_NAME_MAX + 1];

        if (!qf_tenant_valid(message->tenant))
            return qf_err_set(err, QF_EINVAL, "not the name of a tenant");
        if (!sm_name_fold(name, folded) || !qf_str_is(name, folded))
            return qf_err_set(err, QF_EINVAL, "bad name of a state map");
    }
    return QF_OK;
}

qf_rc qw_assignment_check(const struct pb_assign *message, struct qf_err *err)
{
    uint64_t bytes = 0;

    if (!message->tenant.len)
        return qf_err_set(err, QF_EINVAL, "the work names no tenant");
    for (size_t i = 0; i < message->segment_count; i++) {
        const struct pb_segment *segment = &message->segments[i];

        if (!sg_store_name_valid(segment->name))
            return qf_err_set(err, QF_EINVAL, "bad segment name");
        if (!qw_assignment_belongs(segment->name, message->tenant))
            return qf_err_set(err, QF_EDENIED, "segment %.*s is not of the work's tenant",
                              QF_STR_ARG(segment->name));
        if (segment->size_bytes > INT64_MAX - bytes) /* file sizes are signed */
            return qf_err_set(err, QF_EINVAL, "the sizes of the work's segments do not add up");
        bytes += segment->size_bytes;
    }
    return check_maps(message, err);
}
