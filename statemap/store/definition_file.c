/* definition_file.c - what was said of maps: a small file of JSON for each. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pure/duration.h"
#include "base/sys/small_file.h"
#include "statemap/store/store_int.h"

enum { DEFINITION_BYTES_MAX = 1 << 16 };

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
    qf_strbuf_putc(buf, '}');
}

static qf_rc read_text(const char *member, json_t *value, struct sm_definition *d,
                       struct qf_err *err)
{
    struct qf_str text = { json_string_value(value), json_string_length(value) };
    int64_t *duration = strcmp(member, "condense") == 0    ? &d->condense_ms
                        : strcmp(member, "retention") == 0 ? &d->retention_ms
                        : strcmp(member, "timeout") == 0   ? &d->timeout_ms
                                                           : NULL;

    if (!text.data)
        return qf_err_set(err, QF_EINVAL, "%s is no text", member);
    if (strcmp(member, "name") == 0 && !sm_name_fold(text, d->name))
        return qf_err_set(err, QF_EINVAL, "%.*s is no name of a map", QF_STR_ARG(text));
    if (strcmp(member, "kind") == 0 && !sm_kind_parse(text, &d->layout.kind))
        return qf_err_set(err, QF_EINVAL, "there is no kind %.*s", QF_STR_ARG(text));
    if (strcmp(member, "type") == 0 && !sm_type_parse(text, &d->type))
        return qf_err_set(err, QF_EINVAL, "there is no type %.*s", QF_STR_ARG(text));
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
    static const char *const texts[] = {
        "name", "kind", "type", "condense", "retention", "timeout"
    };

    for (size_t i = 0; i < QF_COUNT_OF(texts); i++)
        if (strcmp(member, texts[i]) == 0)
            return read_text(member, value, d, err);
    if (strcmp(member, "map_bytes") == 0)
        return read_number(member, value, &d->map_bytes, err);
    if (strcmp(member, "readers") == 0)
        return read_number(member, value, &d->readers, err);
    if (strcmp(member, "short_keys") == 0 && json_is_boolean(value)) {
        d->layout.direct = json_is_true(value);
        return QF_OK;
    }
    return qf_err_set(err, QF_EINVAL, "a definition has no member %s like this", member);
}

qf_rc sm_definition_read(struct qf_str text, struct sm_definition *ret_definition,
                         struct qf_err *err)
{
    struct sm_definition d = { .layout.kind = SM_KIND__COUNT };
    json_error_t why;
    json_t *json = json_loadb(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES, &why);
    const char *member;
    json_t *value;
    qf_rc rc = QF_OK;

    if (!json || !json_is_object(json))
        rc = qf_err_set(err, QF_EINVAL, "a definition is a JSON object: %s", json ? "" : why.text);
    else
        json_object_foreach(json, member, value) if (rc == QF_OK) rc =
            read_member(member, value, &d, err);
    json_decref(json);
    if (rc == QF_OK && (!d.name[0] || d.layout.kind == SM_KIND__COUNT))
        rc = qf_err_set(err, QF_EINVAL, "a definition has at least name and kind");
    if (rc == QF_OK)
        rc = sm_definition_check(&d, err);
    if (rc == QF_OK)
        *ret_definition = d;
    return rc;
}

static char *file_of(const struct sm_store *store, const char *name)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;

    qf_strbuf_printf(&path, "%s/definitions/%s.json", store->root, name);
    return qf_strbuf_take(&path);
}

qf_rc sm_store_definition(struct sm_store *store, struct qf_str name,
                          struct sm_definition *ret_definition, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    QF_CLEANUP(qf_freep) char *path = NULL;
    char folded[SM_NAME_MAX + 1];
    struct stat seen;
    qf_rc rc;

    if (!sm_name_fold(name, folded))
        return qf_err_set(err, QF_EINVAL, "%.*s is no name of a map: letters, digits, underscores",
                          (int)QF_MIN(name.len, (size_t)SM_NAME_MAX), name.data ? name.data : "");
    path = file_of(store, folded);
    if (!sm_exists(path))
        return qf_err_set(err, QF_ENOTFOUND, "there is no map %s", folded);
    rc = qf_small_file_read(path, "the definition of a map", DEFINITION_BYTES_MAX, &text, &seen,
                            err);
    if (rc == QF_OK && sm_definition_read(qf_strbuf_view(&text), ret_definition, err) != QF_OK)
        rc = QF_ECORRUPT;
    if (err && rc == QF_ECORRUPT) {
        err->rc = rc;
        rc = qf_err_prefix(err, rc, "%s is damaged", path);
    }
    return rc;
}

static qf_rc check_change(struct sm_store *store, const struct sm_definition *definition,
                          struct qf_err *err)
{
    struct sm_definition former;
    qf_rc rc = sm_store_definition(store, qf_str_from(definition->name), &former, NULL);
    QF_CLEANUP(qf_freep) char *shard = sm_path(store->root, "shards", definition->name);

    if (rc == QF_ENOTFOUND)
        return sm_exists(shard) ? qf_err_set(err, QF_EEXIST,
                                             "rows of an earlier map %s are still there: they go "
                                             "with the next maintenance",
                                             definition->name)
                                : QF_OK;
    if (rc != QF_OK)
        return sm_store_definition(store, qf_str_from(definition->name), &former, err);
    if (former.layout.kind != definition->layout.kind ||
        former.layout.direct != definition->layout.direct)
        return qf_err_set(err, QF_EEXIST, "map %s is a %s map%s: kind and short keys stay",
                          former.name, sm_kind_name(former.layout.kind),
                          former.layout.direct ? " with short keys" : "");
    return QF_OK;
}

qf_rc sm_store_define(struct sm_store *store, const struct sm_definition *definition,
                      struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT, name = QF_STRBUF_INIT;
    QF_CLEANUP(qf_freep) char *folder = sm_path(store->root, "definitions", NULL);
    struct sm_definition folded = *definition;
    qf_rc rc;

    if (!sm_name_fold(qf_str_from(definition->name), folded.name))
        return qf_err_set(err, QF_EINVAL, "%s is no name of a map: letters, digits, underscores",
                          definition->name);
    rc = sm_definition_check(&folded, err);
    if (rc == QF_OK)
        rc = check_change(store, &folded, err);
    if (rc != QF_OK)
        return rc;
    sm_definition_print(&text, &folded);
    qf_strbuf_putc(&text, '\n');
    qf_strbuf_printf(&name, "%s.json", folded.name);
    rc = sm_file_replace(folder, qf_strbuf_cstr(&name), qf_strbuf_view(&text), err);
    /* It is opened with its new size, once nobody reads it. */
    (void)sm_shard_close(store, folded.name, 0);
    return rc;
}

