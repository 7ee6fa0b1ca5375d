/* xml.c - reference data as XML, read by GLib's parser: no entities of its own, no document types, nothing from elsewhere. */
#include <string.h>

#include "base/pure/alloc.h"
#include "statemap/load/load_int.h"
#include "statemap/load/markup.h"

enum { ROOT = 1, RECORD = 2, FIELD = 3 }; /* depths */

struct xml_reader {
    struct sm_load *load;
    GMarkupParseContext *parser;
    struct qf_err *err; /* of the call at hand */
    qf_rc rc;           /* what a callback found */
    bool begun;         /* bytes came */
    bool ended;         /* the root did */
    int depth;
    size_t waiting; /* bytes since something came of them */
    struct sm_record record;
    enum sm_field field;
    const char *bad; /* what is wrong with the record, or NULL */
    size_t starts[SM_FIELD__COUNT], lens[SM_FIELD__COUNT];
    bool said[SM_FIELD__COUNT];
    struct qf_strbuf text;
};

static struct qf_str local_name(const char *name)
{
    const char *colon = strchr(name, ':');

    return qf_str_from(colon ? colon + 1 : name);
}

static uint64_t line_of(struct xml_reader *reader)
{
    gint line, column;

    g_markup_parse_context_get_position(reader->parser, &line, &column);
    /* It looks at the character behind the tag already: if that ends the line, it counts as the next one's. */
    return (uint64_t)(column <= 1 && line > 1 ? line - 1 : line);
}

/* End the parsing. */
static void stop(struct xml_reader *reader, qf_rc rc, GError **error)
{
    reader->rc = rc;
    g_set_error_literal(error, G_MARKUP_ERROR, G_MARKUP_ERROR_INVALID_CONTENT, "stopped");
}

static void stop_with(struct xml_reader *reader, const char *why, struct qf_str name,
                      GError **error)
{
    stop(reader,
         qf_err_set(reader->err, QF_EINVAL, "line %llu: %s%.*s",
                    (unsigned long long)line_of(reader), why, (int)QF_MIN(name.len, (size_t)100),
                    name.data ? name.data : ""),
         error);
}

static void begin_record(struct xml_reader *reader, struct qf_str name, GError **error)
{
    bool session = qf_str_is(name, "session");

    if (!session && !qf_str_is(name, "reference")) {
        stop_with(reader, "there is no element ", name, error);
        return;
    }
    reader->record =
        (struct sm_record){ .line = line_of(reader),
                            .kind = session ? SM_RECORD_SESSION : SM_RECORD_REFERENCE };
    memset(reader->said, 0, sizeof(reader->said));
    reader->bad = NULL;
    qf_strbuf_reset(&reader->text);
}

static void begin_field(struct xml_reader *reader, struct qf_str name)
{
    if (!sm_field_parse(name, &reader->field)) {
        reader->field = SM_FIELD__COUNT;
        reader->bad = "there is an element that no row has";
        return;
    }
    if (reader->said[reader->field])
        reader->bad = "an element is there twice";
    reader->said[reader->field] = true;
    reader->starts[reader->field] = reader->text.len;
    reader->lens[reader->field] = 0;
}

static void on_start(GMarkupParseContext *parser, const gchar *element, const gchar **names,
                     const gchar **values, gpointer ctx, GError **error)
{
    struct xml_reader *reader = ctx;
    struct qf_str name = local_name(element);

    (void)parser;
    (void)names;
    (void)values;
    reader->waiting = 0;
    reader->depth++;
    if (reader->depth == ROOT && (reader->ended || !qf_str_is(name, "referenceData")))
        stop_with(reader, "the root is one element referenceData, not ", name, error);
    else if (reader->depth == RECORD)
        begin_record(reader, name, error);
    else if (reader->depth == FIELD)
        begin_field(reader, name);
    else if (reader->depth > FIELD)
        reader->bad = "a value, or what else it says, has elements";
    if (reader->depth > 100 && reader->rc == QF_OK)
        stop_with(reader, "elements are nested too deep", QF_STR(""), error);
}

static void end_record(struct xml_reader *reader, GError **error)
{
    qf_rc rc;

    for (int i = 0; i < SM_FIELD__COUNT; i++)
        if (reader->said[i])
            reader->record.fields[i] = qf_str_trim((struct qf_str){
                qf_strbuf_cstr(&reader->text) + reader->starts[i], reader->lens[i] });
    rc = reader->bad ? sm_load_bad(reader->load, reader->record.line, reader->bad, reader->err)
                     : sm_load_record(reader->load, &reader->record, reader->err);
    if (rc != QF_OK)
        stop(reader, rc, error);
}

