/* catalog.c - who refreshes when, and which snapshot is the newest. */
#include "segments/catalog/catalog.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "base/sys/clock.h"
#include "base/sys/thread.h"
#include "segments/catalog/catalog_int.h"
#include "segments/catalog/told.h"

#define SEGMENTS_MAX_DEFAULT 5000000
#define SUMMARY_BYTES_MAX_DEFAULT ((size_t)64 << 20)
#define SUMMARY_TIME_DEFAULT_MS 2000
#define WAIT_MS 50
#define READ_ATTEMPTS 3
/* Shares of the refresh interval, as one in so many: what a refresh may spend on the round through
 * the bucket, and what is kept free so that noted folders are listed in time. */
#define SHARE 5

struct sg_catalog *sg_catalog_new(const struct sg_catalog_options *options)
{
    struct sg_catalog *catalog = qf_xcalloc(1, sizeof(*catalog));

    catalog->store = options->store;
    catalog->refresh_interval_ms = options->refresh_interval_ms > 0
                                       ? options->refresh_interval_ms
                                       : SG_CATALOG_REFRESH_INTERVAL_MS;
    catalog->summary_time_ms =
        options->summary_time_ms ? options->summary_time_ms : SUMMARY_TIME_DEFAULT_MS;
    catalog->segments_max = options->segments_max ? options->segments_max : SEGMENTS_MAX_DEFAULT;
    catalog->summary_bytes_max =
        options->summary_bytes_max ? options->summary_bytes_max : SUMMARY_BYTES_MAX_DEFAULT;
    catalog->lock = qf_lock_new();
    catalog->learn_due_ms = QF_TIME_NEVER;
    catalog->stats.refreshed_mono_ms = -1;
    return catalog;
}

struct sg_catalog *sg_catalog_free(struct sg_catalog *catalog)
{
    if (!catalog)
        return NULL;
    (void)sg_catalog_snapshot_drop(catalog->snapshot);
    (void)sg_catalog_told_drop(catalog->told);
    QF_VEC_DONE(&catalog->known);
    sg_changes_seen_done(&catalog->changes);
    qf_strbuf_done(&catalog->round);
    (void)qf_lock_free(catalog->lock);
    free(catalog);
    return NULL;
}

struct sg_catalog_snapshot *sg_catalog_snapshot(struct sg_catalog *catalog)
{
    struct sg_catalog_snapshot *snapshot;

    qf_lock_take(catalog->lock);
    snapshot = catalog->snapshot ? sg_catalog_snapshot_ref(catalog->snapshot) : NULL;
    qf_lock_drop(catalog->lock);
    return snapshot;
}

int64_t sg_catalog_due_ms(struct sg_catalog *catalog)
{
    int64_t due;

    qf_lock_take(catalog->lock);
    due = catalog->due_ms < catalog->learn_due_ms ? catalog->due_ms : catalog->learn_due_ms;
    qf_lock_drop(catalog->lock);
    return due;
}

struct sg_catalog_stats sg_catalog_stats(struct sg_catalog *catalog)
{
    struct sg_catalog_stats stats;
    QF_CLEANUP(sg_catalog_snapshot_dropp)
    struct sg_catalog_snapshot *snapshot = sg_catalog_snapshot(catalog);

    qf_lock_take(catalog->lock);
    stats = catalog->stats;
    qf_lock_drop(catalog->lock);
    if (!snapshot)
        return stats;
    stats.segments = snapshot->segments;
    stats.bytes = snapshot->bytes;
    stats.foreign = snapshot->foreign;
    stats.tenants = snapshot->tenant_count;
    stats.folders = snapshot->count;
    for (size_t i = 0; i < snapshot->count; i++) {
        const struct index_folder *folder = snapshot->folders[i];

        stats.summaries += atomic_load_explicit(&folder->summary_count, memory_order_relaxed);
        stats.summary_bytes += atomic_load_explicit(&folder->summary_bytes, memory_order_relaxed);
    }
    return stats;
}

/* --- told segments --- */

