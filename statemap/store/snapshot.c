/* snapshot.c - copies of maps that stay as they are, each with a sum. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/sys/clock.h"
#include "base/sys/small_file.h"
#include "statemap/store/store_int.h"

#define SUM_FILE "sum"
enum { BUFFER = 1 << 20 };

char *sm_snapshot_path(const struct sm_store *store, const char *name, uint64_t version)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;

    qf_strbuf_printf(&path, "%s/snapshots/%s/%016" PRIx64, store->root, name, version);
    return qf_strbuf_take(&path);
}

static qf_rc sum_of(const char *folder, struct qf_strbuf *text, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *path = sm_path(folder, SM_DATA_FILE, NULL);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    XXH3_state_t *state;
    char *buffer;
    ssize_t len = -1;

    if (file < 0)
        return qf_err_set(err, errno == ENOENT ? QF_ENOTFOUND : QF_EIO, "%s: %s", path,
                          strerror(errno));
    state = XXH3_createState();
    buffer = qf_xmalloc(BUFFER);
    (void)XXH3_64bits_reset(state);
    while ((len = read(file, buffer, BUFFER)) > 0)
        (void)XXH3_64bits_update(state, buffer, (size_t)len);
    qf_strbuf_printf(text, "%016" PRIx64 "\n", XXH3_64bits_digest(state));
    (void)XXH3_freeState(state);
    free(buffer);
    (void)close(file);
    return len < 0 ? qf_err_set(err, QF_EIO, "%s cannot be read", path) : QF_OK;
}

qf_rc sm_snapshot_check(const char *path, const char *name, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf sum = QF_STRBUF_INIT, written = QF_STRBUF_INIT;
    QF_CLEANUP(qf_freep) char *file = sm_path(path, SUM_FILE, NULL);
    struct stat seen;
    qf_rc rc = sum_of(path, &sum, err);

    if (rc == QF_OK)
        rc = qf_small_file_read(file, "the sum of a snapshot", 64, &written, &seen, err);
    if (rc == QF_OK && !qf_str_eq(qf_strbuf_view(&sum), qf_strbuf_view(&written)))
        rc = qf_err_set(err, QF_ECORRUPT, "the snapshot %s of map %s is damaged", path, name);
    return rc;
}

/* What a copy says its version is: the map may have gone on since anybody looked. */
static qf_rc version_of(struct sm_store *store, const struct sm_definition *definition,
                        const char *folder, uint64_t *ret_version, struct qf_err *err)
{
    struct sm_env_options options = sm_env_options_of(store, definition, folder);
    struct sm_txn *txn;
    struct sm_env *env;
    qf_rc rc;

    options.fixed = true;
    rc = sm_env_open(&options, &env, err);
    if (rc != QF_OK)
        return rc;
    rc = sm_read_begin(env, &txn, err);
    if (rc == QF_OK) {
        *ret_version = sm_about(txn).version;
        (void)sm_end(txn);
    }
    (void)sm_env_close(env);
    return rc;
}

static qf_rc copy(struct sm_store *store, const struct sm_definition *definition,
                  const char *folder, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf sum = QF_STRBUF_INIT;
    struct sm_shard *shard;
    qf_rc rc = sm_folder_empty(folder, err);

    if (rc == QF_OK)
        rc = sm_shard_take(store, definition, 0, &shard, err);
    if (rc != QF_OK)
        return rc;
    rc = sm_env_copy(shard->env, folder, err);
    sm_shard_give_back(store, shard);
    if (rc == QF_OK)
        rc = sum_of(folder, &sum, err);
    if (rc == QF_OK)
        rc = sm_file_replace(folder, SUM_FILE, qf_strbuf_view(&sum), err);
    return rc;
}

qf_rc sm_snapshot_newest(struct sm_store *store, struct qf_str name, uint64_t *ret_version,
                         struct qf_err *err)
{
    QF_CLEANUP(sm_names_done) struct sm_names versions = { 0 };
    QF_CLEANUP(qf_freep) char *folder = NULL;
    char folded[SM_NAME_MAX + 1];
    qf_rc rc;

    if (!sm_name_fold(name, folded))
        return qf_err_set(err, QF_EINVAL, "not the name of a map");
    folder = sm_path(store->root, "snapshots", folded);
    rc = sm_folder_list(folder, &versions, err);
    if (rc == QF_OK)
        *ret_version = versions.names.count
                           ? strtoull(versions.names.items[versions.names.count - 1], NULL, 16)
                           : 0;
    return rc;
}

/* It takes the place of the one before, which is kept for a while from now on. */
static void age_former(struct sm_store *store, const char *name)
{
    QF_CLEANUP(qf_freep) char *path = NULL;
    uint64_t former = 0;

    if (sm_snapshot_newest(store, qf_str_from(name), &former, NULL) != QF_OK || !former)
        return;
    path = sm_snapshot_path(store, name, former);
    (void)utimensat(AT_FDCWD, path, NULL, 0);
}

static qf_rc folder_of(const struct sm_store *store, struct qf_str name, uint64_t version,
                       char **ret_folder, struct qf_err *err)
{
    char folded[SM_NAME_MAX + 1];

    if (!sm_name_fold(name, folded))
        return qf_err_set(err, QF_EINVAL, "not the name of a map");
    *ret_folder = sm_snapshot_path(store, folded, version);
    return QF_OK;
}

