/* limits.c - the file of tenants' limits. */
#include "base/pure/limits.h"

#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "base/pure/map.h"
#include "base/pure/number.h"
#include "base/pure/tenant.h"
#include "base/pure/vec.h"

enum unit { COUNT, BYTES, AGE, SWITCH };

static const struct {
    const char *name;
    enum unit unit;
} kinds[QF_LIMIT__COUNT] = {
#define QF_LIMIT(id, name, unit) { name, unit },
#define QF_WRITE_LIMIT(id, name, unit) { name, unit },
#define QF_SETTING(id, name, unit) { name, unit },
#include "base/pure/limits.def"
#undef QF_SETTING
#undef QF_WRITE_LIMIT
#undef QF_LIMIT
};

struct row {
    char tenant[QF_TENANT_MAX + 1];
    struct qf_limits limits; /* 0: not said */
};

struct qf_limits_table {
    QF_VEC(struct row) rows;
    struct qf_map index; /* tenant -> row; made once all rows are there */
};

const char *qf_limit_name(enum qf_limit limit)
{
    return kinds[limit].name;
}

enum qf_limit qf_limit_find(struct qf_str name)
{
    int i = 0;

    while (i < QF_LIMIT__COUNT && !qf_str_is(name, kinds[i].name))
        i++;
    return (enum qf_limit)i;
}

bool qf_limit_is_number(enum qf_limit limit)
{
    return kinds[limit].unit == COUNT || kinds[limit].unit == BYTES;
}

struct qf_limits_table *qf_limits_free(struct qf_limits_table *table)
{
    if (!table)
        return NULL;
    QF_VEC_DONE(&table->rows);
    qf_map_done(&table->index);
    free(table);
    return NULL;
}

/* What is wrong with the value, or NULL. */
static const char *read_value(enum unit unit, struct qf_str text, uint64_t *ret_value)
{
    int64_t age;

    switch (unit) {
    case COUNT:
        return qf_parse_u64(text, ret_value) && *ret_value ? NULL
                                                           : "a limit is a whole number from 1";
    case BYTES:
        return qf_parse_bytes(text, ret_value) && *ret_value ? NULL
                                                             : "a limit is a size, such as 512MiB";
    case AGE:
        if (qf_str_is(text, "forever"))
            age = QF_RETENTION_FOREVER;
        else if (qf_duration_parse(text, &age) != QF_DURATION_OK || age <= 0)
            return "a retention is a duration such as 30d, or forever";
        *ret_value = (uint64_t)age;
        return NULL;
    case SWITCH:
        *ret_value = qf_str_is(text, "on") ? QF_SWITCH_ON : QF_SWITCH_OFF;
        return qf_str_is(text, "on") || qf_str_is(text, "off") ? NULL : "a switch is on or off";
    }
    return "no such limit";
}

const char *qf_limit_read(enum qf_limit limit, struct qf_str text, uint64_t *ret_value)
{
    return read_value(kinds[limit].unit, text, ret_value);
}

void qf_limit_print(struct qf_strbuf *buf, enum qf_limit limit, uint64_t value)
{
    switch (kinds[limit].unit) {
    case COUNT:
    case BYTES:
        qf_strbuf_u64(buf, value);
        break;
    case AGE:
        if (value >= (uint64_t)QF_RETENTION_FOREVER)
            qf_strbuf_puts(buf, "forever");
        else
            qf_duration_print(buf, (int64_t)value);
        break;
    case SWITCH:
        qf_strbuf_puts(buf, value == QF_SWITCH_ON ? "on" : "off");
        break;
    }
}

/* "NAME=VALUE" into @limits; what is wrong with it, or NULL. */
static const char *read_limit(struct qf_str word, struct qf_limits *limits)
{
    const char *equals = memchr(word.data, '=', word.len);
    size_t len = equals ? (size_t)(equals - word.data) : word.len;
    struct qf_str name = qf_str_sub(word, 0, len), text = qf_str_sub(word, len + 1, word.len);
    enum qf_limit limit = qf_limit_find(name);

    if (limit == QF_LIMIT__COUNT)
        return "no such limit";
    return limits->of[limit] ? "the same limit twice"
                             : qf_limit_read(limit, text, &limits->of[limit]);
}

