/* ring_list.c - which blobs there are, as the leaders of the partitions tell it, kept and brought up to date. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "ring/wire/listing.h"
#include "segments/store/ring_int.h"

/* --- a partition is asked --- */

struct heard_page {
    struct qf_strbuf body;
    struct rg_page page; /* borrows from it */
};

/* All that changed in a partition: what replaces something comes on a later page than what it replaced. */
struct heard {
    QF_VEC(struct heard_page *) pages;
};

static void heard_clear(struct heard *heard)
{
    for (size_t i = 0; i < heard->pages.count; i++) {
        rg_page_done(&heard->pages.items[i]->page);
        qf_strbuf_done(&heard->pages.items[i]->body);
        free(heard->pages.items[i]);
    }
    heard->pages.count = 0;
}

static void heard_done(struct heard *heard)
{
    heard_clear(heard);
    QF_VEC_DONE(&heard->pages);
}

/* In one step, so that nobody lists the half of it. */
static void take_heard(struct ring_mirror *mirror, uint32_t partition, const struct heard *heard)
{
    qf_lock_take(mirror->lock);
    for (size_t p = 0; p < heard->pages.count; p++)
        ring_mirror_take(mirror, partition, &heard->pages.items[p]->page, p == 0);
    ring_mirror_prune(mirror);
    qf_lock_drop(mirror->lock);
}

static qf_rc get_page(struct ring_store *store, uint32_t partition,
                      const struct ring_partition *from, uint64_t after,
                      const struct sg_store_limit *limit, struct heard *heard, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    struct heard_page *page = qf_xcalloc(1, sizeof(*page));
    qf_rc rc;

    QF_VEC_PUSH(&heard->pages, page);
    qf_strbuf_printf(&path,
                     RG_LISTING_PATH "?partition=%" PRIu32 "&queue=%" PRIx64 "&since=%" PRIu64
                                     "&after=%" PRIu64,
                     partition, from->queue, from->since, after);
    rc = ring_get(store, qf_strbuf_cstr(&path), RG_PAGE_BYTES_MAX, limit, &page->body, err);
    if (rc == QF_OK && rg_page_decode(qf_strbuf_view(&page->body), &page->page) != QF_OK)
        rc = qf_err_set(err, QF_EPROTO, "an ingest node sent a list that cannot be read");
    return rc;
}

/* All that changed in a partition. What it is known up to moves only when all of it came. */
static qf_rc refresh_partition(struct ring_store *store, uint32_t partition,
                               const struct sg_store_limit *limit, struct qf_err *err)
{
    QF_CLEANUP(heard_done) struct heard heard = { 0 };
    struct ring_partition *known = &store->mirror.partitions[partition], next = { 0 };
    struct ring_partition from = *known;
    uint64_t after = 0;
    bool more = true;

    while (more) {
        qf_rc rc = get_page(store, partition, &from, after, limit, &heard, err);
        const struct rg_page *page = &heard.pages.items[heard.pages.count - 1]->page;

        if (rc)
            return rc;
        if (after && (page->queue != next.queue || (page->whole && from.since))) {
            heard_clear(&heard); /* it changed under our eyes: from the beginning */
            from = *known = (struct ring_partition){ 0 };
            after = 0;
            continue;
        }
        if (!after)
            next = (struct ring_partition){ page->queue, page->applied };
        if (page->whole)
            from = (struct ring_partition){ page->queue, 0 };
        more = page->more;
        after = page->count ? page->items[page->count - 1].index : after;
    }
    take_heard(&store->mirror, partition, &heard);
    *known = next;
    return QF_OK;
}

qf_rc ring_refresh(struct ring_store *store, const struct sg_store_limit *limit, struct qf_err *err)
{
    struct ring_mirror *mirror = &store->mirror;
    uint64_t before;
    qf_rc rc = QF_OK;

    qf_lock_take(mirror->lock);
    before = mirror->rounds;
    qf_lock_drop(mirror->lock);
    qf_lock_take(mirror->turn);
    /* One that began after this call did tells all that it asks for. */
    if (mirror->rounds == before) {
        qf_lock_take(mirror->lock);
        mirror->rounds++;
        qf_lock_drop(mirror->lock);
        rc = refresh_partition(store, 0, limit, err);
        for (uint32_t i = 1; i < mirror->partition_count && !rc; i++)
            rc = refresh_partition(store, i, limit, err);
        if (rc) { /* it counts for nobody */
            qf_lock_take(mirror->lock);
            mirror->rounds--;
            qf_lock_drop(mirror->lock);
        }
    }
    qf_lock_drop(mirror->turn);
    return rc;
}

/* --- listing --- */

static int by_name(const void *a, const void *b, void *arg)
{
    const struct ring_mirror *mirror = arg;

    return strcmp(mirror->items.items[*(const uint32_t *)a].name,
                  mirror->items.items[*(const uint32_t *)b].name);
}

/* With the lock. */
static void sort(struct ring_mirror *mirror)
{
    size_t kept = 0;

    if (!mirror->dirty)
        return;
    free(mirror->sorted);
    mirror->sorted = qf_xcalloc(mirror->items.count + 1, sizeof(*mirror->sorted));
    mirror->sorted_count = 0;
    for (size_t i = 0; i < mirror->items.count; i++)
        if (mirror->items.items[i].named)
            mirror->sorted[mirror->sorted_count++] = (uint32_t)i;
    if (mirror->sorted_count)
        qsort_r(mirror->sorted, mirror->sorted_count, sizeof(*mirror->sorted), by_name, mirror);
    for (size_t i = 0, all = mirror->sorted_count; i < all; i++) { /* each name once */
        if (i && by_name(&mirror->sorted[kept - 1], &mirror->sorted[i], mirror) == 0)
            continue;
        mirror->sorted[kept++] = mirror->sorted[i];
    }
    mirror->sorted_count = kept;
    mirror->dirty = false;
}