qf_rc sg_catalog_tell(struct sg_catalog *catalog, const struct sg_catalog_file *files, size_t count,
                      struct qf_err *err)
{
    struct sg_catalog_told *old = NULL, *told;

    if (!count)
        return QF_OK;
    qf_lock_take(catalog->lock);
    told = told_add(catalog->told, files, count, catalog->told_number + 1, err);
    if (told) {
        catalog->told_number++;
        old = catalog->told;
        catalog->told = told;
    }
    qf_lock_drop(catalog->lock);
    (void)sg_catalog_told_drop(old);
    return told ? QF_OK : err->rc;
}

struct sg_catalog_told *sg_catalog_told(struct sg_catalog *catalog)
{
    struct sg_catalog_told *told;

    qf_lock_take(catalog->lock);
    told = catalog->told;
    if (told)
        atomic_fetch_add_explicit(&told->refs, 1, memory_order_relaxed);
    qf_lock_drop(catalog->lock);
    return told;
}

/* Has the build listed the entry's folder, after the entry was told of? */
static bool is_known(const void *ctx, const struct told_entry *entry)
{
    const struct sg_catalog_build *build = ctx;

    if (entry->number > build->told_number)
        return false;
    for (size_t i = 0; i < build->pieces.count && !build->whole; i++) {
        const struct listed_piece *piece = &build->pieces.items[i];

        if (qf_str_cmp(entry->folder, qf_str_from(piece->after)) >= 0 &&
            qf_str_cmp(entry->folder, qf_str_from(piece->before)) < 0)
            return true;
    }
    return build->whole;
}

/* What @build has found is published: who looks there finds it. */
static void forget_told(struct sg_catalog *catalog, const struct sg_catalog_build *build)
{
    struct sg_catalog_told *old = NULL;

    qf_lock_take(catalog->lock);
    if (catalog->told) {
        old = catalog->told;
        catalog->told = told_without(old, is_known, build);
    }
    qf_lock_drop(catalog->lock);
    (void)sg_catalog_told_drop(old);
}

/* --- publishing --- */

/* Forget the summaries of the oldest days until the budget holds. */
static void strip_oldest(struct sg_catalog_build *build)
{
    size_t bytes = 0;

    for (size_t i = 0; i < build->folders.count; i++)
        bytes += atomic_load_explicit(&build->folders.items[i].folder->summary_bytes,
                                      memory_order_relaxed);
    while (bytes > build->catalog->summary_bytes_max) {
        struct known_folder *oldest = NULL;
        struct index_folder *stripped;

        for (size_t i = 0; i < build->folders.count; i++) {
            struct known_folder *known = &build->folders.items[i];

            if (atomic_load_explicit(&known->folder->summary_bytes, memory_order_relaxed) &&
                (!oldest || known->folder->span.max_ts < oldest->folder->span.max_ts))
                oldest = known;
        }
        if (!oldest)
            break;
        bytes -= atomic_load_explicit(&oldest->folder->summary_bytes, memory_order_relaxed);
        stripped = index_folder_strip(oldest->folder);
        (void)index_folder_drop(oldest->folder);
        oldest->folder = stripped;
        build->changed = true;
    }
}

/* Make the folders of @build the next snapshot. Called by the refreshing thread alone. */
static void publish(struct sg_catalog *catalog, struct sg_catalog_build *build)
{
    struct sg_catalog_snapshot *old, *snapshot;
    struct index_folder **folders;
    size_t count;

    if (catalog->snapshot && !build->changed)
        return;
    count = build->folders.count;
    folders = qf_xcalloc(count + 1, sizeof(*folders));
    for (size_t i = 0; i < count; i++)
        folders[i] = build->folders.items[i].folder;
    old = catalog->snapshot;
    snapshot = index_snapshot_new(folders, count, old ? old->version + 1 : 1);
    qf_lock_take(catalog->lock);
    catalog->snapshot = snapshot;
    if (catalog->summary_time_ms > 0)
        catalog->learn_due_ms = qf_clock_mono_ms();
    qf_lock_drop(catalog->lock);
    QF_VEC_DONE(&catalog->known);
    catalog->known.items = build->folders.items;
    catalog->known.count = build->folders.count;
    catalog->known.capacity = build->folders.capacity;
    build->folders.items = NULL;
    build->folders.count = build->folders.capacity = 0;
    (void)sg_catalog_snapshot_drop(old);
}

