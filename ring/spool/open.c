/* open.c - a folder of hand-off is made, locked, swept and read. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "base/pure/vec.h"
#include "base/sys/private_dir.h"
#include "ring/spool/spool_int.h"

/* What a start has found so far. */
struct reading {
    struct sp_spool *spool;
    sp_found *found;
    void *ctx;
    struct qf_map referred; /* payloads that somebody lacks, by: */
    QF_VEC(char *) keys;
    char node[RG_NAME_MAX + 1], folder[SP_PATH];
    uint64_t damaged;
};

static void reading_done(struct reading *r)
{
    for (size_t i = 0; i < r->keys.count; i++)
        free(r->keys.items[i]);
    QF_VEC_DONE(&r->keys);
    qf_map_done(&r->referred);
}

static qf_rc fail(const struct sp_spool *spool, const char *what, struct qf_err *err)
{
    return qf_err_set(err, errno == EACCES ? QF_EDENIED : QF_EIO, "%s: cannot %s: %s",
                      spool->options.dir, what, strerror(errno));
}

static qf_rc make_folders(struct sp_spool *spool, struct qf_err *err)
{
    static const char *const names[] = { "store", "refs", "tmp" };

    if (qf_private_dir(spool->options.dir, err))
        return err->rc;
    spool->root = open(spool->options.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (spool->root < 0)
        return fail(spool, "open it", err);
    for (size_t i = 0; i < QF_COUNT_OF(names); i++)
        if (mkdirat(spool->root, names[i], 0700) != 0 && errno != EEXIST)
            return fail(spool, "make folders", err);
    if (fsync(spool->root) != 0)
        return fail(spool, "sync it", err);
    spool->lock_fd = openat(spool->root, "lock", O_CREAT | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (spool->lock_fd < 0)
        return fail(spool, "lock it", err);
    if (flock(spool->lock_fd, LOCK_EX | LOCK_NB) != 0)
        return qf_err_set(err, QF_EIO, "%s is in use by another process", spool->options.dir);
    return QF_OK;
}

/* @each of everything in the folder at @path, but for what begins with a dot. */
static qf_rc walk(struct reading *r, const char *path, void (*each)(struct reading *, const char *),
                  struct qf_err *err)
{
    int fd = openat(r->spool->root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    if (!dir) {
        qf_rc rc = fail(r->spool, "read its folders", err);

        if (fd >= 0)
            (void)close(fd);
        return rc;
    }
    errno = 0;
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            each(r, entry->d_name);
    (void)closedir(dir);
    return QF_OK;
}

static void empty_tmp(struct reading *r, const char *name)
{
    char path[300];

    (void)snprintf(path, sizeof(path), "tmp/%s", name);
    (void)unlinkat(r->spool->root, path, 0);
}

static void sweep_payload(struct reading *r, const char *name)
{
    char path[300];

    (void)snprintf(path, sizeof(path), "store/%s", name);
    if (!qf_map_get(&r->referred, qf_str_from(name)))
        (void)unlinkat(r->spool->root, path, 0);
}

static bool payload_is_whole(const struct sp_spool *spool, const struct sp_part *part)
{
    char path[SP_PATH];
    struct stat seen;

    sp_payload_path(part->name, path);
    return fstatat(spool->root, path, &seen, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(seen.st_mode) &&
           (uint64_t)seen.st_size == part->bytes;
}

static void read_reference(struct reading *r, const char *name)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct sp_part part;
    char path[SP_PATH + 300], key[SP_KEY];
    int64_t time_ms;
    bool whole;

    (void)snprintf(path, sizeof(path), "%s/%s", r->folder, name);
    if (sp_reference_read(r->spool, path, &bytes, &part, &time_ms, NULL) != QF_OK ||
        (sp_key(part.name, key), strcmp(key, name) != 0)) {
        (void)unlinkat(r->spool->root, path, 0);
        r->damaged++;
        return;
    }
    whole = payload_is_whole(r->spool, &part);
    if (!whole) {
        (void)unlinkat(r->spool->root, path, 0);
    } else if (!qf_map_get(&r->referred, qf_str_from(key))) {
        QF_VEC_PUSH(&r->keys, qf_xstrdup(key));
        (void)qf_map_put(&r->referred, qf_str_from(r->keys.items[r->keys.count - 1]), 1, NULL);
    }
    r->found(r->ctx, r->node, &part, time_ms, whole);
}

static void read_node(struct reading *r, const char *name)
{
    if (!sp_node_name(name, r->node))
        return;
    (void)snprintf(r->folder, sizeof(r->folder), "refs/%.*s", SP_NODE, name);
    (void)walk(r, r->folder, read_reference, NULL);
}

qf_rc sp_open(const struct sp_options *options, sp_found *found, void *ctx, uint64_t *ret_damaged,
              struct sp_spool **ret_spool, struct qf_err *err)
{
    struct sp_spool *spool = qf_xcalloc(1, sizeof(*spool));
    struct reading reading = { .spool = spool, .found = found, .ctx = ctx };
    struct qf_err own = { 0 };
    qf_rc rc;

    spool->options = *options;
    spool->options.dir = qf_xstrdup(options->dir);
    spool->root = spool->lock_fd = -1;
    rc = make_folders(spool, &own);
    if (rc == QF_OK)
        rc = walk(&reading, "tmp", empty_tmp, &own);
    if (rc == QF_OK)
        rc = walk(&reading, "refs", read_node, &own);
    if (rc == QF_OK)
        rc = walk(&reading, "store", sweep_payload, &own);
    reading_done(&reading);
    if (rc != QF_OK) {
        (void)sp_close(spool);
        return qf_err_set(err, rc, "%s", own.msg);
    }
    *ret_damaged = reading.damaged;
    *ret_spool = spool;
    return QF_OK;
}

struct sp_spool *sp_close(struct sp_spool *spool)
{
    if (!spool)
        return NULL;
    if (spool->lock_fd >= 0)
        (void)close(spool->lock_fd);
    if (spool->root >= 0)
        (void)close(spool->root);
    free((char *)spool->options.dir);
    free(spool);
    return NULL;
}