static struct qf_str name_at(const struct ring_mirror *mirror, size_t i)
{
    return qf_str_from(mirror->items.items[mirror->sorted[i]].name);
}

/* The first of the sorted names that is not below @from. */
static size_t lower_bound(const struct ring_mirror *mirror, struct qf_str from)
{
    size_t low = 0, high = mirror->sorted_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (qf_str_cmp(name_at(mirror, middle), from) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Names and sizes as they are now, so that whoever is told runs without the lock. */
struct listed {
    char *name;
    uint64_t bytes;
    uint32_t slot;
};
struct listing {
    QF_VEC(struct listed) items;
};

static void listing_done(struct listing *listing)
{
    for (size_t i = 0; i < listing->items.count; i++)
        free(listing->items.items[i].name);
    QF_VEC_DONE(&listing->items);
}

static void take_listing(struct ring_mirror *mirror, struct qf_str prefix,
                         struct qf_str start_after, struct listing *out)
{
    qf_lock_take(mirror->lock);
    sort(mirror);
    for (size_t i = lower_bound(mirror, prefix); i < mirror->sorted_count; i++) {
        const struct ring_item *item = &mirror->items.items[mirror->sorted[i]];
        struct qf_str name = qf_str_from(item->name);

        if (!qf_str_starts(name, prefix))
            break;
        if (qf_str_cmp(name, start_after) > 0)
            QF_VEC_PUSH(&out->items,
                        (struct listed){ qf_xstrdup(item->name), item->bytes, item->slot });
    }
    qf_lock_drop(mirror->lock);
}

qf_rc ring_list(struct sg_store *base, struct qf_str prefix, struct qf_str start_after,
                const struct sg_store_limit *limit, sg_store_list_fn *fn, void *ctx,
                struct qf_err *err)
{
    QF_CLEANUP(listing_done) struct listing listing = { 0 };
    struct ring_store *store = ring_of(base);
    qf_rc rc = ring_refresh(store, limit, err);

    if (rc)
        return rc;
    take_listing(&store->mirror, prefix, start_after, &listing);
    for (size_t i = 0; i < listing.items.count; i++) {
        struct sg_store_object object = { .name = qf_str_from(listing.items.items[i].name),
                                          .size = listing.items.items[i].bytes,
                                          .etag = QF_STR("") };

        if (!fn(ctx, &object))
            break;
    }
    return QF_OK;
}

/* A folder's token is made of the names directly inside: another set has another one. */
static void add_to_token(struct sg_store_folder *folder, struct qf_str name)
{
    struct qf_str inside = qf_str_sub(name, folder->name.len, name.len);

    if (inside.len && !memchr(inside.data, '/', inside.len))
        folder->token += qf_hash_bytes(name) | 1;
}

qf_rc ring_folders(struct sg_store *base, struct qf_str prefix, const struct sg_store_limit *limit,
                   sg_store_folder_fn *fn, void *ctx, struct qf_err *err)
{
    QF_CLEANUP(listing_done) struct listing listing = { 0 };
    struct ring_store *store = ring_of(base);
    struct sg_store_folder folder = { 0 };
    qf_rc rc = ring_refresh(store, limit, err);

    if (rc)
        return rc;
    take_listing(&store->mirror, prefix, QF_STR(""), &listing);
    for (size_t i = 0; i < listing.items.count; i++) {
        struct qf_str name = qf_str_from(listing.items.items[i].name);
        const char *slash = memchr(name.data + prefix.len, '/', name.len - prefix.len);

        if (!slash)
            continue;
        if (!folder.name.len || !qf_str_starts(name, folder.name)) {
            if (folder.name.len && !fn(ctx, &folder))
                return QF_OK;
            folder = (struct sg_store_folder){
                .name = qf_str_sub(name, 0, (size_t)(slash - name.data) + 1), .token = 2
            };
        }
        add_to_token(&folder, name);
    }
    if (folder.name.len)
        (void)fn(ctx, &folder);
    return QF_OK;
}

qf_rc sg_ring_refresh(struct sg_store *base, const struct sg_store_call *call, struct qf_err *err)
{
    struct sg_store_limit limit = sg_store_limit_of(call);

    return ring_refresh(ring_of(base), &limit, err);
}

bool sg_ring_lists(struct sg_store *base, struct qf_str name)
{
    uint64_t bytes;
    uint32_t partition;

    return ring_find(ring_of(base), name, &bytes, &partition);
}

uint64_t sg_ring_changes(struct sg_store *base)
{
    struct ring_mirror *mirror = &ring_of(base)->mirror;
    uint64_t changes;

    qf_lock_take(mirror->lock);
    changes = mirror->changes;
    qf_lock_drop(mirror->lock);
    return changes;
}

qf_rc sg_ring_names(struct sg_store *base, const struct sg_store_call *call, sg_ring_name_fn *fn,
                    void *ctx, struct qf_err *err)
{
    QF_CLEANUP(listing_done) struct listing listing = { 0 };
    struct ring_store *store = ring_of(base);
    struct sg_store_limit limit = sg_store_limit_of(call);
    qf_rc rc = ring_refresh(store, &limit, err);

    if (rc)
        return rc;
    take_listing(&store->mirror, QF_STR(""), QF_STR(""), &listing);
    for (size_t i = 0; i < listing.items.count; i++)
        if (!fn(ctx, qf_str_from(listing.items.items[i].name), listing.items.items[i].slot,
                listing.items.items[i].bytes))
            break;
    return QF_OK;
}
