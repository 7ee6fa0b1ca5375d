/* files.c - annexes in a store: put and found. */
#include "segments/annex/files.h"

#include <stdlib.h>

#include "base/pure/alloc.h"

/* Folders sort by date from year 0 to 9999. */
#define DATES_MAX_MS INT64_C(253402300799999)

/* --- putting --- */

qf_rc sg_annex_put_file(struct sg_store *store, const char *name, struct qf_str bytes,
                        const struct sg_store_call *call, struct sg_annex_result *result,
                        struct qf_err *err)
{
    struct sg_store_info info;
    struct qf_err absent = { 0 };
    qf_rc rc = sg_store_stat(store, qf_str_from(name), call, &info, &absent);

    if (rc == QF_OK) {
        result->present++;
        return QF_OK;
    }
    if (rc != QF_ENOTFOUND)
        return qf_err_set(err, rc, "%s", absent.msg);
    rc = sg_store_put(store, qf_str_from(name), bytes.data, bytes.len, call, err);
    result->put += rc == QF_OK;
    result->bytes += rc == QF_OK ? bytes.len : 0;
    return rc;
}

struct putting {
    struct sg_store *store;
    const struct sg_store_call *call;
    struct sg_annex_result *result;
};

static qf_rc put_one(void *ctx, const char *name, struct qf_str bytes, struct qf_err *err)
{
    const struct putting *putting = ctx;

    return sg_annex_put_file(putting->store, name, bytes, putting->call, putting->result, err);
}

qf_rc sg_annex_put(struct sg_annex *annex, struct sg_store *store, struct qf_str tenant,
                   const struct sg_store_call *call, struct sg_annex_result *ret_result,
                   struct qf_err *err)
{
    struct putting putting = { store, call, ret_result };
    const struct sg_annex_files files = { .tenant = tenant, .file = put_one, .ctx = &putting };

    *ret_result = (struct sg_annex_result){ 0 };
    return sg_annex_write(annex, &files, err);
}

/* --- finding --- */

struct finding {
    const struct sg_annex_find *find;
    struct sg_annex_list *list;
    struct qf_strbuf stop; /* the last folder that may have some; empty: none is known */
    bool full;
};

static bool look(void *ctx, const struct sg_store_object *object)
{
    struct finding *f = ctx;
    struct sg_annex_file file = { .size = object->size };

    if (f->stop.len && qf_str_cmp(object->name, qf_strbuf_view(&f->stop)) > 0 &&
        !qf_str_starts(object->name, qf_strbuf_view(&f->stop)))
        return false; /* from here on all begin later */
    if (!sg_annex_name_parse(object->name, &file.parts) || file.parts.kind != f->find->kind ||
        !qf_str_eq(file.parts.tenant, f->find->tenant) || file.parts.min_ts > f->find->max_ts ||
        file.parts.max_ts < f->find->min_ts)
        return true;
    if (f->list->files.count == f->find->files_max) {
        f->full = true;
        return false;
    }
    file.name = qf_xmemdup0(object->name.data, object->name.len);
    file.parts.tenant = f->find->tenant;
    QF_VEC_PUSH(&f->list->files, file);
    return true;
}

static bool is_date(int64_t ts)
{
    return ts >= 0 && ts <= DATES_MAX_MS;
}

qf_rc sg_annex_find(struct sg_store *store, const struct sg_annex_find *find,
                    const struct sg_store_call *call, struct sg_annex_list *ret_list,
                    struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf prefix = QF_STRBUF_INIT, after = QF_STRBUF_INIT;
    struct finding f = { .find = find, .list = ret_list };
    qf_rc rc;

    *ret_list = (struct sg_annex_list){ 0 };
    sg_annex_print_prefix(&prefix, find->tenant, find->kind);
    /* A file of exemplars is of one day. */
    if (is_date(find->min_ts) && find->kind == SG_ANNEX_EXEMPLARS)
        sg_annex_print_folder(&after, find->tenant, find->kind, find->min_ts);
    if (is_date(find->max_ts))
        sg_annex_print_folder(&f.stop, find->tenant, find->kind, find->max_ts);
    rc = sg_store_list(store, qf_strbuf_view(&prefix), qf_strbuf_view(&after), call, look, &f, err);
    qf_strbuf_done(&f.stop);
    if (rc == QF_OK && f.full)
        return qf_err_set(err, QF_ELIMIT, "more than %zu files of %s: ask for less time",
                          find->files_max,
                          find->kind == SG_ANNEX_EXEMPLARS ? "exemplars" : "metadata");
    return rc;
}

void sg_annex_list_done(struct sg_annex_list *list)
{
    for (size_t i = 0; i < list->files.count; i++)
        free(list->files.items[i].name);
    QF_VEC_DONE(&list->files);
}
