/* rounds.c - a bucket too large to list each time: what changed at once, the rest bit by bit.
 *
 * The folders that are known are copied into the build, and pieces of it are replaced by what a
 * listing of just these pieces finds. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "base/sys/clock.h"
#include "segments/catalog/catalog_int.h"

#define TENANT_PREFIX "tenant="
#define TENANT_BEYOND "tenant>" /* '>' follows '=' */
/* Days of each tenant that are looked at beside the round, for writers that leave no notes: samples
 * are late by hours at most, but for backfills. */
#define RECENT_DAYS 2
#define DAY_MS INT64_C(86400000)
/* Keys on a page of a listing: passing over fewer than these costs more than listing them. */
#define PAGE_KEYS 1000

/* --- a piece of the listing --- */

/* Folders whose names are above @after and below @before. */
struct piece {
    struct qf_str prefix; /* of all names in it */
    struct qf_str after, before;
    int64_t until_ms; /* stop where a page and a folder end after this; QF_TIME_NEVER: do not */
};

struct listing {
    struct sg_catalog_build *build;
    const struct piece *piece;
    struct index_builder builder;
    bool building, stopped;
    size_t segments, objects;
    size_t page_end; /* when so many objects were seen, asking for more costs a request */
    QF_VEC(struct known_folder) found; /* with a reference each */
    struct qf_strbuf last;             /* the last folder that is complete */
};

/* The first folder of the build that is not below @name. */
static size_t lower_bound(const struct sg_catalog_build *build, struct qf_str name)
{
    return sg_catalog_lower_bound(build->folders.items, build->folders.count, name);
}

static struct index_folder *find_folder(const struct sg_catalog_build *build, struct qf_str prefix)
{
    size_t at = lower_bound(build, prefix);

    if (at == build->folders.count || !qf_str_eq(build->folders.items[at].folder->prefix, prefix))
        return NULL;
    return build->folders.items[at].folder;
}

static void end_folder(struct listing *l)
{
    struct index_folder *folder;

    if (!l->building)
        return;
    qf_strbuf_reset(&l->last);
    qf_strbuf_str(&l->last, l->builder.prefix);
    folder = index_builder_finish(&l->builder, find_folder(l->build, l->builder.prefix));
    l->building = false;
    l->build->listed++;
    if (!folder)
        return;
    l->segments += folder->count;
    QF_VEC_PUSH(&l->found, (struct known_folder){ .folder = folder });
}

/* Stops between pages only: the keys of a page that was fetched cost nothing more. */
static bool time_is_up(struct listing *l)
{
    if (l->objects <= l->page_end)
        return false;
    l->page_end += PAGE_KEYS;
    return l->last.len && qf_clock_mono_ms() >= l->piece->until_ms;
}

static bool on_object(void *ctx, const struct sg_store_object *object)
{
    struct listing *l = ctx;
    struct qf_str folder = sg_catalog_folder_of(object->name);

    l->objects++;
    if (!folder.len)
        return true;
    if (!l->building || !qf_str_eq(l->builder.prefix, folder)) {
        end_folder(l);
        if (qf_str_cmp(folder, l->piece->before) >= 0)
            return false;
        if (time_is_up(l)) {
            l->stopped = true;
            return false;
        }
        index_builder_start(&l->builder, folder);
        l->building = true;
    }
    index_builder_add(&l->builder, object);
    return l->segments + l->builder.entries.count <= l->build->catalog->segments_max;
}

/* Replace the folders from @first to before @end by those that were found. */
static void replace(struct sg_catalog_build *build, size_t first, size_t end, struct listing *l)
{
    size_t old = end - first, count = l->found.count;
    struct known_folder *items;
    bool same = old == count;

    for (size_t i = 0; i < old; i++) {
        same = same && build->folders.items[first + i].folder == l->found.items[i].folder;
        (void)index_folder_drop(build->folders.items[first + i].folder);
    }
    build->changed |= !same;
    QF_VEC_RESERVE(&build->folders, build->folders.count - old + count);
    items = build->folders.items;
    if (build->folders.count > end)
        memmove(items + first + count, items + end, (build->folders.count - end) * sizeof(*items));
    if (count)
        memcpy(items + first, l->found.items, count * sizeof(*items));
    build->folders.count += count - old;
    l->found.count = 0; /* the references went along */
}

