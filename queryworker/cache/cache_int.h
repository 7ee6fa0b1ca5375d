/* cache_int.h - the cache's own state, shared by its files.
 *
 *     cache.c         entries, holds, downloads that come back, readers, eviction
 *     cache_heads.c   head inputs of works
 *     cache_maps.c    state maps of works
 *     cache_parts.c   segments that are copied in parts: who still waits for which */
#ifndef QUERYWORKER_CACHE_CACHE_INT_H
#define QUERYWORKER_CACHE_CACHE_INT_H

#include "queryworker/cache/cache.h"
#include "queryworker/cache/download.h"

#define QW_CACHE_BUCKETS                                                                           \
    4096 /* power of two; chains stay short up to tens of thousands of segments */

#define QW_CACHE_SUFFIX ".parquet"

struct qw_id {
    uint64_t high, low; /* XXH3-128 of name, size and version */
};

struct qw_segment {
    struct qw_id id;
    struct qw_segment *chain;
    struct qw_segment *newer, *older; /* by last use */
    char *path;
    const char *name; /* in the store, if it is read in place; the end of @path */
    uint64_t size_announced;
    uint64_t size_on_disk; /* counted in the budget; 0 for a local store */
    unsigned pins;
    bool in_place;    /* a file of a local store: never removed */
    bool present;     /* the file is there, whole or in parts */
    bool distrusted;  /* goes as soon as nobody holds it */
    bool head, empty; /* a head input: goes likewise; it has nothing, and no file */
    uint64_t samples; /* of a head input */
    struct sg_reader *reader;
    struct qw_download *download;
    struct qw_partial
        *partial; /* what is there of it; NULL: it is whole. The download's, if there is one */
    char *store_name, *etag; /* of a segment in parts: what is left comes from there */
    uint64_t seen_by;        /* number of the last hold that listed it: a work may name one twice */
};

struct qw_cache {
    struct sg_hot *hot;
    struct qw_results *results;
    struct qw_cache_options options;
    char *dir, *local_root; /* local_root: NULL unless the store is a folder */
    struct qw_segment *buckets[QW_CACHE_BUCKETS];
    struct qw_segment *newest, *oldest;
    struct qw_hold *waiting; /* holds with missing segments */
    struct qw_hold *settled;
    struct qw_cache_stats stats;
    uint64_t last_hold;
};

/* The entry for @id that new works may use, or NULL. */
struct qw_segment *qw_cache_find(struct qw_cache *cache, struct qw_id id);
/* A new one; @path is taken. */
struct qw_segment *qw_cache_add(struct qw_cache *cache, struct qw_id id, char *path);
/* Forget a segment nobody holds; its file stays. */
void qw_cache_drop(struct qw_cache *cache, struct qw_segment *s);
void qw_cache_remove_file(struct qw_cache *cache, struct qw_segment *s); /* and forget it */
char *qw_cache_join(const char *dir, const char *name);
/* Does the segment have holes? */
static inline bool qw_segment_has_holes(const struct qw_segment *s)
{
    return s->partial && (s->download || !s->partial->whole);
}
/* A download for @s, to be filled and started. */
struct qw_download *qw_cache_download_new(struct qw_cache *cache, struct qw_segment *s,
                                          const char *name, const char *etag);
/* Reserve @bytes of disk and start it; it is taken, also on failure. QF_ENOSPC, QF_EBUSY. */
QF_MUST_CHECK qf_rc qw_cache_download_start(struct qw_cache *cache, struct qw_download *d,
                                            uint64_t bytes, struct qf_err *err);
/* Let @d fetch for @need too, which may be NULL. */
void qw_parts_need(struct qw_download *d, struct qw_need *need);
/* Go on with a segment that has holes, for all that wait for it. */
QF_MUST_CHECK qf_rc qw_parts_more(struct qw_cache *cache, struct qw_segment *s, struct qf_err *err);
/* A download of @s is back: take over what it has. */
void qw_parts_back(struct qw_cache *cache, struct qw_segment *s, struct qw_download *d);
/* Nobody holds @s: if nothing of it is missing any more, it is a whole copy from now on. */
void qw_parts_unpinned(struct qw_segment *s);
bool qw_hold_has(const struct qw_hold *hold, const struct qw_segment *s);
/* Put @hold where it belongs: to those that wait, if it misses something and did not fail. */
void qw_cache_list(struct qw_cache *cache, struct qw_hold *hold);

#endif
