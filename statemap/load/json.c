/* json.c - JSON lines: an object per line. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "statemap/load/load_int.h"

struct json_reader {
    struct sm_load *load;
    struct sm_lines lines;
    struct qf_strbuf room; /* the value of the row at hand */
};

static void *json_new(struct sm_load *load)
{
    struct json_reader *reader = qf_xcalloc(1, sizeof(*reader));

    reader->load = load;
    return reader;
}

static void json_free(void *ctx)
{
    struct json_reader *reader = ctx;

    qf_strbuf_done(&reader->lines.rest);
    qf_strbuf_done(&reader->room);
    free(reader);
}

/* The one form: members sorted, no blanks. */
static char *dump(json_t *value)
{
    return json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
}

qf_rc sm_json_value(struct qf_strbuf *room, struct qf_str text, struct sm_value *ret_value,
                    struct qf_err *err)
{
    json_error_t why;
    json_t *json = json_loadb(text.data ? text.data : "", text.len,
                              JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    char *form = json ? dump(json) : NULL;

    if (form)
        *ret_value = sm_value_json_text(room, qf_str_from(form));
    else
        (void)qf_err_set(err, QF_EINVAL, "the value is no JSON: %s",
                         json ? "it cannot be written" : why.text);
    json_decref(json);
    if (!form)
        return QF_EINVAL;
    free(form);
    return QF_OK;
}

/* Its text goes into the field, its type and bytes into the value. */
static void take_value(struct json_reader *reader, json_t *json, struct sm_record *record)
{
    struct qf_str *text = &record->fields[SM_FIELD_VALUE];
    char *form = dump(json);
    struct qf_strbuf *room = &reader->room;
    size_t start;

    qf_strbuf_reset(room);
    /* Both are in the room: what is borrowed must not move. */
    (void)qf_strbuf_reserve(room, strlen(form) + json_string_length(json) + 64);
    start = room->len;
    qf_strbuf_puts(room, form);
    *text = (struct qf_str){ room->data + start, strlen(form) };
    if (json_is_string(json))
        record->value = sm_value_string(
            room, (struct qf_str){ json_string_value(json), json_string_length(json) });
    else if (json_is_integer(json))
        record->value = sm_value_integer(room, json_integer_value(json));
    else if (json_is_real(json))
        record->value = sm_value_double(room, json_real_value(json));
    else if (json_is_boolean(json))
        record->value = sm_value_boolean(room, json_is_true(json));
    else
        record->value = (struct sm_value){ SM_JSON, *text };
    free(form);
}

/* A member that is text; keys and ranges of numbers may be numbers. */
static bool take_text(json_t *json, enum sm_field field, struct sm_record *record,
                      char numbers[SM_FIELD__COUNT][24])
{
    bool number = field == SM_FIELD_KEY || field == SM_FIELD_FROM || field == SM_FIELD_TO;

    if (json_is_string(json)) {
        record->fields[field] =
            (struct qf_str){ json_string_value(json), json_string_length(json) };
        return true;
    }
    if (!number || !json_is_integer(json))
        return false;
    (void)snprintf(numbers[field], 24, "%lld", (long long)json_integer_value(json));
    record->fields[field] = qf_str_from(numbers[field]);
    return true;
}

static qf_rc take_object(struct json_reader *reader, json_t *object, struct qf_err *err)
{
    struct sm_record record = { .line = reader->lines.line };
    char numbers[SM_FIELD__COUNT][24], why[300];
    const char *member;
    json_t *value;

    json_object_foreach(object, member, value)
    {
        enum sm_field field;

        if (!sm_field_parse(qf_str_from(member), &field)) {
            (void)snprintf(why, sizeof(why), "there is no member %s", member);
            return sm_load_bad(reader->load, record.line, why, err);
        }
        if (field == SM_FIELD_VALUE) {
            take_value(reader, value, &record);
        } else if (!take_text(value, field, &record, numbers)) {
            (void)snprintf(why, sizeof(why), "%s is no text", member);
            return sm_load_bad(reader->load, record.line, why, err);
        }
    }
    return sm_load_record(reader->load, &record, err);
}

static qf_rc take_line(struct json_reader *reader, struct qf_str line, struct qf_err *err)
{
    json_error_t why;
    json_t *object;
    char text[300];
    qf_rc rc;

    if (qf_str_trim(line).len == 0)
        return QF_OK;
    object = json_loadb(line.data, line.len, JSON_REJECT_DUPLICATES, &why);
    if (object && json_is_object(object)) {
        rc = take_object(reader, object, err);
    } else {
        (void)snprintf(text, sizeof(text), "no JSON object: %s",
                       object ? "something else" : why.text);
        rc = sm_load_bad(reader->load, reader->lines.line, text, err);
    }
    json_decref(object);
    return rc;
}

static qf_rc json_feed(void *ctx, struct qf_str bytes, struct qf_err *err)
{
    struct json_reader *reader = ctx;

    while (bytes.len) {
        struct qf_str line;
        bool found;
        qf_rc rc = sm_lines_next(&reader->lines, &bytes, &found, &line, err);

        if (rc == QF_OK && found) {
            rc = take_line(reader, line, err);
            qf_strbuf_reset(&reader->lines.rest);
        }
        if (rc != QF_OK)
            return rc;
    }
    return QF_OK;
}

static qf_rc json_end(void *ctx, struct qf_err *err)
{
    struct json_reader *reader = ctx;

    reader->lines.line++;
    return take_line(reader, qf_strbuf_view(&reader->lines.rest), err);
}

const struct sm_reader_ops sm_read_json = { json_new, json_feed, json_end, json_free };
