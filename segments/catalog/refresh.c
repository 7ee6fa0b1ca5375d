/* refresh.c - listing the store, folder by folder, against what is known already. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "segments/catalog/catalog_int.h"

#define TENANT_PREFIX "tenant="

size_t sg_catalog_lower_bound(const struct known_folder *folders, size_t count, struct qf_str name)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (qf_str_cmp(folders[middle].folder->prefix, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* --- merging with what is known --- */

/* The known folder @prefix, or NULL. Asked for in ascending order: those passed over are gone. */
static struct known_folder *find_known(struct sg_catalog_build *build, struct qf_str prefix)
{
    struct sg_catalog *catalog = build->catalog;

    while (build->old < catalog->known.count) {
        struct known_folder *known = &catalog->known.items[build->old];
        int order = qf_str_cmp(known->folder->prefix, prefix);

        if (order >= 0)
            return order == 0 ? known : NULL;
        build->old++;
        build->changed = true; /* Not listed any more. */
    }
    return NULL;
}

static void push_folder(struct sg_catalog_build *build, struct index_folder *folder, uint64_t token)
{
    build->segments += folder->count;
    QF_VEC_PUSH(&build->folders, (struct known_folder){ folder, token });
    if (build->segments > build->catalog->segments_max && !build->rc)
        build->rc = qf_err_set(build->err, QF_ELIMIT, "the store has more than %zu segments",
                               build->catalog->segments_max);
}

/* The folder being built is complete. */
static void end_folder(struct sg_catalog_build *build)
{
    struct known_folder *known;
    struct index_folder *folder;

    if (!build->building)
        return;
    known = find_known(build, build->builder.prefix);
    folder = index_builder_finish(&build->builder, known ? known->folder : NULL);
    build->building = false;
    build->listed++;
    if (folder != (known ? known->folder : NULL))
        build->changed = true;
    if (known)
        build->old++;
    if (folder)
        push_folder(build, folder, build->token);
}

static void start_folder(struct sg_catalog_build *build, struct qf_str prefix, uint64_t token)
{
    end_folder(build);
    index_builder_start(&build->builder, prefix);
    build->building = true;
    build->token = token;
}

/* Take a known folder over into the new snapshot, unchanged. */
static void keep_folder(struct sg_catalog_build *build, const struct known_folder *known)
{
    push_folder(build, index_folder_ref(known->folder), known->token);
    build->old++;
    build->skipped++;
}

/* --- a flat listing, cut into folders --- */

struct qf_str sg_catalog_folder_of(struct qf_str name)
{
    int slashes = 0;

    for (size_t i = 0; i < name.len; i++) {
        if (name.data[i] == '/' && ++slashes == 2)
            return qf_str_sub(name, 0, i + 1);
    }
    return QF_STR("");
}

static bool on_object(void *ctx, const struct sg_store_object *object)
{
    struct sg_catalog_build *build = ctx;
    struct qf_str folder = sg_catalog_folder_of(object->name);

    if (!folder.len)
        return true;
    if (!build->building || !qf_str_eq(build->builder.prefix, folder))
        start_folder(build, folder, 0);
    index_builder_add(&build->builder, object);
    /* One too many is enough to know. */
    return !build->rc &&
           build->segments + build->builder.entries.count <= build->catalog->segments_max;
}

static qf_rc list(struct sg_catalog_build *build, struct qf_str prefix)
{
    qf_rc rc = sg_store_list(build->catalog->store, prefix, QF_STR(""), build->call, on_object,
                             build, build->err);

    if (!rc)
        end_folder(build);
    return rc ? rc : build->rc;
}

/* --- a store that tells which folders changed --- */

struct folder_list {
    QF_VEC(struct sg_store_folder) items; /* names are heap copies */
};

static void folder_list_done(struct folder_list *list)
{
    for (size_t i = 0; i < list->items.count; i++)
        free((char *)list->items.items[i].name.data);
    QF_VEC_DONE(&list->items);
}

static bool on_folder(void *ctx, const struct sg_store_folder *folder)
{
    struct folder_list *list = ctx;
    struct sg_store_folder copy = { .name = { qf_xmemdup0(folder->name.data, folder->name.len),
                                              folder->name.len },
                                    .token = folder->token };

    QF_VEC_PUSH(&list->items, copy);
    return true;
}

static qf_rc list_folders(struct sg_catalog_build *build, struct qf_str prefix,
                          struct folder_list *ret)
{
    return sg_store_folders(build->catalog->store, prefix, build->call, on_folder, ret, build->err);
}

