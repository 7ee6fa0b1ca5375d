/* catalog.h - which segments exist for a tenant, a time range and a set of matchers.
 *
 * The store is the truth; the catalogue is an index of its listing. It has two sides:
 *
 *   sg_catalog_refresh()   blocks on the store and publishes a new snapshot if anything changed.
 *                          Call it from a pool thread whenever sg_catalog_due_ms() has come and,
 *                          on demand, before a query that must see what was just written. Calls at
 *                          the same time share one listing.
 *   sg_catalog_snapshot()  hands out the newest snapshot, which never changes, at the cost of a
 *                          counter. sg_catalog_lookup() on it does no I/O and takes no lock.
 *
 * Incremental: the index is kept per folder (tenant and day), and folders that are the same are
 * shared between snapshots. A store that tells which folders changed (a local one) is asked only
 * for those. In a bucket writers note what they touch (changes.h); a refresh lists the folders so
 * noted, and uses up to a fifth of the interval to go on with a round through the whole bucket,
 * which finds what nobody noted. So what was noted shows within the interval, whatever the size of
 * the bucket, and a bucket that can be listed in a tenth of the interval is listed whole each time.
 *
 * Pruning: time and shard come from the names (segment_name.h). Names of metrics and values of
 * labels come from the summaries in the files (summary.h), which refreshes fetch, newest first,
 * within a budget of memory and of time. A segment whose summary is not known yet is not pruned: an
 * answer may hold segments that have nothing to give but never lacks one that has.
 *
 * Told segments: who knows of segments before a listing shows them tells the catalogue
 * (sg_catalog_tell()); a lookup that is given the told ones has them too, each once. Take the told
 * ones before the snapshot: what leaves the one is in the other by then.
 *
 * Replaced segments: a file that compaction made says which files it replaces. As soon as its summary is
 * known and all that came with it are listed, lookups leave those out; until then both are read, which
 * gives the same answer.
 *
 * Segments vanish when they are replaced by others; one that has another size or etag than it was
 * listed with counts as vanished, too. A reader that gets QF_ENOTFOUND for a segment
 * refreshes and looks up again: sg_catalog_read() does that. Who replaces segments puts the new
 * ones first and deletes the old ones at least two refresh intervals later, since a listing is no
 * snapshot of the bucket. */
#ifndef SEGMENTS_CATALOG_CATALOG_H
#define SEGMENTS_CATALOG_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/slice.h"
#include "promql/ast.h"
#include "segments/store/store.h"

struct sg_catalog;
struct sg_catalog_snapshot;

#define SG_CATALOG_REFRESH_INTERVAL_MS 5000

struct sg_catalog_options {
    struct sg_store *store; /* borrowed; outlives the catalogue */
    /* Zero means the default. */
    int64_t refresh_interval_ms; /* SG_CATALOG_REFRESH_INTERVAL_MS */
    size_t segments_max;         /* 5,000,000; a larger listing is QF_ELIMIT, never a part of it */
    size_t summary_bytes_max;    /* 64 MiB of summaries; the oldest days go first */
    int64_t summary_time_ms;     /* 2 s of fetching summaries per refresh; < 0: fetch none */
};

struct sg_catalog *sg_catalog_new(const struct sg_catalog_options *options);
/* No call may be under way; snapshots handed out stay good. Accepts NULL, returns NULL. */
struct sg_catalog *sg_catalog_free(struct sg_catalog *catalog);

enum sg_catalog_refresh_mode {
    SG_CATALOG_REFRESH_DUE,   /* only if the last one is older than the interval */
    SG_CATALOG_REFRESH_NOW,   /* everything put or deleted before the call shows in the snapshot,
                              noted or not: lists everything */
    SG_CATALOG_REFRESH_ANEW,  /* as NOW, folders that say they are the same included: something was
                              found not to be as it was listed */
    SG_CATALOG_REFRESH_TIMER, /* as DUE; then fetches summaries, which may take summary_time_ms */
};

/* Bring the index up to date; on success a snapshot exists. Queries use DUE or NOW and never wait
 * for summaries. After an error (those of sg_store_list()) the last good snapshot stays. DUE passes
 * over it until that snapshot is SG_CATALOG_INTERVALS_MAX intervals old: from then on it would miss
 * too much, and every DUE gets the error until a refresh succeeds. QF_ELIMIT: more than
 * segments_max. */
