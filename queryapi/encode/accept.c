/* accept.c - which form of exposition a client asks for. */
#include "base/pure/number.h"
#include "queryapi/encode/exposition.h"

#define TEXT "text/plain; version=0.0.4; charset=utf-8; escaping="
#define PROTOBUF                                                                                   \
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; "                   \
    "encoding=delimited; escaping="

static const char *const escapings[] = { [QA_ESCAPE_UNDERSCORES] = "underscores",
                                         [QA_ESCAPE_DOTS] = "dots",
                                         [QA_ESCAPE_VALUES] = "values",
                                         [QA_ESCAPE_NONE] = "allow-utf-8" };

/* One form of the list: "text/plain;version=1.0.0;escaping=dots;q=0.5". */
struct clause {
    struct qf_str type, version, proto, encoding, escaping;
    double weight;
};

/* The part of @text before @mark, which @text then begins behind. */
static struct qf_str before(struct qf_str *text, char mark)
{
    const char *found = text->len ? memchr(text->data, mark, text->len) : NULL;
    size_t len = found ? (size_t)(found - text->data) : text->len;
    struct qf_str part = qf_str_trim(qf_str_sub(*text, 0, len));

    *text = qf_str_sub(*text, found ? len + 1 : len, text->len);
    return part;
}

static struct clause read_clause(struct qf_str text)
{
    struct clause clause = { .type = before(&text, ';'), .weight = 1 };

    while (text.len) {
        struct qf_str value = before(&text, ';');
        struct qf_str name = before(&value, '=');

        value = qf_str_trim(value);
        if (qf_str_is(name, "q") && !qf_parse_double(value, &clause.weight))
            clause.weight = 0;
        else if (qf_str_is(name, "version"))
            clause.version = value;
        else if (qf_str_is(name, "proto"))
            clause.proto = value;
        else if (qf_str_is(name, "encoding"))
            clause.encoding = value;
        else if (qf_str_is(name, "escaping"))
            clause.escaping = value;
    }
    return clause;
}

/* The forms by their weights, of equal ones the first first. */
static size_t read_clauses(struct qf_str accept, struct clause clauses[QA_ACCEPT_MAX])
{
    size_t count = 0;

    while (accept.len && count < QA_ACCEPT_MAX) {
        struct clause clause = read_clause(before(&accept, ','));
        size_t at = count++;

        for (; at > 0 && clauses[at - 1].weight < clause.weight; at--)
            clauses[at] = clauses[at - 1];
        clauses[at] = clause;
    }
    return count;
}

static bool is_protobuf(const struct clause *clause)
{
    return qf_str_is(clause->type, "application/vnd.google.protobuf") &&
           qf_str_is(clause->proto, "io.prometheus.client.MetricFamily") &&
           qf_str_is(clause->encoding, "delimited");
}

static bool is_text(const struct clause *clause)
{
    return qf_str_is(clause->type, "text/plain") &&
           (!clause->version.len || qf_str_is(clause->version, "0.0.4") ||
            qf_str_is(clause->version, "1.0.0"));
}

struct qa_exposition qa_exposition_choose(struct qf_str accept)
{
    struct qa_exposition form = { .escaping = QA_ESCAPE_UNDERSCORES };
    struct clause clauses[QA_ACCEPT_MAX];
    size_t count = read_clauses(accept, clauses);

    for (size_t i = 0; i < count; i++) {
        for (int e = 0; e < QA_ESCAPE__COUNT; e++)
            if (qf_str_is(clauses[i].escaping, escapings[e]))
                form.escaping = (enum qa_escaping)e;
        form.protobuf = is_protobuf(&clauses[i]);
        if (form.protobuf || is_text(&clauses[i]))
            break;
    }
    return form;
}

const char *qa_exposition_type(struct qa_exposition form)
{
    switch (form.escaping) {
    case QA_ESCAPE_UNDERSCORES:
        return form.protobuf ? PROTOBUF "underscores" : TEXT "underscores";
    case QA_ESCAPE_DOTS:
        return form.protobuf ? PROTOBUF "dots" : TEXT "dots";
    case QA_ESCAPE_VALUES:
        return form.protobuf ? PROTOBUF "values" : TEXT "values";
    case QA_ESCAPE_NONE:
        return form.protobuf ? PROTOBUF "allow-utf-8" : TEXT "allow-utf-8";
    case QA_ESCAPE__COUNT:
        break;
    }
    return TEXT "underscores";
}
