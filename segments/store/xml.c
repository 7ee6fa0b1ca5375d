/* xml.c - one pass over a small XML document. */
#include "segments/store/xml.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/strbuf.h"
#include "base/pure/utf8.h"

struct parser {
    struct qf_str in;
    size_t at;
    struct qf_str open[XML_DEPTH_MAX]; /* names as written */
    int depth;
    struct qf_strbuf text;
    bool seen_root, mixed; /* mixed: the element that ends next had elements inside */
    xml_fn *fn;
    void *ctx;
    struct qf_err *err;
};

static qf_rc bad(struct parser *p, const char *what)
{
    return qf_err_set(p->err, QF_EPROTO, "XML: %s at byte %zu", what, p->at);
}

static bool looking_at(const struct parser *p, struct qf_str what)
{
    return qf_str_starts(qf_str_sub(p->in, p->at, p->in.len), what);
}

/* Move behind the next @end; false if there is none. */
static bool skip_past(struct parser *p, struct qf_str end)
{
    const char *found = memmem(p->in.data + p->at, p->in.len - p->at, end.data, end.len);

    if (!found)
        return false;
    p->at = (size_t)(found - p->in.data) + end.len;
    return true;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_space(struct parser *p)
{
    while (p->at < p->in.len && is_space(p->in.data[p->at]))
        p->at++;
}

static struct qf_str take_name(struct parser *p)
{
    size_t start = p->at;

    while (p->at < p->in.len && !is_space(p->in.data[p->at]) && p->in.data[p->at] != '>' &&
           p->in.data[p->at] != '/' && p->in.data[p->at] != '=' && p->in.data[p->at] != '<')
        p->at++;
    return qf_str_sub(p->in, start, p->at);
}

static struct qf_str without_prefix(struct qf_str name)
{
    const char *colon = name.len ? memchr(name.data, ':', name.len) : NULL;

    return colon ? qf_str_sub(name, (size_t)(colon - name.data) + 1, name.len) : name;
}

static bool skip_attributes(struct parser *p)
{
    for (;;) {
        char quote[2] = { 0 };

        skip_space(p);
        if (p->at >= p->in.len)
            return false;
        if (p->in.data[p->at] == '>' || p->in.data[p->at] == '/')
            return true;
        if (!take_name(p).len)
            return false;
        skip_space(p);
        if (p->at >= p->in.len || p->in.data[p->at++] != '=')
            return false;
        skip_space(p);
        if (p->at >= p->in.len || (p->in.data[p->at] != '"' && p->in.data[p->at] != '\''))
            return false;
        quote[0] = p->in.data[p->at++];
        if (!skip_past(p, qf_str_from(quote)))
            return false;
    }
}

static qf_rc end_element(struct parser *p)
{
    struct qf_str name = p->open[--p->depth];
    struct xml_element element = {
        .name = without_prefix(name),
        .parent = p->depth ? without_prefix(p->open[p->depth - 1]) : QF_STR(""),
        .text = p->mixed ? QF_STR("") : qf_strbuf_view(&p->text),
        .depth = p->depth,
    };
    qf_rc rc = p->fn(p->ctx, &element, p->err);

    qf_strbuf_reset(&p->text);
    p->mixed = true;
    return rc;
}

static qf_rc open_tag(struct parser *p)
{
    struct qf_str name = take_name(p);

    if (!name.len)
        return bad(p, "a tag without a name");
    if (p->depth == XML_DEPTH_MAX)
        return bad(p, "elements nest too deep");
    if (p->depth == 0 && p->seen_root)
        return bad(p, "a second root");
    if (!skip_attributes(p))
        return bad(p, "a tag is not closed");
    p->seen_root = true;
    p->open[p->depth++] = name;
    p->mixed = false;
    qf_strbuf_reset(&p->text);
    if (looking_at(p, QF_STR("/>"))) {
        p->at += 2;
        return end_element(p);
    }
    if (p->in.data[p->at] != '>')
        return bad(p, "a stray slash");
    p->at++;
    return QF_OK;
}

static qf_rc close_tag(struct parser *p)
{
    struct qf_str name = take_name(p);

    skip_space(p);
    if (p->at >= p->in.len || p->in.data[p->at] != '>')
        return bad(p, "a tag is not closed");
    p->at++;
    if (!p->depth || !qf_str_eq(p->open[p->depth - 1], name))
        return bad(p, "tags do not match");
    return end_element(p);
}

static qf_rc character_reference(struct parser *p, struct qf_str digits)
{
    bool hex = digits.len && digits.data[0] == 'x';
    uint32_t rune = 0;
    char out[4];

    if (hex)
        digits = qf_str_sub(digits, 1, digits.len);
    if (!digits.len || digits.len > 7)
        return bad(p, "a bad character reference");
    for (size_t i = 0; i < digits.len; i++) {
        char c = digits.data[i];
        uint32_t value;

        if (c >= '0' && c <= '9')
            value = (uint32_t)(c - '0');
        else if (hex && c >= 'a' && c <= 'f')
            value = (uint32_t)(c - 'a' + 10);
        else if (hex && c >= 'A' && c <= 'F')
            value = (uint32_t)(c - 'A' + 10);
        else
            return bad(p, "a bad character reference");
        rune = rune * (hex ? 16 : 10) + value;
    }
    if (!rune || rune > 0x10ffff)
        return bad(p, "a bad character reference");
    qf_strbuf_add(&p->text, out, qf_utf8_encode(rune, out));
    return QF_OK;
}

static qf_rc entity(struct parser *p)
{
    static const struct {
        struct qf_str name;
        char c;
    } known[] = {
        { QF_STR_INIT("amp"), '&' },  { QF_STR_INIT("lt"), '<' },    { QF_STR_INIT("gt"), '>' },
        { QF_STR_INIT("quot"), '"' }, { QF_STR_INIT("apos"), '\'' },
    };
    struct qf_str rest = qf_str_sub(p->in, p->at + 1, p->at + 12);
    const char *end = rest.len ? memchr(rest.data, ';', rest.len) : NULL;
    struct qf_str name;

    if (!end)
        return bad(p, "a stray ampersand");
    name = qf_str_sub(rest, 0, (size_t)(end - rest.data));
    p->at += name.len + 2;
    if (name.len && name.data[0] == '#')
        return character_reference(p, qf_str_sub(name, 1, name.len));
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (qf_str_eq(known[i].name, name)) {
            qf_strbuf_putc(&p->text, known[i].c);
            return QF_OK;
        }
    }
    return bad(p, "an unknown entity");
}

