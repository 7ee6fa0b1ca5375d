/* definition_text.c - what is said of a map as a JSON object. */
#include <jansson.h>
#include <string.h>

#include "base/pure/duration.h"
#include "statemap/store/definition_text.h"

static void print_duration(struct qf_strbuf *buf, const char *name, int64_t ms)
{
    if (!ms)
        return;
    qf_strbuf_printf(buf, ",\"%s\":\"", name);
    qf_duration_print(buf, ms);
    qf_strbuf_putc(buf, '"');
}

void sm_definition_print(struct qf_strbuf *buf, const struct sm_definition *d)
{
    qf_strbuf_printf(buf, "{\"name\":\"%s\",\"kind\":\"%s\",\"type\":\"%s\"", d->name,
                     sm_kind_name(d->layout.kind), sm_type_name(d->type));
    if (d->layout.direct)
        qf_strbuf_puts(buf, ",\"short_keys\":true");
    print_duration(buf, "condense", d->condense_ms);
    print_duration(buf, "retention", d->retention_ms);
    print_duration(buf, "timeout", d->timeout_ms);
    if (d->map_bytes)
        qf_strbuf_printf(buf, ",\"map_bytes\":%llu", (unsigned long long)d->map_bytes);
    if (d->readers)
        qf_strbuf_printf(buf, ",\"readers\":%llu", (unsigned long long)d->readers);
    if (d->metric[0])
        qf_strbuf_printf(buf, ",\"metric\":\"%s\"", d->metric);
    print_duration(buf, "interval", d->interval_ms);
    if (d->version)
        qf_strbuf_printf(buf, ",\"version\":%llu", (unsigned long long)d->version);
    if (d->created)
        qf_strbuf_printf(buf, ",\"created\":%llu", (unsigned long long)d->created);
    qf_strbuf_putc(buf, '}');
}

static qf_rc read_metric(struct qf_str text, struct sm_definition *d, struct qf_err *err)
{
    if (text.len > SM_METRIC_MAX || memchr(text.data, 0, text.len))
        return qf_err_set(err, QF_EINVAL, "the name of a metric has at most %d bytes",
                          SM_METRIC_MAX);
    memcpy(d->metric, text.data, text.len);
    d->metric[text.len] = '\0';
    return QF_OK;
}

static int64_t *duration_of(const char *member, struct sm_definition *d)
{
    return strcmp(member, "condense") == 0    ? &d->condense_ms
           : strcmp(member, "retention") == 0 ? &d->retention_ms
           : strcmp(member, "timeout") == 0   ? &d->timeout_ms
           : strcmp(member, "interval") == 0  ? &d->interval_ms
                                              : NULL;
}

static qf_rc read_text(const char *member, json_t *value, struct sm_definition *d,
                       struct qf_err *err)
{
    struct qf_str text = { json_string_value(value), json_string_length(value) };
    int64_t *duration = duration_of(member, d);

    if (!text.data)
        return qf_err_set(err, QF_EINVAL, "%s is no text", member);
    if (strcmp(member, "name") == 0 && !sm_name_fold(text, d->name))
        return qf_err_set(err, QF_EINVAL, "%.*s is no name of a map", QF_STR_ARG(text));
    if (strcmp(member, "kind") == 0 && !sm_kind_parse(text, &d->layout.kind))
        return qf_err_set(err, QF_EINVAL, "there is no kind %.*s", QF_STR_ARG(text));
    if (strcmp(member, "type") == 0 && !sm_type_parse(text, &d->type))
        return qf_err_set(err, QF_EINVAL, "there is no type %.*s", QF_STR_ARG(text));
    if (strcmp(member, "metric") == 0)
        return read_metric(text, d, err);
    if (duration && qf_duration_parse(text, duration) != QF_DURATION_OK)
        return qf_err_set(err, QF_EINVAL, "%s: %.*s is no duration", member, QF_STR_ARG(text));
    return QF_OK;
}

static qf_rc read_number(const char *member, json_t *value, uint64_t *ret_number,
                         struct qf_err *err)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return qf_err_set(err, QF_EINVAL, "%s is no whole number", member);
    *ret_number = (uint64_t)json_integer_value(value);
    return QF_OK;
}

static qf_rc read_member(const char *member, json_t *value, struct sm_definition *d,
                         struct qf_err *err)
{
    static const char *const texts[] = { "name",      "kind",    "type",   "condense",
                                         "retention", "timeout", "metric", "interval" };

    for (size_t i = 0; i < QF_COUNT_OF(texts); i++)
        if (strcmp(member, texts[i]) == 0)
            return read_text(member, value, d, err);
    if (strcmp(member, "map_bytes") == 0)
        return read_number(member, value, &d->map_bytes, err);
    if (strcmp(member, "readers") == 0)
        return read_number(member, value, &d->readers, err);
    if (strcmp(member, "version") == 0)
        return read_number(member, value, &d->version, err);
    if (strcmp(member, "created") == 0)
        return read_number(member, value, &d->created, err);
    if (strcmp(member, "short_keys") == 0 && json_is_boolean(value)) {
        d->layout.direct = json_is_true(value);
        return QF_OK;
    }
    return qf_err_set(err, QF_EINVAL, "a definition has no member %s like this", member);
}

qf_rc sm_definition_read(struct qf_str text, struct sm_definition *ret_definition,
                         struct qf_err *err)
{
    return sm_definition_read_as(text, "", ret_definition, err);
}

qf_rc sm_definition_read_as(struct qf_str text, const char *name,
                            struct sm_definition *ret_definition, struct qf_err *err)
{
    struct sm_definition d = { .layout.kind = SM_KIND__COUNT };
    json_error_t why;
    json_t *json = json_loadb(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES, &why);
    const char *member;
    json_t *value;
    qf_rc rc = QF_OK;

    if (*name && !sm_name_fold(qf_str_from(name), d.name))
        rc = qf_err_set(err, QF_EINVAL, "%s is no name of a map", name);
    else if (!json || !json_is_object(json))
        rc = qf_err_set(err, QF_EINVAL, "a definition is a JSON object: %s", json ? "" : why.text);
    else
        json_object_foreach(json, member, value)
        {
            if (rc == QF_OK)
                rc = read_member(member, value, &d, err);
        }
    json_decref(json);
    if (rc == QF_OK && (!d.name[0] || d.layout.kind == SM_KIND__COUNT))
        rc = qf_err_set(err, QF_EINVAL, "a definition has at least name and kind");
    if (rc == QF_OK)
        rc = sm_definition_check(&d, err);
    if (rc == QF_OK)
        *ret_definition = d;
    return rc;
}
