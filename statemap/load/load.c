/* load.c - rows out of files: what a row says, against the definition of its map. */
#include "statemap/load/load.h"

#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "base/pure/number.h"
#include "base/pure/utf8.h"
#include "statemap/core/range.h"
#include "statemap/load/load_int.h"

struct sm_load {
    struct sm_load_options options;
    const struct sm_reader_ops *ops;
    void *reader;
    struct sm_loaded count;
    sm_definitions definitions; /* of the maps met so far */
    size_t last;
    struct qf_strbuf room; /* the value at hand */
};

static const char *const field_names[] = { "map",   "key", "from",    "to",   "time",
                                           "start", "end", "timeout", "type", "value" };

bool sm_field_parse(struct qf_str name, enum sm_field *ret_field)
{
    for (size_t i = 0; i < QF_COUNT_OF(field_names); i++)
        if (qf_str_is(name, field_names[i])) {
            *ret_field = (enum sm_field)i;
            return true;
        }
    return false;
}

const char *sm_field_name(enum sm_field field)
{
    return field_names[field];
}

bool sm_format_of(struct qf_str file, enum sm_format *ret_format)
{
    static const struct {
        struct qf_str end;
        enum sm_format format;
    } ends[] = {
        { QF_STR_INIT(".xml"), SM_XML },           { QF_STR_INIT(".jsonl"), SM_JSON_LINES },
        { QF_STR_INIT(".ndjson"), SM_JSON_LINES }, { QF_STR_INIT(".json"), SM_JSON_LINES },
        { QF_STR_INIT(".csv"), SM_CSV },
    };

    for (size_t i = 0; i < QF_COUNT_OF(ends); i++)
        if (qf_str_ends(file, ends[i].end)) {
            *ret_format = ends[i].format;
            return true;
        }
    return false;
}

struct sm_load *sm_load_new(const struct sm_load_options *options, enum sm_format format)
{
    static const struct sm_reader_ops *const readers[] = { &sm_read_xml, &sm_read_json,
                                                           &sm_read_csv };
    struct sm_load *load = qf_xcalloc(1, sizeof(*load));

    load->options = *options;
    load->ops = readers[format];
    load->reader = load->ops->new (load);
    return load;
}

struct sm_load *sm_load_free(struct sm_load *load)
{
    if (!load)
        return NULL;
    load->ops->free(load->reader);
    QF_VEC_DONE(&load->definitions);
    qf_strbuf_done(&load->room);
    free(load);
    return NULL;
}

qf_rc sm_load_feed(struct sm_load *load, struct qf_str bytes, struct qf_err *err)
{
    return load->ops->feed(load->reader, bytes, err);
}

qf_rc sm_load_end(struct sm_load *load, struct qf_err *err)
{
    return load->ops->end(load->reader, err);
}

struct sm_loaded sm_load_count(const struct sm_load *load)
{
    return load->count;
}

qf_rc sm_load_bad(struct sm_load *load, uint64_t line, const char *why, struct qf_err *err)
{
    struct qf_err bad = { 0 };

    (void)qf_err_set(&bad, QF_EINVAL, "line %llu: %s", (unsigned long long)line, why);
    if (!load->options.skip)
        return qf_err_set(err, QF_EINVAL, "%s", bad.msg);
    load->count.skipped++;
    if (load->options.skipped)
        load->options.skipped(load->options.ctx, bad.msg);
    return QF_OK;
}

/* The definition of the map a row is of; the last one as a rule. */
static qf_rc find_map(struct sm_load *load, const struct sm_record *record,
                      const struct sm_definition **ret_definition, struct qf_err *err)
{
    struct qf_str name = record->fields[SM_FIELD_MAP];
    struct sm_definition definition;
    char folded[SM_NAME_MAX + 1];
    qf_rc rc;

    if (!name.data)
        name = load->options.map;
    if (name.len == 0)
        return qf_err_set(err, QF_EINVAL, "the row does not say its map");
    if (sm_name_fold(name, folded))
        for (size_t i = 0; i < load->definitions.count; i++) {
            size_t at = (load->last + i) % load->definitions.count;

            if (strcmp(load->definitions.items[at].name, folded) == 0) {
                load->last = at;
                *ret_definition = &load->definitions.items[at];
                return QF_OK;
            }
        }
    rc = sm_store_definition(load->options.store, name, &definition, err);
    if (rc != QF_OK)
        return rc;
    QF_VEC_PUSH(&load->definitions, definition);
    load->last = load->definitions.count - 1;
    *ret_definition = &load->definitions.items[load->last];
    return QF_OK;
}

