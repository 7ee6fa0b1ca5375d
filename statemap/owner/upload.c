/* upload.c - parts that come in pieces. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "statemap/owner/owner_int.h"
#include "statemap/store/part.h"

static char *path_of(const struct sm_owner *owner, uint64_t id)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;

    qf_strbuf_printf(&path, "%s/receive/%016" PRIx64, owner->root, id);
    return qf_strbuf_take(&path);
}

static struct sm_upload *find_upload(struct sm_owner *owner, uint64_t id)
{
    for (size_t i = 0; i < owner->uploads.count; i++)
        if (owner->uploads.items[i].id == id)
            return &owner->uploads.items[i];
    return NULL;
}

static void forget(struct sm_owner *owner, size_t i)
{
    QF_CLEANUP(qf_freep) char *path = path_of(owner, owner->uploads.items[i].id);

    (void)unlink(path);
    (void)XXH3_freeState(owner->uploads.items[i].sum);
    owner->uploads.items[i] = owner->uploads.items[--owner->uploads.count];
}

void sm_uploads_expire(struct sm_owner *owner, int64_t time_ms)
{
    for (size_t i = owner->uploads.count; i-- > 0;)
        if (time_ms - owner->uploads.items[i].last_ms > SM_UPLOAD_MS_MAX)
            forget(owner, i);
}

void sm_uploads_forget(struct sm_owner *owner)
{
    while (owner->uploads.count)
        forget(owner, owner->uploads.count - 1);
}

static struct sm_upload *begin(struct sm_owner *owner, uint64_t id, uint64_t position)
{
    struct sm_upload upload = { .id = id, .first = position };
    QF_CLEANUP(qf_freep) char *path = path_of(owner, id);

    if (owner->uploads.count >= SM_UPLOADS_MAX)
        return NULL;
    (void)unlink(path);
    upload.sum = XXH3_createState();
    (void)XXH3_64bits_reset(upload.sum);
    QF_VEC_PUSH(&owner->uploads, upload);
    return &owner->uploads.items[owner->uploads.count - 1];
}

/* All of it at the end of the file, or the file as it was. */
static qf_rc append(struct sm_owner *owner, const struct sm_upload *upload, struct qf_str bytes,
                    struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *path = path_of(owner, upload->id);
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
    size_t at = 0;
    qf_rc rc = QF_OK;

    if (file < 0)
        return qf_err_set(err, errno == ENOSPC ? QF_ENOSPC : QF_EIO, "%s: %s", path,
                          strerror(errno));
    while (at < bytes.len && rc == QF_OK) {
        ssize_t len = pwrite(file, bytes.data + at, bytes.len - at, (off_t)(upload->size + at));

        if (len < 0 && errno != EINTR)
            rc = qf_err_set(err, errno == ENOSPC || errno == EDQUOT ? QF_ENOSPC : QF_EIO, "%s: %s",
                            path, strerror(errno));
        at += len > 0 ? (size_t)len : 0;
    }
    (void)close(file);
    return rc;
}

qf_rc sm_apply_piece(struct sm_owner *owner, uint64_t position, int64_t time_ms,
                     const struct sm_entry *entry, struct qf_err *err)
{
    struct sm_upload *upload = find_upload(owner, entry->upload);
    qf_rc rc;

    if (!upload && entry->offset == 0)
        upload = begin(owner, entry->upload, position);
    if (!upload || entry->offset < upload->size)
        return QF_OK; /* its load will say so; or it came twice */
    upload->last_ms = time_ms;
    upload->broken |=
        entry->offset > upload->size || entry->bytes.len > SM_UPLOAD_BYTES_MAX - upload->size;
    if (upload->broken)
        return QF_OK;
    rc = append(owner, upload, entry->bytes, err);
    if (rc != QF_OK)
        return rc;
    upload->size += entry->bytes.len;
    (void)XXH3_64bits_update(upload->sum, entry->bytes.data, entry->bytes.len);
    return QF_OK;
}

/* --- loads --- */

static qf_rc sync_file(const char *path, struct qf_err *err)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    qf_rc rc = QF_OK;

    if (file < 0 || fsync(file) < 0)
        rc = qf_err_set(err, errno == ENOSPC ? QF_ENOSPC : QF_EIO, "%s: %s", path, strerror(errno));
    if (file >= 0)
        (void)close(file);
    return rc;
}

