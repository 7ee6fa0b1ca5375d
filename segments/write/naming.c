/* naming.c - segments of a batch to our own nodes, named together. */
#include "segments/write/naming.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/vec.h"
#include "base/sys/clock.h"
#include "segments/store/ring.h"
#include "segments/write/claim.h"

/* How often blobs are put again because owners changed. */
#define ROUNDS 5

struct placed {
    char *key, *path;
    uint64_t epoch; /* in which its owners were counted */
    int64_t ms;     /* monotonic, before it was put */
};

struct naming {
    const struct sg_batch_options *options;
    const char *dir;
    QF_VEC(struct placed) files;
    QF_VEC(struct rg_blob) blobs; /* of the same, in the same order */
    bool asked;
};

struct naming *naming_new(const struct sg_batch_options *options, const char *dir)
{
    struct naming *naming;

    if (!sg_store_is_ring(options->store))
        return NULL;
    naming = qf_xcalloc(1, sizeof(*naming));
    naming->options = options;
    naming->dir = dir;
    return naming;
}

struct naming *naming_free(struct naming *naming)
{
    if (!naming)
        return NULL;
    for (size_t i = 0; i < naming->files.count; i++) {
        (void)unlink(naming->files.items[i].path);
        free(naming->files.items[i].path);
        free(naming->files.items[i].key);
    }
    QF_VEC_DONE(&naming->files);
    QF_VEC_DONE(&naming->blobs);
    free(naming);
    return NULL;
}

bool naming_asked(const struct naming *naming)
{
    return naming->asked;
}

static qf_rc place(struct naming *naming, size_t i, struct qf_err *err)
{
    struct sg_store_call call = { .cancel = naming->options->cancel };
    struct placed *file = &naming->files.items[i];
    struct rg_blob *blob = &naming->blobs.items[i];
    int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    qf_rc rc;

    file->ms = qf_clock_mono_ms();
    if (fd < 0 || fstat(fd, &status) != 0) {
        rc = qf_err_set(err, QF_EIO, "%s: cannot open: %s", file->path, strerror(errno));
    } else {
        blob->bytes = (uint64_t)status.st_size;
        rc = sg_ring_place(naming->options->store, blob->name, fd, blob->bytes, &call, &blob->slot,
                           &file->epoch, err);
    }
    if (fd >= 0)
        (void)close(fd);
    return rc;
}

qf_rc naming_put(struct naming *naming, struct qf_str key, const char *path, uint64_t *ret_bytes,
                 struct qf_err *err)
{
    struct placed file = { .key = qf_xmemdup0(key.data, key.len) };
    struct qf_strbuf kept = QF_STRBUF_INIT;
    size_t i = naming->files.count;
    qf_rc rc;

    qf_strbuf_printf(&kept, "%s/segment-%zu.parquet", naming->dir, i);
    file.path = qf_strbuf_take(&kept);
    QF_VEC_PUSH(&naming->files, file);
    QF_VEC_PUSH(&naming->blobs, (struct rg_blob){ .name = { file.key, key.len } });
    if (rename(path, file.path) != 0)
        return qf_err_set(err, QF_EIO, "%s: %s", file.path, strerror(errno));
    rc = place(naming, i, err);
    if (rc == QF_OK)
        *ret_bytes = naming->blobs.items[i].bytes;
    return rc;
}

static qf_rc place_again(struct naming *naming, size_t from, size_t to, bool all,
                         struct qf_err *err)
{
    struct sg_store_call call = { .cancel = naming->options->cancel };
    qf_rc rc = all ? sg_ring_follow(naming->options->store, 0, &call, err) : QF_OK;

    for (size_t i = from; i < to && !rc; i++)
        if (all || sg_ring_placed_too_early(naming->files.items[i].ms))
            rc = place(naming, i, err);
    return rc;
}

static qf_rc name_once(struct naming *naming, size_t from, size_t to, struct qf_err *err)
{
    const struct sg_batch_options *o = naming->options;
    struct sg_store_call call = { .cancel = o->cancel };
    struct sg_claim_naming names = { .blobs = &naming->blobs.items[from],
                                     .count = to - from,
                                     .epoch = UINT64_MAX,
                                     .more = to < naming->blobs.count };

    for (size_t i = from; i < to; i++)
        names.epoch = QF_MIN(names.epoch, naming->files.items[i].epoch);
    naming->asked = true;
    if (o->claim)
        return sg_claim_name(o->claim, &names, &call, err);
    return sg_ring_change(o->store,
                          &(struct sg_ring_change){ .tenant = o->tenant,
                                                    .added = names.blobs,
                                                    .added_count = names.count,
                                                    .epoch = names.epoch },
                          &call, err);
}

static qf_rc name_some(struct naming *naming, size_t from, size_t to, struct qf_err *err)
{
    struct qf_err why = { 0 };
    qf_rc rc = QF_EGONE;

    for (int round = 0; round < ROUNDS && rc == QF_EGONE; round++) {
        why = (struct qf_err){ 0 };
        rc = place_again(naming, from, to, round > 0, &why);
        if (rc == QF_OK)
            rc = name_once(naming, from, to, &why);
    }
    if (rc == QF_EGONE)
        return qf_err_set(err, QF_EUNAVAILABLE, "owners of segments went on changing: %s", why.msg);
    return rc ? qf_err_set(err, rc, "%s", why.msg) : QF_OK;
}

qf_rc naming_finish(struct naming *naming, struct qf_err *err)
{
    const struct sg_batch_options *o = naming->options;
    size_t count = naming->blobs.count;
    size_t most = o->names_max ? o->names_max : SG_CLAIM_NAMES_MAX;
    qf_rc rc = QF_OK;

    if (!count && o->claim)
        return sg_claim_check(o->claim, &(struct sg_store_call){ .cancel = o->cancel }, err);
    for (size_t from = 0; from < count && !rc; from += most)
        rc = name_some(naming, from, QF_MIN(count, from + most), err);
    return rc;
}
