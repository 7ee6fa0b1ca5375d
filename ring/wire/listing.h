/* listing.h - how those who read and write the ring learn which blobs there are: requests to any ingest node. Pure.
 *
 *     GET  /v1/manifest?partition=&queue=&since=&after=   a page of the partition's manifest, from its leader, who has
 *                                                         confirmed itself: rg_page
 *     POST /v1/manifest?partition=                        a note (ring/core/manifest.h: ADDED, REPLACED, REMOVED, EPOCH); 200
 *                                                         once it is applied, 409 if it counts for nothing
 *
 * A page has what was named or removed after the record SINCE of the log, in the order in which it was named, of that what
 * was named after AFTER; 0 and 0 at first. As long as there is `more`, one asks again, with AFTER = the index of the last
 * item. Then one knows everything up to `applied` of the first page, which is the next SINCE: what changed between two
 * pages comes again. With `whole` what was known of the partition before is to be forgotten: its queue is another one than
 * QUEUE (hex), or removals after SINCE are not remembered any more; the page begins as if SINCE were 0, and so go the next ones. */
#ifndef RING_WIRE_LISTING_H
#define RING_WIRE_LISTING_H

#include "ring/core/manifest.h"

#define RG_LISTING_PATH "/v1/manifest"
enum {
    RG_PAGE_MAX = 2 * RG_NOTE_BLOBS_MAX, /* items; what one record named is never split */
    RG_PAGE_BYTES_MAX = 4 << 20
};

struct rg_page {
    uint64_t cluster;    /* of the ingest nodes */
    uint64_t queue;      /* id of the partition's queue */
    uint32_t partitions; /* of the cluster */
    uint64_t applied;    /* record of the log that the page speaks of */
    uint64_t epoch;      /* of the ring, that the partition has adopted */
    bool whole, more;
    const struct rg_blob *items; /* borrowed */
    size_t count;
};

/* The page of @manifest that was asked for; NULL: there is none. @ret_items is the caller's to free. */
void rg_page_make(const struct rg_manifest *manifest, uint64_t since, uint64_t after,
                  struct rg_page *page, struct rg_blob **ret_items);
void rg_page_encode(struct qf_strbuf *buf, const struct rg_page *page);
/* Borrows from @bytes, and from an array that rg_page_done() frees. QF_ECORRUPT. */
QF_MUST_CHECK qf_rc rg_page_decode(struct qf_str bytes, struct rg_page *ret_page);
void rg_page_done(struct rg_page *page);

#endif
