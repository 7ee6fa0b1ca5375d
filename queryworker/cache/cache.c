/* cache.c - segments on the local disk and their open readers. */
#include "queryworker/cache/cache.h"

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
#include "queryworker/cache/download.h"
#include "queryworker/cache/head.h"

#define BUCKETS 4096 /* power of two; chains stay short up to tens of thousands of segments */
#define FILE_SUFFIX ".parquet"
#define HEAD_SUFFIX ".head" /* of no use to a later process */

struct id {
    uint64_t high, low; /* XXH3-128 of name, size and version */
};

struct qw_segment {
    struct id id;
    struct qw_segment *chain;
    struct qw_segment *newer, *older; /* by last use */
    char *path;
    const char *name; /* in the store, if it is read in place; the end of @path */
    uint64_t size_announced;
    uint64_t size_on_disk; /* counted in the budget; 0 for a local store */
    unsigned pins;
    bool in_place;    /* a file of a local store: never removed */
    bool present;     /* the file is whole */
    bool distrusted;  /* goes as soon as nobody holds it */
    bool head, empty; /* a head input: goes likewise; it has nothing, and no file */
    uint64_t samples; /* of a head input */
    struct sg_reader *reader;
    struct qw_download *download;
    uint64_t seen_by; /* number of the last hold that listed it: a work may name one twice */
};

struct qw_cache {
    struct sg_hot *hot;
    struct qw_results *results;
    struct qw_cache_options options;
    char *dir, *local_root; /* local_root: NULL unless the store is a folder */
    struct qw_segment *buckets[BUCKETS];
    struct qw_segment *newest, *oldest;
    struct qw_hold *waiting; /* holds with missing segments */
    struct qw_hold *settled;
    struct qw_cache_stats stats;
    uint64_t last_hold;
};

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

static struct qw_segment *find(struct qw_cache *cache, struct id id)
{
    struct qw_segment *s = cache->buckets[id.low % BUCKETS];

    while (s && (s->id.low != id.low || s->id.high != id.high || s->distrusted))
        s = s->chain;
    return s;
}

static struct qw_segment *add(struct qw_cache *cache, struct id id, char *path)
{
    struct qw_segment *s = qf_xcalloc(1, sizeof(*s));

    s->id = id;
    s->path = path;
    s->chain = cache->buckets[id.low % BUCKETS];
    cache->buckets[id.low % BUCKETS] = s;
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

/* Forget a segment nobody holds; its file stays. */
static void drop(struct qw_cache *cache, struct qw_segment *s)
{
    struct qw_segment **link = &cache->buckets[s->id.low % BUCKETS];

    assert(s->pins == 0 && !s->download);
    while (*link != s)
        link = &(*link)->chain;
    *link = s->chain;
    unlink_use(cache, s);
    close_reader(cache, s);
    cache->stats.segments--;
    cache->stats.bytes -= s->size_on_disk;
    free(s->path);
    free(s);
}

static void remove_file(struct qw_cache *cache, struct qw_segment *s)
{
    if (!s->in_place && s->present && !s->empty)
        (void)unlink(s->path);
    drop(cache, s);
}

static bool parse_file_name(const char *name, struct id *ret_id)
{
    char check[32 + sizeof(FILE_SUFFIX)];
    unsigned long long high, low;

    if (strlen(name) != sizeof(check) - 1 || sscanf(name, "%16llx%16llx", &high, &low) != 2)
        return false;
    (void)snprintf(check, sizeof(check), "%016llx%016llx" FILE_SUFFIX, high, low);
    *ret_id = (struct id){ high, low };
    return strcmp(check, name) == 0;
}

static char *join(const char *dir, const char *name)
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
        char *path = join(cache->dir, entry->d_name);
        struct qw_segment *s;
        struct stat info;
        struct id id;

        if (entry->d_name[0] == '.') {
            free(path);
        } else if (parse_file_name(entry->d_name, &id) && stat(path, &info) == 0 &&
                   info.st_size > 0 && !find(cache, id)) {
            s = add(cache, id, path);
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
        drop(cache, cache->newest);
    cache->hot = sg_hot_free(cache->hot);
    cache->results = qw_results_free(cache->results);
    free(cache->dir);
    free(cache->local_root);
    free(cache);
    return NULL;
}

static struct id id_of(const struct pb_segment *segment)
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
    return (struct id){ hash.high64, hash.low64 };
}

