/* put.c - uploads: part by part into tmp/, verified, synced, named. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "ring/keeper/keeper_int.h"
#include "segments/store/beneath.h"

static void upload_path(uint64_t id, char out[40])
{
    (void)snprintf(out, 40, "tmp/upload-%016" PRIx64, id);
}

/* With the lock, or of an upload that is busy with the caller. */
static void drop_upload(struct kp_keeper *keeper, struct kp_upload *upload, bool unlinks)
{
    char path[40];

    upload_path(upload->id, path);
    if (unlinks)
        (void)unlinkat(keeper->root, path, 0);
    (void)close(upload->fd);
    XXH3_freeState(upload->state);
    free(upload->name);
    *upload = (struct kp_upload){ 0 };
    keeper->figures.uploads--;
}

void kp_uploads_done(struct kp_keeper *keeper)
{
    for (uint32_t i = 0; keeper->uploads && i < keeper->options.uploads_max; i++)
        if (keeper->uploads[i].id)
            drop_upload(keeper, &keeper->uploads[i], true);
    free(keeper->uploads);
}

/* A place that is free, or whose upload nobody goes on with. */
static struct kp_upload *find_place(struct kp_keeper *keeper, int64_t now_ms)
{
    for (uint32_t i = 0; i < keeper->options.uploads_max; i++) {
        struct kp_upload *upload = &keeper->uploads[i];

        if (upload->id && !upload->busy && now_ms - upload->touched_ms > RG_KEEP_UPLOAD_MS)
            drop_upload(keeper, upload, true);
        if (!upload->id)
            return upload;
    }
    return NULL;
}

static struct kp_upload *begin_upload(struct kp_keeper *keeper, const struct rg_keep_query *query,
                                      struct kp_said *said)
{
    struct kp_upload *upload = find_place(keeper, qf_clock_mono_ms());
    char path[40];
    int fd;

    if (!upload) {
        kp_say(said, 503, "too many uploads are under way: try again\n");
        return NULL;
    }
    if (!kp_has_room(keeper, query->size)) {
        keeper->figures.full++;
        kp_say(said, 507, "no room for %" PRIu64 " bytes on this disk\n", query->size);
        return NULL;
    }
    upload_path(query->upload_id, path);
    fd = openat(keeper->root, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        kp_say(said, errno == ENOSPC ? 507 : 500, "cannot make a file: %s\n", strerror(errno));
        return NULL;
    }
    *upload = (struct kp_upload){ .id = query->upload_id,
                                  .name = qf_xmemdup0(query->name.data, query->name.len),
                                  .fd = fd,
                                  .size = query->size,
                                  .sum = query->sum,
                                  .state = XXH3_createState() };
    XXH3_128bits_reset(upload->state);
    keeper->figures.uploads++;
    return upload;
}

static bool is_same(const struct kp_upload *upload, const struct rg_keep_query *query)
{
    return upload->size == query->size && qf_str_is(query->name, upload->name) &&
           memcmp(&upload->sum, &query->sum, sizeof(upload->sum)) == 0;
}

/* With the lock: the upload that this part goes on with, busy from now on; NULL: it is said why not. */
static struct kp_upload *claim_upload(struct kp_keeper *keeper, const struct rg_keep_query *query,
                                      struct kp_said *said)
{
    struct kp_upload *upload = NULL;

    for (uint32_t i = 0; i < keeper->options.uploads_max && !upload; i++)
        if (keeper->uploads[i].id == query->upload_id)
            upload = &keeper->uploads[i];
    if (upload && upload->busy) {
        kp_say(said, 503, "a part of this upload is being written\n");
        return NULL;
    }
    if (upload && (!is_same(upload, query) || upload->got != query->from)) {
        drop_upload(keeper, upload, true);
        kp_say(said, 416, "this part is not the next one: begin again\n");
        return NULL;
    }
    if (!upload && query->from) {
        kp_say(said, 416, "there is no such upload: begin again\n");
        return NULL;
    }
    if (!upload)
        upload = begin_upload(keeper, query, said);
    if (upload) {
        upload->busy = true;
        upload->touched_ms = qf_clock_mono_ms();
    }
    return upload;
}

/* What is there already is put again: that renews its age. With the lock; false: it is not there. */
static bool renew(struct kp_keeper *keeper, const struct rg_keep_query *query, struct kp_said *said)
{
    struct kp_entry *entry = kp_find(keeper, query->name);

    if (!entry)
        return false;
    if (entry->size != query->size || memcmp(&entry->sum, &query->sum, sizeof(entry->sum)) != 0) {
        kp_say(said, 422, "a blob of this name has another content\n");
        return true;
    }
    entry->put_ms = rg_keep_renew(&keeper->keep, entry->put_ms, qf_clock_mono_ms());
    keeper->figures.repeated++;
    kp_say(said, 200, "it was there\n");
    return true;
}