/* Nothing changed but, maybe, the tokens that say so. */
static void remember_tokens(struct sg_catalog *catalog, const struct sg_catalog_build *build)
{
    for (size_t i = 0; i < build->folders.count && i < catalog->known.count; i++)
        catalog->known.items[i].token = build->folders.items[i].token;
}

/* Publish the folders that @build found as a new snapshot, if @rc is QF_OK, and count the
 * refresh. */
static void end_build(struct sg_catalog *catalog, struct sg_catalog_build *build, qf_rc rc,
                      struct sg_catalog_stats *stats)
{
    if (!rc && !build->same) {
        strip_oldest(build);
        if (!build->changed)
            remember_tokens(catalog, build);
        publish(catalog, build);
    }
    if (!rc)
        forget_told(catalog, build);
    stats->folders_listed += build->listed;
    stats->folders_skipped += build->skipped;
    sg_catalog_build_done(build);
}

/* What was told so far is in the listing that begins now. */
static void begin_build(struct sg_catalog_build *build)
{
    qf_lock_take(build->catalog->lock);
    build->told_number = build->catalog->told_number;
    qf_lock_drop(build->catalog->lock);
}

/* List everything that may have changed, as far as the store can tell. */
static qf_rc refresh_whole(struct sg_catalog *catalog, const struct sg_store_call *call,
                           struct sg_catalog_stats *stats, struct qf_err *err)
{
    struct sg_catalog_build build = { .catalog = catalog, .call = call, .err = err };
    QF_CLEANUP(sg_changes_seen_done) struct sg_changes_seen now = { 0 };
    bool notes = !sg_store_has_tokens(catalog->store) && !catalog->snapshot;
    qf_rc rc = QF_OK;

    begin_build(&build);
    build.whole = true;
    /* Changes noted before the first listing are in that listing. */
    if (notes)
        rc = sg_changes_read(&catalog->changes, catalog->store, call, NULL, &now, err);
    if (!rc)
        rc = sg_catalog_build_run(&build);
    end_build(catalog, &build, rc, stats);
    if (!rc) {
        qf_strbuf_reset(&catalog->round);
        if (notes) {
            catalog->changes = now;
            now = (struct sg_changes_seen){ 0 };
        }
    }
    return rc;
}

static qf_rc refresh_tenant(struct sg_catalog *catalog, struct qf_str tenant,
                            const struct sg_store_call *call, struct sg_catalog_stats *stats,
                            struct qf_err *err)
{
    struct sg_catalog_build build = { .catalog = catalog, .call = call, .err = err };
    qf_rc rc;

    begin_build(&build);
    rc = sg_catalog_build_tenant(&build, tenant);
    end_build(catalog, &build, rc, stats);
    return rc;
}

static void start_from_known(struct sg_catalog_build *build)
{
    const struct sg_catalog *catalog = build->catalog;

    begin_build(build);
    QF_VEC_RESERVE(&build->folders, catalog->known.count + 1);
    for (size_t i = 0; i < catalog->known.count; i++)
        build->folders.items[i] =
            (struct known_folder){ index_folder_ref(catalog->known.items[i].folder), 0 };
    build->folders.count = catalog->known.count;
}

static qf_rc refresh_changes(struct sg_catalog *catalog, const struct sg_store_call *call,
                             struct sg_catalog_stats *stats, struct qf_err *err)
{
    struct sg_catalog_build build = { .catalog = catalog, .call = call, .err = err };
    qf_rc rc;

    start_from_known(&build);
    rc = sg_catalog_build_changes(&build);
    end_build(catalog, &build, rc, stats);
    return rc;
}