static void listing_done(struct listing *l)
{
    if (l->building)
        index_builder_done(&l->builder);
    for (size_t i = 0; i < l->found.count; i++)
        (void)index_folder_drop(l->found.items[i].folder);
    QF_VEC_DONE(&l->found);
    qf_strbuf_done(&l->last);
}

static qf_rc check_size(struct sg_catalog_build *build)
{
    build->segments = 0;
    for (size_t i = 0; i < build->folders.count; i++)
        build->segments += build->folders.items[i].folder->count;
    if (build->segments <= build->catalog->segments_max)
        return QF_OK;
    return qf_err_set(build->err, QF_ELIMIT, "the store has more than %zu segments",
                      build->catalog->segments_max);
}

/* List a piece into the build. @ret_stopped, if not NULL: empty if it was listed whole, else the
 * name after which to go on. */
static qf_rc list_piece(struct sg_catalog_build *build, const struct piece *piece,
                        struct qf_strbuf *ret_stopped)
{
    QF_CLEANUP(listing_done)
    struct listing l = { .build = build, .piece = piece, .page_end = PAGE_KEYS - 1 };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf end = QF_STRBUF_INIT;
    struct qf_str before = piece->before;
    qf_rc rc = sg_store_list(build->catalog->store, piece->prefix, piece->after, build->call,
                             on_object, &l, build->err);

    if (rc)
        return rc;
    if (!l.stopped)
        end_folder(&l);
    if (l.stopped && l.last.len) {
        qf_strbuf_add(&end, l.last.data, l.last.len - 1);
        qf_strbuf_putc(&end, '0'); /* follows '/': beyond everything in the folder */
    }
    if (ret_stopped) {
        qf_strbuf_reset(ret_stopped);
        qf_strbuf_str(ret_stopped, qf_strbuf_view(&end));
    }
    if (end.len)
        before = qf_strbuf_view(&end);
    replace(build, lower_bound(build, piece->after), lower_bound(build, before), &l);
    QF_VEC_PUSH(&build->pieces,
                (struct listed_piece){ .after = qf_xmemdup0(piece->after.data, piece->after.len),
                                       .before = qf_xmemdup0(before.data, before.len) });
    return check_size(build);
}

/* --- what writers noted --- */

/* How many folders from @first on are listed best in one go. */
static size_t run_length(const struct sg_catalog_build *build,
                         const struct sg_changes_folders *folders, size_t first,
                         struct qf_str tenant)
{
    size_t between = 0, at = lower_bound(build, qf_str_from(folders->items.items[first]));
    size_t count = 1;

    for (; first + count < folders->items.count; count++) {
        struct qf_str next = qf_str_from(folders->items.items[first + count]);

        if (!qf_str_starts(next, tenant))
            break;
        while (at < build->folders.count &&
               qf_str_cmp(build->folders.items[at].folder->prefix, next) < 0)
            between += build->folders.items[at++].folder->count;
        if (between > PAGE_KEYS)
            break;
    }
    return count;
}

static qf_rc list_run(struct sg_catalog_build *build, const struct sg_changes_folders *folders,
                      size_t first, size_t *ret_count)
{
    struct qf_str from = qf_str_from(folders->items.items[first]), to;
    const char *slash = memchr(from.data, '/', from.len);
    struct qf_str tenant = qf_str_sub(from, 0, (size_t)(slash - from.data) + 1);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf before = QF_STRBUF_INIT;
    struct piece piece = { .prefix = from, .after = from, .until_ms = QF_TIME_NEVER };

    *ret_count = run_length(build, folders, first, tenant);
    if (*ret_count > 1)
        piece.prefix = tenant;
    to = qf_str_from(folders->items.items[first + *ret_count - 1]);
    qf_strbuf_add(&before, to.data, to.len - 1);
    qf_strbuf_putc(&before, '0');
    piece.before = qf_strbuf_view(&before);
    return list_piece(build, &piece, NULL);
}

/* The round may stand anywhere: it has listed the folder before, or will list it again. Either way
 * what it finds is newer than what was known when it is put in place. */