/* What a row of this kind may not say. */
static qf_rc refuse_fields(const struct sm_definition *definition, const struct sm_record *record,
                           struct qf_err *err)
{
    enum sm_kind kind = definition->layout.kind;
    bool session = kind == SM_SESSION;
    const bool may[SM_FIELD__COUNT] = {
        [SM_FIELD_MAP] = true,
        [SM_FIELD_KEY] = true,
        [SM_FIELD_FROM] = sm_kind_ranged(kind),
        [SM_FIELD_TO] = sm_kind_ranged(kind),
        [SM_FIELD_TIME] = true,
        [SM_FIELD_START] = session,
        [SM_FIELD_END] = session,
        [SM_FIELD_TIMEOUT] = session,
        [SM_FIELD_TYPE] = !session,
        [SM_FIELD_VALUE] = !session,
    };

    for (int i = 0; i < SM_FIELD__COUNT; i++)
        if (record->fields[i].data && !may[i])
            return qf_err_set(err, QF_EINVAL, "%s is nothing that a row of the %s map %s has",
                              sm_field_name((enum sm_field)i), sm_kind_name(kind),
                              definition->name);
    if ((record->kind == SM_RECORD_SESSION && !session) ||
        (record->kind == SM_RECORD_REFERENCE && session))
        return qf_err_set(err, QF_EINVAL, "a %s is no row of the %s map %s",
                          session ? "reference" : "session", sm_kind_name(kind), definition->name);
    return QF_OK;
}

static qf_rc take_number(const struct sm_record *record, enum sm_field field, int64_t *ret_number,
                         struct qf_err *err)
{
    if (!qf_parse_i64(record->fields[field], ret_number))
        return qf_err_set(err, QF_EINVAL, "%s is no integer of 64 bits", sm_field_name(field));
    return QF_OK;
}

static qf_rc take_time(const struct sm_record *record, enum sm_field field, int64_t *ret_time,
                       struct qf_err *err)
{
    if (!qf_time_parse_rfc3339(record->fields[field], ret_time))
        return qf_err_set(err, QF_EINVAL, "%s is no time like 2026-01-31T23:59:58.123Z",
                          sm_field_name(field));
    return QF_OK;
}

static qf_rc take_range(const struct sm_record *record, struct sm_row *row, struct qf_err *err)
{
    const struct qf_str *fields = record->fields;
    qf_rc rc;

    if (fields[SM_FIELD_KEY].data && (fields[SM_FIELD_FROM].data || fields[SM_FIELD_TO].data))
        return qf_err_set(err, QF_EINVAL, "the row has a key and a range");
    if (fields[SM_FIELD_KEY].data) {
        rc = take_number(record, SM_FIELD_KEY, &row->from, err);
        row->to = row->from;
        return rc;
    }
    if (!fields[SM_FIELD_FROM].data || !fields[SM_FIELD_TO].data)
        return qf_err_set(err, QF_EINVAL, "the row has neither a key nor both from and to");
    rc = take_number(record, SM_FIELD_FROM, &row->from, err);
    return rc == QF_OK ? take_number(record, SM_FIELD_TO, &row->to, err) : rc;
}

static qf_rc take_key(const struct sm_record *record, struct sm_row *row, struct qf_err *err)
{
    row->key = record->fields[SM_FIELD_KEY];
    if (!row->key.data)
        return qf_err_set(err, QF_EINVAL, "the row has no key");
    if (!qf_utf8_valid(row->key))
        return qf_err_set(err, QF_EINVAL, "the key is not UTF-8");
    return QF_OK;
}

/* Where a session ends: said, or so long behind its start. */
static qf_rc take_end(const struct sm_definition *definition, const struct sm_record *record,
                      struct sm_row *row, struct qf_err *err)
{
    struct qf_str timeout = record->fields[SM_FIELD_TIMEOUT];
    int64_t length = definition->timeout_ms;

    if (record->fields[SM_FIELD_END].data && timeout.data)
        return qf_err_set(err, QF_EINVAL, "the session has both end and timeout");
    if (record->fields[SM_FIELD_END].data)
        return take_time(record, SM_FIELD_END, &row->end, err);
    if (timeout.data && qf_duration_parse(timeout, &length) != QF_DURATION_OK)
        return qf_err_set(err, QF_EINVAL, "timeout is no duration like 15m");
    if (!length && !timeout.data)
        return qf_err_set(err, QF_EINVAL,
                          "the session has neither end nor timeout, and its map none");
    if (__builtin_add_overflow(row->time, length, &row->end))
        return qf_err_set(err, QF_EINVAL, "the session ends too late");
    return QF_OK;
}

static qf_rc take_times(struct sm_load *load, const struct sm_definition *definition,
                        const struct sm_record *record, struct sm_row *row, struct qf_err *err)
{
    const struct qf_str *fields = record->fields;
    qf_rc rc = QF_OK;

    row->time = load->options.now_ms;
    if (fields[SM_FIELD_START].data && fields[SM_FIELD_TIME].data)
        return qf_err_set(err, QF_EINVAL, "the session has both start and time");
    if (fields[SM_FIELD_START].data)
        rc = take_time(record, SM_FIELD_START, &row->time, err);
    else if (fields[SM_FIELD_TIME].data)
        rc = take_time(record, SM_FIELD_TIME, &row->time, err);
    if (rc == QF_OK && definition->layout.kind == SM_SESSION)
        rc = take_end(definition, record, row, err);
    return rc;
}