static qf_rc start_download(struct qw_cache *cache, struct qw_segment *s,
                            const struct pb_segment *segment, struct qf_err *err)
{
    struct qw_download *d;

    if (!segment->size_bytes) /* nothing would bound what comes */
        return qf_err_set(err, QF_EINVAL, "segment %.*s is announced without a size",
                          QF_STR_ARG(segment->name));
    if (!cache->options.make_room(cache->options.ctx, segment->size_bytes))
        return qf_err_set(err, QF_ENOSPC, "the disk budget has no room for segment %.*s",
                          QF_STR_ARG(segment->name));
    d = qf_xcalloc(1, sizeof(*d));
    d->message.kind = QW_MESSAGE_DOWNLOAD;
    d->mailbox = cache->options.mailbox;
    d->store = cache->options.store;
    d->segment = s;
    d->name = qf_xmemdup0(segment->name.data, segment->name.len);
    d->path = qf_xstrdup(s->path);
    d->size_expected = segment->size_bytes;
    d->etag_expected = qf_xmemdup0(segment->etag.data ? segment->etag.data : "", segment->etag.len);
    if (!qf_pool_submit(cache->options.pool, qw_download_run, d)) {
        qw_download_free(d);
        return qf_err_set(err, QF_EBUSY, "too many downloads are waiting");
    }
    s->download = d;
    s->size_on_disk = segment->size_bytes;
    cache->stats.bytes += s->size_on_disk;
    cache->stats.downloads++;
    return QF_OK;
}

/* The entry for @segment, on disk or on its way. NULL on failure. */
static struct qw_segment *want(struct qw_cache *cache, const struct pb_segment *segment,
                               struct qf_err *err)
{
    struct id id = id_of(segment);
    struct qw_segment *s = find(cache, id);
    char name[32 + sizeof(FILE_SUFFIX)];

    if (s && (s->present || s->download)) {
        if (s->download) /* somebody wants it again */
            atomic_store(&s->download->cancel, false);
        return s;
    }
    if (!sg_store_name_valid(segment->name)) {
        (void)qf_err_set(err, QF_EINVAL, "bad segment name");
        return NULL;
    }
    if (cache->local_root) {
        char *file = qf_xmemdup0(segment->name.data, segment->name.len);

        s = add(cache, id, join(cache->local_root, file));
        free(file);
        s->present = s->in_place = true;
        s->name = s->path + strlen(cache->local_root) + 1;
        s->size_announced = segment->size_bytes;
        return s;
    }
    (void)snprintf(name, sizeof(name), "%016llx%016llx" FILE_SUFFIX, (unsigned long long)id.high,
                   (unsigned long long)id.low);
    s = add(cache, id, join(cache->dir, name));
    s->size_announced = segment->size_bytes;
    if (start_download(cache, s, segment, err)) {
        drop(cache, s);
        return NULL;
    }
    return s;
}

struct qw_hold *qw_cache_acquire(struct qw_cache *cache, const struct pb_segment *segments,
                                 size_t count, void *owner)
{
    struct qw_hold *hold = qf_xcalloc(1, sizeof(*hold));
    uint64_t number = ++cache->last_hold;
    size_t repeated = 0;

    hold->owner = owner;
    hold->segments = qf_xcalloc(count ? count : 1, sizeof(struct qw_segment *));
    for (size_t i = 0; i < count && hold->rc == QF_OK; i++) {
        struct qw_segment *s = want(cache, &segments[i], &hold->err);

        if (!s) {
            hold->rc = hold->err.rc;
            break;
        }
        if (s->seen_by == number) {
            repeated++;
            continue;
        }
        s->seen_by = number;
        s->pins++;
        hold->segments[hold->count++] = s;
        if (s->present) {
            hold->hits++;
        } else {
            hold->misses++;
            hold->missing++;
        }
    }
    /* A segment left out here would be an answer over a part of the data. */
    assert(hold->rc != QF_OK || hold->count + repeated == count);
    if (hold->rc)
        hold->missing = 0;
    qf_metric_add(cache->options.metrics->cache_hits, 0, hold->hits);
    qf_metric_add(cache->options.metrics->cache_misses, 0, hold->misses);
    if (hold->missing) {
        hold->next = cache->waiting;
        cache->waiting = hold;
        hold->listed = true;
    }
    return hold;
}