qf_rc sm_snapshot_verify(struct sm_store *store, struct qf_str name, uint64_t version,
                         struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *folder = NULL;
    qf_rc rc = folder_of(store, name, version, &folder, err);

    return rc == QF_OK ? sm_snapshot_check(folder, "asked for", err) : rc;
}

qf_rc sm_snapshot_remove(struct sm_store *store, struct qf_str name, uint64_t version,
                         struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *folder = NULL;
    qf_rc rc = folder_of(store, name, version, &folder, err);

    return rc == QF_OK ? sm_folder_remove(folder, err) : rc;
}

qf_rc sm_snapshot_open(struct sm_store *store, struct qf_str name, uint64_t version,
                       struct sm_snapshot_file *ret_file, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    QF_CLEANUP(qf_freep) char *folder = NULL, *data = NULL, *sum = NULL;
    struct stat seen;
    qf_rc rc = folder_of(store, name, version, &folder, err);
    int file;

    if (rc != QF_OK)
        return rc;
    data = sm_path(folder, SM_DATA_FILE, NULL);
    sum = sm_path(folder, SUM_FILE, NULL);
    file = open(data, O_RDONLY | O_CLOEXEC);
    if (file < 0 && errno == ENOENT)
        return qf_err_set(err, QF_ENOTFOUND, "map %.*s has no snapshot %" PRIu64 " here (any more)",
                          QF_STR_ARG(name), version);
    if (file < 0)
        return qf_err_set(err, QF_EIO, "%s: %s", data, strerror(errno));
    rc = qf_small_file_read(sum, "the sum of a snapshot", 64, &text, &seen, err);
    if (rc == QF_OK && (text.len != 17 || fstat(file, &seen) < 0))
        rc = qf_err_set(err, QF_ECORRUPT, "%s is damaged", sum);
    if (rc != QF_OK) {
        (void)close(file);
        return rc;
    }
    *ret_file = (struct sm_snapshot_file){ .file = file, .size = (uint64_t)seen.st_size };
    memcpy(ret_file->sum, text.data, 16);
    return QF_OK;
}

qf_rc sm_snapshot_make(struct sm_store *store, struct qf_str name, uint64_t *ret_version,
                       struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *merging = sm_path(store->root, "merging", "-snapshot");
    QF_CLEANUP(qf_freep) char *folder = NULL;
    QF_CLEANUP(qf_freep) char *path = NULL;
    struct sm_definition definition;
    uint64_t version;
    qf_rc rc;

    if (store->lock_file < 0)
        return qf_err_set(err, QF_EINVAL, "the maps are open for reading alone");
    rc = sm_store_definition(store, name, &definition, err);
    if (rc == QF_OK)
        rc = sm_store_version(store, name, &version, err);
    if (rc != QF_OK)
        return rc;
    path = sm_snapshot_path(store, definition.name, version);
    if (sm_exists(path)) {
        *ret_version = version;
        return QF_OK;
    }
    free(QF_TAKE(path));
    rc = copy(store, &definition, merging, err);
    if (rc == QF_OK)
        rc = version_of(store, &definition, merging, &version, err);
    if (rc == QF_OK) {
        folder = sm_path(store->root, "snapshots", definition.name);
        path = sm_snapshot_path(store, definition.name, version);
        rc = sm_folder_make(folder, err);
    }
    sm_step_done(store, "copied a snapshot");
    if (rc == QF_OK)
        age_former(store, definition.name);
    if (rc == QF_OK)
        rc = sm_exists(path) ? sm_folder_remove(merging, err) : sm_move(merging, path, folder, err);
    if (rc == QF_OK)
        *ret_version = version;
    return rc;
}

/* Snapshots of a map, without the newest one, that are older than they need be. */
static qf_rc clean_map(struct sm_store *store, const char *name, bool defined, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *folder = sm_path(store->root, "snapshots", name);
    QF_CLEANUP(sm_names_done) struct sm_names versions = { 0 };
    qf_rc rc = sm_folder_list(folder, &versions, err);

    for (size_t i = 0; i < versions.names.count && rc == QF_OK; i++) {
        const char *version = versions.names.items[i];
        QF_CLEANUP(qf_freep) char *path = sm_path(folder, version, NULL);
        bool newest = i + 1 == versions.names.count;
        struct stat seen;

        if (defined && (newest || stat(path, &seen) < 0 ||
                        qf_clock_wall_ms() - (int64_t)seen.st_mtime * 1000 < SM_SNAPSHOT_KEEP_MS))
            continue;
        if (sm_shard_close(store, name, strtoull(version, NULL, 16)))
            rc = sm_folder_remove(path, err);
    }
    if (!defined)
        (void)rmdir(folder); /* unless some are in use */
    return rc;
}

qf_rc sm_snapshots_clean(struct sm_store *store, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *folder = sm_path(store->root, "snapshots", NULL);
    QF_CLEANUP(sm_names_done) struct sm_names names = { 0 };
    qf_rc rc = sm_folder_list(folder, &names, err);

    for (size_t i = 0; i < names.names.count && rc == QF_OK; i++) {
        struct sm_definition definition;
        qf_rc defined =
            sm_store_definition(store, qf_str_from(names.names.items[i]), &definition, NULL);

        rc = clean_map(store, names.names.items[i], defined != QF_ENOTFOUND, err);
    }
    return rc;
}