/* The sum of what lies there now. */
static uint64_t sum_of(const char *path)
{
    QF_CLEANUP(qf_freep) char *buffer = qf_xmalloc(SM_PIECE_MAX);
    XXH3_state_t *state = XXH3_createState();
    int file = open(path, O_RDONLY | O_CLOEXEC);
    uint64_t sum;
    ssize_t len;

    (void)XXH3_64bits_reset(state);
    while (file >= 0 && (len = read(file, buffer, SM_PIECE_MAX)) > 0)
        (void)XXH3_64bits_update(state, buffer, (size_t)len);
    sum = XXH3_64bits_digest(state);
    (void)XXH3_freeState(state);
    if (file >= 0)
        (void)close(file);
    return sum;
}

/* Every map of the part is there, and as it was when the part was made. */
static qf_rc check_maps(struct sm_store *store, const struct sm_part *part,
                        struct sm_verdict *verdict, struct qf_err *err)
{
    for (size_t i = 0; i < part->count; i++) {
        const struct sm_section *section = &part->sections[i];
        struct sm_definition definition;
        qf_rc rc = sm_store_definition(store, qf_str_from(section->name), &definition, err);

        if (rc != QF_OK && rc != QF_ENOTFOUND)
            return rc;
        if (rc == QF_ENOTFOUND || definition.layout.kind != section->layout.kind ||
            definition.layout.direct != section->layout.direct) {
            (void)qf_err_set(&verdict->err, QF_EEXIST,
                             "map %s is not what it was when the load began: load again",
                             section->name);
            return QF_OK;
        }
    }
    return QF_OK;
}

/* It is what was sent; it is a part; it fits the maps: else the verdict says so. */
static qf_rc check_part(struct sm_owner *owner, struct sm_tenant *tenant, const char *path,
                        uint64_t sum, struct sm_verdict *verdict, struct qf_err *err)
{
    struct sm_part part;
    qf_rc rc = sm_part_open(path, &part, &verdict->err);

    if (rc == QF_OK) {
        rc = sm_part_verify(&part, &verdict->err);
        if (rc == QF_OK)
            rc = check_maps(tenant->store, &part, verdict, err);
        sm_part_close(&part);
    }
    if (rc == QF_ECORRUPT && sum_of(path) != sum) {
        sm_uploads_forget(owner); /* all over again */
        owner->next = owner->saved_needed;
        return qf_err_set(err, rc, "%s: the disk does not give back what was written", path);
    }
    if (rc == QF_EIO || rc == QF_ENOSPC)
        return err->rc == QF_OK ? qf_err_set(err, rc, "%s", verdict->err.msg) : rc;
    return QF_OK;
}

static qf_rc load_upload(struct sm_owner *owner, const struct sm_upload *upload, uint64_t position,
                         const struct sm_entry *entry, struct sm_verdict *verdict,
                         struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *path = path_of(owner, upload->id);
    struct sm_tenant *tenant;
    qf_rc rc = sm_owner_tenant(owner, entry->tenant, false, &tenant, &verdict->err);

    if (rc == QF_ENOTFOUND)
        return QF_OK;
    if (rc == QF_OK && (upload->broken || upload->size != entry->size ||
                        XXH3_64bits_digest(upload->sum) != entry->sum)) {
        (void)qf_err_set(&verdict->err, QF_EUNAVAILABLE,
                         "not all of the load arrived: nothing of it counts, load again");
        return QF_OK;
    }
    if (rc == QF_OK)
        rc = check_part(owner, tenant, path, entry->sum, verdict, err);
    if (rc != QF_OK || verdict->err.rc != QF_OK)
        return rc;
    rc = sync_file(path, err);
    if (rc == QF_OK)
        rc = sm_store_stage(tenant->store, path, position, err);
    if (rc != QF_OK)
        return rc;
    sm_tenant_merge(tenant);
    if (tenant->waiting)
        verdict->err = tenant->why;
    return QF_OK;
}

qf_rc sm_apply_load(struct sm_owner *owner, uint64_t position, bool again,
                    const struct sm_entry *entry, struct sm_verdict *verdict, struct qf_err *err)
{
    struct sm_upload *upload = find_upload(owner, entry->upload);
    qf_rc rc = QF_OK;

    if (!upload && !again)
        (void)qf_err_set(&verdict->err, QF_EUNAVAILABLE,
                         "what was to be loaded is not there (any more): load again");
    if (upload && !again)
        rc = load_upload(owner, upload, position, entry, verdict, err);
    upload = rc == QF_OK ? find_upload(owner, entry->upload) : NULL;
    if (upload)
        forget(owner, (size_t)(upload - owner->uploads.items));
    return rc;
}
