/* table.c - records of `meta` as JSON, and the table they make. */
#include "queue/node/table.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "base/pure/alloc.h"

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

bool qn_name_valid(struct qf_str name)
{
    if (name.len == 0 || name.len >= QN_NAME_SIZE || strchr("-_.", name.data[0]))
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (!name_char(name.data[i]))
            return false;
    return true;
}

bool qn_name_is_system(const char *name)
{
    return strcmp(name, QN_META) == 0 || strcmp(name, QN_STATE) == 0 ||
           strncmp(name, "metrics-", 8) == 0;
}

bool qn_queue_options_equal(const struct qn_queue_options *a, const struct qn_queue_options *b)
{
    return a->delete_on_consume == b->delete_on_consume && a->level == b->level &&
           a->retention_ms == b->retention_ms && a->retention_bytes == b->retention_bytes &&
           a->consumer_expiry_ms == b->consumer_expiry_ms;
}

static const char *const levels[] = {
    [QC_LEVEL_QUORUM] = "quorum", [QC_LEVEL_ONE] = "one", [QC_LEVEL_ALL] = "all"
};

const char *qn_level_text(enum qc_level level)
{
    return levels[level];
}

bool qn_level_parse(struct qf_str text, enum qc_level *ret_level)
{
    for (size_t i = 0; i < QF_COUNT_OF(levels); i++) {
        if (qf_str_is(text, levels[i])) {
            *ret_level = (enum qc_level)i;
            return true;
        }
    }
    return false;
}

const struct qn_row *qn_table_find(const struct qn_table *table, const char *name)
{
    for (size_t i = 0; i < table->rows.count; i++)
        if (strcmp(table->rows.items[i].name, name) == 0)
            return &table->rows.items[i];
    return NULL;
}

uint32_t qn_table_owned(const struct qn_table *table, const char *tenant)
{
    uint32_t count = 0;

    for (size_t i = 0; i < table->rows.count; i++)
        count += strcmp(table->rows.items[i].tenant, tenant) == 0;
    return count;
}

void qn_table_clear(struct qn_table *table)
{
    QF_VEC_DONE(&table->rows);
    table->partitions = 0;
}

bool qn_name_partition(const char *name, uint32_t *ret_partition)
{
    char expected[QN_NAME_SIZE];
    unsigned number;

    if (sscanf(name, "metrics-%3u", &number) != 1 || number >= QN_PARTITIONS_MAX)
        return false;
    qn_partition_name(number, expected);
    *ret_partition = number;
    return strcmp(name, expected) == 0;
}

void qn_partition_name(uint32_t partition, char ret_name[QN_NAME_SIZE])
{
    (void)snprintf(ret_name, QN_NAME_SIZE, "metrics-%" PRIu32, partition);
}

/* --- reading --- */

static bool copy_text(const json_t *value, char *out, size_t size)
{
    size_t len = json_string_length(value);

    if (!json_is_string(value) || len >= size)
        return false;
    memcpy(out, json_string_value(value), len);
    out[len] = 0;
    return true;
}

static bool read_members(const json_t *list, struct qc_members *ret_members)
{
    size_t count = json_array_size(list);

    *ret_members = (struct qc_members){ .count = (uint32_t)count };
    if (count > QC_MEMBERS_MAX)
        return false;
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);
        struct qc_member *member = &ret_members->items[i];
        const char *id = json_string_value(json_object_get(item, "id"));

        if (!id || sscanf(id, "%" SCNx64, &member->id) != 1 || !member->id ||
            !copy_text(json_object_get(item, "name"), member->name, sizeof(member->name)))
            return false;
        member->role = json_is_true(json_object_get(item, "votes")) ? QC_VOTER : QC_STANDBY;
    }
    return true;
}

/* A queue out of @object, whose name is under @key. */
static bool read_row(const json_t *object, const char *key, uint64_t id, struct qn_row *ret_row)
{
    const char *level = json_string_value(json_object_get(object, "level"));
    json_int_t bytes = json_integer_value(json_object_get(object, "retention_bytes"));
    struct qn_queue_options *options = &ret_row->options;

    *ret_row = (struct qn_row){ .id = id };
    if (!copy_text(json_object_get(object, key), ret_row->name, sizeof(ret_row->name)) ||
        !qn_name_valid(qf_str_from(ret_row->name)) ||
        !copy_text(json_object_get(object, "tenant"), ret_row->tenant, sizeof(ret_row->tenant)) ||
        !level || !qn_level_parse(qf_str_from(level), &options->level) || bytes < 0)
        return false;
    options->delete_on_consume = json_is_true(json_object_get(object, "delete_on_consume"));
    options->retention_ms = json_integer_value(json_object_get(object, "retention_ms"));
    options->retention_bytes = (uint64_t)bytes;
    options->consumer_expiry_ms = json_integer_value(json_object_get(object, "consumer_expiry_ms"));
    return read_members(json_object_get(object, "members"), &ret_row->members);
}