qf_rc sg_catalog_build_changes(struct sg_catalog_build *build)
{
    struct sg_catalog *catalog = build->catalog;
    QF_CLEANUP(sg_changes_folders_done) struct sg_changes_folders folders = { 0 };
    QF_CLEANUP(sg_changes_seen_done) struct sg_changes_seen now = { 0 };
    struct sg_changes_seen old = catalog->changes;
    qf_rc rc =
        sg_changes_read(&catalog->changes, catalog->store, build->call, &folders, &now, build->err);

    for (size_t i = 0, count = 0; !rc && i < folders.items.count; i += count)
        rc = list_run(build, &folders, i, &count);
    if (rc)
        return rc;
    catalog->changes = now;
    now = old;
    return QF_OK;
}

/* --- the last days of each tenant --- */

struct tenants {
    QF_VEC(char *) names;
};

static void tenants_done(struct tenants *tenants)
{
    for (size_t i = 0; i < tenants->names.count; i++)
        free(tenants->names.items[i]);
    QF_VEC_DONE(&tenants->names);
}

static bool on_tenant(void *ctx, const struct sg_store_folder *folder)
{
    struct tenants *tenants = ctx;

    if (qf_str_starts(folder->name, QF_STR(TENANT_PREFIX)))
        QF_VEC_PUSH(&tenants->names, qf_xmemdup0(folder->name.data, folder->name.len));
    return true;
}

static void print_recent(struct qf_strbuf *buf, struct qf_str tenant)
{
    struct qf_civil day = qf_civil_from_seconds((qf_clock_wall_ms() - RECENT_DAYS * DAY_MS) / 1000);

    qf_strbuf_str(buf, tenant);
    qf_strbuf_printf(buf, "date=%04lld-%02d-%02d", (long long)day.year, day.month, day.day);
}

/* A tenant that is not known yet is listed whole. */
static qf_rc list_recent(struct sg_catalog_build *build, struct qf_str tenant)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf after = QF_STRBUF_INIT, before = QF_STRBUF_INIT;
    struct piece piece = { .prefix = tenant, .after = tenant, .until_ms = QF_TIME_NEVER };
    size_t at = lower_bound(build, tenant);

    qf_strbuf_add(&before, tenant.data, tenant.len - 1);
    qf_strbuf_putc(&before, '0');
    piece.before = qf_strbuf_view(&before);
    if (at < build->folders.count &&
        qf_str_starts(build->folders.items[at].folder->prefix, tenant)) {
        print_recent(&after, tenant);
        piece.after = qf_strbuf_view(&after);
    }
    return list_piece(build, &piece, NULL);
}

/* List each tenant's recent days; tenants that @until_ms leaves no time for come first in the next round. */
static qf_rc list_recent_days(struct sg_catalog_build *build, int64_t until_ms)
{
    struct sg_catalog *catalog = build->catalog;
    QF_CLEANUP(tenants_done) struct tenants tenants = { 0 };
    qf_rc rc =
        sg_store_folders(catalog->store, QF_STR(""), build->call, on_tenant, &tenants, build->err);

    for (size_t i = 0; !rc && i < tenants.names.count; i++) {
        size_t at = catalog->recent_next++ % tenants.names.count;

        rc = list_recent(build, qf_str_from(tenants.names.items[at]));
        if (qf_clock_mono_ms() >= until_ms)
            break;
    }
    return rc;
}

/* --- the round --- */

qf_rc sg_catalog_build_round(struct sg_catalog_build *build, int64_t until_ms)
{
    struct sg_catalog *catalog = build->catalog;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf after = QF_STRBUF_INIT;
    struct piece piece = { .prefix = QF_STR(TENANT_PREFIX), .before = QF_STR(TENANT_BEYOND) };
    int64_t now = qf_clock_mono_ms();
    bool whole = !catalog->round.len;
    qf_rc rc;

    piece.until_ms = now + (until_ms - now) / 2;
    qf_strbuf_str(&after, qf_strbuf_view(&catalog->round));
    piece.after = qf_strbuf_view(&after);
    rc = list_piece(build, &piece, &catalog->round);
    whole = whole && !catalog->round.len;
    if (!rc && !whole)
        rc = list_recent_days(build, until_ms);
    if (rc) { /* The folders found are not published: list them again next time. */
        qf_strbuf_reset(&catalog->round);
        qf_strbuf_str(&catalog->round, qf_strbuf_view(&after));
    }
    return rc;
}