static qf_rc refresh_round(struct sg_catalog *catalog, const struct sg_store_call *call,
                           struct sg_catalog_stats *stats, struct qf_err *err)
{
    struct sg_catalog_build build = { .catalog = catalog, .call = call, .err = err };
    int64_t until_ms = qf_clock_mono_ms() + catalog->refresh_interval_ms / SHARE;
    qf_rc rc;

    start_from_known(&build);
    rc = sg_catalog_build_round(&build, until_ms);
    end_build(catalog, &build, rc, stats);
    return rc;
}

/* --- taking turns --- */

static qf_rc check_call(const struct sg_store_call *call, int64_t start_ms, struct qf_err *err)
{
    if (call && call->cancel && atomic_load_explicit(call->cancel, memory_order_relaxed))
        return qf_err_set(err, QF_ECANCELED, "refreshing the catalogue was canceled");
    if (call && call->timeout_ms > 0 && qf_clock_mono_ms() - start_ms >= call->timeout_ms)
        return qf_err_set(err, QF_ETIMEOUT, "refreshing the catalogue took too long");
    return QF_OK;
}

/* With the lock taken: did listing fail for so long that the snapshot may not be used any more? A
 * listing that fails once, or a store that is away for some seconds, fails no query. */
static bool is_old(const struct sg_catalog *catalog)
{
    int64_t age_ms = qf_clock_mono_ms() - catalog->stats.refreshed_mono_ms;

    return catalog->failure.rc &&
           (!catalog->snapshot || age_ms > SG_CATALOG_INTERVALS_MAX * catalog->refresh_interval_ms);
}

/* What a refresh is to find. */
struct wish {
    enum sg_catalog_refresh_mode mode;
    uint64_t tenant_hash; /* of this tenant alone; 0: of all */
};

/* With the lock taken: the number of the last refresh that found what is wished for. */
static uint64_t last_good(const struct sg_catalog *catalog, const struct wish *wish)
{
    if (wish->tenant_hash && wish->tenant_hash == catalog->tenant_hash)
        return QF_MAX(catalog->tenant_number, catalog->whole);
    switch (wish->mode) {
    case SG_CATALOG_REFRESH_NOW:
        return catalog->whole;
    case SG_CATALOG_REFRESH_ANEW:
        return catalog->anew;
    case SG_CATALOG_REFRESH_DUE:
    case SG_CATALOG_REFRESH_TIMER:
        break;
    }
    return catalog->finished;
}

static bool lists_all(enum sg_catalog_refresh_mode mode)
{
    return mode == SG_CATALOG_REFRESH_NOW || mode == SG_CATALOG_REFRESH_ANEW;
}

/* With the lock taken: wait until this thread is the one that refreshes, or until there is nothing
 * left to do since another has done it meanwhile (*ret_mine false). A refresh that had begun before
 * this call does not count: it may have passed by what the caller has just put. */
static qf_rc take_turn(struct sg_catalog *catalog, const struct wish *wish,
                       const struct sg_store_call *call, bool *ret_mine, struct qf_err *err)
{
    enum sg_catalog_refresh_mode mode = wish->mode;
    uint64_t began = catalog->started;
    int64_t start_ms = qf_clock_mono_ms();

    *ret_mine = false;
    for (;;) {
        qf_rc rc;

        if (last_good(catalog, wish) > began)
            return QF_OK;
        if (!lists_all(mode) && catalog->snapshot && qf_clock_mono_ms() < catalog->due_ms)
            return mode == SG_CATALOG_REFRESH_DUE && is_old(catalog)
                       ? qf_err_set(err, catalog->failure.rc, "%s", catalog->failure.msg)
                       : QF_OK;
        if (!catalog->refreshing)
            break;
        rc = check_call(call, start_ms, err);
        if (rc)
            return rc;
        (void)qf_lock_wait(catalog->lock, WAIT_MS);
    }
    catalog->refreshing = true;
    catalog->started++;
    *ret_mine = true;
    return QF_OK;
}

