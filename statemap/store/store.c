/* store.c - the maps of one tenant on this node: opening, numbers, what goes. */
#include "statemap/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/pure/number.h"
#include "base/sys/clock.h"
#include "base/sys/small_file.h"
#include "statemap/store/store_int.h"

static const char *const folders[] = { "definitions", "writer", "receive",  "staging",
                                       "merging",     "shards", "snapshots" };
/* What a process that died was in the middle of. */
static const char *const half_done[] = { "writer", "receive", "merging" };

void sm_step_done(struct sm_store *store, const char *what)
{
    if (store->step)
        store->step(store->step_ctx, what);
}

static qf_rc lock_store(struct sm_store *store, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *path = sm_path(store->root, "lock", NULL);

    store->lock_file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (store->lock_file < 0)
        return qf_err_set(err, QF_EIO, "%s: %s", path, strerror(errno));
    if (flock(store->lock_file, LOCK_EX | LOCK_NB) < 0)
        return qf_err_set(err, QF_EBUSY, "%s: another process writes to these maps", store->root);
    return QF_OK;
}

static qf_rc prepare(struct sm_store *store, struct qf_err *err)
{
    qf_rc rc = sm_folder_make(store->root, err);

    if (rc == QF_OK)
        rc = lock_store(store, err);
    for (size_t i = 0; i < QF_COUNT_OF(folders) && rc == QF_OK; i++) {
        QF_CLEANUP(qf_freep) char *path = sm_path(store->root, folders[i], NULL);

        rc = sm_folder_make(path, err);
    }
    for (size_t i = 0; i < QF_COUNT_OF(half_done) && rc == QF_OK; i++) {
        QF_CLEANUP(qf_freep) char *path = sm_path(store->root, half_done[i], NULL);

        rc = sm_folder_empty(path, err);
    }
    return rc == QF_OK ? sm_folder_sync(store->root, err) : rc;
}

qf_rc sm_store_open(const struct sm_store_options *options, struct sm_store **ret_store,
                    struct qf_err *err)
{
    struct sm_store *store = qf_xcalloc(1, sizeof(*store));
    qf_rc rc = QF_OK;

    store->root = qf_xstrdup(options->root);
    store->lock_file = -1;
    store->hash = options->hash;
    store->step = options->step;
    store->step_ctx = options->step_ctx;
    store->lock = qf_lock_new();
    if (options->write)
        rc = prepare(store, err);
    if (rc != QF_OK) {
        (void)sm_store_close(store);
        return rc;
    }
    *ret_store = store;
    return QF_OK;
}

struct sm_store *sm_store_close(struct sm_store *store)
{
    if (!store)
        return NULL;
    for (size_t i = 0; i < store->shards.count; i++) {
        (void)sm_env_close(store->shards.items[i]->env);
        free(store->shards.items[i]);
    }
    QF_VEC_DONE(&store->shards);
    sm_rules_forget(store);
    if (store->lock_file >= 0)
        (void)close(store->lock_file);
    (void)qf_lock_free(store->lock);
    free(store->root);
    free(store);
    return NULL;
}

qf_rc sm_position_next(struct sm_store *store, uint64_t *ret_position, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    QF_CLEANUP(qf_freep) char *path = sm_path(store->root, "position", NULL);
    uint64_t position = 0;
    struct stat seen;
    qf_rc rc;

    if (sm_exists(path)) {
        rc = qf_small_file_read(path, "the number of the last part", 64, &text, &seen, err);
        if (rc != QF_OK)
            return rc;
        if (!qf_parse_u64(qf_str_trim(qf_strbuf_view(&text)), &position))
            return qf_err_set(err, QF_ECORRUPT, "%s is damaged: it has no number", path);
    }
    qf_strbuf_reset(&text);
    qf_strbuf_printf(&text, "%llu\n", (unsigned long long)++position);
    rc = sm_file_replace(store->root, "position", qf_strbuf_view(&text), err);
    if (rc == QF_OK)
        *ret_position = position;
    return rc;
}

/* A folder of @folder that a crash must not leave half there. */
static qf_rc remove_folder(struct sm_store *store, const char *folder, const char *name,
                           struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *path = sm_path(store->root, folder, name);
    QF_CLEANUP(qf_freep) char *merging = sm_path(store->root, "merging", NULL);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf gone = QF_STRBUF_INIT;
    qf_rc rc;

    if (!sm_exists(path))
        return QF_OK;
    qf_strbuf_printf(&gone, "%s/--%s", merging, name); /* no map is called so */
    rc = sm_folder_remove(qf_strbuf_cstr(&gone), err);
    if (rc == QF_OK)
        rc = sm_move(path, qf_strbuf_cstr(&gone), merging, err);
    return rc == QF_OK ? sm_folder_remove(qf_strbuf_cstr(&gone), err) : rc;
}

/* The rows of a map that nobody defines any more. */
static qf_rc remove_map(struct sm_store *store, const char *name, struct qf_err *err)
{
    if (!sm_shard_close(store, name, 0))
        return QF_OK; /* later */
    return remove_folder(store, "shards", name, err);
}

qf_rc sm_store_drop(struct sm_store *store, const char *name, struct qf_err *err)
{
    qf_rc rc = sm_store_undefine(store, qf_str_from(name), err);

    if (rc == QF_ENOTFOUND)
        rc = QF_OK;
    sm_shard_detach(store, name);
    if (rc == QF_OK)
        rc = remove_folder(store, "shards", name, err);
    return rc == QF_OK ? remove_folder(store, "snapshots", name, err) : rc;
}

static qf_rc remove_undefined(struct sm_store *store, struct qf_err *err)
{
    QF_CLEANUP(sm_names_done) struct sm_names names = { 0 };
    QF_CLEANUP(qf_freep) char *path = sm_path(store->root, "shards", NULL);
    qf_rc rc = sm_folder_list(path, &names, err);

    for (size_t i = 0; i < names.names.count && rc == QF_OK; i++) {
        struct sm_definition definition;

        rc = sm_store_definition(store, qf_str_from(names.names.items[i]), &definition, NULL);
        if (rc == QF_ENOTFOUND)
            rc = remove_map(store, names.names.items[i], err);
        else if (rc != QF_OK)
            rc = sm_store_definition(store, qf_str_from(names.names.items[i]), &definition, err);
    }
    return rc;
}

qf_rc sm_store_clean(struct sm_store *store, struct qf_err *err)
{
    qf_rc rc = QF_OK;

    if (store->lock_file >= 0)
        rc = remove_undefined(store, err);
    if (rc == QF_OK && store->lock_file >= 0)
        rc = sm_snapshots_clean(store, err);
    sm_shards_idle(store, qf_clock_mono_ms());
    return rc;
}

qf_rc sm_store_upkeep(struct sm_store *store, struct qf_str name, int64_t now_ms,
                      struct sm_upkeep *ret_upkeep, struct qf_err *err)
{
    struct sm_definition definition;
    struct sm_shard *shard;
    struct sm_cutoffs cutoffs;
    qf_rc rc = sm_store_definition(store, name, &definition, err);

    *ret_upkeep = (struct sm_upkeep){ 0 };
    cutoffs = sm_definition_cutoffs(&definition, now_ms);
    if (rc != QF_OK || (cutoffs.condense == INT64_MIN && cutoffs.retain == INT64_MIN))
        return rc;
    rc = sm_shard_take(store, &definition, 0, &shard, err);
    if (rc != QF_OK)
        return rc;
    rc = sm_upkeep(shard->env, cutoffs, ret_upkeep, err);
    sm_shard_give_back(store, shard);
    return rc;
}
