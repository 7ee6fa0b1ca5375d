/* limits.h - what one tenant may have, and the file that says it of some of them.
 *
 * One tenant per line, '#' starts a comment. What a line does not name is as for all others. Every role
 * reads the same file, and heeds what concerns it.
 *
 *     TENANT NAME=VALUE...     names: limits.def; values from 1, sizes with KiB, MiB, GiB, TiB,
 *                              retention a duration or "forever"
 *
 *     team-a  queries=4 streams=16 work=64 memory=512MiB spool=1GiB retention=90d
 */
#ifndef BASE_PURE_LIMITS_H
#define BASE_PURE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/slice.h"
#include "base/pure/strbuf.h"

enum qf_limit {
#define QF_LIMIT(id, name, unit) QF_LIMIT_##id,
#define QF_WRITE_LIMIT(id, name, unit) QF_LIMIT_##id,
#define QF_SETTING(id, name, unit) QF_LIMIT_##id,
#include "base/pure/limits.def"
#undef QF_SETTING
#undef QF_WRITE_LIMIT
#undef QF_LIMIT
    QF_LIMIT__COUNT
};
/* Those of writing come behind those of queries. */
enum {
    QF_LIMIT_WRITE_FIRST = QF_LIMIT_SAMPLES_RATE,
    QF_WRITE_LIMITS = QF_LIMIT_VALUE_BYTES - QF_LIMIT_WRITE_FIRST + 1
};
const char *qf_limit_name(enum qf_limit limit);
/* The limit called @name; QF_LIMIT__COUNT: none. */
enum qf_limit qf_limit_find(struct qf_str name);
/* Its value as the file has it; what is wrong with it, or NULL. */
const char *qf_limit_read(enum qf_limit limit, struct qf_str text, uint64_t *ret_value);
/* The value as qf_limit_read() takes it. */
void qf_limit_print(struct qf_strbuf *buf, enum qf_limit limit, uint64_t value);
/* Its values are numbers, not words. */
bool qf_limit_is_number(enum qf_limit limit);

/* Values of a switch. */
enum { QF_SWITCH_OFF = 1, QF_SWITCH_ON = 2 };

/* By enum qf_limit; 0: none. */
struct qf_limits {
    uint64_t of[QF_LIMIT__COUNT];
};

/* A retention from here on keeps everything; thousands of years, and sums with times still fit. */
#define QF_RETENTION_FOREVER (INT64_C(1) << 57)
/* The oldest sample that counts at @now_ms; INT64_MIN: all do. */
int64_t qf_limits_oldest(const struct qf_limits *limits, int64_t now_ms);

/* The file, read; immutable. */
struct qf_limits_table;

#define QF_LIMITS_LINES_MAX 65536

/* NULL and @err filled (QF_EINVAL, with the line's number behind @name): a line that is none, or a
 * tenant twice. */
struct qf_limits_table *qf_limits_parse(struct qf_str text, const char *name, struct qf_err *err);
/* One that is made by hand: an empty one, to which tenants are added, each once and all before it is asked. */
struct qf_limits_table *qf_limits_table_new(void);
void qf_limits_table_add(struct qf_limits_table *table, const char *tenant,
                         const struct qf_limits *limits);
void qf_limits_table_seal(struct qf_limits_table *table);
/* Accepts NULL, returns NULL. */
struct qf_limits_table *qf_limits_free(struct qf_limits_table *table);

/* A number that is another one when a tenant's retention is, or that of the @others; 0: nobody has one. Tenants that @over
 * has are not looked at; it may be NULL, and so may @table. */
uint64_t qf_limits_retentions(const struct qf_limits_table *table,
                              const struct qf_limits_table *over, const struct qf_limits *others);

/* @others with what the table says of @tenant; @table may be NULL. */
struct qf_limits qf_limits_of(const struct qf_limits_table *table, struct qf_str tenant,
                              const struct qf_limits *others);
/* Does it have @tenant? */
bool qf_limits_has(const struct qf_limits_table *table, struct qf_str tenant);

#endif