static int write_part(const struct kp_upload *upload, struct qf_str part)
{
    for (size_t done = 0; done < part.len;) {
        ssize_t wrote =
            pwrite(upload->fd, part.data + done, part.len - done, (off_t)(upload->got + done));

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return wrote < 0 ? errno : EIO;
        done += (size_t)wrote;
    }
    XXH3_128bits_update(upload->state, part.data, part.len);
    return 0;
}

static bool has_sum(const struct kp_upload *upload)
{
    XXH128_canonical_t canonical;

    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(upload->state));
    return memcmp(canonical.digest, upload->sum.bytes, RG_SUM_BYTES) == 0;
}

/* Named and synced, the folder too; an errno, or 0. */
static int name_blob(struct kp_keeper *keeper, const struct kp_upload *upload, uint32_t slot)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    char from[40];
    int error = 0, folder;

    kp_blob_path(&path, slot, qf_str_from(upload->name), &upload->sum);
    upload_path(upload->id, from);
    folder = sg_store_make_beneath(keeper->root, path.data, &error);
    if (folder < 0)
        return error;
    error = 0;
    if (renameat(keeper->root, from, folder, strrchr(qf_strbuf_cstr(&path), '/') + 1) != 0 ||
        fsync(folder) != 0)
        error = errno;
    (void)close(folder);
    return error;
}

/* The file under its name is still the one that was uploaded: nobody removed it meanwhile. */
static bool is_there(struct kp_keeper *keeper, const struct kp_upload *upload, uint32_t slot)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    struct stat own, named;

    kp_blob_path(&path, slot, qf_str_from(upload->name), &upload->sum);
    return fstat(upload->fd, &own) == 0 &&
           fstatat(keeper->root, qf_strbuf_cstr(&path), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           own.st_ino == named.st_ino;
}

/* With the lock. It is held now; whether it counts the epoch says, which may have changed since it was begun. */
static void settle(struct kp_keeper *keeper, const struct rg_keep_query *query,
                   const struct kp_upload *upload, struct kp_said *said)
{
    if (renew(keeper, query, said)) { /* somebody else was quicker */
        if (said->status == 200)
            (void)kp_takes(keeper, query, said);
        return;
    }
    if (!is_there(keeper, upload, query->slot)) {
        kp_say(said, 503, "it was removed while it came: try again\n");
        return;
    }
    kp_add(keeper, query->name, query->slot, query->size, &query->sum, qf_clock_mono_ms());
    keeper->figures.puts++;
    keeper->figures.put_bytes += query->size;
    kp_say(said, 201, "ok\n");
    (void)kp_takes(keeper, query, said);
}

/* The last part is there. */
static void finish(struct kp_keeper *keeper, const struct rg_keep_query *query,
                   struct kp_upload *upload, struct kp_said *said)
{
    int error = 0;

    if (!has_sum(upload)) {
        kp_say(said, 422, "the bytes do not have their checksum\n");
        return;
    }
    if (fsync(upload->fd) != 0)
        error = errno;
    if (!error)
        error = name_blob(keeper, upload, query->slot);
    if (error) {
        kp_say(said, error == ENOSPC || error == EDQUOT ? 507 : 500, "cannot store it: %s\n",
               strerror(error));
        return;
    }
    qf_lock_take(keeper->lock);
    settle(keeper, query, upload, said);
    qf_lock_drop(keeper->lock);
}

/* The caller has the upload to itself. */
static void take_part(struct kp_keeper *keeper, const struct rg_keep_query *query,
                      struct kp_upload *upload, struct qf_str part, struct kp_said *said)
{
    int error = write_part(upload, part);
    bool full = error == ENOSPC || error == EDQUOT;

    upload->got += part.len;
    kp_say(said, 202, "go on\n");
    if (error)
        kp_say(said, full ? 507 : 500, "cannot write: %s\n", strerror(error));
    else if (upload->got == upload->size)
        finish(keeper, query, upload, said);
    qf_lock_take(keeper->lock);
    keeper->figures.full += full;
    upload->busy = false;
    if (said->status != 202)
        drop_upload(keeper, upload, true);
    qf_lock_drop(keeper->lock);
}

void kp_put(struct kp_keeper *keeper, const struct rg_keep_query *query, struct qf_str part,
            struct kp_said *said)
{
    struct kp_upload *upload = NULL;

    *said = (struct kp_said){ 0 };
    if (query->size > RG_KEEP_BLOB_BYTES_MAX || part.len > RG_KEEP_PART_BYTES) {
        kp_say(said, 413, "too large\n");
        return;
    }
    if (!query->upload_id || query->from > query->size || part.len > query->size - query->from ||
        (!part.len && query->size)) {
        kp_say(said, 400, "such a part cannot be\n");
        return;
    }
    qf_lock_take(keeper->lock);
    if (kp_takes(keeper, query, said) && !renew(keeper, query, said))
        upload = claim_upload(keeper, query, said);
    qf_lock_drop(keeper->lock);
    if (upload)
        take_part(keeper, query, upload, part, said);
}
