/* keeper.c - what is held, what may be said, what goes. */
#include "ring/keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "ring/keeper/keeper_int.h"
#include "segments/store/beneath.h"

void kp_say(struct kp_said *said, int status, const char *format, ...)
{
    va_list args;

    said->status = status;
    va_start(args, format);
    (void)vsnprintf(said->text, sizeof(said->text), format, args);
    va_end(args);
}

struct kp_life kp_life(struct kp_keeper *keeper)
{
    struct kp_life life;

    qf_lock_take(keeper->lock);
    life = (struct kp_life){ keeper->incarnation, keeper->keep.told };
    qf_lock_drop(keeper->lock);
    return life;
}

/* --- what may be said --- */

/* Epochs that could not be synced are written first, as a new file: there may be room for them by now. */
static bool may_speak(struct kp_keeper *keeper)
{
    return !keeper->failed || kp_save_epochs(keeper);
}

bool kp_takes(struct kp_keeper *keeper, const struct rg_keep_query *query, struct kp_said *said)
{
    uint64_t before = keeper->keep.epochs[query->slot];

    if (!may_speak(keeper)) {
        kp_say(said, 500,
               "the disk failed: this keeper says nothing until its epochs are written\n");
        return false;
    }
    if (rg_keep_takes(&keeper->keep, query->slot, query->epoch)) {
        if (keeper->keep.epochs[query->slot] == before || kp_save_epochs(keeper))
            return true;
        kp_say(said, 500, "the disk failed\n");
        return false;
    }
    keeper->figures.refused++;
    said->epoch = before;
    if (!keeper->keep.told)
        kp_say(said, 412, "this disk is new: it takes nothing before it is told the epochs\n");
    else
        kp_say(said, 409, "a later epoch of slot %" PRIu32 " is known: %" PRIu64 "\n", query->slot,
               before);
    return false;
}

void kp_tell(struct kp_keeper *keeper, const uint64_t *epochs, uint32_t count, struct kp_said *said)
{
    kp_say(said, 200, "ok\n");
    qf_lock_take(keeper->lock);
    if (count != keeper->keep.slots)
        kp_say(said, 400, "%" PRIu32 " slots, this keeper has %" PRIu32 "\n", count,
               keeper->keep.slots);
    else if (!may_speak(keeper) || (rg_keep_tell(&keeper->keep, epochs) && !kp_save_epochs(keeper)))
        kp_say(said, 500, "the disk failed\n");
    qf_lock_drop(keeper->lock);
}

bool kp_has_room(const struct kp_keeper *keeper, uint64_t bytes)
{
    struct statvfs vfs;
    uint64_t left;

    if (fstatvfs(keeper->root, &vfs) != 0)
        return false;
    left = (uint64_t)vfs.f_bavail * vfs.f_frsize;
    return left >= keeper->options.reserve_bytes && left - keeper->options.reserve_bytes >= bytes;
}

/* --- what is held --- */

void kp_blob_path(struct qf_strbuf *buf, uint32_t slot, struct qf_str name,
                  const struct rg_sum *sum)
{
    char text[RG_SUM_TEXT + 1];

    rg_sum_print(sum, text);
    qf_strbuf_printf(buf, "blobs/%04" PRIx32 "/%.*s~%s", slot, QF_STR_ARG(name), text);
}

static struct kp_entry *find_any(struct kp_keeper *keeper, struct qf_str name)
{
    const uint64_t *place = qf_map_get(&keeper->places, name);

    return place ? &keeper->entries.items[*place] : NULL;
}

struct kp_entry *kp_find(struct kp_keeper *keeper, struct qf_str name)
{
    struct kp_entry *entry = find_any(keeper, name);

    return entry && entry->put_ms ? entry : NULL;
}

void kp_add(struct kp_keeper *keeper, struct qf_str name, uint32_t slot, uint64_t size,
            const struct rg_sum *sum, int64_t now_ms)
{
    struct kp_entry *entry = find_any(keeper, name);

    if (!entry) {
        struct kp_entry fresh = { .name = qf_xmemdup0(name.data, name.len) };

        (void)qf_map_put(&keeper->places, (struct qf_str){ fresh.name, name.len },
                         keeper->entries.count, NULL);
        QF_VEC_PUSH(&keeper->entries, fresh);
        entry = &keeper->entries.items[keeper->entries.count - 1];
    }
    entry->slot = slot;
    entry->size = size;
    entry->sum = *sum;
    entry->put_ms = now_ms;
    keeper->figures.blobs++;
    keeper->figures.bytes += size;
}