qf_rc sm_store_undefine(struct sm_store *store, struct qf_str name, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *folder = sm_path(store->root, "definitions", NULL);
    QF_CLEANUP(qf_freep) char *path = NULL;
    struct sm_definition definition;
    qf_rc rc = sm_store_definition(store, name, &definition, err);

    if (rc != QF_OK)
        return rc;
    path = file_of(store, definition.name);
    if (unlink(path) < 0)
        return qf_err_set(err, QF_EIO, "%s cannot be removed", path);
    return sm_folder_sync(folder, err);
}

qf_rc sm_store_definitions(struct sm_store *store, sm_definitions *ret_definitions,
                           struct qf_err *err)
{
    QF_CLEANUP(sm_names_done) struct sm_names names = { 0 };
    QF_CLEANUP(qf_freep) char *folder = sm_path(store->root, "definitions", NULL);
    sm_definitions found = { 0 };
    qf_rc rc = sm_folder_list(folder, &names, err);

    for (size_t i = 0; i < names.names.count && rc == QF_OK; i++) {
        struct qf_str name = qf_str_from(names.names.items[i]);
        struct sm_definition definition;

        if (!qf_str_ends(name, QF_STR(".json")))
            continue;
        name.len -= strlen(".json");
        rc = sm_store_definition(store, name, &definition, err);
        if (rc == QF_OK)
            QF_VEC_PUSH(&found, definition);
    }
    if (rc == QF_OK)
        *ret_definitions = found;
    else
        QF_VEC_DONE(&found);
    return rc;
}
