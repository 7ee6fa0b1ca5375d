/* copy.c - blobs from other keepers, and whether what is held is still what it was. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "ring/keeper/keeper_int.h"

/* --- fetching --- */

/* One blob of the slot, on its way into this keeper as if somebody put it. */
struct copying {
    struct kp_keeper *keeper;
    struct sg_keep_client *client;
    const struct sg_store_limit *limit;
    const struct rg_keep_query *query; /* slot, epoch */
    struct rg_held *held;
};

/* Part after part of what @url has, whose size and checksum are known. */
static bool copy_parts(const struct copying *c, const char *url, struct rg_keep_query *put)
{
    QF_CLEANUP(qf_freep) char *buf = qf_xmalloc(RG_KEEP_PART_BYTES);
    struct sg_keep_answer answer;
    struct kp_said said = { 0 };
    struct qf_err err = { 0 };

    do {
        uint64_t len = QF_MIN(put->size - put->from, (uint64_t)RG_KEEP_PART_BYTES), got = 0;
        struct sg_keep_range range = { .offset = put->from, .len = len, .buf = buf, .fd = -1 };

        if (len &&
            (sg_keep_get(c->client, url, put, &range, c->limit, &got, &answer, &err) || got != len))
            return false;
        kp_put(c->keeper, put, (struct qf_str){ buf, len }, &said);
        put->from += len;
    } while (said.status == 202);
    return said.status == 200 || said.status == 201;
}

static bool copy_from(struct copying *c, struct qf_str source, struct qf_str name)
{
    QF_CLEANUP(qf_freep) char *url = qf_xmemdup0(source.data, source.len);
    struct rg_keep_query put = *c->query;
    struct sg_keep_answer answer;
    struct qf_err err = { 0 };

    put.name = name;
    if (sg_keep_ask(c->client, url, "HEAD", RG_KEEP_BLOB, &put, QF_STR(""), c->limit, NULL, &answer,
                    &err) != QF_OK)
        return false;
    put.upload = true;
    put.size = answer.size;
    put.sum = answer.sum;
    if (getrandom(&put.upload_id, sizeof(put.upload_id), 0) != (ssize_t)sizeof(put.upload_id))
        put.upload_id = (uint64_t)qf_clock_mono_ns();
    if (!copy_parts(c, url, &put))
        return false;
    c->held->blobs++;
    c->held->bytes += put.size;
    return true;
}

static bool copy_one(struct copying *c, const struct rg_names *names, size_t i)
{
    if (kp_has(c->keeper, names->names[i]))
        return true;
    for (size_t j = 0; j < names->source_count; j++)
        if (sg_store_limit_check(c->limit, QF_STR("stream"), NULL) == QF_OK &&
            copy_from(c, names->sources[j], names->names[i]))
            return true;
    return false;
}

void kp_stream(struct kp_keeper *keeper, struct sg_keep_client *client,
               const struct rg_keep_query *query, const struct rg_names *names,
               const struct sg_store_limit *limit, struct rg_held *ret_held, struct kp_said *said)
{
    struct copying copying = {
        .keeper = keeper, .client = client, .limit = limit, .query = query, .held = ret_held
    };
    bool takes;

    *ret_held = (struct rg_held){ .incarnation = keeper->incarnation };
    *said = (struct kp_said){ .status = 200 };
    ret_held->missing = qf_xcalloc(names->count + 1, sizeof(*ret_held->missing));
    qf_lock_take(keeper->lock);
    takes = kp_takes(keeper, query, said);
    qf_lock_drop(keeper->lock);
    for (size_t i = 0; i < names->count && takes; i++)
        if (!copy_one(&copying, names, i))
            ret_held->missing[ret_held->missing_count++] = (uint32_t)i;
    qf_lock_take(keeper->lock);
    keeper->figures.streamed += ret_held->blobs;
    keeper->figures.streamed_bytes += ret_held->bytes;
    qf_lock_drop(keeper->lock);
}

/* --- scrubbing --- */

/* The sum of what is in @file; false: it cannot be read. */
static bool sum_file(const struct kp_file *file, struct rg_sum *ret_sum)
{
    struct sg_store_bytes bytes = { .fd = file->fd, .size = file->size };
    struct qf_err err = { 0 };

    return sg_keep_sum(&bytes, ret_sum, &err) == QF_OK;
}

/* Damaged: nobody shall get it, and repair shall find that it is missing. */
static void put_aside(struct kp_keeper *keeper, struct qf_str name, const struct rg_sum *sum)
{
    struct kp_entry *entry;

    qf_lock_take(keeper->lock);
    entry = kp_find(keeper, name);
    if (entry && memcmp(&entry->sum, sum, sizeof(*sum)) == 0) {
        kp_remove(keeper, entry);
        keeper->figures.damaged++;
    }
    qf_lock_drop(keeper->lock);
    QF_LOG_WARN("a blob is damaged on this disk: it is fetched again", QF_KV_SLICE("name", name));
}

static uint64_t scrub_one(struct kp_keeper *keeper, struct qf_str name)
{
    struct kp_said said = { 0 };
    struct kp_file file;
    struct rg_sum sum;

    kp_get(keeper, name, &file, &said);
    if (said.status != 200)
        return 0;
    if (!sum_file(&file, &sum) || memcmp(&sum, &file.sum, sizeof(sum)) != 0)
        put_aside(keeper, name, &file.sum);
    (void)close(file.fd);
    return file.size;
}

uint64_t kp_scrub(struct kp_keeper *keeper, uint64_t bytes)
{
    uint64_t read = 0;
    struct kp_blob blob;

    while (read < bytes) {
        if (!kp_blob_at(keeper, keeper->scrub_at, &blob)) {
            keeper->scrub_at = 0;
            break;
        }
        keeper->scrub_at++;
        if (blob.put_ms)
            read += scrub_one(keeper, blob.name);
    }
    qf_lock_take(keeper->lock);
    keeper->figures.scrubbed_bytes += read;
    qf_lock_drop(keeper->lock);
    return read;
}

/* The next one that somebody found damaged; its name lives as long as the keeper. False: there is none. */
static bool next_suspect(struct kp_keeper *keeper, struct qf_str *ret_name)
{
    bool found = false;

    qf_lock_take(keeper->lock);
    for (size_t i = 0; keeper->suspects && i < keeper->entries.count && !found; i++) {
        struct kp_entry *entry = &keeper->entries.items[i];

        found = entry->put_ms && entry->suspect;
        if (found)
            *ret_name = qf_str_from(entry->name);
    }
    qf_lock_drop(keeper->lock);
    return found;
}

void kp_check(struct kp_keeper *keeper)
{
    struct kp_entry *entry;
    struct qf_str name;

    while (next_suspect(keeper, &name)) {
        (void)scrub_one(keeper, name);
        qf_lock_take(keeper->lock);
        entry = kp_find(keeper, name);
        if (entry && entry->suspect) {
            entry->suspect = false;
            keeper->suspects--;
        }
        qf_lock_drop(keeper->lock);
    }
}
