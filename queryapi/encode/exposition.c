/* exposition.c - names, labels and values as text. */
#include "queryapi/encode/exposition.h"

#include "base/pure/number.h"
#include "base/pure/utf8.h"

static bool is_plain_at(char c, size_t at)
{
    return ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == ':' ||
           (at > 0 && c >= '0' && c <= '9');
}

static bool is_plain(struct qf_str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!is_plain_at(name.data[i], i))
            return false;
    return name.len > 0;
}

/* What stands for a character that no plain name has, or for an underscore in a name with such ones. */
static void put_character(struct qf_strbuf *buf, uint32_t rune, enum qa_escaping escaping)
{
    if (escaping == QA_ESCAPE_UNDERSCORES)
        qf_strbuf_putc(buf, '_');
    else if (rune == '_')
        qf_strbuf_puts(buf, "__");
    else if (escaping == QA_ESCAPE_VALUES)
        qf_strbuf_printf(buf, "_%x_", (unsigned)rune);
    else
        qf_strbuf_puts(buf, rune == '.' ? "_dot_" : "__");
}

void qa_exposition_name(struct qf_strbuf *buf, struct qf_str name, enum qa_escaping escaping)
{
    if (escaping == QA_ESCAPE_NONE || is_plain(name)) {
        qf_strbuf_str(buf, name);
        return;
    }
    if (escaping == QA_ESCAPE_VALUES)
        qf_strbuf_puts(buf, "U__");
    for (size_t i = 0; i < name.len;) {
        uint32_t rune = 0xfffd;
        size_t len = qf_utf8_decode(qf_str_sub(name, i, name.len), &rune);

        if (is_plain_at(name.data[i], i) && name.data[i] != '_')
            qf_strbuf_putc(buf, name.data[i]);
        else
            put_character(buf, rune, escaping);
        i += len ? len : 1;
    }
}

static void put_quoted(struct qf_strbuf *buf, struct qf_str text)
{
    qf_strbuf_putc(buf, '"');
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];

        if (c == '\n')
            qf_strbuf_puts(buf, "\\n");
        else if (c == '"' || c == '\\')
            qf_strbuf_printf(buf, "\\%c", c);
        else
            qf_strbuf_putc(buf, c);
    }
    qf_strbuf_putc(buf, '"');
}

static bool needs_quotes(struct qf_str name, enum qa_escaping escaping)
{
    return escaping == QA_ESCAPE_NONE && !is_plain(name);
}

static void put_name(struct qf_strbuf *buf, struct qf_str name, enum qa_escaping escaping)
{
    if (needs_quotes(name, escaping))
        put_quoted(buf, name);
    else
        qa_exposition_name(buf, name, escaping);
}

/* A metric's name that must be quoted stands among the labels. */
static void put_series(struct qf_strbuf *buf, struct qf_labels labels, struct qf_str metric,
                       enum qa_escaping escaping)
{
    bool quoted = needs_quotes(metric, escaping), instance = false;
    const char *between = quoted ? "," : "";

    if (quoted)
        qf_strbuf_putc(buf, '{');
    put_name(buf, metric, escaping);
    if (!quoted)
        qf_strbuf_putc(buf, '{');
    for (size_t i = 0; i < labels.count; i++) {
        if (qf_str_is(labels.items[i].name, QF_METRIC_NAME))
            continue;
        instance |= qf_str_is(labels.items[i].name, "instance");
        qf_strbuf_puts(buf, between);
        put_name(buf, labels.items[i].name, escaping);
        qf_strbuf_putc(buf, '=');
        put_quoted(buf, labels.items[i].value);
        between = ",";
    }
    qf_strbuf_printf(buf, "%s}", instance ? "" : between[0] ? ",instance=\"\"" : "instance=\"\"");
}

void qa_exposition_sample(struct qf_strbuf *buf, struct qf_labels labels, struct qf_str before,
                          enum qa_escaping escaping, double value, int64_t ts)
{
    struct qf_str metric = qf_labels_get(labels, QF_STR(QF_METRIC_NAME));
    char number[QF_DOUBLE_TEXT_MAX];

    if (!qf_str_eq(metric, before)) {
        qf_strbuf_puts(buf, "# TYPE ");
        put_name(buf, metric, escaping);
        qf_strbuf_puts(buf, " untyped\n");
    }
    put_series(buf, labels, metric, escaping);
    qf_strbuf_putc(buf, ' ');
    qf_strbuf_add(buf, number, qf_double_g(value == 0 ? 0 : value, number)); /* -0 is 0 here */
    qf_strbuf_putc(buf, ' ');
    qf_strbuf_i64(buf, ts);
    qf_strbuf_putc(buf, '\n');
}
