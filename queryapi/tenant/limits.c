/* limits.c - the file of tenants' limits. */
#include "queryapi/tenant/limits.h"

#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "base/pure/map.h"
#include "base/pure/number.h"
#include "base/pure/tenant.h"
#include "base/pure/vec.h"

enum unit { COUNT, BYTES, AGE };

static const struct {
    const char *name;
    enum unit unit;
} kinds[QA_LIMIT__COUNT] = {
#define QA_LIMIT(id, name, unit) { name, unit },
#include "queryapi/tenant/limits.def"
#undef QA_LIMIT
};

struct row {
    char tenant[QF_TENANT_MAX + 1];
    struct qa_limits limits; /* 0: not said */
};

struct qa_limits_table {
    QF_VEC(struct row) rows;
    struct qf_map index; /* tenant -> row; made once all rows are there */
};

const char *qa_limit_name(enum qa_limit limit)
{
    return kinds[limit].name;
}

struct qa_limits_table *qa_limits_free(struct qa_limits_table *table)
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
            age = QA_RETENTION_FOREVER;
        else if (qf_duration_parse(text, &age) != QF_DURATION_OK || age <= 0)
            return "a retention is a duration such as 30d, or forever";
        *ret_value = (uint64_t)age;
        return NULL;
    }
    return "no such limit";
}

/* "NAME=VALUE" into @limits; what is wrong with it, or NULL. */
static const char *read_limit(struct qf_str word, struct qa_limits *limits)
{
    const char *equals = memchr(word.data, '=', word.len);
    size_t len = equals ? (size_t)(equals - word.data) : word.len;
    struct qf_str name = qf_str_sub(word, 0, len), text = qf_str_sub(word, len + 1, word.len);

    for (int i = 0; i < QA_LIMIT__COUNT; i++) {
        if (!qf_str_is(name, kinds[i].name))
            continue;
        return limits->of[i] ? "the same limit twice"
                             : read_value(kinds[i].unit, text, &limits->of[i]);
    }
    return "no such limit";
}

/* What is wrong with the line, or NULL. Comments and blank lines are fine. */
static const char *add_line(struct qa_limits_table *table, struct qf_str line)
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
    if (table->rows.count == QA_LIMITS_LINES_MAX)
        return "too many tenants";
    QF_VEC_PUSH(&table->rows, row);
    return NULL;
}

/* False: a tenant is there twice. Keys are the rows' own, which do not move any more. */
static bool make_index(struct qa_limits_table *table)
{
    for (size_t i = 0; i < table->rows.count; i++) {
        bool added = false;

        (void)qf_map_put(&table->index, qf_str_from(table->rows.items[i].tenant), i, &added);
        if (!added)
            return false;
    }
    return true;
}

struct qa_limits_table *qa_limits_parse(struct qf_str text, const char *name, struct qf_err *err)
{
    struct qa_limits_table *table = qf_xcalloc(1, sizeof(*table));
    size_t number = 0;

    while (text.len) {
        const char *end = memchr(text.data, '\n', text.len);
        size_t len = end ? (size_t)(end - text.data) : text.len;
        const char *wrong = add_line(table, qf_str_sub(text, 0, len));

        number++;
        if (wrong) {
            (void)qf_err_set(err, QF_EINVAL, "%s:%zu: %s", name, number, wrong);
            return qa_limits_free(table);
        }
        text = qf_str_sub(text, end ? len + 1 : len, text.len);
    }
    if (make_index(table))
        return table;
    (void)qf_err_set(err, QF_EINVAL, "%s: the same tenant twice", name);
    return qa_limits_free(table);
}

int64_t qa_limits_oldest(const struct qa_limits *limits, int64_t now_ms)
{
    uint64_t age = limits->of[QA_LIMIT_RETENTION];

    return age == 0 || age >= (uint64_t)QA_RETENTION_FOREVER ? INT64_MIN : now_ms - (int64_t)age;
}

/* Whatever the order of rows is. */
static uint64_t hash_retention(const char *tenant, uint64_t age)
{
    uint64_t parts[] = { qf_hash_bytes(qf_str_from(tenant)), age };

    return qf_hash_bytes((struct qf_str){ (const char *)parts, sizeof(parts) }) | 1;
}

uint64_t qa_limits_retentions(const struct qa_limits_table *table, const struct qa_limits *others)
{
    uint64_t age = others->of[QA_LIMIT_RETENTION], hash = age ? hash_retention("", age) : 0;
    bool any = age != 0;

    for (size_t i = 0; table && i < table->rows.count; i++) {
        const struct row *row = &table->rows.items[i];

        age = row->limits.of[QA_LIMIT_RETENTION];
        hash += age ? hash_retention(row->tenant, age) : 0;
        any |= age != 0;
    }
    return any && !hash ? 1 : hash;
}

struct qa_limits qa_limits_of(const struct qa_limits_table *table, struct qf_str tenant,
                              const struct qa_limits *others)
{
    const uint64_t *row = table ? qf_map_get(&table->index, tenant) : NULL;
    struct qa_limits limits = *others;

    for (int i = 0; row && i < QA_LIMIT__COUNT; i++)
        if (table->rows.items[*row].limits.of[i])
            limits.of[i] = table->rows.items[*row].limits.of[i];
    return limits;
}