/* A value that JSON gave a type. */
static qf_rc take_typed(struct sm_load *load, enum sm_type wanted, const struct sm_record *record,
                        struct sm_row *row, struct qf_err *err)
{
    struct sm_value value = record->value;
    struct qf_strbuf *room = &load->room;

    row->value = value;
    if (wanted == SM_ANY || wanted == value.type)
        return QF_OK;
    if (wanted == SM_DOUBLE && value.type == SM_INTEGER) {
        row->value = sm_value_double(room, (double)sm_value_as_integer(value));
        return QF_OK;
    }
    if (wanted == SM_JSON)
        return sm_json_value(room, record->fields[SM_FIELD_VALUE], &row->value, err);
    /* Numbers that JSON has no form for are written as text. */
    if (value.type == SM_STRING && record->fields[SM_FIELD_TYPE].data)
        return sm_value_parse(room, wanted, value.bytes, &row->value, err);
    return qf_err_set(err, QF_EINVAL, "the value is a %s, not a %s", sm_type_name(value.type),
                      sm_type_name(wanted));
}

static qf_rc take_value(struct sm_load *load, const struct sm_definition *definition,
                        const struct sm_record *record, struct sm_row *row, struct qf_err *err)
{
    struct qf_str said = record->fields[SM_FIELD_TYPE];
    struct qf_str text = record->fields[SM_FIELD_VALUE];
    enum sm_type type = definition->type;

    if (!text.data)
        return qf_err_set(err, QF_EINVAL, "the row has no value");
    if (said.data && (!sm_type_parse(said, &type) || type == SM_ANY))
        return qf_err_set(err, QF_EINVAL,
                          "the type is none: string, integer, double, boolean, json");
    if (definition->type != SM_ANY && type != definition->type)
        return qf_err_set(err, QF_EINVAL, "the values of map %s are %s", definition->name,
                          sm_type_name(definition->type));
    if (record->value.type != SM_ANY)
        return take_typed(load, type, record, row, err);
    if (type == SM_JSON)
        return sm_json_value(&load->room, text, &row->value, err);
    return sm_value_parse(&load->room, type, text, &row->value, err);
}

static qf_rc make_row(struct sm_load *load, const struct sm_record *record,
                      const struct sm_definition **ret_definition, struct sm_row *ret_row,
                      struct qf_err *err)
{
    const struct sm_definition *definition;
    qf_rc rc = find_map(load, record, &definition, err);

    if (rc != QF_OK)
        return rc == QF_ENOTFOUND ? QF_EINVAL : rc;
    *ret_definition = definition;
    *ret_row = (struct sm_row){ 0 };
    qf_strbuf_reset(&load->room);
    rc = refuse_fields(definition, record, err);
    if (rc == QF_OK)
        rc = sm_kind_ranged(definition->layout.kind) ? take_range(record, ret_row, err)
                                                     : take_key(record, ret_row, err);
    if (rc == QF_OK)
        rc = take_times(load, definition, record, ret_row, err);
    if (rc == QF_OK && sm_kind_valued(definition->layout.kind))
        rc = take_value(load, definition, record, ret_row, err);
    return rc;
}

qf_rc sm_load_record(struct sm_load *load, const struct sm_record *record, struct qf_err *err)
{
    const struct sm_definition *definition = NULL;
    struct qf_err why = { 0 };
    struct sm_row row;
    qf_rc rc = make_row(load, record, &definition, &row, &why);

    if (rc == QF_OK)
        rc = sm_writer_put(load->options.writer, definition, &row, &why);
    if (rc == QF_EINVAL)
        return sm_load_bad(load, record->line, why.msg, err);
    if (rc != QF_OK)
        return qf_err_set(err, rc, "line %llu: %s", (unsigned long long)record->line, why.msg);
    load->count.rows++;
    return QF_OK;
}

qf_rc sm_lines_next(struct sm_lines *lines, struct qf_str *bytes, bool *ret_found,
                    struct qf_str *ret_line, struct qf_err *err)
{
    const char *end = bytes->len ? memchr(bytes->data, '\n', bytes->len) : NULL;
    size_t len = end ? (size_t)(end - bytes->data) : bytes->len;

    *ret_found = end != NULL;
    if (lines->rest.len + len > SM_RECORD_MAX)
        return qf_err_set(err, QF_EINVAL, "line %llu: longer than %zu bytes",
                          (unsigned long long)lines->line + 1, SM_RECORD_MAX);
    if (!end || lines->rest.len)
        qf_strbuf_add(&lines->rest, bytes->data, len);
    if (end) {
        *ret_line = lines->rest.len ? qf_strbuf_view(&lines->rest) : qf_str_sub(*bytes, 0, len);
        lines->line++;
        len++;
    }
    *bytes = qf_str_sub(*bytes, len, bytes->len);
    return QF_OK;
}
