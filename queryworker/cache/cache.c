/* cache.c - segments on the local disk and their open readers. */
#include "queryworker/cache/cache_int.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"
#include "base/sys/private_dir.h"
#include "segments/store/ring.h"

static void unlink_use(struct qw_cache *cache, struct qw_segment *s)
{
    *(s->newer ? &s->newer->older : &cache->newest) = s->older;
    *(s->older ? &s->older->newer : &cache->oldest) = s->newer;
    s->newer = s->older = NULL;
}

static void link_newest(struct qw_cache *cache, struct qw_segment *s)
{
    s->older = cache->newest;
    s->newer = NULL;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = s;
    cache->newest = s;
}

struct qw_segment *qw_cache_find(struct qw_cache *cache, struct qw_id id)
{
    struct qw_segment *s = cache->buckets[id.low % QW_CACHE_BUCKETS];

    while (s && (s->id.low != id.low || s->id.high != id.high || s->distrusted))
        s = s->chain;
    return s;
}

struct qw_segment *qw_cache_add(struct qw_cache *cache, struct qw_id id, char *path)
{
    struct qw_segment *s = qf_xcalloc(1, sizeof(*s));

    s->id = id;
    s->path = path;
    s->chain = cache->buckets[id.low % QW_CACHE_BUCKETS];
    cache->buckets[id.low % QW_CACHE_BUCKETS] = s;
    link_newest(cache, s);
    cache->stats.segments++;
    return s;
}

static void close_reader(struct qw_cache *cache, struct qw_segment *s)
{
    if (!s->reader)
        return;
    cache->stats.readers--;
    cache->stats.reader_bytes -= sg_reader_memory(s->reader);
    s->reader = sg_reader_free(s->reader);
}

void qw_cache_drop(struct qw_cache *cache, struct qw_segment *s)
{
    struct qw_segment **link = &cache->buckets[s->id.low % QW_CACHE_BUCKETS];

    assert(s->pins == 0 && !s->download);
    while (*link != s)
        link = &(*link)->chain;
    *link = s->chain;
    unlink_use(cache, s);
    close_reader(cache, s);
    cache->stats.segments--;
    cache->stats.bytes -= s->size_on_disk;
    (void)qw_partial_free(s->partial);
    free(s->store_name);
    free(s->etag);
    free(s->path);
    free(s);
}

void qw_cache_remove_file(struct qw_cache *cache, struct qw_segment *s)
{
    if (!s->in_place && s->present && !s->empty)
        (void)unlink(s->path);
    qw_cache_drop(cache, s);
}

static bool parse_file_name(const char *name, struct qw_id *ret_id)
{
    char check[32 + sizeof(QW_CACHE_SUFFIX)];
    unsigned long long high, low;

    if (strlen(name) != sizeof(check) - 1 || sscanf(name, "%16llx%16llx", &high, &low) != 2)
        return false;
    (void)snprintf(check, sizeof(check), "%016llx%016llx" QW_CACHE_SUFFIX, high, low);
    *ret_id = (struct qw_id){ high, low };
    return strcmp(check, name) == 0;
}

char *qw_cache_join(const char *dir, const char *name)
{
    struct qf_strbuf path = QF_STRBUF_INIT;

    qf_strbuf_printf(&path, "%s/%s", dir, name);
    return qf_strbuf_take(&path);
}

/* What is whole stays useful, what is not goes. Age is not known: any order will do. */
static qf_rc take_over(struct qw_cache *cache, struct qf_err *err)
{
    DIR *stream = opendir(cache->dir);
    const struct dirent *entry;

    if (!stream)
        return qf_err_set(err, QF_EIO, "cannot list %s: %s", cache->dir, strerror(errno));
    while ((entry = readdir(stream)) != NULL) {
        char *path = qw_cache_join(cache->dir, entry->d_name);
        struct qw_segment *s;
        struct stat info;
        struct qw_id id;

        if (entry->d_name[0] == '.') {
            free(path);
        } else if (parse_file_name(entry->d_name, &id) && stat(path, &info) == 0 &&
                   info.st_size > 0 && !qw_cache_find(cache, id)) {
            s = qw_cache_add(cache, id, path);
            s->present = true;
            s->size_on_disk = (uint64_t)info.st_size;
            cache->stats.bytes += s->size_on_disk;
        } else {
            (void)unlink(path);
            free(path);
        }
    }
    (void)closedir(stream);
    return QF_OK;
}