static qf_rc visit_day(struct sg_catalog_build *build, const struct sg_store_folder *day)
{
    struct known_folder *known = find_known(build, day->name);

    if (known && day->token && known->token == day->token) {
        keep_folder(build, known);
        return build->rc;
    }
    /* The token was read before the listing: an object put meanwhile changes the token, so that the
     * next refresh lists the folder again. */
    start_folder(build, day->name, day->token);
    return list(build, day->name);
}

static qf_rc run_by_token(struct sg_catalog_build *build)
{
    QF_CLEANUP(folder_list_done) struct folder_list tenants = { 0 };
    qf_rc rc = list_folders(build, QF_STR(""), &tenants);

    for (size_t i = 0; !rc && i < tenants.items.count; i++) {
        QF_CLEANUP(folder_list_done) struct folder_list days = { 0 };

        if (!qf_str_starts(tenants.items.items[i].name, QF_STR(TENANT_PREFIX)))
            continue;
        rc = list_folders(build, tenants.items.items[i].name, &days);
        for (size_t j = 0; !rc && j < days.items.count; j++)
            rc = visit_day(build, &days.items.items[j]);
    }
    return rc;
}

/* Are the folders known from @first to before @end just these @days, none of which changed? */
static bool are_same(const struct sg_catalog *catalog, size_t first, size_t end,
                     const struct folder_list *days)
{
    if (days->items.count != end - first)
        return false;
    for (size_t i = 0; i < days->items.count; i++) {
        const struct known_folder *known = &catalog->known.items[first + i];
        const struct sg_store_folder *day = &days->items.items[i];

        if (!day->token || known->token != day->token ||
            !qf_str_eq(known->folder->prefix, day->name))
            return false;
    }
    return true;
}

static void keep_until(struct sg_catalog_build *build, size_t end)
{
    while (build->old < end)
        keep_folder(build, &build->catalog->known.items[build->old]);
}

/* Replace the known folders from @first to before @end by @days. */
static qf_rc visit_days(struct sg_catalog_build *build, size_t first, size_t end,
                        const struct folder_list *days)
{
    qf_rc rc = QF_OK;

    keep_until(build, first);
    for (size_t i = 0; !rc && i < days->items.count; i++)
        rc = visit_day(build, &days->items.items[i]);
    if (rc)
        return rc;
    if (build->old < end) {
        build->old = end;
        build->changed = true; /* The last ones are gone. */
    }
    keep_until(build, build->catalog->known.count);
    return build->rc;
}

static char *bound(struct qf_str tenant, char end)
{
    struct qf_strbuf name = QF_STRBUF_INIT;

    qf_strbuf_puts(&name, TENANT_PREFIX);
    qf_strbuf_str(&name, tenant);
    qf_strbuf_putc(&name, end);
    return qf_strbuf_take(&name);
}

qf_rc sg_catalog_build_tenant(struct sg_catalog_build *build, struct qf_str tenant)
{
    const struct sg_catalog *catalog = build->catalog;
    QF_CLEANUP(folder_list_done) struct folder_list days = { 0 };
    struct listed_piece piece = { 0 };
    size_t first, end;
    qf_rc rc = QF_OK;

    piece.after = bound(tenant, '/');
    piece.before = bound(tenant, '/' + 1);
    QF_VEC_PUSH(&build->pieces, piece);
    first = sg_catalog_lower_bound(catalog->known.items, catalog->known.count,
                                   qf_str_from(piece.after));
    end = sg_catalog_lower_bound(catalog->known.items, catalog->known.count,
                                 qf_str_from(piece.before));
    if (sg_store_name_valid(qf_str_sub(qf_str_from(piece.after), 0, strlen(piece.after) - 1)))
        rc = list_folders(build, qf_str_from(piece.after), &days);
    if (rc)
        return rc;
    build->same = are_same(catalog, first, end, &days);
    return build->same ? QF_OK : visit_days(build, first, end, &days);
}

qf_rc sg_catalog_build_run(struct sg_catalog_build *build)
{
    struct sg_catalog *catalog = build->catalog;
    qf_rc rc;

    if (sg_store_has_tokens(catalog->store))
        rc = run_by_token(build);
    else
        rc = list(build, QF_STR(TENANT_PREFIX));
    if (!rc && build->old < catalog->known.count)
        build->changed = true; /* The last ones are gone. */
    return rc;
}

void sg_catalog_build_done(struct sg_catalog_build *build)
{
    if (build->building)
        index_builder_done(&build->builder);
    for (size_t i = 0; i < build->folders.count; i++)
        (void)index_folder_drop(build->folders.items[i].folder);
    QF_VEC_DONE(&build->folders);
    for (size_t i = 0; i < build->pieces.count; i++) {
        free(build->pieces.items[i].after);
        free(build->pieces.items[i].before);
    }
    QF_VEC_DONE(&build->pieces);
}
