/* rescue.c - a cluster of one node, out of a folder whose cluster is gone for good. */
#include "queue/node/rescue.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/pure/alloc.h"
#include "base/pure/vec.h"
#include "queue/core/members.h"
#include "queue/log/store.h"
#include "queue/node/folders.h"

#define META_FOLDER "meta"
enum { FOLDER_SIZE = 32 };

struct folder {
    char name[FOLDER_SIZE];
};

struct rescue {
    struct qn_folders folders;
    struct ql_sequence_state meta; /* whose queues these must be */
    uint64_t cluster;              /* the new one; 0: only look */
    struct qc_members members;     /* of it: this node */
    qn_rescued_fn *tell;
    void *ctx;
};

/* --- what is there --- */

static bool is_queue(const char *name)
{
    return strncmp(name, "q-", 2) == 0 && name[2] &&
           strspn(name + 2, "0123456789") == strlen(name) - 2 && strlen(name) < FOLDER_SIZE;
}

static int by_number(const void *a, const void *b)
{
    const char *left = ((const struct folder *)a)->name, *right = ((const struct folder *)b)->name;
    size_t long_left = strlen(left), long_right = strlen(right);

    return long_left != long_right ? (long_left > long_right) - (long_left < long_right)
                                   : strcmp(left, right);
}

/* Folders of queues, meta's last: while that one is of the old cluster and others are not, no node starts
 * here. */
static qf_rc list_folders(const char *path, struct folder **ret_folders, size_t *ret_count,
                          struct qf_err *err)
{
    QF_VEC(struct folder) found = { 0 };
    struct folder folder = { META_FOLDER };
    struct dirent *entry;
    DIR *dir = opendir(path);

    if (!dir)
        return qf_err_set(err, QF_EIO, "cannot read %s: %s", path, strerror(errno));
    while ((entry = readdir(dir)) && found.count <= QN_QUEUES_MAX) {
        struct folder queue;

        if (!is_queue(entry->d_name))
            continue;
        memcpy(queue.name, entry->d_name, strlen(entry->d_name) + 1);
        QF_VEC_PUSH(&found, queue);
    }
    (void)closedir(dir);
    if (found.count)
        qsort(found.items, found.count, sizeof(found.items[0]), by_number);
    QF_VEC_PUSH(&found, folder);
    *ret_folders = found.items;
    *ret_count = found.count;
    return found.count <= QN_QUEUES_MAX + 1
               ? QF_OK
               : qf_err_set(err, QF_EINVAL, "%s has more folders of queues than a node may have",
                            path);
}

/* --- one queue --- */

/* The term of the last entry, which may be in the snapshot alone. */
static uint64_t last_term(const struct ql_store *store)
{
    uint64_t term = ql_log_term(store->log, ql_log_last(store->log));

    return term ? term : store->snapshot.term;
}

/* Terms first: from here on the folder is of the new cluster, in which nobody has led yet. */
static qf_rc write_store(const struct rescue *rescue, struct ql_store *store, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct ql_sequence_state next = store->sequence;
    struct ql_entry entry = { .type = QL_CHANGE };
    qf_rc rc;

    next.cluster = rescue->cluster;
    next.term = QF_MAX(next.term, last_term(store)) + 1;
    next.vote = 0;
    rc = ql_sequence_state_save(store->disk, &next, err);
    if (rc != QF_OK)
        return rc;
    qc_members_encode(&buf, &rescue->members);
    entry.data = qf_strbuf_view(&buf);
    entry.index = ql_log_last(store->log) + 1;
    entry.term = next.term;
    rc = ql_log_append(store->log, &entry, 1, true, err);
    return rc == QF_OK ? ql_log_sync(store->log, err) : rc;
}

static qf_rc rescue_store(const struct rescue *rescue, const char *folder, struct ql_store *store,
                          struct qf_err *err)
{
    const struct qn_rescued queue = { .folder = folder,
                                      .term = last_term(store),
                                      .index = ql_log_last(store->log),
                                      .bytes = ql_log_bytes(store->log) };

    if (store->sequence.incarnation != rescue->meta.incarnation)
        return qf_err_set(err, QF_ECORRUPT,
                          "%s belongs to another node than " META_FOLDER
                          ": put the folders of one node together",
                          store->disk->label);
    rescue->tell(rescue->ctx, &queue);
    return rescue->cluster ? write_store(rescue, store, err) : QF_OK;
}

static qf_rc rescue_queue(const struct rescue *rescue, const char *folder, struct qf_err *err)
{
    const struct ql_options options = { 0 };
    struct ql_store store = { 0 };
    struct ql_disk *disk;
    qf_rc rc = rescue->folders.open(rescue->folders.ctx, folder, false, &disk, err);

    if (rc != QF_OK)
        return rc;
    rc = ql_store_open(&store, disk, &options, err);
    if (rc == QF_OK) {
        rc = rescue_store(rescue, folder, &store, err);
        ql_store_close(&store);
    } else if (rc == QF_ENOTFOUND) {
        rc = QF_OK; /* being made when the node ended: nothing was promised in its name */
    }
    rescue->folders.close(rescue->folders.ctx, disk);
    return rc;
}

