/* seal.c - one closed range into the store. */
#include "ingest/seal/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/thread.h"
#include "base/sys/clock.h"
#include "ring/core/keep.h"
#include "segments/catalog/changes.h"
#include "segments/store/ring.h"
#include "segments/write/claim.h"

/* Files that are put at the same time: a bucket takes a while for each. */
enum { PUTS_MAX = 4 };

/* Shared by the threads that put the files of a range. */
struct sealing {
    const struct in_head_sealable *range;
    struct sg_store *store;
    const struct sg_store_call *call;
    struct sg_store_info *infos; /* of segments */
    struct rg_blob *blobs;       /* on our own nodes: of annexes, then segments; else NULL */
    atomic_size_t next;          /* annexes first, then segments */
    atomic_bool failed;
    struct qf_lock *lock; /* of: */
    struct in_seal_result result;
    uint64_t epoch;    /* the least in which owners of a blob were counted */
    struct qf_err err; /* the first */
};

/* With the owners; the log names it once all are there. */
static qf_rc place_file(struct sealing *s, const struct in_head_file *file, int fd,
                        struct rg_blob *blob, struct qf_err *err)
{
    uint64_t epoch = 0;
    qf_rc rc = sg_ring_place(s->store, qf_str_from(file->name), fd, file->size, s->call,
                             &blob->slot, &epoch, err);

    blob->name = qf_str_from(file->name);
    blob->bytes = file->size;
    qf_lock_take(s->lock);
    s->epoch = QF_MIN(s->epoch, epoch);
    qf_lock_drop(s->lock);
    return rc;
}

static qf_rc put_file(struct sealing *s, const struct in_head_file *file, struct rg_blob *blob,
                      struct qf_err *err)
{
    int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    qf_rc rc;

    if (fd < 0)
        return qf_err_set(err, QF_EIO, "%s: %s", file->path, strerror(errno));
    if (blob)
        rc = place_file(s, file, fd, blob, err);
    else
        rc = sg_store_put_fd(s->store, qf_str_from(file->name), fd, file->size, s->call, err);
    (void)close(fd);
    return rc;
}

/* Have @file in the store, and say how it is there. @blob: it is one. Those are always put: that renews their age, and a
 * majority of the owners of now has them. */
static qf_rc settle_file(struct sealing *s, const struct in_head_file *file, struct rg_blob *blob,
                         struct sg_store_info *ret_info, bool *ret_put, struct qf_err *err)
{
    struct qf_str name = qf_str_from(file->name);
    struct qf_err absent = { 0 };
    qf_rc rc;

    *ret_put = false;
    if (blob) {
        *ret_info = (struct sg_store_info){ .size = file->size };
        *ret_put = true;
        return put_file(s, file, blob, err);
    }
    rc = sg_store_stat(s->store, name, s->call, ret_info, &absent);
    if (rc == QF_OK)
        return QF_OK;
    if (rc != QF_ENOTFOUND)
        return qf_err_set(err, rc, "%s", absent.msg);
    rc = put_file(s, file, NULL, err);
    *ret_put = rc == QF_OK;
    return rc == QF_OK ? sg_store_stat(s->store, name, s->call, ret_info, err) : rc;
}

static void settle_next(struct sealing *s, size_t i)
{
    const struct in_head_sealable *range = s->range;
    bool is_annex = i < range->annex_count, put;
    const struct in_head_file *file =
        is_annex ? &range->annexes[i] : &range->files[i - range->annex_count];
    struct sg_store_info own, *info = is_annex ? &own : &s->infos[i - range->annex_count];
    struct qf_err err = { 0 };
    qf_rc rc = settle_file(s, file, s->blobs ? &s->blobs[i] : NULL, info, &put, &err);

    qf_lock_take(s->lock);
    s->result.put += put;
    s->result.bytes += put ? file->size : 0;
    s->result.present += rc == QF_OK && !put;
    if (rc != QF_OK && !s->err.rc)
        s->err = err;
    qf_lock_drop(s->lock);
    if (rc != QF_OK)
        atomic_store(&s->failed, true);
}

static void settle_some(void *arg)
{
    struct sealing *s = arg;
    size_t count = s->range->annex_count + s->range->file_count, i;

    while (!atomic_load(&s->failed) && (i = atomic_fetch_add(&s->next, 1)) < count)
        settle_next(s, i);
}