struct qw_cache *qw_cache_new(const struct qw_cache_options *options, struct qf_err *err)
{
    struct qw_cache *cache;
    struct qf_str url = qf_str_from(sg_store_url(options->store));

    if (qf_private_dir(options->dir, err))
        return NULL;
    cache = qf_xcalloc(1, sizeof(*cache));
    cache->options = *options;
    cache->dir = qf_xstrdup(options->dir);
    if (qf_str_starts(url, QF_STR("file://")))
        cache->local_root = qf_xmemdup0(url.data + 7, url.len - 7);
    if (options->hot_bytes_max)
        cache->hot = sg_hot_new(options->hot_bytes_max);
    if (options->result_bytes_max)
        cache->results = qw_results_new(options->result_bytes_max);
    if (take_over(cache, err))
        return qw_cache_free(cache);
    return cache;
}

struct qw_cache *qw_cache_free(struct qw_cache *cache)
{
    if (!cache)
        return NULL;
    assert(!cache->waiting && !cache->settled && cache->stats.downloads == 0);
    while (cache->newest)
        qw_cache_drop(cache, cache->newest);
    cache->hot = sg_hot_free(cache->hot);
    cache->results = qw_results_free(cache->results);
    free(cache->dir);
    free(cache->local_root);
    free(cache);
    return NULL;
}

static struct qw_id id_of(const struct pb_segment *segment)
{
    struct qf_strbuf text = QF_STRBUF_INIT;
    XXH128_hash_t hash;

    qf_strbuf_str(&text, segment->name);
    qf_strbuf_putc(&text, '\0');
    qf_strbuf_str(&text, segment->etag);
    qf_strbuf_printf(&text, "%c%llu %lld", '\0', (unsigned long long)segment->size_bytes,
                     (long long)segment->mtime_ms);
    hash = XXH3_128bits(text.data, text.len);
    qf_strbuf_done(&text);
    return (struct qw_id){ hash.high64, hash.low64 };
}

struct qw_download *qw_cache_download_new(struct qw_cache *cache, struct qw_segment *s,
                                          const char *name, const char *etag)
{
    struct qw_download *d = qf_xcalloc(1, sizeof(*d));

    d->message.kind = QW_MESSAGE_DOWNLOAD;
    d->mailbox = cache->options.mailbox;
    d->store = cache->options.store;
    d->segment = s;
    d->name = qf_xstrdup(name);
    d->etag_expected = qf_xstrdup(etag);
    d->path = qf_xstrdup(s->path);
    d->size_expected = s->size_announced;
    d->rule = cache->options.partial;
    d->hot = cache->hot;
    return d;
}

qf_rc qw_cache_download_start(struct qw_cache *cache, struct qw_download *d, uint64_t bytes,
                              struct qf_err *err)
{
    struct qw_segment *s = d->segment;
    qf_rc rc = QF_OK;

    if (!cache->options.make_room(cache->options.ctx, bytes))
        rc = qf_err_set(err, QF_ENOSPC, "the disk budget has no room for segment %s", d->name);
    else if (!qf_pool_submit(cache->options.pool, qw_download_run, d))
        rc = qf_err_set(err, QF_EBUSY, "too many downloads are waiting");
    if (rc) {
        qw_download_free(d);
        return rc;
    }
    s->download = d;
    s->size_on_disk += bytes;
    cache->stats.bytes += bytes;
    cache->stats.downloads++;
    return QF_OK;
}

static qf_rc start_download(struct qw_cache *cache, struct qw_segment *s,
                            const struct pb_segment *segment, struct qw_hold *hold,
                            struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *name = qf_xmemdup0(segment->name.data, segment->name.len);
    QF_CLEANUP(qf_freep)
    char *etag = qf_xmemdup0(segment->etag.data ? segment->etag.data : "", segment->etag.len);
    struct qw_download *d;

    if (!segment->size_bytes) /* nothing would bound what comes */
        return qf_err_set(err, QF_EINVAL, "segment %s is announced without a size", name);
    d = qw_cache_download_new(cache, s, name, etag);
    d->upto = hold->number;
    qw_parts_need(d, hold->need);
    return qw_cache_download_start(cache, d, segment->size_bytes, err);
}