/* --- the node --- */

/* Who takes part as far as meta's log knows: the last change in it, or the snapshot's. */
static qf_rc read_members(struct ql_store *store, struct qc_members *ret_members,
                          struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qf_str members = store->snapshot.members;
    uint64_t at = ql_log_last(store->log);
    struct ql_entry entry;

    while (at >= ql_log_first(store->log) && ql_log_type(store->log, at) != QL_CHANGE)
        at--;
    if (at >= ql_log_first(store->log) && at > store->snapshot.change_index) {
        qf_rc rc = ql_log_read(store->log, at, &buf, &entry, err);

        if (rc != QF_OK)
            return rc;
        members = entry.data;
    }
    if (qc_members_decode(members, ret_members) != QF_OK)
        return qf_err_set(err, QF_ECORRUPT, "%s does not say who takes part", store->disk->label);
    return QF_OK;
}

/* Who this node is, and the only member that there will be. */
static qf_rc know_itself(struct rescue *rescue, struct ql_store *store, const char *name,
                         struct qf_err *err)
{
    struct qc_members known = { 0 };
    const struct qc_member *self;
    qf_rc rc = store->sequence.cluster ? read_members(store, &known, err) : QF_OK;

    if (rc != QF_OK)
        return rc;
    self = qc_members_find(&known, store->sequence.incarnation);
    if (!self && !name)
        return qf_err_set(err, QF_ENOTFOUND,
                          "%s is of a node in no cluster: there is nothing to be rescued",
                          store->disk->label);
    rescue->meta = store->sequence;
    rescue->members =
        (struct qc_members){ .count = 1,
                             .items = { { .id = store->sequence.incarnation, .role = QC_VOTER } } };
    (void)snprintf(rescue->members.items[0].name, sizeof(rescue->members.items[0].name), "%s",
                   name ? name : self->name);
    return QF_OK;
}

static qf_rc look_at_meta(struct rescue *rescue, const char *name, struct qf_err *err)
{
    const struct ql_options options = { 0 };
    struct ql_store store = { 0 };
    struct ql_disk *disk;
    qf_rc rc = rescue->folders.open(rescue->folders.ctx, META_FOLDER, false, &disk, err);

    if (rc != QF_OK)
        return rc;
    rc = ql_store_open(&store, disk, &options, err);
    if (rc == QF_OK) {
        rc = know_itself(rescue, &store, name, err);
        ql_store_close(&store);
    }
    rescue->folders.close(rescue->folders.ctx, disk);
    return rc;
}

static qf_rc rescue_all(struct rescue *rescue, const char *path, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) struct folder *folders = NULL;
    size_t count = 0;
    qf_rc rc = list_folders(path, &folders, &count, err);

    for (size_t i = 0; rc == QF_OK && i < count; i++)
        rc = rescue_queue(rescue, folders[i].name, err);
    return rc;
}

/* A name that a path leads to; making the folder is not for us. */
static qf_rc check_path(const char *path, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf file = QF_STRBUF_INIT;
    struct stat stat_of;

    qf_strbuf_printf(&file, "%s/" META_FOLDER "/" QL_SEQUENCE_STATE_FILE, path);
    return stat(qf_strbuf_cstr(&file), &stat_of) == 0
               ? QF_OK
               : qf_err_set(err, QF_ENOTFOUND, "%s has no data of an ingest node: %s: %s", path,
                            qf_strbuf_cstr(&file), strerror(errno));
}

qf_rc qn_rescue(const char *path, const char *name, bool write, qn_rescued_fn *tell, void *ctx,
                struct qf_err *err)
{
    struct rescue rescue = { .tell = tell, .ctx = ctx };
    struct qn_data *data = NULL;
    qf_rc rc = check_path(path, err);

    if (rc == QF_OK && name && (!*name || strlen(name) >= QC_NAME_SIZE))
        rc = qf_err_set(err, QF_EINVAL, "the name of a node has 1 to %d bytes", QC_NAME_SIZE - 1);
    if (rc == QF_OK)
        rc = qn_data_open(path, &data, err);
    if (rc != QF_OK)
        return rc;
    rescue.folders = qn_data_folders(data);
    while (write && !rescue.cluster)
        if (getrandom(&rescue.cluster, sizeof(rescue.cluster), 0) !=
            (ssize_t)sizeof(rescue.cluster))
            rescue.cluster = 0;
    rc = look_at_meta(&rescue, name, err);
    if (rc == QF_OK)
        rc = rescue_all(&rescue, path, err);
    (void)qn_data_close(data);
    return rc;
}
