/* cache.h - segments on the local disk and their open readers.
 *
 * Belongs to the coordinator thread; downloads run on a pool and come back as messages. Segments of
 * a local store are read where they are; those of an object store are downloaded once, whoever and
 * however many want them, large ones in parts (partial.h), and kept until the disk budget asks for room. What a work holds is
 * pinned: neither evicted nor closed. Files are immutable and named after what they are a copy of,
 * so a later process goes on using them.
 *
 *     hold = qw_cache_acquire(...)             every segment of a work, pinned
 *     while hold->missing: qw_cache_dispatch(message), then qw_cache_settled() yields the hold
 *     hold->rc says whether all are there; use paths and readers; hand opened readers in
 *     qw_cache_release(...)  */
#ifndef QUERYWORKER_CACHE_CACHE_H
#define QUERYWORKER_CACHE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "base/sys/mailbox.h"
#include "base/sys/pool.h"
#include "proto/codec/control.h"
#include "queryworker/cache/partial.h"
#include "queryworker/cache/results.h"
#include "queryworker/metrics.h"
#include "queryworker/work/message.h"
#include "segments/parquet/hot.h"
#include "segments/parquet/segment_reader.h"
#include "segments/store/store.h"

struct qw_cache;
struct qw_head_source;
struct qw_segment; /* one segment, on disk or on its way */

struct qw_cache_options {
    struct sg_store *store;
    struct qw_head_source *heads; /* who is asked for head inputs; NULL: nobody */
    const char *dir;              /* for downloads; made if missing */
    struct qf_pool *pool;         /* runs downloads */
    struct qf_mailbox *mailbox;
    struct qw_metrics *metrics;
    size_t readers_max;        /* readers kept open beyond those in use */
    uint64_t reader_bytes_max; /* and their memory */
    uint64_t hot_bytes_max; /* of what works read through them and others may read again; 0: none */
    struct qw_partial_rule partial; /* which segments are copied in parts */
    uint64_t result_bytes_max;      /* of results kept for works that ask the same again; 0: none */
    /* Asked before a download: is there room for so many more bytes of cache? */
    bool (*make_room)(void *ctx, uint64_t bytes);
    void *ctx;
};

/* The segments of one work. */
struct qw_hold {
    void *owner;
    struct qw_segment **segments;
    size_t count;
    size_t map_count; /* of them, at the end: state maps, in the order of the work */
    size_t missing;   /* not on disk yet; 0: settled */
    qf_rc rc;         /* the first failure; settled at once */
    struct qf_err err;
    uint32_t hits, misses;
    uint32_t in_place; /* of the hits: read where they are, in the store's folder or a keeper's */
    uint64_t download_bytes;
    uint64_t head_samples, head_bytes; /* qw_cache_tidy() */
    struct qw_hold *next;              /* the cache's own, like all behind it */
    bool listed;
    uint64_t number;      /* later ones have greater ones */
    struct qw_need *need; /* what it reads of segments that are copied in parts */
};

/* Open the folder, drop what was half-written and take over what is whole. QF_EIO. */
struct qw_cache *qw_cache_new(const struct qw_cache_options *options, struct qf_err *err);
/* No holds and no downloads may be left. Accepts NULL, returns NULL. */
struct qw_cache *qw_cache_free(struct qw_cache *cache);

/* Pin the segments a work needs and start to download those that are missing. @spec is the work's
 * leaf: of large segments only what it reads is sure to be there. Empty: all of it. Never NULL. Look at
 * hold->rc (QF_EINVAL: a bad name, QF_ENOSPC, QF_EBUSY) and hold->missing. */
struct qw_hold *qw_cache_acquire(struct qw_cache *cache, const struct pb_segment *segments,
                                 size_t count, struct qf_str spec, void *owner);
/* Pin the head inputs of a work as well, and start to fetch them: as above, before anybody waits for
 * the hold. They are shared with whoever asks for the very same at the same time, and go with their
 * last holder. */
void qw_cache_acquire_heads(struct qw_cache *cache, struct qw_hold *hold, struct qf_str tenant,
                            const struct pb_heads *heads);
/* Pin the state maps of a work as well, and start to fetch them: as above, behind the head inputs. They stay like segments. */
void qw_cache_acquire_maps(struct qw_cache *cache, struct qw_hold *hold, struct qf_str tenant,
                           const struct pb_maps *maps);
/* All is there: let go of head inputs that have nothing, and count what the others have. */
void qw_cache_tidy(struct qw_cache *cache, struct qw_hold *hold);
/* Unpin; ends downloads nobody waits for any more. */
void qw_cache_release(struct qw_cache *cache, struct qw_hold *hold);

/* Handle a QW_MESSAGE_DOWNLOAD. */
void qw_cache_dispatch(struct qw_cache *cache, struct qw_message *message);
/* The next hold that settled since; NULL if there is none. */
struct qw_hold *qw_cache_settled(struct qw_cache *cache);

/* Valid while the segment is held and settled. */
const char *qw_segment_path(const struct qw_segment *segment);
/* For messages that leave the worker: its name in the store, or that of the copy without the folder. */
const char *qw_segment_label(const struct qw_segment *segment);
/* Its name in the store if it is read there, NULL if it is a copy. */
const char *qw_segment_in_place(const struct qw_segment *segment);
struct sg_store *qw_cache_store(const struct qw_cache *cache);
/* Where readers that works open keep what they read (segments/parquet/hot.h); NULL: nowhere. */
struct sg_hot *qw_cache_hot(const struct qw_cache *cache);
struct qw_results *qw_cache_results(const struct qw_cache *cache); /* NULL: none are kept */
bool qw_segment_is_head(const struct qw_segment *segment);
uint64_t qw_segment_size(const struct qw_segment *segment); /* as announced; 0: unknown */
struct sg_reader *qw_segment_reader(const struct qw_segment *segment); /* NULL: not open yet */
/* Hand in a reader that was opened for @segment; the cache owns it now. If there is one already the
 * new one is closed. */
void qw_segment_give_reader(struct qw_cache *cache, struct qw_segment *segment,
                            struct sg_reader *reader);
/* The file of @segment turned out to be bad: do not use it for further works. True if it was a
 * copy: a disk spoils copies that were good when they arrived, and a fresh download may well be
 * good. */
bool qw_segment_distrust(struct qw_cache *cache, struct qw_segment *segment);

/* Remove the segment that was not used for longest; its bytes, 0 if all are in use. */
uint64_t qw_cache_evict(struct qw_cache *cache);

struct qw_cache_stats {
    uint64_t bytes; /* on disk, downloads under way included */
    size_t segments, readers, downloads;
    uint64_t reader_bytes;
    struct sg_hot_stats hot;
    struct qw_results_stats results;
};
struct qw_cache_stats qw_cache_stats(const struct qw_cache *cache);

#endif