/* What is wrong with the line, or NULL. Comments and blank lines are fine. */
static const char *add_line(struct qf_limits_table *table, struct qf_str line)
{
    const char *comment = line.len ? memchr(line.data, '#', line.len) : NULL;
    struct qf_str word;
    struct row row = { 0 };

    if (comment)
        line = qf_str_sub(line, 0, (size_t)(comment - line.data));
    word = qf_str_word(&line);
    if (word.len == 0)
        return NULL;
    if (!qf_tenant_valid(word))
        return "not \"TENANT NAME=VALUE...\"";
    memcpy(row.tenant, word.data, word.len);
    while ((word = qf_str_word(&line)).len) {
        const char *wrong = read_limit(word, &row.limits);

        if (wrong)
            return wrong;
    }
    if (table->rows.count == QF_LIMITS_LINES_MAX)
        return "too many tenants";
    QF_VEC_PUSH(&table->rows, row);
    return NULL;
}

/* False: a tenant is there twice. Keys are the rows' own, which do not move any more. */
static bool make_index(struct qf_limits_table *table)
{
    for (size_t i = 0; i < table->rows.count; i++) {
        bool added = false;

        (void)qf_map_put(&table->index, qf_str_from(table->rows.items[i].tenant), i, &added);
        if (!added)
            return false;
    }
    return true;
}

struct qf_limits_table *qf_limits_table_new(void)
{
    return qf_xcalloc(1, sizeof(struct qf_limits_table));
}

void qf_limits_table_add(struct qf_limits_table *table, const char *tenant,
                         const struct qf_limits *limits)
{
    struct row row = { .limits = *limits };
    struct qf_str name = qf_str_from(tenant);

    memcpy(row.tenant, name.data, QF_MIN(name.len, (size_t)QF_TENANT_MAX));
    QF_VEC_PUSH(&table->rows, row);
}

void qf_limits_table_seal(struct qf_limits_table *table)
{
    (void)make_index(table);
}

struct qf_limits_table *qf_limits_parse(struct qf_str text, const char *name, struct qf_err *err)
{
    struct qf_limits_table *table = qf_xcalloc(1, sizeof(*table));
    size_t number = 0;

    while (text.len) {
        const char *end = memchr(text.data, '\n', text.len);
        size_t len = end ? (size_t)(end - text.data) : text.len;
        const char *wrong = add_line(table, qf_str_sub(text, 0, len));

        number++;
        if (wrong) {
            (void)qf_err_set(err, QF_EINVAL, "%s:%zu: %s", name, number, wrong);
            return qf_limits_free(table);
        }
        text = qf_str_sub(text, end ? len + 1 : len, text.len);
    }
    if (make_index(table))
        return table;
    (void)qf_err_set(err, QF_EINVAL, "%s: the same tenant twice", name);
    return qf_limits_free(table);
}

int64_t qf_limits_oldest(const struct qf_limits *limits, int64_t now_ms)
{
    uint64_t age = limits->of[QF_LIMIT_RETENTION];

    return age == 0 || age >= (uint64_t)QF_RETENTION_FOREVER ? INT64_MIN : now_ms - (int64_t)age;
}

/* Whatever the order of rows is. */
static uint64_t hash_retention(const char *tenant, uint64_t age)
{
    uint64_t parts[] = { qf_hash_bytes(qf_str_from(tenant)), age };

    return qf_hash_bytes((struct qf_str){ (const char *)parts, sizeof(parts) }) | 1;
}

uint64_t qf_limits_retentions(const struct qf_limits_table *table,
                              const struct qf_limits_table *over, const struct qf_limits *others)
{
    uint64_t age = others->of[QF_LIMIT_RETENTION], hash = age ? hash_retention("", age) : 0;
    bool any = age != 0;

    for (size_t i = 0; table && i < table->rows.count; i++) {
        const struct row *row = &table->rows.items[i];

        if (qf_limits_has(over, qf_str_from(row->tenant)))
            continue;
        age = row->limits.of[QF_LIMIT_RETENTION];
        hash += age ? hash_retention(row->tenant, age) : 0;
        any |= age != 0;
    }
    return any && !hash ? 1 : hash;
}

bool qf_limits_has(const struct qf_limits_table *table, struct qf_str tenant)
{
    return table && qf_map_get(&table->index, tenant);
}

struct qf_limits qf_limits_of(const struct qf_limits_table *table, struct qf_str tenant,
                              const struct qf_limits *others)
{
    const uint64_t *row = table ? qf_map_get(&table->index, tenant) : NULL;
    struct qf_limits limits = *others;

    for (int i = 0; row && i < QF_LIMIT__COUNT; i++)
        if (table->rows.items[*row].limits.of[i])
            limits.of[i] = table->rows.items[*row].limits.of[i];
    return limits;
}
