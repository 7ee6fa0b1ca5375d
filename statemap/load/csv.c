/* csv.c - CSV as RFC 4180 has it: a head, fields in quotes where they need them. */
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/vec.h"
#include "statemap/load/load_int.h"

enum state { AT_START, PLAIN, QUOTED, QUOTE_IN_QUOTED };

struct span {
    size_t start, end; /* in the record's text */
    bool quoted;
};

struct csv_reader {
    struct sm_load *load;
    enum state state;
    bool quoted;           /* the field at hand had quotes */
    bool return_seen;      /* a CR that LF should follow */
    uint64_t line, first;  /* at hand; where the record began */
    struct qf_strbuf text; /* fields of the record, one behind the other */
    size_t field_start;
    QF_VEC(struct span) fields;
    const char *bad; /* what is wrong with the record, or NULL */
    QF_VEC(enum sm_field) head;
    bool head_read;
};

static void *csv_new(struct sm_load *load)
{
    struct csv_reader *reader = qf_xcalloc(1, sizeof(*reader));

    reader->load = load;
    reader->line = reader->first = 1;
    return reader;
}

static void csv_free(void *ctx)
{
    struct csv_reader *reader = ctx;

    qf_strbuf_done(&reader->text);
    QF_VEC_DONE(&reader->fields);
    QF_VEC_DONE(&reader->head);
    free(reader);
}

static struct qf_str field_at(const struct csv_reader *reader, size_t i)
{
    const struct span *span = &reader->fields.items[i];

    return (struct qf_str){ qf_strbuf_cstr(&reader->text) + span->start, span->end - span->start };
}

static qf_rc take_head(struct csv_reader *reader, struct qf_err *err)
{
    unsigned seen = 0;

    if (reader->bad)
        return qf_err_set(err, QF_EINVAL, "line %llu: %s", (unsigned long long)reader->first,
                          reader->bad);
    for (size_t i = 0; i < reader->fields.count; i++) {
        struct qf_str name = qf_str_trim(field_at(reader, i));
        enum sm_field field;

        if (i == 0 && qf_str_starts(name, QF_STR("\xef\xbb\xbf")))
            name = qf_str_sub(name, 3, name.len);
        if (!sm_field_parse(name, &field))
            return qf_err_set(err, QF_EINVAL, "line 1: there is no column \"%.*s\"",
                              (int)QF_MIN(name.len, (size_t)100), name.data);
        if (seen & 1u << field)
            return qf_err_set(err, QF_EINVAL, "line 1: the column %s is there twice",
                              sm_field_name(field));
        seen |= 1u << field;
        QF_VEC_PUSH(&reader->head, field);
    }
    reader->head_read = true;
    return QF_OK;
}

static qf_rc take_record(struct csv_reader *reader, struct qf_err *err)
{
    struct sm_record record = { .line = reader->first };

    if (reader->bad)
        return sm_load_bad(reader->load, record.line, reader->bad, err);
    if (reader->fields.count == 1 && reader->fields.items[0].end == 0 &&
        !reader->fields.items[0].quoted)
        return QF_OK; /* an empty line */
    if (reader->fields.count != reader->head.count)
        return sm_load_bad(reader->load, record.line, "it has not as many fields as the head", err);
    for (size_t i = 0; i < reader->head.count; i++) {
        struct qf_str text = field_at(reader, i);

        if (text.len || reader->head.items[i] == SM_FIELD_VALUE)
            record.fields[reader->head.items[i]] = text;
    }
    /* Where sessions stand beside others, their column of values is empty. */
    if (record.fields[SM_FIELD_VALUE].data && record.fields[SM_FIELD_VALUE].len == 0 &&
        (record.fields[SM_FIELD_START].data || record.fields[SM_FIELD_END].data ||
         record.fields[SM_FIELD_TIMEOUT].data))
        record.fields[SM_FIELD_VALUE] = (struct qf_str){ NULL, 0 };
    return sm_load_record(reader->load, &record, err);
}

static void end_field(struct csv_reader *reader)
{
    QF_VEC_PUSH(&reader->fields,
                (struct span){ reader->field_start, reader->text.len, reader->quoted });
    reader->field_start = reader->text.len;
    reader->quoted = false;
    reader->state = AT_START;
}

static qf_rc end_record(struct csv_reader *reader, struct qf_err *err)
{
    qf_rc rc;

    end_field(reader);
    rc = reader->head_read ? take_record(reader, err) : take_head(reader, err);
    reader->fields.count = 0;
    qf_strbuf_reset(&reader->text);
    reader->field_start = 0;
    reader->bad = NULL;
    reader->first = reader->line;
    return rc;
}

/* A character that is none of the record's own. */
static void take_plain(struct csv_reader *reader, char c)
{
    if (c == '"' && reader->state == AT_START) {
        reader->state = QUOTED;
        reader->quoted = true;
        return;
    }
    if (c == '"')
        reader->bad = "a quote stands within a field";
    if (reader->state == QUOTE_IN_QUOTED)
        reader->bad = "something stands behind the quotes of a field";
    reader->state = PLAIN;
    qf_strbuf_putc(&reader->text, c);
}

static void take_quoted(struct csv_reader *reader, char c)
{
    if (c == '"') {
        reader->state = QUOTE_IN_QUOTED;
        return;
    }
    if (c == '\n')
        reader->line++;
    qf_strbuf_putc(&reader->text, c);
}

static qf_rc take_char(struct csv_reader *reader, char c, struct qf_err *err)
{
    bool return_seen = reader->return_seen;

    reader->return_seen = false;
    if (reader->state == QUOTED) {
        take_quoted(reader, c);
        return QF_OK;
    }
    if (return_seen && c != '\n')
        reader->bad = "a carriage return stands within a line";
    if (c == '\n') {
        reader->line++;
        return end_record(reader, err);
    }
    if (c == '\r') {
        reader->return_seen = true;
    } else if (c == ',') {
        end_field(reader);
    } else if (c == '"' && reader->state == QUOTE_IN_QUOTED) {
        reader->state = QUOTED;
        qf_strbuf_putc(&reader->text, c);
    } else {
        take_plain(reader, c);
    }
    return QF_OK;
}

static qf_rc csv_feed(void *ctx, struct qf_str bytes, struct qf_err *err)
{
    struct csv_reader *reader = ctx;

    for (size_t i = 0; i < bytes.len; i++) {
        qf_rc rc = take_char(reader, bytes.data[i], err);

        if (rc != QF_OK)
            return rc;
        if (reader->text.len > SM_RECORD_MAX || reader->fields.count > 1000)
            return qf_err_set(err, QF_EINVAL,
                              "line %llu: a record is longer than %zu bytes, or 1000 fields",
                              (unsigned long long)reader->first, SM_RECORD_MAX);
    }
    return QF_OK;
}

static qf_rc csv_end(void *ctx, struct qf_err *err)
{
    struct csv_reader *reader = ctx;
    qf_rc rc = QF_OK;

    if (reader->state == QUOTED)
        return qf_err_set(err, QF_EINVAL, "line %llu: the quotes of a field are not closed",
                          (unsigned long long)reader->first);
    if (reader->text.len || reader->fields.count || reader->state != AT_START)
        rc = end_record(reader, err);
    if (rc == QF_OK && !reader->head_read)
        rc = qf_err_set(err, QF_EINVAL, "line 1: there is no head with the names of columns");
    return rc;
}

const struct sm_reader_ops sm_read_csv = { csv_new, csv_feed, csv_end, csv_free };