#define SG_CATALOG_INTERVALS_MAX 3
QF_MUST_CHECK qf_rc sg_catalog_refresh(struct sg_catalog *catalog,
                                       enum sg_catalog_refresh_mode mode,
                                       const struct sg_store_call *call, struct qf_err *err);
/* As SG_CATALOG_REFRESH_NOW for the segments of one tenant, for a query of it. Where folders tell
 * whether they changed, nothing of other tenants is looked at: what they write, and what is merged of
 * theirs, costs this one nothing. In a bucket the same as SG_CATALOG_REFRESH_NOW. */
QF_MUST_CHECK qf_rc sg_catalog_refresh_tenant(struct sg_catalog *catalog, struct qf_str tenant,
                                              const struct sg_store_call *call, struct qf_err *err);
/* Monotonic time (qf_clock_mono_ms) at which SG_CATALOG_REFRESH_TIMER has something to do: to list,
 * or to fetch summaries of segments that a query's refresh found. */
int64_t sg_catalog_due_ms(struct sg_catalog *catalog);

/* What the catalogue holds and has done; for metrics and `segments ls`. */
struct sg_catalog_stats {
    uint64_t segments, bytes, tenants, folders;
    uint64_t foreign; /* objects whose name is not a segment's: not part of any answer */
    uint64_t summaries, summary_bytes;
    uint64_t refreshes, refresh_errors, folders_listed, folders_skipped;
    int64_t refresh_ms_last;   /* how long the last refresh took */
    int64_t refreshed_mono_ms; /* when the newest snapshot was known to be true; -1: never */
};
struct sg_catalog_stats sg_catalog_stats(struct sg_catalog *catalog);

/* The newest snapshot, with a reference for the caller; NULL before the first refresh. */
struct sg_catalog_snapshot *sg_catalog_snapshot(struct sg_catalog *catalog);
struct sg_catalog_snapshot *sg_catalog_snapshot_ref(struct sg_catalog_snapshot *snapshot);
/* Drop a reference. Accepts NULL, returns NULL. */
struct sg_catalog_snapshot *sg_catalog_snapshot_drop(struct sg_catalog_snapshot *snapshot);
void sg_catalog_snapshot_dropp(struct sg_catalog_snapshot **snapshot);
/* Grows by one with each change of content. */
uint64_t sg_catalog_snapshot_version(const struct sg_catalog_snapshot *snapshot);

/* Segments that were told of and that no listing has shown yet. */
struct sg_catalog_told;
#define SG_CATALOG_TOLD_MAX 65536

struct sg_catalog_file {
    struct qf_str name, etag;
    uint64_t size;
};
/* These segments are in the store: they count from now on, until a listing of their folder that
 * begins after this call has ended. Copied. QF_EINVAL: not the name of a segment, and none of them
 * counts; QF_ELIMIT: too many told ones, likewise: SG_CATALOG_REFRESH_NOW finds them as well. */
QF_MUST_CHECK qf_rc sg_catalog_tell(struct sg_catalog *catalog, const struct sg_catalog_file *files,
                                    size_t count, struct qf_err *err);
/* The told ones of now, with a reference for the caller; NULL: there are none. */
struct sg_catalog_told *sg_catalog_told(struct sg_catalog *catalog);
/* Drop a reference. Accepts NULL, returns NULL. */
struct sg_catalog_told *sg_catalog_told_drop(struct sg_catalog_told *told);

struct sg_catalog_segment {
    struct qf_str name; /* in the store */
    struct qf_str etag;
    uint64_t size;
    int64_t mtime_ms;
    int64_t min_ts, max_ts; /* inclusive */
    uint32_t shard, shard_count;
    uint64_t generation; /* newest wins, see struct sg_catalog_group */
};

/* All segments that may hold series of one shard, over the whole time range asked for. A series is
 * in exactly one group, so a window over a group is exact.
 *
 * Files written with different shard counts group at the smallest count among them: counts are
 * powers of two, so a file of shard s of n belongs to shard s mod m of m. */