/* A file of a folder, or a blob of the ring on this worker's own disk. */
static struct qw_segment *add_in_place(struct qw_cache *cache, struct qw_id id,
                                       const struct pb_segment *segment)
{
    QF_CLEANUP(qf_freep) char *file = qf_xmemdup0(segment->name.data, segment->name.len);
    const char *root = cache->local_root ? cache->local_root : "ring";
    struct qw_segment *s = qw_cache_add(cache, id, qw_cache_join(root, file));

    s->present = s->in_place = true;
    s->name = s->path + strlen(root) + 1;
    s->size_announced = segment->size_bytes;
    return s;
}

/* A blob that was on this worker's disk is not any more, and nobody reads it. */
static bool is_gone(const struct qw_cache *cache, const struct qw_segment *s)
{
    return s->in_place && !s->pins && !cache->local_root &&
           !sg_ring_is_local(cache->options.store, qf_str_from(s->name));
}

/* The entry for @segment, on disk or on its way. NULL on failure. */
static struct qw_segment *want(struct qw_cache *cache, const struct pb_segment *segment,
                               struct qw_hold *hold)
{
    struct qf_err *err = &hold->err;
    struct qw_id id = id_of(segment);
    struct qw_segment *s = qw_cache_find(cache, id);
    char name[32 + sizeof(QW_CACHE_SUFFIX)];

    if (s && is_gone(cache, s)) { /* from the others */
        qw_cache_drop(cache, s);
        s = NULL;
    }
    if (s && (s->present || s->download)) {
        if (s->download) /* somebody wants it again */
            atomic_store(&s->download->cancel, false);
        return s;
    }
    if (!sg_store_name_valid(segment->name)) {
        (void)qf_err_set(err, QF_EINVAL, "bad segment name");
        return NULL;
    }
    if (cache->local_root || sg_ring_is_local(cache->options.store, segment->name))
        return add_in_place(cache, id, segment);
    (void)snprintf(name, sizeof(name), "%016llx%016llx" QW_CACHE_SUFFIX,
                   (unsigned long long)id.high, (unsigned long long)id.low);
    s = qw_cache_add(cache, id, qw_cache_join(cache->dir, name));
    s->size_announced = segment->size_bytes;
    if (start_download(cache, s, segment, hold, err)) {
        qw_cache_drop(cache, s);
        return NULL;
    }
    return s;
}

static void unlist(struct qw_hold **list, struct qw_hold *hold)
{
    while (*list && *list != hold)
        list = &(*list)->next;
    if (*list)
        *list = hold->next;
}

void qw_cache_list(struct qw_cache *cache, struct qw_hold *hold)
{
    if (hold->rc)
        hold->missing = 0;
    if (hold->listed && !hold->missing) {
        unlist(&cache->waiting, hold);
        hold->listed = false;
    } else if (hold->missing && !hold->listed) {
        hold->next = cache->waiting;
        cache->waiting = hold;
        hold->listed = true;
    }
}

/* Pin @s for @hold, unless it does already. */
static void pin(struct qw_hold *hold, struct qw_segment *s)
{
    s->seen_by = hold->number;
    s->pins++;
    hold->segments[hold->count++] = s;
    if (s->present && !qw_segment_has_holes(s)) {
        hold->hits++;
        hold->in_place += s->in_place;
    } else {
        hold->misses++;
        hold->missing++;
    }
}

/* Those with holes that nobody is filling. */
static void fill_holes(struct qw_cache *cache, struct qw_hold *hold)
{
    for (size_t i = 0; i < hold->count && hold->rc == QF_OK; i++) {
        struct qw_segment *s = hold->segments[i];

        if (s->present && !s->download && qw_segment_has_holes(s))
            hold->rc = qw_parts_more(cache, s, &hold->err);
    }
    qw_cache_list(cache, hold);
}

struct qw_hold *qw_cache_acquire(struct qw_cache *cache, const struct pb_segment *segments,
                                 size_t count, struct qf_str spec, void *owner)
{
    struct qw_hold *hold = qf_xcalloc(1, sizeof(*hold));
    size_t repeated = 0;

    hold->owner = owner;
    hold->number = ++cache->last_hold;
    hold->need = cache->local_root ? NULL : qw_need_new(spec);
    hold->segments = qf_xcalloc(count ? count : 1, sizeof(struct qw_segment *));
    for (size_t i = 0; i < count && hold->rc == QF_OK; i++) {
        struct qw_segment *s = want(cache, &segments[i], hold);

        if (!s)
            hold->rc = hold->err.rc;
        else if (s->seen_by == hold->number)
            repeated++;
        else
            pin(hold, s);
    }
    /* A segment left out here would be an answer over a part of the data. */
    assert(hold->rc != QF_OK || hold->count + repeated == count);
    qf_metric_add(cache->options.metrics->cache_hits, 0, hold->hits);
    qf_metric_add(cache->options.metrics->cache_misses, 0, hold->misses);
    if (sg_store_is_ring(cache->options.store))
        qf_metric_add(cache->options.metrics->kept_hits, 0, hold->in_place);
    qw_cache_list(cache, hold);
    fill_holes(cache, hold);
    return hold;
}

