/* spool.c - the folder that holds artifacts. */
#include "queryworker/artifact/spool.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/hex.h"
#include "base/sys/private_dir.h"
#include "base/pure/strbuf.h"

#define TEMP_SUFFIX ".part"

struct qw_spool {
    char *dir;
    int fd;
    struct qw_shelf *shelf;
    bool uses_memory;
};

static qf_rc remove_leftovers(int dir_fd, const char *dir, struct qf_err *err)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    qf_rc rc = QF_OK;

    if (!stream) {
        if (fd >= 0)
            (void)close(fd);
        return qf_err_set(err, QF_EIO, "cannot list %s: %s", dir, strerror(errno));
    }
    while (rc == QF_OK && (entry = readdir(stream)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(dir_fd, entry->d_name, 0) != 0)
            rc = qf_err_set(err, QF_EIO, "cannot remove %s/%s: %s", dir, entry->d_name,
                            strerror(errno));
    }
    (void)closedir(stream);
    return rc;
}

struct qw_spool *qw_spool_open(const char *dir, uint64_t memory_bytes_max, struct qf_err *err)
{
    struct qw_spool *spool;
    int fd;

    if (qf_private_dir(dir, err))
        return NULL;
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        (void)qf_err_set(err, QF_EIO, "cannot open %s: %s", dir, strerror(errno));
        return NULL;
    }
    if (remove_leftovers(fd, dir, err)) {
        (void)close(fd);
        return NULL;
    }
    spool = qf_xcalloc(1, sizeof(*spool));
    spool->dir = qf_xstrdup(dir);
    spool->fd = fd;
    spool->shelf = qw_shelf_new(memory_bytes_max);
    spool->uses_memory = memory_bytes_max > 0;
    return spool;
}

struct qw_spool *qw_spool_free(struct qw_spool *spool)
{
    if (!spool)
        return NULL;
    (void)close(spool->fd);
    (void)qw_shelf_free(spool->shelf);
    free(spool->dir);
    free(spool);
    return NULL;
}

struct qw_token qw_spool_token(void)
{
    unsigned char random[QW_TOKEN_LEN / 2];
    struct qw_token token;
    ssize_t len = getrandom(random, sizeof(random), 0);

    assert(len == (ssize_t)sizeof(random)); /* up to 256 bytes getrandom() never falls short */
    (void)len;
    qf_hex_encode(random, sizeof(random), token.text);
    return token;
}

bool qw_token_valid(struct qf_str text)
{
    if (text.len != QW_TOKEN_LEN)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if ((text.data[i] < '0' || text.data[i] > '9') &&
            (text.data[i] < 'a' || text.data[i] > 'f'))
            return false;
    return true;
}

static void temp_name(const struct qw_token *token, char *out, size_t size)
{
    (void)snprintf(out, size, "%s" TEMP_SUFFIX, token->text);
}

char *qw_spool_temp_path(const struct qw_spool *spool, const struct qw_token *token)
{
    struct qf_strbuf path = QF_STRBUF_INIT;

    qf_strbuf_printf(&path, "%s/%s" TEMP_SUFFIX, spool->dir, token->text);
    return qf_strbuf_take(&path);
}

qf_rc qw_spool_publish(const struct qw_spool *spool, const struct qw_token *token,
                       struct qf_err *err)
{
    char temp[QW_TOKEN_LEN + sizeof(TEMP_SUFFIX)];

    temp_name(token, temp, sizeof(temp));
    if (renameat(spool->fd, temp, spool->fd, token->text) == 0)
        return QF_OK;
    return qf_err_set(err, errno == ENOSPC || errno == EDQUOT ? QF_ENOSPC : QF_EIO,
                      "cannot publish an artifact: %s", strerror(errno));
}

/* A buffer that grew by doubling gives back what it does not need: it stays for a while. */
static void shrink(struct qf_strbuf *bytes)
{
    char *data = bytes->data ? realloc(bytes->data, bytes->len + 1) : NULL;

    if (data) {
        bytes->data = data;
        bytes->capacity = bytes->len + 1;
    }
}

bool qw_spool_keep(struct qw_spool *spool, const struct qw_token *token, struct qf_strbuf *bytes)
{
    struct qf_str kept;

    if (bytes->len > QW_MEMORY_ARTIFACT_MAX)
        return false;
    shrink(bytes);
    kept = (struct qf_str){ bytes->data, bytes->len };
    if (!qw_shelf_put(spool->shelf, (struct qf_str){ token->text, QW_TOKEN_LEN }, kept))
        return false;
    *bytes = (struct qf_strbuf)QF_STRBUF_INIT;
    return true;
}

bool qw_spool_uses_memory(const struct qw_spool *spool)
{
    return spool->uses_memory;
}

struct qw_shelf_item *qw_spool_find(struct qw_spool *spool, struct qf_str token)
{
    return qw_shelf_get(spool->shelf, token);
}

bool qw_spool_crowded(struct qw_spool *spool)
{
    return qw_shelf_crowded(spool->shelf);
}

int qw_spool_open_artifact(const struct qw_spool *spool, struct qf_str token)
{
    char name[QW_TOKEN_LEN + 1];

    if (!qw_token_valid(token))
        return -1;
    memcpy(name, token.data, QW_TOKEN_LEN);
    name[QW_TOKEN_LEN] = '\0';
    return openat(spool->fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

void qw_spool_remove(struct qw_spool *spool, const struct qw_token *token)
{
    char temp[QW_TOKEN_LEN + sizeof(TEMP_SUFFIX)];

    if (qw_shelf_remove(spool->shelf, (struct qf_str){ token->text, QW_TOKEN_LEN }))
        return;
    temp_name(token, temp, sizeof(temp));
    (void)unlinkat(spool->fd, temp, 0);
    (void)unlinkat(spool->fd, token->text, 0);
}

uint64_t qw_spool_disk_free(const struct qw_spool *spool)
{
    struct statvfs info;

    if (fstatvfs(spool->fd, &info) != 0)
        return UINT64_MAX;
    return (uint64_t)info.f_bavail * info.f_frsize;
}