void kp_remove(struct kp_keeper *keeper, struct kp_entry *entry)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;

    kp_blob_path(&path, entry->slot, qf_str_from(entry->name), &entry->sum);
    if (unlinkat(keeper->root, qf_strbuf_cstr(&path), 0) != 0 && errno != ENOENT)
        QF_LOG_WARN("a blob cannot be removed", QF_KV_STR("path", qf_strbuf_cstr(&path)),
                    QF_KV_STR("error", strerror(errno)));
    entry->put_ms = 0;
    keeper->suspects -= entry->suspect;
    entry->suspect = false;
    keeper->figures.blobs--;
    keeper->figures.bytes -= entry->size;
}

/* The file of a blob; -1: it is not held. */
static int open_blob(struct kp_keeper *keeper, struct qf_str name, struct kp_file *file)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    struct kp_entry *entry;
    int fd = -1;

    qf_lock_take(keeper->lock);
    entry = kp_find(keeper, name);
    if (entry) {
        file->size = entry->size;
        file->sum = entry->sum;
        keeper->heat[entry->slot]++;
        kp_blob_path(&path, entry->slot, name, &entry->sum);
        fd = sg_store_open_beneath(keeper->root, qf_strbuf_cstr(&path), O_RDONLY);
        if (fd < 0) /* somebody removed it */
            kp_remove(keeper, entry);
    }
    qf_lock_drop(keeper->lock);
    return fd;
}

void kp_get(struct kp_keeper *keeper, struct qf_str name, struct kp_file *ret_file,
            struct kp_said *said)
{
    ret_file->fd = open_blob(keeper, name, ret_file);
    kp_say(said, ret_file->fd >= 0 ? 200 : 404,
           ret_file->fd >= 0 ? "ok\n" : "there is no such blob here\n");
}

void kp_heat(struct kp_keeper *keeper, int64_t now_ms, uint64_t ret_heat[RG_SLOTS])
{
    qf_lock_take(keeper->lock);
    if (!keeper->heat_ms)
        keeper->heat_ms = now_ms;
    for (; now_ms - keeper->heat_ms >= KP_HEAT_MS; keeper->heat_ms += KP_HEAT_MS)
        for (uint32_t i = 0; i < RG_SLOTS; i++)
            keeper->heat[i] /= 2;
    memcpy(ret_heat, keeper->heat, sizeof(keeper->heat));
    qf_lock_drop(keeper->lock);
}

bool kp_has(struct kp_keeper *keeper, struct qf_str name)
{
    bool has;

    qf_lock_take(keeper->lock);
    has = kp_find(keeper, name) != NULL;
    qf_lock_drop(keeper->lock);
    return has;
}

bool kp_trusts(struct kp_keeper *keeper, struct qf_str name)
{
    const struct kp_entry *entry;
    bool trusts;

    qf_lock_take(keeper->lock);
    entry = kp_find(keeper, name);
    trusts = entry && !entry->suspect;
    qf_lock_drop(keeper->lock);
    return trusts;
}

void kp_suspect(struct kp_keeper *keeper, struct qf_str name)
{
    struct kp_entry *entry;

    qf_lock_take(keeper->lock);
    entry = kp_find(keeper, name);
    if (entry && !entry->suspect) {
        entry->suspect = true;
        keeper->suspects++;
    }
    qf_lock_drop(keeper->lock);
}

void kp_delete(struct kp_keeper *keeper, const struct rg_keep_query *query, struct kp_said *said)
{
    struct kp_entry *entry;

    kp_say(said, 200, "ok\n");
    qf_lock_take(keeper->lock);
    entry = kp_find(keeper, query->name);
    if (kp_takes(keeper, query, said) && entry) {
        kp_remove(keeper, entry);
        keeper->figures.dropped++;
    }
    qf_lock_drop(keeper->lock);
}

void kp_hold(struct kp_keeper *keeper, const struct rg_keep_query *query,
             const struct rg_names *names, struct rg_held *ret_held, struct kp_said *said)
{
    *ret_held = (struct rg_held){ .incarnation = keeper->incarnation };
    kp_say(said, 200, "ok\n");
    ret_held->missing = qf_xcalloc(names->count + 1, sizeof(*ret_held->missing));
    qf_lock_take(keeper->lock);
    if (kp_takes(keeper, query, said))
        for (size_t i = 0; i < names->count; i++)
            if (!kp_find(keeper, names->names[i]))
                ret_held->missing[ret_held->missing_count++] = (uint32_t)i;
    qf_lock_drop(keeper->lock);
}