/* Close readers nobody uses, the longest unused first, until the bounds hold. */
static void trim_readers(struct qw_cache *cache)
{
    struct qw_segment *s = cache->oldest, *newer;

    for (; s && (cache->stats.readers > cache->options.readers_max ||
                 cache->stats.reader_bytes > cache->options.reader_bytes_max);
         s = newer) {
        newer = s->newer;
        if (s->pins || !s->reader || s->download)
            continue;
        if (s->in_place)
            qw_cache_drop(cache, s); /* there is nothing else to remember of it */
        else
            close_reader(cache, s);
    }
}

void qw_cache_release(struct qw_cache *cache, struct qw_hold *hold)
{
    if (!hold)
        return;
    if (hold->listed) {
        unlist(&cache->waiting, hold);
        unlist(&cache->settled, hold);
    }
    for (size_t i = 0; i < hold->count; i++) {
        struct qw_segment *s = hold->segments[i];

        s->pins--;
        if (s->pins == 0 && s->download)
            atomic_store(&s->download->cancel, true);
        if (s->pins == 0 && (s->distrusted || s->head) && !s->download) {
            qw_cache_remove_file(cache, s);
            continue;
        }
        if (s->pins == 0 && s->in_place && !s->reader) {
            qw_cache_drop(cache, s);
            continue;
        }
        if (s->pins == 0)
            qw_parts_unpinned(s);
        unlink_use(cache, s);
        link_newest(cache, s);
    }
    qw_need_unref(hold->need);
    free(hold->segments);
    free(hold);
    trim_readers(cache);
}

bool qw_hold_has(const struct qw_hold *hold, const struct qw_segment *s)
{
    for (size_t i = 0; i < hold->count; i++)
        if (hold->segments[i] == s)
            return true;
    return false;
}

/* Does @d tell @hold something? It came too late for parts to be fetched for it, if @s still has
 * holes. */
static bool concerns(const struct qw_hold *hold, const struct qw_segment *s,
                     const struct qw_download *d)
{
    return qw_hold_has(hold, s) &&
           (hold->number <= d->upto || !s->present || !qw_segment_has_holes(s));
}

/* Tell everyone who waits for @s that it is there, or that it will not come. */
static void settle(struct qw_cache *cache, const struct qw_segment *s, const struct qw_download *d)
{
    struct qw_hold **link = &cache->waiting;

    while (*link) {
        struct qw_hold *hold = *link;

        if (!concerns(hold, s, d)) {
            link = &hold->next;
            continue;
        }
        hold->missing--;
        hold->download_bytes += d->size;
        if (d->rc && hold->rc == QF_OK) {
            hold->rc = d->rc;
            hold->err = d->err;
        }
        if (hold->missing && hold->rc == QF_OK) {
            link = &hold->next;
            continue;
        }
        hold->missing = 0;
        *link = hold->next;
        hold->next = cache->settled;
        cache->settled = hold;
    }
}

static void count_download(struct qw_metrics *m, const struct qw_download *d)
{
    qf_metric_observe(m->download_seconds, (double)d->duration_ns / 1e9);
    qf_metric_add(m->download_bytes, 0, (double)d->size);
    qf_metric_add(m->downloads,
                  d->rc == QF_OK          ? QW_DOWNLOAD_OK
                  : d->rc == QF_ECANCELED ? QW_DOWNLOAD_CANCELED
                                          : QW_DOWNLOAD_FAILED,
                  1);
    if (d->partial && d->size)
        qf_metric_inc(m->downloads_in_parts);
    if (d->map && d->rc == QF_OK)
        qf_metric_inc(m->maps_fetched);
    if (d->rc == QF_ENOSPC)
        qf_metric_inc(m->no_space);
}

/* Those that came while @d was under way and want other parts of @s than it fetched. */
static void go_on(struct qw_cache *cache, struct qw_segment *s, struct qw_download *d)
{
    if (!s->present || s->distrusted || !qw_segment_has_holes(s))
        return;
    d->err = (struct qf_err){ 0 };
    d->rc = qw_parts_more(cache, s, &d->err);
    d->upto = d->rc ? UINT64_MAX : d->upto;
    if (d->rc)
        settle(cache, s, d);
}