/* --- head inputs --- */

/* Whoever asks for the same gets the same: tenant, queue, generation, cut, shard, times and selector. */
static struct id id_of_head(const struct qw_head_ask *ask)
{
    struct qf_str text = qw_head_ask_text(ask);
    XXH128_hash_t hash = XXH3_128bits(text.data, text.len);

    return (struct id){ hash.high64, hash.low64 };
}

static qf_rc start_head(struct qw_cache *cache, struct qw_segment *s, struct qw_head_ask *ask,
                        const struct pb_head *head, struct qf_err *err)
{
    struct qf_strbuf name = QF_STRBUF_INIT;
    struct qw_download *d = qf_xcalloc(1, sizeof(*d));

    qf_strbuf_printf(&name, "the head of partition %u", (unsigned)head->partition);
    d->message.kind = QW_MESSAGE_DOWNLOAD;
    d->mailbox = cache->options.mailbox;
    d->heads = cache->options.heads;
    d->head = ask;
    d->segment = s;
    d->name = qf_strbuf_take(&name);
    d->path = qf_xstrdup(s->path);
    if (!cache->options.make_room(cache->options.ctx, QW_HEAD_BYTES_GUESS)) {
        qw_download_free(d);
        return qf_err_set(err, QF_ENOSPC, "the disk budget has no room for head inputs");
    }
    if (!qf_pool_submit(cache->options.pool, qw_download_run, d)) {
        qw_download_free(d);
        return qf_err_set(err, QF_EBUSY, "too many downloads are waiting");
    }
    s->download = d;
    s->size_on_disk = QW_HEAD_BYTES_GUESS;
    cache->stats.bytes += s->size_on_disk;
    cache->stats.downloads++;
    return QF_OK;
}

static struct qw_segment *want_head(struct qw_cache *cache, struct qf_str tenant,
                                    const struct pb_heads *heads, const struct pb_head *head,
                                    struct qf_err *err)
{
    struct qw_head_ask *ask = qw_head_ask_new(tenant, heads, head);
    struct id id = id_of_head(ask);
    struct qw_segment *s = find(cache, id);
    char name[32 + sizeof(HEAD_SUFFIX)];

    if (s && s->head && (s->present || s->download)) {
        if (s->download)
            atomic_store(&s->download->cancel, false);
        qw_head_ask_free(ask);
        return s;
    }
    (void)snprintf(name, sizeof(name), "%016llx%016llx" HEAD_SUFFIX, (unsigned long long)id.high,
                   (unsigned long long)id.low);
    s = add(cache, id, join(cache->dir, name));
    s->head = true;
    if (start_head(cache, s, ask, head, err)) { /* takes @ask */
        drop(cache, s);
        return NULL;
    }
    return s;
}

static void unlist(struct qw_hold **list, struct qw_hold *hold);