/* --- what goes --- */

static bool keep_name(void *ctx, const struct sg_store_object *object)
{
    QF_VEC(char *) *names = ctx;

    QF_VEC_PUSH(names, qf_xmemdup0(object->name.data, object->name.len));
    return true;
}

/* Documents of a slot. False: some could not be removed. */
static bool clean_docs(struct kp_keeper *keeper, uint32_t slot)
{
    QF_VEC(char *) names = { 0 };
    struct qf_err err = { 0 };
    char prefix[8];
    qf_rc rc;

    (void)snprintf(prefix, sizeof(prefix), "%04" PRIx32 "/", slot);
    rc =
        sg_store_list(keeper->docs, qf_str_from(prefix), QF_STR(""), NULL, keep_name, &names, &err);
    for (size_t i = 0; i < names.count; i++) {
        if (rc == QF_OK)
            rc = sg_store_delete(keeper->docs, qf_str_from(names.items[i]), NULL, &err);
        free(names.items[i]);
    }
    QF_VEC_DONE(&names);
    return rc == QF_OK;
}

void kp_clean(struct kp_keeper *keeper, const struct rg_keep_query *query, struct rg_held *ret_held,
              struct kp_said *said)
{
    *ret_held = (struct rg_held){ .incarnation = keeper->incarnation };
    kp_say(said, 200, "ok\n");
    qf_lock_take(keeper->doc_lock);
    qf_lock_take(keeper->lock);
    if (!rg_keep_cleans(&keeper->keep, query->slot, query->epoch)) {
        said->epoch = keeper->keep.epochs[query->slot];
        kp_say(said, 409, "a later epoch of slot %" PRIu32 " is known: %" PRIu64 "\n", query->slot,
               said->epoch);
    }
    for (size_t i = 0; i < keeper->entries.count && said->status == 200; i++) {
        struct kp_entry *entry = &keeper->entries.items[i];

        if (!entry->put_ms || entry->slot != query->slot)
            continue;
        ret_held->blobs++;
        ret_held->bytes += entry->size;
        kp_remove(keeper, entry);
    }
    keeper->figures.dropped += ret_held->blobs;
    qf_lock_drop(keeper->lock);
    if (said->status == 200 && !clean_docs(keeper, query->slot))
        kp_say(said, 500, "documents could not be removed\n");
    kp_docs_changed(keeper, query->slot);
    qf_lock_drop(keeper->doc_lock);
}

bool kp_blob_at(struct kp_keeper *keeper, size_t at, struct kp_blob *ret_blob)
{
    bool there;

    qf_lock_take(keeper->lock);
    there = at < keeper->entries.count;
    if (there) {
        const struct kp_entry *entry = &keeper->entries.items[at];

        *ret_blob = (struct kp_blob){ .name = qf_str_from(entry->name),
                                      .slot = entry->slot,
                                      .size = entry->size,
                                      .put_ms = entry->put_ms };
    }
    qf_lock_drop(keeper->lock);
    return there;
}

bool kp_drop(struct kp_keeper *keeper, struct qf_str name, int64_t asked_ms, int64_t grace_ms)
{
    struct kp_entry *entry;
    bool goes;

    qf_lock_take(keeper->lock);
    entry = kp_find(keeper, name);
    goes = entry && rg_keep_drops(entry->put_ms, asked_ms, qf_clock_mono_ms(), grace_ms);
    if (goes) {
        kp_remove(keeper, entry);
        keeper->figures.dropped++;
    }
    qf_lock_drop(keeper->lock);
    return goes;
}

struct kp_figures kp_figures(struct kp_keeper *keeper)
{
    struct kp_figures figures;
    struct statvfs vfs;
    uint64_t left = 0;

    qf_lock_take(keeper->lock);
    figures = keeper->figures;
    for (uint32_t i = 0; i < RG_SLOTS; i++)
        figures.documents += keeper->digests[i].known ? keeper->digests[i].count : 0;
    qf_lock_drop(keeper->lock);
    if (fstatvfs(keeper->root, &vfs) == 0)
        left = (uint64_t)vfs.f_bavail * vfs.f_frsize;
    figures.free_bytes =
        left > keeper->options.reserve_bytes ? left - keeper->options.reserve_bytes : 0;
    return figures;
}