static qf_rc character_data(struct parser *p)
{
    size_t start = p->at;

    while (p->at < p->in.len && p->in.data[p->at] != '<' && p->in.data[p->at] != '&') {
        if (!p->depth && !is_space(p->in.data[p->at]))
            return bad(p, "text outside of the root");
        p->at++;
    }
    qf_strbuf_str(&p->text, qf_str_sub(p->in, start, p->at));
    return QF_OK;
}

static qf_rc cdata(struct parser *p)
{
    size_t start = p->at += 9;

    if (!p->depth || !skip_past(p, QF_STR("]]>")))
        return bad(p, "character data without an end");
    qf_strbuf_str(&p->text, qf_str_sub(p->in, start, p->at - 3));
    return QF_OK;
}

static qf_rc step(struct parser *p)
{
    if (p->in.data[p->at] == '&')
        return p->depth ? entity(p) : bad(p, "text outside of the root");
    if (p->in.data[p->at] != '<')
        return character_data(p);
    if (looking_at(p, QF_STR("<?")))
        return skip_past(p, QF_STR("?>")) ? QF_OK : bad(p, "a declaration without an end");
    if (looking_at(p, QF_STR("<!--")))
        return skip_past(p, QF_STR("-->")) ? QF_OK : bad(p, "a comment without an end");
    if (looking_at(p, QF_STR("<![CDATA[")))
        return cdata(p);
    if (looking_at(p, QF_STR("<!")))
        return bad(p, "a document type");
    if (looking_at(p, QF_STR("</"))) {
        p->at += 2;
        return close_tag(p);
    }
    p->at++;
    return open_tag(p);
}

qf_rc xml_parse(struct qf_str document, xml_fn *fn, void *ctx, struct qf_err *err)
{
    struct parser p = { .in = document, .fn = fn, .ctx = ctx, .err = err };
    qf_rc rc = QF_OK;

    if (document.len && memchr(document.data, '\0', document.len))
        rc = bad(&p, "a NUL byte"); /* XML has none; texts become strings that would end there */
    while (!rc && p.at < p.in.len)
        rc = step(&p);
    if (!rc && (p.depth || !p.seen_root))
        rc = bad(&p, "the document ends early");
    qf_strbuf_done(&p.text);
    return rc;
}
