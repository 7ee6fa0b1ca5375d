/* cache_heads.c - head inputs of works, fetched like segments and gone with their last holder. */
#include <stdio.h>
#include <xxhash.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"
#include "queryworker/cache/cache_int.h"
#include "queryworker/cache/head.h"

#define HEAD_SUFFIX ".head" /* of no use to a later process */

/* Whoever asks for the same gets the same: tenant, queue, generation, cut, shard, times and selector. */
static struct qw_id id_of_head(const struct qw_head_ask *ask)
{
    struct qf_str text = qw_head_ask_text(ask);
    XXH128_hash_t hash = XXH3_128bits(text.data, text.len);

    return (struct qw_id){ hash.high64, hash.low64 };
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
    struct qw_id id = id_of_head(ask);
    struct qw_segment *s = qw_cache_find(cache, id);
    char name[32 + sizeof(HEAD_SUFFIX)];

    if (s && s->head && (s->present || s->download)) {
        if (s->download)
            atomic_store(&s->download->cancel, false);
        qw_head_ask_free(ask);
        return s;
    }
    (void)snprintf(name, sizeof(name), "%016llx%016llx" HEAD_SUFFIX, (unsigned long long)id.high,
                   (unsigned long long)id.low);
    s = qw_cache_add(cache, id, qw_cache_join(cache->dir, name));
    s->head = true;
    if (start_head(cache, s, ask, head, err)) { /* takes @ask */
        qw_cache_drop(cache, s);
        return NULL;
    }
    return s;
}

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
    qw_cache_list(cache, hold);
}

void qw_cache_tidy(struct qw_cache *cache, struct qw_hold *hold)
{
    size_t kept = 0;

    for (size_t i = 0; i < hold->count; i++) {
        struct qw_segment *s = hold->segments[i];

        if (s->empty) {
            if (--s->pins == 0)
                qw_cache_remove_file(cache, s);
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
