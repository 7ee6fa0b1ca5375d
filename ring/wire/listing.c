/* listing.c - pages of manifests. */
#include "ring/wire/listing.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "ring/core/bytes.h"

enum { VERSION = 1 };

/* As many items as fit, whole records of the log. */
static bool has_room(const struct rg_page *page, const struct rg_blob *next)
{
    return page->count < RG_NOTE_BLOBS_MAX || page->items[page->count - 1].index == next->index;
}

void rg_page_make(const struct rg_manifest *manifest, uint64_t since, uint64_t after,
                  struct rg_page *page, struct rg_blob **ret_items)
{
    struct rg_blob *items = qf_xcalloc(RG_PAGE_MAX, sizeof(*items));
    const struct rg_blob *blob;
    size_t at = 0;

    *ret_items = items;
    page->items = items;
    page->count = 0;
    page->more = false;
    if (!manifest)
        return;
    page->epoch = rg_manifest_epoch(manifest);
    if (page->whole || !rg_manifest_reaches(manifest, since)) {
        page->whole = true;
        since = 0;
    }
    while ((blob = rg_manifest_next(manifest, &at))) {
        bool changed = blob->index > since || blob->removed > since;

        if (!changed || blob->index <= after || (blob->removed && !since))
            continue;
        if (!has_room(page, blob)) {
            page->more = true;
            return;
        }
        items[page->count++] = *blob;
    }
}

void rg_page_encode(struct qf_strbuf *buf, const struct rg_page *page)
{
    rg_put(buf, VERSION);
    rg_put(buf, page->cluster);
    rg_put(buf, page->queue);
    rg_put(buf, page->partitions);
    rg_put(buf, page->applied);
    rg_put(buf, page->epoch);
    rg_put(buf, page->whole);
    rg_put(buf, page->more);
    rg_put(buf, page->count);
    for (size_t i = 0; i < page->count; i++) {
        rg_put_text(buf, page->items[i].name);
        rg_put(buf, page->items[i].slot);
        rg_put(buf, page->items[i].bytes);
        rg_put(buf, page->items[i].index);
        rg_put(buf, page->items[i].removed);
    }
}

static void get_items(struct rg_cursor *c, struct rg_page *page, struct rg_blob *items)
{
    for (size_t i = 0; i < page->count && !c->bad; i++) {
        struct rg_blob *blob = &items[i];

        blob->name = rg_get_text(c, RG_BLOB_NAME_MAX);
        blob->slot = (uint32_t)rg_get(c, RG_SLOTS - 1);
        blob->bytes = rg_get(c, UINT64_MAX);
        blob->index = rg_get(c, page->applied);
        blob->removed = rg_get(c, page->applied);
        c->bad |= !blob->name.len || !blob->index || (i && blob->index < items[i - 1].index);
    }
}

qf_rc rg_page_decode(struct qf_str bytes, struct rg_page *ret_page)
{
    struct rg_cursor c = { .rest = bytes };
    struct rg_page page = { 0 };
    struct rg_blob *items;

    c.bad |= rg_get(&c, UINT64_MAX) != VERSION;
    page.cluster = rg_get(&c, UINT64_MAX);
    page.queue = rg_get(&c, UINT64_MAX);
    page.partitions = (uint32_t)rg_get(&c, UINT32_MAX);
    page.applied = rg_get(&c, UINT64_MAX);
    page.epoch = rg_get(&c, UINT64_MAX);
    page.whole = rg_get(&c, 1) == 1;
    page.more = rg_get(&c, 1) == 1;
    page.count = rg_get(&c, RG_PAGE_MAX);
    items = qf_xcalloc(page.count + 1, sizeof(*items));
    get_items(&c, &page, items);
    page.items = items;
    if (c.bad || c.rest.len || (page.more && !page.count)) {
        rg_page_done(&page);
        return QF_ECORRUPT;
    }
    *ret_page = page;
    return QF_OK;
}

void rg_page_done(struct rg_page *page)
{
    free((void *)(uintptr_t)page->items);
    *page = (struct rg_page){ 0 };
}
