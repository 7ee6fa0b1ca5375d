/* open.c - a keeper's folder: made, locked, read. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "base/sys/private_dir.h"
#include "base/sys/small_file.h"
#include "ring/keeper/keeper_int.h"

#define UPLOADS_MAX 64
#define EPOCHS_BYTES_MAX ((size_t)64 << 10)

static qf_rc fail(struct qf_err *err, const char *dir, const char *what)
{
    return qf_err_set(err, errno == EACCES ? QF_EDENIED : QF_EIO, "%s: cannot %s: %s", dir, what,
                      strerror(errno));
}

/* --- small files, replaced as a whole --- */

static bool write_all(int fd, struct qf_str bytes)
{
    while (bytes.len) {
        ssize_t wrote = write(fd, bytes.data, bytes.len);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        bytes = qf_str_sub(bytes, (size_t)wrote, bytes.len);
    }
    return true;
}

/* DIR/NAME has @bytes, durably. */
static bool replace_file(int root, const char *name, struct qf_str bytes)
{
    char temporary[64];
    int fd;
    bool ok;

    (void)snprintf(temporary, sizeof(temporary), "tmp/.%s", name);
    fd = openat(root, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return false;
    ok = write_all(fd, bytes) && fsync(fd) == 0;
    ok &= close(fd) == 0;
    return ok && renameat(root, temporary, root, name) == 0 && fsync(root) == 0;
}

bool kp_save_epochs(struct kp_keeper *keeper)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;

    bool ok;

    rg_keep_encode(&bytes, &keeper->keep);
    ok = replace_file(keeper->root, "epochs", qf_strbuf_view(&bytes));
    /* In memory there is more than on the disk: nothing that rests on it may be said. */
    if (!ok && !keeper->failed)
        QF_LOG_ERROR("epochs cannot be written: this keeper says nothing until they can",
                     QF_KV_STR("dir", keeper->options.dir), QF_KV_STR("error", strerror(errno)));
    if (ok && keeper->failed)
        QF_LOG_INFO("epochs are written again", QF_KV_STR("dir", keeper->options.dir));
    keeper->failed = !ok;
    return ok;
}

/* --- lives --- */

static bool read_life(struct kp_keeper *keeper)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf epochs = QF_STRBUF_INIT;
    struct stat seen;
    char *end;

    qf_strbuf_printf(&path, "%s/incarnation", keeper->options.dir);
    if (qf_small_file_read(qf_strbuf_cstr(&path), "incarnation", 64, &text, &seen, NULL) != QF_OK)
        return false;
    keeper->incarnation = strtoull(qf_strbuf_cstr(&text), &end, 16);
    if (end != qf_strbuf_cstr(&text) + 16 || !keeper->incarnation)
        return false;
    qf_strbuf_reset(&path);
    qf_strbuf_printf(&path, "%s/epochs", keeper->options.dir);
    return qf_small_file_read(qf_strbuf_cstr(&path), "epochs", EPOCHS_BYTES_MAX, &epochs, &seen,
                              NULL) == QF_OK &&
           rg_keep_decode(qf_strbuf_view(&epochs), &keeper->keep) == QF_OK;
}

static qf_rc begin_life(struct kp_keeper *keeper, struct qf_err *err)
{
    char text[20];

    memset(&keeper->keep, 0, sizeof(keeper->keep));
    keeper->keep.slots = RG_SLOTS;
    keeper->incarnation = 0;
    while (!keeper->incarnation)
        if (getrandom(&keeper->incarnation, sizeof(keeper->incarnation), 0) !=
            (ssize_t)sizeof(keeper->incarnation))
            return fail(err, keeper->options.dir, "get random bytes");
    (void)snprintf(text, sizeof(text), "%016" PRIx64 "\n", keeper->incarnation);
    /* Epochs first: an incarnation stands for them. */
    if (!kp_save_epochs(keeper) || !replace_file(keeper->root, "incarnation", qf_str_from(text)))
        return fail(err, keeper->options.dir, "begin");
    QF_LOG_INFO("this disk begins its life in the ring", QF_KV_STR("dir", keeper->options.dir),
                QF_KV_STR("incarnation", text));
    return QF_OK;
}

/* --- folders --- */