/* Fetching summaries takes its own turn, so that a refresh on demand does not wait for it. */
static void learn(struct sg_catalog *catalog, const struct sg_store_call *call)
{
    struct sg_catalog_snapshot *snapshot = NULL;
    bool complete;

    qf_lock_take(catalog->lock);
    if (!catalog->learning && catalog->snapshot && qf_clock_mono_ms() >= catalog->learn_due_ms) {
        catalog->learning = true;
        catalog->learn_due_ms = QF_TIME_NEVER; /* unless another snapshot is published meanwhile */
        snapshot = sg_catalog_snapshot_ref(catalog->snapshot);
    }
    qf_lock_drop(catalog->lock);
    if (!snapshot)
        return;
    complete = sg_catalog_learn(catalog, snapshot, call);
    (void)sg_catalog_snapshot_drop(snapshot);
    qf_lock_take(catalog->lock);
    catalog->learning = false;
    if (!complete)
        catalog->learn_due_ms = qf_clock_mono_ms() + catalog->refresh_interval_ms;
    qf_lock_drop(catalog->lock);
}

/* When to list again: so long after the last listing began that what it passed by shows within the
 * interval, the time to list it included; later if little time would be left in between, and soon
 * after one that failed. One that its caller gave up says nothing of the store. */
static int64_t next_due(const struct sg_catalog *catalog, int64_t start_ms, qf_rc rc)
{
    int64_t share = catalog->refresh_interval_ms / SHARE;
    int64_t due = start_ms + catalog->refresh_interval_ms - share;
    int64_t rest = qf_clock_mono_ms() + share;

    if (rc == QF_ECANCELED)
        return start_ms;
    return due > rest && !rc ? due : rest;
}

/* The snapshot is true as of @start_ms; wake the threads that wait for a refresh. */
static void tell(struct sg_catalog *catalog, struct sg_catalog_stats *stats, int64_t start_ms,
                 qf_rc rc)
{
    stats->refresh_ms_last = qf_clock_mono_ms() - start_ms;
    if (!rc) {
        stats->refreshed_mono_ms = start_ms;
        catalog->finished = catalog->started; /* one refreshes at a time */
        catalog->failure = (struct qf_err){ 0 };
    }
    catalog->stats = *stats;
    catalog->due_ms = next_due(catalog, start_ms, rc);
    qf_lock_wake_all(catalog->lock);
}

static qf_rc refresh(struct sg_catalog *catalog, enum sg_catalog_refresh_mode mode,
                     const struct sg_store_call *call, bool *ret_mine, struct qf_err *err)
{
    bool whole, gave_up, excused;
    struct sg_catalog_stats stats;
    struct qf_err why = { 0 };
    int64_t start_ms;
    qf_rc rc;

    qf_lock_take(catalog->lock);
    rc = take_turn(catalog, &(struct wish){ .mode = mode }, call, ret_mine, err);
    stats = catalog->stats;
    qf_lock_drop(catalog->lock);
    if (rc || !*ret_mine)
        return rc;

    start_ms = qf_clock_mono_ms();
    whole = lists_all(mode) || sg_store_has_tokens(catalog->store) || !catalog->snapshot;
    for (size_t i = 0; mode == SG_CATALOG_REFRESH_ANEW && i < catalog->known.count; i++)
        catalog->known.items[i].token = 0;
    stats.refreshes++;
    if (whole) {
        rc = refresh_whole(catalog, call, &stats, &why);
    } else {
        rc = refresh_changes(catalog, call, &stats, &why);
        if (!rc) {
            qf_lock_take(catalog->lock);
            tell(catalog, &stats, start_ms, QF_OK);
            qf_lock_drop(catalog->lock);
            rc = refresh_round(catalog, call, &stats, &why);
        }
    }
    stats.refresh_errors += rc != QF_OK;
    /* Listing all of a large bucket may take longer than a query waits: the store is not to blame,
     * and the snapshot is as good as before. */
    gave_up = rc == QF_ECANCELED || (rc == QF_ETIMEOUT && lists_all(mode));

    qf_lock_take(catalog->lock);
    tell(catalog, &stats, start_ms, gave_up ? QF_ECANCELED : rc);
    if (rc && !gave_up)
        catalog->failure = why;
    excused = mode == SG_CATALOG_REFRESH_DUE && !gave_up && !is_old(catalog);
    if (!rc && whole)
        catalog->whole = catalog->started;
    if (!rc && mode == SG_CATALOG_REFRESH_ANEW)
        catalog->anew = catalog->started;
    catalog->refreshing = false;
    qf_lock_drop(catalog->lock);
    return rc && !excused ? qf_err_set(err, rc, "%s", why.msg) : QF_OK;
}

