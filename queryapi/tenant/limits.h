/* limits.h - what one tenant may have, and the file that says it of some of them.
 *
 * One tenant per line, '#' starts a comment. What a line does not name is as for all others.
 *
 *     TENANT NAME=VALUE...     names: limits.def; values from 1, sizes with KiB, MiB, GiB, TiB,
 *                              retention a duration or "forever"
 *
 *     team-a  queries=4 streams=16 work=64 memory=512MiB spool=1GiB retention=90d
 */
#ifndef QUERYAPI_TENANT_LIMITS_H
#define QUERYAPI_TENANT_LIMITS_H

#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/slice.h"

enum qa_limit {
#define QA_LIMIT(id, name, unit) QA_LIMIT_##id,
#include "queryapi/tenant/limits.def"
#undef QA_LIMIT
    QA_LIMIT__COUNT
};
const char *qa_limit_name(enum qa_limit limit);

/* By enum qa_limit; 0: none. */
struct qa_limits {
    uint64_t of[QA_LIMIT__COUNT];
};

/* A retention from here on keeps everything; thousands of years, and sums with times still fit. */
#define QA_RETENTION_FOREVER (INT64_C(1) << 57)
/* The oldest sample that counts at @now_ms; INT64_MIN: all do. */
int64_t qa_limits_oldest(const struct qa_limits *limits, int64_t now_ms);

/* The file, read; immutable. */
struct qa_limits_table;

#define QA_LIMITS_LINES_MAX 65536

/* NULL and @err filled (QF_EINVAL, with the line's number behind @name): a line that is none, or a
 * tenant twice. */
struct qa_limits_table *qa_limits_parse(struct qf_str text, const char *name, struct qf_err *err);
/* Accepts NULL, returns NULL. */
struct qa_limits_table *qa_limits_free(struct qa_limits_table *table);

/* A number that is another one when a tenant's retention is, or that of the @others; 0: nobody has one. */
uint64_t qa_limits_retentions(const struct qa_limits_table *table, const struct qa_limits *others);

/* @others with what the table says of @tenant; @table may be NULL. */
struct qa_limits qa_limits_of(const struct qa_limits_table *table, struct qf_str tenant,
                              const struct qa_limits *others);

#endif