static qf_rc make_folders(struct kp_keeper *keeper, struct qf_err *err)
{
    static const char *const names[] = { "blobs", "docs", "tmp" };
    const char *dir = keeper->options.dir;

    if (qf_private_dir(dir, err))
        return err->rc;
    keeper->root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (keeper->root < 0)
        return fail(err, dir, "open");
    for (size_t i = 0; i < QF_COUNT_OF(names); i++)
        if (mkdirat(keeper->root, names[i], 0700) != 0 && errno != EEXIST)
            return fail(err, dir, "make folders");
    if (fsync(keeper->root) != 0)
        return fail(err, dir, "sync");
    keeper->lock_fd = openat(keeper->root, "lock", O_CREAT | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (keeper->lock_fd < 0)
        return fail(err, dir, "lock");
    if (flock(keeper->lock_fd, LOCK_EX | LOCK_NB) != 0)
        return qf_err_set(err, QF_EIO, "%s is in use by another keeper", dir);
    return QF_OK;
}

static bool unlink_one(void *ctx, const struct sg_store_object *object)
{
    char path[300];

    (void)snprintf(path, sizeof(path), "tmp/%.*s", QF_STR_ARG(object->name));
    (void)unlinkat(*(int *)ctx, path, 0);
    return true;
}

static qf_rc sweep(struct kp_keeper *keeper, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    QF_CLEANUP(sg_store_freep) struct sg_store *store = NULL;
    qf_rc rc;

    qf_strbuf_printf(&path, "%s/tmp", keeper->options.dir);
    rc = sg_store_open(&(struct sg_store_options){ .url = qf_strbuf_cstr(&path) }, &store, err);
    if (rc)
        return rc;
    return sg_store_list(store, QF_STR(""), QF_STR(""), NULL, unlink_one, &keeper->root, err);
}

/* "SSSS/NAME~SUM" */
static bool note_blob(void *ctx, const struct sg_store_object *object)
{
    struct kp_keeper *keeper = ctx;
    struct qf_str file = object->name, name;
    struct rg_sum sum;
    uint32_t slot = 0;

    if (file.len < 5 + 1 + 1 + RG_SUM_TEXT || file.data[4] != '/' ||
        file.data[file.len - RG_SUM_TEXT - 1] != '~' ||
        sscanf(file.data, "%4" SCNx32, &slot) != 1 || slot >= RG_SLOTS ||
        !rg_sum_parse(qf_str_sub(file, file.len - RG_SUM_TEXT, file.len), &sum))
        return true;
    name = qf_str_sub(file, 5, file.len - RG_SUM_TEXT - 1);
    if (rg_blob_name_valid(name) && !kp_find(keeper, name))
        kp_add(keeper, name, slot, object->size, &sum, qf_clock_mono_ms());
    return true;
}

static qf_rc read_blobs(struct kp_keeper *keeper, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    QF_CLEANUP(sg_store_freep) struct sg_store *store = NULL;
    qf_rc rc;

    qf_strbuf_printf(&path, "%s/blobs", keeper->options.dir);
    rc = sg_store_open(&(struct sg_store_options){ .url = qf_strbuf_cstr(&path) }, &store, err);
    if (rc == QF_OK)
        rc = sg_store_list(store, QF_STR(""), QF_STR(""), NULL, note_blob, keeper, err);
    qf_strbuf_reset(&path);
    qf_strbuf_printf(&path, "%s/docs", keeper->options.dir);
    if (rc == QF_OK)
        rc = sg_store_open(&(struct sg_store_options){ .url = qf_strbuf_cstr(&path) },
                           &keeper->docs, err);
    return rc;
}

qf_rc kp_open(const struct kp_options *options, struct kp_keeper **ret_keeper, struct qf_err *err)
{
    struct kp_keeper *keeper = qf_xcalloc(1, sizeof(*keeper));
    struct qf_err own = { 0 };
    qf_rc rc;

    keeper->options = *options;
    keeper->options.dir = qf_xstrdup(options->dir);
    if (!keeper->options.uploads_max)
        keeper->options.uploads_max = UPLOADS_MAX;
    keeper->root = keeper->lock_fd = -1;
    keeper->lock = qf_lock_new();
    keeper->doc_lock = qf_lock_new();
    keeper->uploads = qf_xcalloc(keeper->options.uploads_max, sizeof(*keeper->uploads));
    rc = make_folders(keeper, &own);
    if (rc == QF_OK)
        rc = sweep(keeper, &own);
    if (rc == QF_OK && !read_life(keeper))
        rc = begin_life(keeper, &own);
    if (rc == QF_OK)
        rc = read_blobs(keeper, &own);
    if (rc) {
        (void)kp_free(keeper);
        return qf_err_set(err, rc, "%s", own.msg);
    }
    *ret_keeper = keeper;
    return QF_OK;
}

struct kp_keeper *kp_free(struct kp_keeper *keeper)
{
    if (!keeper)
        return NULL;
    kp_uploads_done(keeper);
    for (size_t i = 0; i < keeper->entries.count; i++)
        free(keeper->entries.items[i].name);
    QF_VEC_DONE(&keeper->entries);
    qf_map_done(&keeper->places);
    (void)sg_store_free(keeper->docs);
    (void)qf_lock_free(keeper->lock);
    (void)qf_lock_free(keeper->doc_lock);
    if (keeper->lock_fd >= 0)
        (void)close(keeper->lock_fd);
    if (keeper->root >= 0)
        (void)close(keeper->root);
    free((char *)keeper->options.dir);
    free(keeper);
    return NULL;
}