void qw_cache_acquire_heads(struct qw_cache *cache, struct qw_hold *hold, struct qf_str tenant,
                            const struct pb_heads *heads)
{
    uint64_t number = ++cache->last_hold;

    if (hold->rc || !heads->count)
        return;
    hold->segments =
        qf_xrealloc(hold->segments, (hold->count + heads->count) * sizeof(hold->segments[0]));
    for (size_t i = 0; i < heads->count && hold->rc == QF_OK; i++) {
        struct qw_segment *s = want_head(cache, tenant, heads, &heads->inputs[i], &hold->err);

        if (!s) {
            hold->rc = hold->err.rc;
            break;
        }
        if (s->seen_by == number)
            continue;
        s->seen_by = number;
        s->pins++;
        hold->segments[hold->count++] = s;
        hold->missing += !s->present;
    }
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

void qw_cache_tidy(struct qw_cache *cache, struct qw_hold *hold)
{
    size_t kept = 0;

    for (size_t i = 0; i < hold->count; i++) {
        struct qw_segment *s = hold->segments[i];

        if (s->empty) {
            if (--s->pins == 0)
                remove_file(cache, s);
            continue;
        }
        if (s->head) {
            hold->head_samples += s->samples;
            hold->head_bytes += s->size_on_disk;
        }
        hold->segments[kept++] = s;
    }
    hold->count = kept;
}

static void unlist(struct qw_hold **list, struct qw_hold *hold)
{
    while (*list && *list != hold)
        list = &(*list)->next;
    if (*list)
        *list = hold->next;
}

/* Close readers nobody uses, the longest unused first, until the bounds hold. */
static void trim_readers(struct qw_cache *cache)
{
    struct qw_segment *s = cache->oldest, *newer;

    for (; s && (cache->stats.readers > cache->options.readers_max ||
                 cache->stats.reader_bytes > cache->options.reader_bytes_max);
         s = newer) {
        newer = s->newer;
        if (s->pins || !s->reader)
            continue;
        if (s->in_place)
            drop(cache, s); /* there is nothing else to remember of it */
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
            remove_file(cache, s);
            continue;
        }
        if (s->pins == 0 && s->in_place && !s->reader) {
            drop(cache, s);
            continue;
        }
        unlink_use(cache, s);
        link_newest(cache, s);
    }
    free(hold->segments);
    free(hold);
    trim_readers(cache);
}

static bool holds(const struct qw_hold *hold, const struct qw_segment *s)
{
    for (size_t i = 0; i < hold->count; i++)
        if (hold->segments[i] == s)
            return true;
    return false;
}

/* Tell everyone who waits for @s that it is there, or that it will not come. */
static void settle(struct qw_cache *cache, const struct qw_segment *s, const struct qw_download *d)
{
    struct qw_hold **link = &cache->waiting;

    while (*link) {
        struct qw_hold *hold = *link;

        if (!holds(hold, s)) {
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

void qw_cache_dispatch(struct qw_cache *cache, struct qw_message *message)
{
    struct qw_download *d = (struct qw_download *)message;
    struct qw_segment *s = d->segment;
    struct qw_metrics *m = cache->options.metrics;

    s->download = NULL;
    cache->stats.downloads--;
    cache->stats.bytes -= s->size_on_disk;
    s->size_on_disk = d->rc == QF_OK ? d->size : 0;
    cache->stats.bytes += s->size_on_disk;
    s->present = d->rc == QF_OK;
    s->empty = d->empty;
    s->samples = d->samples;
    qf_metric_observe(m->download_seconds, (double)d->duration_ns / 1e9);
    qf_metric_add(m->download_bytes, 0, (double)d->size);
    qf_metric_add(m->downloads,
                  d->rc == QF_OK          ? QW_DOWNLOAD_OK
                  : d->rc == QF_ECANCELED ? QW_DOWNLOAD_CANCELED
                                          : QW_DOWNLOAD_FAILED,
                  1);
    if (d->rc == QF_ENOSPC)
        qf_metric_inc(m->no_space);
    /* Canceled because the last one left, and then somebody came back: try again, elsewhere. */
    if (d->rc == QF_ECANCELED) {
        d->err = (struct qf_err){ 0 }; /* the store said canceled, which would end the query */
        d->rc = qf_err_set(&d->err, QF_EUNAVAILABLE, "the download of %s was canceled", d->name);
    }
    settle(cache, s, d);
    if (!s->present || s->head) {
        s->distrusted |= !s->present; /* nobody new gets it; it goes with its last holder */
        if (s->pins == 0)
            remove_file(cache, s);
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
    return !segment->in_place;
}

uint64_t qw_cache_evict(struct qw_cache *cache)
{
    for (struct qw_segment *s = cache->oldest; s; s = s->newer) {
        uint64_t bytes = s->size_on_disk;

        if (s->pins || s->download || s->in_place || !s->present)
            continue;
        remove_file(cache, s);
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
