/* seal.c - one closed range into the store. */
#include "ingest/seal/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "segments/catalog/changes.h"
#include "segments/write/claim.h"

struct sealing {
    struct sg_store *store;
    const struct sg_store_call *call;
    struct sg_changes_note note;
    struct in_seal_result result;
};

static qf_rc put_file(struct sealing *s, const struct in_head_file *file, struct qf_err *err)
{
    int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    qf_rc rc;

    if (fd < 0)
        return qf_err_set(err, QF_EIO, "%s: %s", file->path, strerror(errno));
    rc = sg_store_put_fd(s->store, qf_str_from(file->name), fd, file->size, s->call, err);
    (void)close(fd);
    s->result.put += rc == QF_OK;
    s->result.bytes += rc == QF_OK ? file->size : 0;
    return rc;
}

/* Have @file in the store, and say how it is there. */
static qf_rc settle_file(struct sealing *s, const struct in_head_file *file,
                         struct sg_store_info *ret_info, struct qf_err *err)
{
    struct qf_str name = qf_str_from(file->name);
    struct qf_err absent = { 0 };
    qf_rc rc = sg_store_stat(s->store, name, s->call, ret_info, &absent);

    /* Noted also if it was there: whoever put it may not have come to that. */
    sg_changes_note_add(&s->note, name);
    if (rc == QF_OK) {
        s->result.present++;
        return QF_OK;
    }
    if (rc != QF_ENOTFOUND)
        return qf_err_set(err, rc, "%s", absent.msg);
    rc = put_file(s, file, err);
    return rc == QF_OK ? sg_store_stat(s->store, name, s->call, ret_info, err) : rc;
}

/* Readers find it by listing: it is named nowhere (segments/annex/annex.h). */
static qf_rc settle_annex(struct sealing *s, const struct in_head_file *file, struct qf_err *err)
{
    struct sg_store_info info;
    struct qf_err absent = { 0 };
    qf_rc rc = sg_store_stat(s->store, qf_str_from(file->name), s->call, &info, &absent);

    if (rc == QF_ENOTFOUND)
        return put_file(s, file, err);
    s->result.present += rc == QF_OK;
    return rc == QF_OK ? QF_OK : qf_err_set(err, rc, "%s", absent.msg);
}

qf_rc in_seal(const struct in_head_sealable *range, struct sg_store *store, uint64_t cluster,
              const struct sg_store_call *call, struct qf_strbuf *record,
              struct in_seal_result *ret_result, struct qf_err *err)
{
    struct sealing s = { .store = store, .call = call };
    struct sg_store_info *infos = qf_xcalloc(range->file_count + 1, sizeof(*infos));
    struct in_sealed_file *files = qf_xcalloc(range->file_count + 1, sizeof(*files));
    qf_rc rc = QF_OK;

    if (range->file_count > IN_SEALED_FILES_MAX)
        rc = qf_err_set(err, QF_ELIMIT, "a range of %zu files", range->file_count);
    /* Compactors must ask for what is not sealed. */
    if (rc == QF_OK && range->file_count)
        rc = sg_claim_ingest(store, qf_str_from(range->tenant), cluster, call, err);
    for (size_t i = 0; i < range->annex_count && rc == QF_OK; i++)
        rc = settle_annex(&s, &range->annexes[i], err);
    for (size_t i = 0; i < range->file_count && rc == QF_OK; i++) {
        rc = settle_file(&s, &range->files[i], &infos[i], err);
        files[i] = (struct in_sealed_file){ .name = qf_str_from(range->files[i].name),
                                            .etag = qf_str_from(infos[i].etag),
                                            .size = infos[i].size };
    }
    if (rc == QF_OK)
        rc = sg_changes_note_put(&s.note, store, call, err);
    if (rc == QF_OK) {
        in_record_put_sealed(record, qf_str_from(range->tenant), range->from, range->to, files,
                             range->file_count);
        *ret_result = s.result;
    }
    sg_changes_note_done(&s.note);
    free(infos);
    free(files);
    return rc;
}
