/* exposition.c - names, labels and values as text. */
#include "queryapi/encode/exposition.h"

#include "base/pure/number.h"

static bool is_letter(char c, size_t at, bool colons)
{
    return ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || (colons && c == ':') ||
           (at > 0 && c >= '0' && c <= '9');
}

static bool is_plain(struct qf_str name, bool colons)
{
    for (size_t i = 0; i < name.len; i++)
        if (!is_letter(name.data[i], i, colons))
            return false;
    return name.len > 0;
}

/* An underscore for each character, not each byte, that may not be there. */
static void put_escaped(struct qf_strbuf *buf, struct qf_str name, bool colons)
{
    for (size_t i = 0; i < name.len; i++)
        if (is_letter(name.data[i], i, colons))
            qf_strbuf_putc(buf, name.data[i]);
        else if (((unsigned char)name.data[i] & 0xc0) != 0x80)
            qf_strbuf_putc(buf, '_');
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

static void put_name(struct qf_strbuf *buf, struct qf_str name, bool colons, bool utf8)
{
    if (utf8 && !is_plain(name, colons))
        put_quoted(buf, name);
    else
        put_escaped(buf, name, colons);
}

/* A metric's name that must be quoted stands among the labels. */
static void put_series(struct qf_strbuf *buf, struct qf_labels labels, struct qf_str metric,
                       bool utf8)
{
    bool plain = !utf8 || is_plain(metric, true), instance = false;
    const char *between = "";

    if (plain)
        put_escaped(buf, metric, true);
    qf_strbuf_putc(buf, '{');
    if (!plain) {
        put_quoted(buf, metric);
        between = ",";
    }
    for (size_t i = 0; i < labels.count; i++) {
        if (qf_str_is(labels.items[i].name, QF_METRIC_NAME))
            continue;
        instance |= qf_str_is(labels.items[i].name, "instance");
        qf_strbuf_puts(buf, between);
        put_name(buf, labels.items[i].name, false, utf8);
        qf_strbuf_putc(buf, '=');
        put_quoted(buf, labels.items[i].value);
        between = ",";
    }
    qf_strbuf_printf(buf, "%s}", instance ? "" : between[0] ? ",instance=\"\"" : "instance=\"\"");
}

void qa_exposition_sample(struct qf_strbuf *buf, struct qf_labels labels, struct qf_str before,
                          bool utf8, double value, int64_t ts)
{
    struct qf_str metric = qf_labels_get(labels, QF_STR(QF_METRIC_NAME));
    char number[QF_DOUBLE_TEXT_MAX];

    if (!qf_str_eq(metric, before)) {
        qf_strbuf_puts(buf, "# TYPE ");
        put_name(buf, metric, true, utf8);
        qf_strbuf_puts(buf, " untyped\n");
    }
    put_series(buf, labels, metric, utf8);
    qf_strbuf_putc(buf, ' ');
    qf_strbuf_add(buf, number, qf_double_g(value, number));
    qf_strbuf_putc(buf, ' ');
    qf_strbuf_i64(buf, ts);
    qf_strbuf_putc(buf, '\n');
}