static void on_end(GMarkupParseContext *parser, const gchar *element, gpointer ctx, GError **error)
{
    struct xml_reader *reader = ctx;

    (void)parser;
    (void)element;
    reader->waiting = 0;
    if (reader->depth == RECORD)
        end_record(reader, error);
    reader->depth--;
    reader->ended |= reader->depth == 0;
}

static void on_text(GMarkupParseContext *parser, const gchar *text, gsize len, gpointer ctx,
                    GError **error)
{
    struct xml_reader *reader = ctx;
    struct qf_str bytes = { text, len };

    (void)parser;
    reader->waiting = 0;
    if (reader->depth >= FIELD && reader->field < SM_FIELD__COUNT) {
        if (reader->text.len + len > SM_RECORD_MAX) {
            stop_with(reader, "a row is too long", QF_STR(""), error);
            return;
        }
        qf_strbuf_add(&reader->text, text, len);
        reader->lens[reader->field] = reader->text.len - reader->starts[reader->field];
    } else if (qf_str_trim(bytes).len && reader->depth < FIELD) {
        stop_with(reader, "text stands between elements: ", qf_str_trim(bytes), error);
    }
}

/* Comments, declarations. */
static void on_other(GMarkupParseContext *parser, const gchar *text, gsize len, gpointer ctx,
                     GError **error)
{
    struct xml_reader *reader = ctx;
    struct qf_str bytes = { text, len };
    QF_CLEANUP(qf_freep) char *copy = qf_xmemdup0(text, len);

    (void)parser;
    reader->waiting = 0;
    if (qf_str_starts(bytes, QF_STR("<!DOCTYPE")))
        stop_with(reader, "a document type is not read", QF_STR(""), error);
    else if (qf_str_starts(bytes, QF_STR("<?xml")) && strstr(copy, "encoding") &&
             !strcasestr(copy, "utf-8"))
        stop_with(reader, "only UTF-8 is read", QF_STR(""), error);
}

static const GMarkupParser callbacks = { on_start, on_end, on_text, on_other, NULL };

static void *xml_new(struct sm_load *load)
{
    struct xml_reader *reader = qf_xcalloc(1, sizeof(*reader));

    reader->load = load;
    reader->parser =
        g_markup_parse_context_new(&callbacks, G_MARKUP_TREAT_CDATA_AS_TEXT, reader, NULL);
    return reader;
}

static void xml_free(void *ctx)
{
    struct xml_reader *reader = ctx;

    g_markup_parse_context_free(reader->parser);
    qf_strbuf_done(&reader->text);
    qf_freep(&reader);
}

/* What the parser said, or what a callback found. */
static qf_rc failed(struct xml_reader *reader, GError *error, struct qf_err *err)
{
    qf_rc rc = reader->rc;

    if (rc == QF_OK)
        rc = qf_err_set(err, QF_EINVAL, "line %llu: no XML: %s",
                        (unsigned long long)line_of(reader), error->message);
    g_error_free(error);
    return rc;
}

static qf_rc xml_feed(void *ctx, struct qf_str bytes, struct qf_err *err)
{
    struct xml_reader *reader = ctx;
    GError *error = NULL;

    if (!reader->begun && qf_str_starts(bytes, QF_STR("\xef\xbb\xbf")))
        bytes = qf_str_sub(bytes, 3, bytes.len);
    reader->begun = true;
    reader->err = err;
    while (bytes.len) {
        size_t piece = QF_MIN(bytes.len, (size_t)1 << 16);

        reader->waiting += piece;
        if (reader->waiting > SM_RECORD_MAX)
            return qf_err_set(err, QF_EINVAL, "line %llu: something is longer than %zu bytes",
                              (unsigned long long)line_of(reader), SM_RECORD_MAX);
        if (!g_markup_parse_context_parse(reader->parser, bytes.data, (gssize)piece, &error))
            return failed(reader, error, err);
        bytes = qf_str_sub(bytes, piece, bytes.len);
    }
    return QF_OK;
}

static qf_rc xml_end(void *ctx, struct qf_err *err)
{
    struct xml_reader *reader = ctx;
    GError *error = NULL;

    reader->err = err;
    if (!g_markup_parse_context_end_parse(reader->parser, &error))
        return failed(reader, error, err);
    return reader->ended ? QF_OK : qf_err_set(err, QF_EINVAL, "line 1: there is no referenceData");
}

const struct sm_reader_ops sm_read_xml = { xml_new, xml_feed, xml_end, xml_free };