void qw_cache_dispatch(struct qw_cache *cache, struct qw_message *message)
{
    struct qw_download *d = (struct qw_download *)message;
    struct qw_segment *s = d->segment;

    s->download = NULL;
    cache->stats.downloads--;
    cache->stats.bytes -= s->size_on_disk;
    s->size_on_disk = 0;
    s->empty = d->empty;
    s->samples = d->samples;
    count_download(cache->options.metrics, d);
    qw_parts_back(cache, s, d);
    s->present = s->partial ? !s->distrusted : d->rc == QF_OK;
    s->size_on_disk = !s->present ? 0 : s->partial ? s->partial->bytes : d->size;
    cache->stats.bytes += s->size_on_disk;
    /* Canceled because the last one left, and then somebody came back: try again, elsewhere. */
    if (d->rc == QF_ECANCELED) {
        d->err = (struct qf_err){ 0 }; /* the store said canceled, which would end the query */
        d->rc = qf_err_set(&d->err, QF_EUNAVAILABLE, "the download of %s was canceled", d->name);
    }
    settle(cache, s, d);
    go_on(cache, s, d);
    if (!s->present || s->head) {
        s->distrusted |= !s->present; /* nobody new gets it; it goes with its last holder */
        if (s->pins == 0)
            qw_cache_remove_file(cache, s);
    }
    qw_download_free(d);
}

struct qw_hold *qw_cache_settled(struct qw_cache *cache)
{
    struct qw_hold *hold = cache->settled;

    if (hold) {
        cache->settled = hold->next;
        hold->next = NULL;
        hold->listed = false;
    }
    return hold;
}

const char *qw_segment_path(const struct qw_segment *segment)
{
    return segment->path;
}

const char *qw_segment_label(const struct qw_segment *segment)
{
    const char *slash = strrchr(segment->path, '/');

    if (segment->name)
        return segment->name;
    return slash ? slash + 1 : segment->path;
}

const char *qw_segment_in_place(const struct qw_segment *segment)
{
    return segment->name;
}

struct sg_hot *qw_cache_hot(const struct qw_cache *cache)
{
    return cache->hot;
}

struct qw_results *qw_cache_results(const struct qw_cache *cache)
{
    return cache->results;
}

bool qw_segment_is_head(const struct qw_segment *segment)
{
    return segment->head;
}

struct sg_store *qw_cache_store(const struct qw_cache *cache)
{
    return cache->options.store;
}

uint64_t qw_segment_size(const struct qw_segment *segment)
{
    return segment->size_announced;
}

struct sg_reader *qw_segment_reader(const struct qw_segment *segment)
{
    return segment->reader;
}

void qw_segment_give_reader(struct qw_cache *cache, struct qw_segment *segment,
                            struct sg_reader *reader)
{
    if (segment->reader || segment->distrusted) {
        (void)sg_reader_free(reader);
        return;
    }
    segment->reader = reader;
    cache->stats.readers++;
    cache->stats.reader_bytes += sg_reader_memory(reader);
}

bool qw_segment_distrust(struct qw_cache *cache, struct qw_segment *segment)
{
    if (!segment->in_place && segment->present && !segment->distrusted) {
        (void)unlink(segment->path); /* now: a fresh copy will have the same name */
        cache->stats.bytes -= segment->size_on_disk;
        segment->size_on_disk = 0;
        segment->present = false;
    }
    segment->distrusted = true;
    if (!segment->in_place || cache->local_root)
        return !segment->in_place;
    sg_ring_suspect_local(cache->options.store, qf_str_from(segment->name));
    return true; /* others have it, too */
}

uint64_t qw_cache_evict(struct qw_cache *cache)
{
    for (struct qw_segment *s = cache->oldest; s; s = s->newer) {
        uint64_t bytes = s->size_on_disk;

        if (s->pins || s->download || s->in_place || !s->present)
            continue;
        qw_cache_remove_file(cache, s);
        return bytes ? bytes : 1;
    }
    return 0;
}

struct qw_cache_stats qw_cache_stats(const struct qw_cache *cache)
{
    struct qw_cache_stats stats = cache->stats;

    if (cache->hot)
        stats.hot = sg_hot_stats(cache->hot);
    if (cache->results)
        stats.results = qw_results_stats(cache->results);
    return stats;
}