/* All files, several at a time. A thread that cannot be had is done without. */
static qf_rc settle_all(struct sealing *s, struct qf_err *err)
{
    size_t count = s->range->annex_count + s->range->file_count;
    struct qf_thread *threads[PUTS_MAX] = { 0 };

    for (size_t i = 1; i < PUTS_MAX && i < count; i++)
        threads[i] = qf_thread_start("put", settle_some, s);
    settle_some(s);
    for (size_t i = 1; i < PUTS_MAX; i++)
        if (threads[i])
            (void)qf_thread_join(threads[i]);
    return s->err.rc ? qf_err_set(err, s->err.rc, "%s", s->err.msg) : QF_OK;
}

/* Readers of a store without tokens are told, also of what was there: whoever put it may not have come to that. Annexes
 * are found by listing. */
static qf_rc tell_readers(const struct sealing *s, struct qf_err *err)
{
    struct sg_changes_note note = { 0 };
    qf_rc rc;

    for (size_t i = 0; i < s->range->file_count; i++)
        sg_changes_note_add(&note, qf_str_from(s->range->files[i].name));
    rc = sg_changes_note_put(&note, s->store, s->call, err);
    sg_changes_note_done(&note);
    return rc;
}

/* SEALED with the names of all blobs, for the manifest. */
static void put_noted(const struct sealing *s, const struct in_sealed_file *files,
                      struct qf_strbuf *record)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    const struct in_head_sealable *range = s->range;
    const struct rg_note note = { .kind = RG_NOTE_SEALED,
                                  .epoch = s->epoch,
                                  .added = s->blobs,
                                  .added_count = range->annex_count + range->file_count };

    rg_note_encode(&bytes, &note);
    in_record_put_sealed_note(record, qf_str_from(range->tenant), range->from, range->to, files,
                              range->file_count, qf_strbuf_view(&bytes));
}

static void put_record(const struct sealing *s, struct qf_strbuf *record)
{
    const struct in_head_sealable *range = s->range;
    struct in_sealed_file *files = qf_xcalloc(range->file_count + 1, sizeof(*files));

    for (size_t i = 0; i < range->file_count; i++)
        files[i] = (struct in_sealed_file){ .name = qf_str_from(range->files[i].name),
                                            .etag = qf_str_from(s->infos[i].etag),
                                            .size = s->infos[i].size };
    if (s->blobs)
        put_noted(s, files, record);
    else
        in_record_put_sealed(record, qf_str_from(range->tenant), range->from, range->to, files,
                             range->file_count);
    free(files);
}

/* On our own nodes blobs are garbage a day after they were put, unless they are named: what took half of that is put again
 * first. */
static qf_rc check_age(const struct sealing *s, int64_t began_ms, struct qf_err *err)
{
    if (!s->blobs || !rg_put_is_old(began_ms, qf_clock_mono_ms(), RG_BLOB_GRACE_MS))
        return QF_OK;
    return qf_err_set(err, QF_ETIMEOUT, "putting the files of a range took too long: once more");
}

qf_rc in_seal(const struct in_head_sealable *range, struct sg_store *store, uint64_t cluster,
              const struct sg_store_call *call, struct qf_strbuf *record,
              struct in_seal_result *ret_result, struct qf_err *err)
{
    struct sealing s = { .range = range, .store = store, .call = call, .epoch = UINT64_MAX };
    size_t count = range->annex_count + range->file_count;
    int64_t began_ms = qf_clock_mono_ms();
    qf_rc rc = QF_OK;

    if (range->file_count > IN_SEALED_FILES_MAX ||
        (sg_store_is_ring(store) && count > RG_NOTE_BLOBS_MAX))
        return qf_err_set(err, QF_ELIMIT, "a range of %zu files", count);
    if (sg_store_is_ring(store))
        s.blobs = qf_xcalloc(count + 1, sizeof(*s.blobs));
    s.infos = qf_xcalloc(range->file_count + 1, sizeof(*s.infos));
    s.lock = qf_lock_new();
    /* Compactors must ask for what is not sealed. */
    if (range->file_count)
        rc = sg_claim_ingest(store, qf_str_from(range->tenant), cluster, call, err);
    if (rc == QF_OK)
        rc = settle_all(&s, err);
    if (rc == QF_OK)
        rc = tell_readers(&s, err);
    if (rc == QF_OK)
        rc = check_age(&s, began_ms, err);
    if (rc == QF_OK) {
        put_record(&s, record);
        *ret_result = s.result;
    }
    (void)qf_lock_free(s.lock);
    free(s.infos);
    free(s.blobs);
    return rc;
}
