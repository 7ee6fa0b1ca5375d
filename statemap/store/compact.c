/* compact.c - a map's file after much of it went: LMDB uses pages again, but its file does not shrink.
 *
 * A compact copy changes places with the map's folder in one step, so that a crash leaves one of the two. Whoever reads
 * goes on reading the former file, which is gone from the disk once the last of them is done. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "statemap/store/store_int.h"

/* In merging/, which a start empties; no map is called so. */
#define COPY "-compact"

/* The folders change places: from then on the map is the copy. */
static qf_rc change_places(struct sm_store *store, const char *copy, const char *name,
                           struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *map = sm_path(store->root, "shards", name);

    if (renameat2(AT_FDCWD, copy, AT_FDCWD, map, RENAME_EXCHANGE) < 0) {
        store->cannot_exchange = errno == EINVAL || errno == ENOSYS;
        return qf_err_set(err, store->cannot_exchange ? QF_EUNSUPPORTED : QF_EIO,
                          "map %s: its file cannot be replaced: %s", name, strerror(errno));
    }
    sm_shard_replaced(store, name);
    sm_step_done(store, "changed places");
    return QF_OK;
}

/* What the map was must not go before the disk knows which is which. */
static qf_rc sync_places(struct sm_store *store, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *merging = sm_path(store->root, "merging", NULL);
    QF_CLEANUP(qf_freep) char *shards = sm_path(store->root, "shards", NULL);
    qf_rc rc = sm_folder_sync(shards, err);

    return rc == QF_OK ? sm_folder_sync(merging, err) : rc;
}

static qf_rc replace(struct sm_store *store, const char *name, struct sm_env *env,
                     struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *copy = sm_path(store->root, "merging", COPY);
    qf_rc rc = sm_folder_empty(copy, err);

    if (rc == QF_OK)
        rc = sm_env_copy(env, copy, err);
    sm_step_done(store, "copied");
    if (rc == QF_OK)
        rc = sm_folder_sync(copy, err);
    if (rc == QF_OK)
        rc = change_places(store, copy, name, err);
    if (rc == QF_OK)
        rc = sync_places(store, err);
    (void)sm_folder_remove(copy, NULL); /* or a start does */
    return rc;
}

/* Bytes of its file that a copy would not have. */
static qf_rc free_bytes(struct sm_env *env, uint64_t *ret_free, uint64_t *ret_used,
                        struct qf_err *err)
{
    struct sm_about about;
    struct sm_txn *txn;
    qf_rc rc = sm_read_begin(env, &txn, err);

    if (rc != QF_OK)
        return rc;
    about = sm_about(txn);
    *ret_used = about.bytes_used;
    *ret_free = about.bytes_used - about.bytes_needed;
    (void)sm_end(txn);
    return QF_OK;
}

qf_rc sm_store_compact(struct sm_store *store, struct qf_str name, uint64_t *ret_freed,
                       struct qf_err *err)
{
    struct sm_definition definition;
    struct sm_shard *shard;
    uint64_t free_now = 0, used = 0;
    qf_rc rc = sm_store_definition(store, name, &definition, err);

    *ret_freed = 0;
    if (rc == QF_OK && store->cannot_exchange)
        return QF_OK; /* it would be copied for nothing, again and again */
    if (rc == QF_OK)
        rc = sm_shard_take(store, &definition, 0, &shard, err);
    if (rc != QF_OK)
        return rc;
    rc = free_bytes(shard->env, &free_now, &used, err);
    if (rc == QF_OK && free_now >= SM_COMPACT_BYTES_MIN && free_now >= used / 2) {
        rc = replace(store, definition.name, shard->env, err);
        *ret_freed = rc == QF_OK ? free_now : 0;
    }
    sm_shard_give_back(store, shard);
    return rc;
}