static bool apply_create(struct qn_table *table, uint64_t index, const json_t *record)
{
    struct qn_row row;

    if (!read_row(record, "create", index, &row) || qn_table_find(table, row.name) ||
        table->rows.count >= QN_QUEUES_MAX)
        return false;
    QF_VEC_PUSH(&table->rows, row);
    return true;
}

static bool apply_delete(struct qn_table *table, const char *name)
{
    for (size_t i = 0; i < table->rows.count; i++) {
        if (strcmp(table->rows.items[i].name, name) != 0)
            continue;
        table->rows.count--;
        memmove(&table->rows.items[i], &table->rows.items[i + 1],
                (table->rows.count - i) * sizeof(table->rows.items[0]));
        return true;
    }
    return false;
}

static bool apply_partitions(struct qn_table *table, const json_t *number)
{
    json_int_t partitions = json_integer_value(number);

    if (table->partitions || partitions < 1 || partitions > QN_PARTITIONS_MAX ||
        (partitions & (partitions - 1)) != 0)
        return false;
    table->partitions = (uint32_t)partitions;
    return true;
}

static bool apply_table(struct qn_table *table, const json_t *list, const json_t *partitions)
{
    table->rows.count = 0;
    table->partitions = 0;
    (void)apply_partitions(table, partitions);
    for (size_t i = 0; i < json_array_size(list) && i < QN_QUEUES_MAX; i++) {
        const json_t *item = json_array_get(list, i);
        json_int_t id = json_integer_value(json_object_get(item, "id"));
        struct qn_row row;

        if (id > 0 && read_row(item, "name", (uint64_t)id, &row))
            QF_VEC_PUSH(&table->rows, row);
    }
    return true;
}

bool qn_table_apply(struct qn_table *table, uint64_t index, struct qf_str record)
{
    json_t *object = json_loadb(record.data ? record.data : "", record.len, 0, NULL);
    const char *gone = json_string_value(json_object_get(object, "delete"));
    const json_t *list = json_object_get(object, "table");
    bool changed = false;

    if (json_is_array(list))
        changed = apply_table(table, list, json_object_get(object, "partitions"));
    else if (gone)
        changed = apply_delete(table, gone);
    else if (json_object_get(object, "create"))
        changed = apply_create(table, index, object);
    else if (json_object_get(object, "partitions"))
        changed = apply_partitions(table, json_object_get(object, "partitions"));
    json_decref(object);
    return changed;
}

/* --- writing --- */

void qn_queue_options_json(struct qf_strbuf *buf, const struct qn_queue_options *options)
{
    qf_strbuf_printf(buf,
                     "\"delete_on_consume\":%s,\"level\":\"%s\",\"retention_ms\":%" PRId64
                     ",\"retention_bytes\":%" PRIu64 ",\"consumer_expiry_ms\":%" PRId64,
                     options->delete_on_consume ? "true" : "false", qn_level_text(options->level),
                     options->retention_ms, options->retention_bytes, options->consumer_expiry_ms);
}

static void write_row(struct qf_strbuf *buf, const char *key, const struct qn_row *row)
{
    qf_strbuf_printf(buf, "\"%s\":\"%s\",\"tenant\":", key, row->name);
    qf_strbuf_json(buf, qf_str_from(row->tenant));
    qf_strbuf_putc(buf, ',');
    qn_queue_options_json(buf, &row->options);
    qf_strbuf_puts(buf, ",\"members\":[");
    for (uint32_t i = 0; i < row->members.count; i++) {
        const struct qc_member *member = &row->members.items[i];

        qf_strbuf_printf(buf, "%s{\"id\":\"%" PRIx64 "\",\"name\":", i ? "," : "", member->id);
        qf_strbuf_json(buf, qf_str_from(member->name));
        qf_strbuf_printf(buf, ",\"votes\":%s}", member->role == QC_VOTER ? "true" : "false");
    }
    qf_strbuf_puts(buf, "]");
}

void qn_record_create(struct qf_strbuf *buf, const struct qn_row *row)
{
    qf_strbuf_putc(buf, '{');
    write_row(buf, "create", row);
    qf_strbuf_putc(buf, '}');
}

void qn_record_delete(struct qf_strbuf *buf, const char *name)
{
    qf_strbuf_puts(buf, "{\"delete\":");
    qf_strbuf_json(buf, qf_str_from(name));
    qf_strbuf_putc(buf, '}');
}

void qn_record_partitions(struct qf_strbuf *buf, uint32_t partitions)
{
    qf_strbuf_printf(buf, "{\"partitions\":%" PRIu32 "}", partitions);
}

void qn_record_table(struct qf_strbuf *buf, const struct qn_table *table)
{
    qf_strbuf_puts(buf, "{\"table\":[");
    for (size_t i = 0; i < table->rows.count; i++) {
        qf_strbuf_printf(buf, "%s{\"id\":%" PRIu64 ",", i ? "," : "", table->rows.items[i].id);
        write_row(buf, "name", &table->rows.items[i]);
        qf_strbuf_putc(buf, '}');
    }
    qf_strbuf_putc(buf, ']');
    if (table->partitions)
        qf_strbuf_printf(buf, ",\"partitions\":%" PRIu32, table->partitions);
    qf_strbuf_putc(buf, '}');
}
