/* limits_file.h - the file of tenants' limits as it is now: read again when it has changed; and what counts before it:
 * settings of tenants that were agreed on (ring/tenant/tenant.h). What those do not say of a tenant they have is as for
 * all others, whatever the file says. */
#ifndef BASE_SYS_LIMITS_FILE_H
#define BASE_SYS_LIMITS_FILE_H

#include <stdbool.h>

#include "base/pure/limits.h"

struct qf_limits_file;

#define QF_LIMITS_FILE_BYTES_MAX ((size_t)16 << 20)

/* @others: of tenants that the file does not name; @file: its name, borrowed, or NULL. NULL and @err
 * filled: QF_EIO, QF_EINVAL of the file. */
struct qf_limits_file *qf_limits_file_new(const char *file, const struct qf_limits *others,
                                          struct qf_err *err);
/* Accepts NULL, returns NULL. */
struct qf_limits_file *qf_limits_file_free(struct qf_limits_file *file);

/* Read it again if it is another one; *ret_changed says so. QF_EIO, QF_EINVAL: it is not usable now,
 * the limits read before stay. Any thread, one at a time. */
QF_MUST_CHECK qf_rc qf_limits_file_refresh(struct qf_limits_file *file, bool *ret_changed,
                                           struct qf_err *err);

/* From now on @settings, which become the file's, count before it. NULL: none. Any thread. */
void qf_limits_file_settle(struct qf_limits_file *file, struct qf_limits_table *settings);

/* What the tenant called @name may have now. Any thread. */
struct qf_limits qf_limits_file_of(struct qf_limits_file *file, struct qf_str name);
/* As qf_limits_retentions(), of now. Any thread. */
uint64_t qf_limits_file_retentions(struct qf_limits_file *file);
/* Another number whenever the limits of a tenant may be others. Any thread. */
uint64_t qf_limits_file_version(const struct qf_limits_file *file);

#endif