qf_rc sg_catalog_refresh(struct sg_catalog *catalog, enum sg_catalog_refresh_mode mode,
                         const struct sg_store_call *call, struct qf_err *err)
{
    bool mine;
    qf_rc rc = refresh(catalog, mode, call, &mine, err);

    if (!rc && mode == SG_CATALOG_REFRESH_TIMER)
        learn(catalog, call);
    return rc;
}

static uint64_t hash_tenant(struct qf_str tenant)
{
    return qf_hash_bytes(tenant) | 1; /* never 0, which stands for all */
}

/* The snapshot is not younger by it, nor is the next listing of all later. */
qf_rc sg_catalog_refresh_tenant(struct sg_catalog *catalog, struct qf_str tenant,
                                const struct sg_store_call *call, struct qf_err *err)
{
    struct wish wish = { SG_CATALOG_REFRESH_NOW, hash_tenant(tenant) };
    struct sg_catalog_stats stats;
    bool mine, first;
    qf_rc rc;

    if (!sg_store_has_tokens(catalog->store))
        return sg_catalog_refresh(catalog, SG_CATALOG_REFRESH_NOW, call, err);
    qf_lock_take(catalog->lock);
    first = !catalog->snapshot;
    rc = first ? QF_OK : take_turn(catalog, &wish, call, &mine, err);
    stats = catalog->stats;
    qf_lock_drop(catalog->lock);
    if (first)
        return sg_catalog_refresh(catalog, SG_CATALOG_REFRESH_NOW, call, err);
    if (rc || !mine)
        return rc;
    stats.refreshes++;
    rc = refresh_tenant(catalog, tenant, call, &stats, err);
    stats.refresh_errors += rc != QF_OK;
    qf_lock_take(catalog->lock);
    catalog->stats = stats;
    if (!rc) {
        catalog->tenant_number = catalog->started;
        catalog->tenant_hash = wish.tenant_hash;
    }
    catalog->refreshing = false;
    qf_lock_wake_all(catalog->lock);
    qf_lock_drop(catalog->lock);
    return rc;
}

/* --- reading --- */

qf_rc sg_catalog_read(struct sg_catalog *catalog, const struct sg_catalog_query *query,
                      const struct sg_store_call *call, sg_catalog_read_fn *fn, void *ctx,
                      struct qf_err *err)
{
    qf_rc rc = QF_OK;

    for (int i = 0; i < READ_ATTEMPTS; i++) {
        QF_CLEANUP(sg_catalog_snapshot_dropp) struct sg_catalog_snapshot *snapshot = NULL;
        QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
        struct sg_catalog_answer answer;
        struct qf_err why = { 0 };
        bool mine;

        rc = refresh(catalog, i ? SG_CATALOG_REFRESH_ANEW : SG_CATALOG_REFRESH_DUE, call, &mine,
                     err);
        if (rc)
            return rc;
        snapshot = sg_catalog_snapshot(catalog);
        rc = sg_catalog_lookup(snapshot, query, arena, &answer, err);
        if (rc)
            return rc;
        rc = fn(ctx, &answer, &why);
        if (rc != QF_ENOTFOUND || i == READ_ATTEMPTS - 1)
            return rc ? qf_err_set(err, rc, "%s", why.msg) : QF_OK;
    }
    return rc;
}
