/* definition_file.c - what was said of maps: a small file of JSON for each. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys/small_file.h"
#include "statemap/store/definition_text.h"
#include "statemap/store/store_int.h"

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
    rc = qf_small_file_read(path, "the definition of a map", SM_DEFINITION_BYTES_MAX, &text, &seen,
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

qf_rc sm_store_put_definition(struct sm_store *store, const struct sm_definition *definition,
                              struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT, name = QF_STRBUF_INIT;
    QF_CLEANUP(qf_freep) char *folder = sm_path(store->root, "definitions", NULL);
    qf_rc rc;

    sm_definition_print(&text, definition);
    qf_strbuf_putc(&text, '\n');
    qf_strbuf_printf(&name, "%s.json", definition->name);
    rc = sm_file_replace(folder, qf_strbuf_cstr(&name), qf_strbuf_view(&text), err);
    /* It is opened with its new size, once nobody reads it. */
    (void)sm_shard_close(store, definition->name, 0);
    return rc;
}

qf_rc sm_store_define(struct sm_store *store, const struct sm_definition *definition,
                      struct qf_err *err)
{
    struct sm_definition folded = *definition;
    qf_rc rc;

    if (!sm_name_fold(qf_str_from(definition->name), folded.name))
        return qf_err_set(err, QF_EINVAL, "%s is no name of a map: letters, digits, underscores",
                          definition->name);
    rc = sm_definition_check(&folded, err);
    if (rc == QF_OK)
        rc = check_change(store, &folded, err);
    return rc == QF_OK ? sm_store_put_definition(store, &folded, err) : rc;
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