struct sg_catalog_group {
    uint32_t shard, shard_count;
    const struct sg_catalog_segment *segments; /* oldest first: on equal series and timestamp the
                                               later one in this array wins */
    size_t segment_count;
    uint64_t bytes;
};

struct sg_catalog_answer {
    const struct sg_catalog_group *groups; /* by shard; none is empty */
    size_t group_count;
    size_t segment_count;
    uint64_t bytes;
    size_t pruned; /* segments in the time range left out because of their summary */
    bool tenant_known;
};

struct sg_catalog_query {
    struct qf_str tenant;
    int64_t min_ts, max_ts; /* inclusive */
    const struct pq_matcher *matchers;
    size_t matcher_count;
    const struct sg_catalog_told *told; /* also look here; NULL: there are none */
};

/* Arrays go to @arena; names and etags are borrowed from @snapshot and
 * from the told ones. An unknown tenant or an empty
 * range gives no groups. QF_ELIMIT: the arena's budget is spent. */
QF_MUST_CHECK qf_rc sg_catalog_lookup(const struct sg_catalog_snapshot *snapshot,
                                      const struct sg_catalog_query *query, struct qf_arena *arena,
                                      struct sg_catalog_answer *ret_answer, struct qf_err *err);

/* What a tenant has stored, by the listing alone. */
struct sg_catalog_day {
    struct qf_str date; /* 2026-01-31, borrowed from the snapshot */
    uint64_t segments, bytes;
};
struct sg_catalog_usage {
    uint64_t segments, bytes;
    int64_t min_ts, max_ts; /* of all samples; min_ts > max_ts: there are none */
    size_t day_count;       /* written to @days */
};
/* Of @tenant, and of its newest days at most @day_max, the oldest of those first. */
struct sg_catalog_usage sg_catalog_usage(const struct sg_catalog_snapshot *snapshot,
                                         struct qf_str tenant, struct sg_catalog_day *days,
                                         size_t day_max);

/* Call @fn for each segment there is, those of a tenant one after another. No I/O. */
typedef void sg_catalog_each_fn(void *ctx, struct qf_str tenant,
                                const struct sg_catalog_segment *segment);
void sg_catalog_each(const struct sg_catalog_snapshot *snapshot, sg_catalog_each_fn *fn, void *ctx);
/* The same without those that are known to be replaced by others. */
void sg_catalog_each_live(const struct sg_catalog_snapshot *snapshot, sg_catalog_each_fn *fn,
                          void *ctx);

/* What is in segments, by what they say of themselves. */
struct sg_contents;
typedef void sg_catalog_contents_fn(void *ctx, const struct sg_catalog_segment *segment,
                                    const struct sg_contents *contents);
/* Hand the contents of each segment of @tenant that reaches into the range to @fn. How many segments are
 * left out because nothing is known of their contents (yet). No I/O. */
size_t sg_catalog_contents(const struct sg_catalog_snapshot *snapshot, struct qf_str tenant,
                           int64_t min_ts, int64_t max_ts, sg_catalog_contents_fn *fn, void *ctx);

/* What a file in a store says of itself, read from its end; texts are copied into @arena. Errors of sg_store_read_tail()
 * and sg_meta_from_tail(); QF_ELIMIT: a footer that is too large. */
struct sg_meta;
QF_MUST_CHECK qf_rc sg_catalog_read_meta(struct sg_store *store, struct qf_str name,
                                         const struct sg_store_call *call, struct qf_arena *arena,
                                         struct sg_meta *ret_meta, struct qf_err *err);

/* Look up and hand the answer to @fn, which reads the segments and returns their error. If that is
 * QF_ENOTFOUND, segments vanished meanwhile: refresh, look up, call @fn again, up to three times.
 * @fn starts from nothing each time. The answer and @arena's content last as long as @fn runs. */
typedef qf_rc sg_catalog_read_fn(void *ctx, const struct sg_catalog_answer *answer,
                                 struct qf_err *err);
QF_MUST_CHECK qf_rc sg_catalog_read(struct sg_catalog *catalog,
                                    const struct sg_catalog_query *query,
                                    const struct sg_store_call *call, sg_catalog_read_fn *fn,
                                    void *ctx, struct qf_err *err);

#endif
