/* local.c - a store in a folder of this machine.
 *
 * Everything is opened relative to the descriptor of the root folder with names that were checked,
 * and no symbolic link is followed, so no name leads out of it. Writers use names that start with
 * '.', which no reader sees. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/vec.h"
#include "base/sys/clock.h"
#include "segments/store/beneath.h"
#include "segments/store/store_int.h"

#define TEMPORARY_PREFIX ".tmp-"
/* tenant/date/file is three levels. */
#define DEPTH_MAX 16
#define COPY_BYTES ((size_t)1 << 20)
#define PUT_TRIES_MAX 3
/* File systems stamp changes with a clock of up to two seconds' grain: a folder changed just now
 * may change again under the same stamp. */
#define TOKEN_SETTLE_NS INT64_C(2000000000)

struct local_store {
    struct sg_store base;
    int root;
};

static const struct sg_store_ops local_ops;

static void close_fd(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

static int make_folders(char *path)
{
    for (char *at = path + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        if (mkdir(path, 0777) && errno != EEXIST)
            return errno;
        *at = '/';
    }
    return mkdir(path, 0777) && errno != EEXIST ? errno : 0;
}

qf_rc local_store_open(const struct sg_store_options *options, const char *path,
                       struct sg_store **ret_store, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *copy = qf_xstrdup(path);
    QF_CLEANUP(qf_freep) char *real = NULL;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf url = QF_STRBUF_INIT;
    struct local_store *store;
    int error = options->create ? make_folders(copy) : 0;
    int root;

    if (error)
        return qf_err_set(err, sg_store_rc_from_errno(error), "store %s: %s", path,
                          strerror(error));
    root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return qf_err_set(err, sg_store_rc_from_errno(errno), "store %s: %s", path,
                          strerror(errno));
    real = realpath(path, NULL);
    store = qf_xcalloc(1, sizeof(*store));
    store->base.ops = &local_ops;
    store->root = root;
    qf_strbuf_printf(&url, "file://%s", real ? real : path);
    store->base.url = qf_strbuf_take(&url);
    *ret_store = &store->base;
    return QF_OK;
}

static void local_close(struct sg_store *base)
{
    struct local_store *store = (struct local_store *)base;

    (void)close(store->root);
    free(store);
}

static qf_rc fail(struct qf_err *err, int error, struct qf_str name, const char *doing)
{
    return qf_err_set(err, sg_store_rc_from_errno(error), "%.*s: cannot %s: %s", QF_STR_ARG(name),
                      doing, strerror(error));
}

static int64_t mtime_ns(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static void print_etag(const struct stat *st, char *out, size_t size)
{
    (void)snprintf(out, size, "%llx-%llx-%llx", (unsigned long long)st->st_size,
                   (unsigned long long)mtime_ns(st), (unsigned long long)st->st_ino);
}

/* Open @name for reading. A folder or a device is not an object. */
static qf_rc open_object(struct sg_store *base, struct qf_str name, int *ret_fd,
                         struct stat *ret_st, struct qf_err *err)
{
    struct local_store *store = (struct local_store *)base;
    QF_CLEANUP(qf_freep) char *path = qf_xmemdup0(name.data, name.len);
    int fd;

    atomic_fetch_add_explicit(&base->requests, 1, memory_order_relaxed);
    fd = sg_store_open_beneath(store->root, path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return fail(err, errno, name, "open");
    if (fstat(fd, ret_st)) {
        int error = errno;

        (void)close(fd);
        return fail(err, error, name, "stat");
    }
    if (!S_ISREG(ret_st->st_mode)) {
        (void)close(fd);
        return qf_err_set(err, QF_ENOTFOUND, "%.*s is not a file", QF_STR_ARG(name));
    }
    *ret_fd = fd;
    return QF_OK;
}

static qf_rc local_open_object(struct sg_store *base, struct qf_str name, int *ret_fd,
                               struct qf_err *err)
{
    struct stat st;

    return open_object(base, name, ret_fd, &st, err);
}

static qf_rc local_stat(struct sg_store *base, struct qf_str name,
                        const struct sg_store_limit *limit, struct sg_store_info *ret_info,
                        struct qf_err *err)
{
    QF_CLEANUP(close_fd) int fd = -1;
    struct stat st;
    qf_rc rc = open_object(base, name, &fd, &st, err);

    (void)limit;
    if (rc)
        return rc;
    ret_info->size = (uint64_t)st.st_size;
    ret_info->mtime_ms = mtime_ns(&st) / 1000000;
    print_etag(&st, ret_info->etag, sizeof(ret_info->etag));
    return QF_OK;
}

/* Read up to @len bytes; fewer only at the end of the file. */
static qf_rc read_at(struct sg_store *base, struct qf_str name, int fd, uint64_t offset, char *buf,
                     size_t len, size_t *ret_len, struct qf_err *err)
{
    size_t done = 0;

    while (done < len) {
        ssize_t got = pread(fd, buf + done, len - done, (off_t)(offset + done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail(err, errno, name, "read");
        if (got == 0)
            break;
        done += (size_t)got;
    }
    atomic_fetch_add_explicit(&base->bytes_read, done, memory_order_relaxed);
    *ret_len = done;
    return QF_OK;
}

static qf_rc local_read(struct sg_store *base, struct qf_str name, uint64_t offset, void *buf,
                        size_t len, const struct sg_store_limit *limit, size_t *ret_len,
                        struct qf_err *err)
{
    QF_CLEANUP(close_fd) int fd = -1;
    struct stat st;
    qf_rc rc = open_object(base, name, &fd, &st, err);

    (void)limit;
    return rc ? rc : read_at(base, name, fd, offset, buf, len, ret_len, err);
}

static qf_rc local_read_tail(struct sg_store *base, struct qf_str name, void *buf, size_t len,
                             const struct sg_store_limit *limit, size_t *ret_len,
                             uint64_t *ret_size, struct qf_err *err)
{
    QF_CLEANUP(close_fd) int fd = -1;
    struct stat st;
    uint64_t size;
    qf_rc rc = open_object(base, name, &fd, &st, err);

    (void)limit;
    if (rc)
        return rc;
    size = (uint64_t)st.st_size;
    if (len > size)
        len = (size_t)size;
    rc = read_at(base, name, fd, size - len, buf, len, ret_len, err);
    if (!rc && *ret_len != len)
        rc = qf_err_set(err, QF_EIO, "%.*s became shorter while it was read", QF_STR_ARG(name));
    if (!rc)
        *ret_size = size;
    return rc;
}

static qf_rc copy_out(struct sg_store *base, struct qf_str name, int fd, uint64_t size,
                      const struct sg_store_sink *sink, const struct sg_store_limit *limit,
                      struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *chunk = sink->fd >= 0 ? qf_xmalloc(COPY_BYTES) : NULL;

    for (uint64_t offset = 0; offset < size;) {
        size_t want = size - offset < COPY_BYTES ? (size_t)(size - offset) : COPY_BYTES;
        char *to = chunk ? chunk : sink->buf + offset;
        size_t got = 0;
        int error;
        qf_rc rc = sg_store_limit_check(limit, name, err);

        if (!rc)
            rc = read_at(base, name, fd, offset, to, want, &got, err);
        if (rc)
            return rc;
        if (got != want)
            return qf_err_set(err, QF_EIO, "%.*s became shorter while it was read",
                              QF_STR_ARG(name));
        error = chunk ? sg_store_pwrite_all(sink->fd, chunk, got, offset) : 0;
        if (error)
            return fail(err, error, name, "write a copy of it");
        offset += got;
    }
    return QF_OK;
}

static qf_rc local_read_whole(struct sg_store *base, struct qf_str name,
                              const struct sg_store_sink *sink, const struct sg_store_limit *limit,
                              uint64_t *ret_size, struct qf_err *err)
{
    QF_CLEANUP(close_fd) int fd = -1;
    struct stat st;
    uint64_t size;
    qf_rc rc = open_object(base, name, &fd, &st, err);

    if (rc)
        return rc;
    size = (uint64_t)st.st_size;
    if (size > sink->capacity)
        return qf_err_set(err, QF_ELIMIT, "%.*s has %llu bytes, at most %zu were expected",
                          QF_STR_ARG(name), (unsigned long long)size, sink->capacity);
    if (sink->fd >= 0 && ftruncate(sink->fd, (off_t)size))
        return fail(err, errno, name, "make room for a copy of it");
    rc = copy_out(base, name, fd, size, sink, limit, err);
    if (!rc)
        *ret_size = size;
    return rc;
}

static qf_rc write_bytes(struct qf_str name, int fd, const struct sg_store_bytes *bytes,
                         const struct sg_store_limit *limit, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *chunk = bytes->data ? NULL : qf_xmalloc(COPY_BYTES);

    for (uint64_t offset = 0; offset < bytes->size;) {
        size_t want =
            bytes->size - offset < COPY_BYTES ? (size_t)(bytes->size - offset) : COPY_BYTES;
        ssize_t got = (ssize_t)want;
        int error;
        qf_rc rc = sg_store_limit_check(limit, name, err);

        if (rc)
            return rc;
        if (chunk)
            got = pread(bytes->fd, chunk, want, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail(err, errno, name, "read what to put");
        if (got == 0)
            return qf_err_set(err, QF_EIO, "%.*s: the file to put ends at byte %llu of %llu",
                              QF_STR_ARG(name), (unsigned long long)offset,
                              (unsigned long long)bytes->size);
        error = sg_store_pwrite_all(fd, chunk ? chunk : bytes->data + offset, (size_t)got, offset);
        if (error)
            return fail(err, error, name, "write");
        offset += (uint64_t)got;
    }
    if (fsync(fd))
        return fail(err, errno, name, "sync");
    return QF_OK;
}

static void temporary_name(char *out, size_t size)
{
    static atomic_uint counter;
    uint64_t salt = (uint64_t)qf_clock_mono_ns();

    (void)!getrandom(&salt, sizeof(salt), GRND_NONBLOCK);
    (void)snprintf(out, size, TEMPORARY_PREFIX "%d-%u-%016llx", (int)getpid(),
                   atomic_fetch_add(&counter, 1), (unsigned long long)salt);
}

/* Give the file its name, of which there must be none yet. An errno, or 0. */
static int link_new(int folder, const char *temporary, const char *leaf)
{
    if (linkat(folder, temporary, folder, leaf, 0) == 0) {
        (void)unlinkat(folder, temporary, 0);
        return 0;
    }
    if (errno == EEXIST)
        return EEXIST;
    /* A file system without hard links. */
    return renameat2(folder, temporary, folder, leaf, RENAME_NOREPLACE) == 0 ? 0 : errno;
}

static qf_rc name_file(struct qf_str name, int folder, const char *temporary, const char *leaf,
                       bool only_new, struct qf_err *err)
{
    int error = 0;

    if (only_new)
        error = link_new(folder, temporary, leaf);
    else if (renameat(folder, temporary, folder, leaf))
        error = errno;
    if (error == EEXIST)
        return qf_err_set(err, QF_EEXIST, "%.*s is there already", QF_STR_ARG(name));
    if (only_new && (error == EINVAL || error == ENOSYS))
        return qf_err_set(err, QF_EUNSUPPORTED,
                          "%.*s: the file system cannot create only new names", QF_STR_ARG(name));
    return error ? fail(err, error, name, "rename") : QF_OK;
}

static qf_rc put_in_folder(struct qf_str name, int folder, const char *leaf, bool only_new,
                           const struct sg_store_bytes *bytes, const struct sg_store_limit *limit,
                           struct qf_err *err)
{
    QF_CLEANUP(close_fd) int fd = -1;
    char temporary[64];
    qf_rc rc;

    temporary_name(temporary, sizeof(temporary));
    fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return fail(err, errno, name, "create");
    rc = write_bytes(name, fd, bytes, limit, err);
    if (!rc)
        rc = name_file(name, folder, temporary, leaf, only_new, err);
    if (rc) {
        (void)unlinkat(folder, temporary, 0);
        return rc;
    }
    if (fsync(folder))
        return fail(err, errno, name, "sync the folder of");
    return QF_OK;
}

static qf_rc put_file(struct sg_store *base, struct qf_str name, bool only_new,
                      const struct sg_store_bytes *bytes, const struct sg_store_limit *limit,
                      struct qf_err *err)
{
    struct local_store *store = (struct local_store *)base;
    QF_CLEANUP(qf_freep) char *path = qf_xmemdup0(name.data, name.len);
    const char *slash = strrchr(path, '/');
    qf_rc rc = QF_ENOTFOUND;

    atomic_fetch_add_explicit(&base->requests, 1, memory_order_relaxed);
    /* A sweep may remove a folder just when it is about to be used. */
    for (int tries = 0; rc == QF_ENOTFOUND && tries < PUT_TRIES_MAX; tries++) {
        QF_CLEANUP(close_fd) int folder = -1;
        int error = 0;

        folder = sg_store_make_beneath(store->root, path, &error);
        rc = folder < 0 ? fail(err, error, name, "make the folder of")
                        : put_in_folder(name, folder, slash ? slash + 1 : path, only_new, bytes,
                                        limit, err);
    }
    return rc;
}

static qf_rc local_put(struct sg_store *base, struct qf_str name,
                       const struct sg_store_bytes *bytes, const struct sg_store_limit *limit,
                       struct qf_err *err)
{
    return put_file(base, name, false, bytes, limit, err);
}

static qf_rc local_put_new(struct sg_store *base, struct qf_str name,
                           const struct sg_store_bytes *bytes, const struct sg_store_limit *limit,
                           struct qf_err *err)
{
    return put_file(base, name, true, bytes, limit, err);
}

/* What the file system stamps a new file with: the folder may be another machine's. */
static qf_rc local_clock(struct sg_store *base, const struct sg_store_limit *limit, int64_t *ret_ms,
                         struct qf_err *err)
{
    struct local_store *store = (struct local_store *)base;
    QF_CLEANUP(close_fd) int fd = -1;
    char temporary[64];
    struct stat st;
    int error = 0;

    (void)limit;
    atomic_fetch_add_explicit(&base->requests, 1, memory_order_relaxed);
    temporary_name(temporary, sizeof(temporary));
    fd = openat(store->root, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return fail(err, errno, qf_str_from(base->url), "create a file");
    if (fstat(fd, &st))
        error = errno;
    (void)unlinkat(store->root, temporary, 0);
    if (error)
        return fail(err, error, qf_str_from(base->url), "look at a file");
    *ret_ms = mtime_ns(&st) / 1000000;
    return QF_OK;
}

static qf_rc local_remove(struct sg_store *base, struct qf_str name,
                          const struct sg_store_limit *limit, struct qf_err *err)
{
    struct local_store *store = (struct local_store *)base;
    QF_CLEANUP(qf_freep) char *path = qf_xmemdup0(name.data, name.len);
    QF_CLEANUP(close_fd) int folder = -1;
    char *slash = strrchr(path, '/');

    (void)limit;
    atomic_fetch_add_explicit(&base->requests, 1, memory_order_relaxed);
    if (slash)
        *slash = '\0';
    folder = sg_store_open_beneath(store->root, slash ? path : "", O_RDONLY | O_DIRECTORY);
    if (folder < 0 || unlinkat(folder, slash ? slash + 1 : path, 0)) {
        if (errno == ENOENT || errno == ENOTDIR)
            return QF_OK;
        if (errno == EISDIR)
            return qf_err_set(err, QF_EINVAL, "%.*s is a folder", QF_STR_ARG(name));
        return fail(err, errno, name, "delete");
    }
    if (fsync(folder))
        return fail(err, errno, name, "sync the folder of");
    return QF_OK;
}

/* --- listing --- */

struct entry {
    char *name; /* folders end in '/', which is also what sorts them where S3 would */
    bool folder;
};

struct entries {
    struct entry *items;
    size_t count;
    size_t capacity;
};

static void entries_done(struct entries *entries)
{
    for (size_t i = 0; i < entries->count; i++)
        free(entries->items[i].name);
    QF_VEC_DONE(entries);
}

static int entry_cmp(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static void close_dir(DIR **dir)
{
    if (*dir)
        (void)closedir(*dir);
}

/* Is the object of a name that was just read gone? Any other error means that it may still be
 * there, and a listing without it would be incomplete. */
static bool is_gone(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ELOOP || error == ENAMETOOLONG;
}

enum kind { KIND_OTHER, KIND_FILE, KIND_FOLDER };

/* An errno, or 0. */
static int entry_kind(int folder, const struct dirent *found, enum kind *ret_kind)
{
    struct stat st;

    if (found->d_type == DT_REG || found->d_type == DT_DIR) {
        *ret_kind = found->d_type == DT_DIR ? KIND_FOLDER : KIND_FILE;
        return 0;
    }
    *ret_kind = KIND_OTHER;
    if (fstatat(folder, found->d_name, &st, AT_SYMLINK_NOFOLLOW))
        return is_gone(errno) ? 0 : errno;
    if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
        *ret_kind = S_ISDIR(st.st_mode) ? KIND_FOLDER : KIND_FILE;
    return 0;
}

/* The entries of a folder, sorted; @hidden chooses those that start with '.' instead of the others.
 * A folder that is not there (any more) has none. */
static qf_rc read_folder(int root, const char *path, bool hidden, struct entries *entries,
                         struct qf_err *err)
{
    QF_CLEANUP(close_dir) DIR *dir = NULL;
    int fd = sg_store_open_beneath(root, path, O_RDONLY | O_DIRECTORY);
    struct dirent *found;

    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? QF_OK
                   : fail(err, errno, qf_str_from(path), "open the folder");
    dir = fdopendir(fd);
    if (!dir) {
        (void)close(fd);
        return fail(err, ENOMEM, qf_str_from(path), "open the folder");
    }
    while ((errno = 0, found = readdir(dir))) {
        struct entry entry;
        enum kind kind;
        int error;

        if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0)
            continue;
        error = entry_kind(fd, found, &kind);
        if (error)
            return fail(err, error, qf_str_from(found->d_name), "look at");
        if (kind == KIND_OTHER)
            continue;
        entry.folder = kind == KIND_FOLDER;
        if (hidden ? !entry.folder && found->d_name[0] != '.' : found->d_name[0] == '.')
            continue;
        entry.name = qf_xmalloc(strlen(found->d_name) + 2);
        (void)snprintf(entry.name, strlen(found->d_name) + 2, "%s%s", found->d_name,
                       entry.folder ? "/" : "");
        QF_VEC_PUSH(entries, entry);
    }
    if (errno)
        return fail(err, errno, qf_str_from(path), "read the folder");
    if (entries->count)
        qsort(entries->items, entries->count, sizeof(entries->items[0]), entry_cmp);
    return QF_OK;
}

struct walk {
    struct local_store *store;
    struct qf_str prefix, start_after;
    const struct sg_store_limit *limit;
    sg_store_list_fn *fn;
    void *ctx;
    struct qf_strbuf path;
    bool stop;
};

/* False if nothing below the folder @path can be asked for. */
static bool worth_entering(const struct walk *walk, struct qf_str path)
{
    size_t common = path.len < walk->prefix.len ? path.len : walk->prefix.len;

    if (common && memcmp(path.data, walk->prefix.data, common) != 0)
        return false;
    /* Everything below sorts as the path itself does, unless start_after points inside. */
    return qf_str_starts(walk->start_after, path) || qf_str_cmp(path, walk->start_after) >= 0;
}

static qf_rc list_file(struct walk *walk, struct qf_err *err)
{
    struct qf_str name = qf_strbuf_view(&walk->path);
    struct sg_store_object object = { .name = name };
    struct stat st;
    char etag[64];

    if (!qf_str_starts(name, walk->prefix) || qf_str_cmp(name, walk->start_after) <= 0 ||
        !sg_store_name_valid(name))
        return QF_OK;
    if (fstatat(walk->store->root, qf_strbuf_cstr(&walk->path), &st,
                AT_SYMLINK_NOFOLLOW)) /* or deleted since */
        return is_gone(errno) ? QF_OK : fail(err, errno, name, "look at");
    if (!S_ISREG(st.st_mode))
        return QF_OK;
    print_etag(&st, etag, sizeof(etag));
    object.size = (uint64_t)st.st_size;
    object.mtime_ms = mtime_ns(&st) / 1000000;
    object.etag = qf_str_from(etag);
    walk->stop = !walk->fn(walk->ctx, &object);
    return QF_OK;
}

static qf_rc walk_folder(struct walk *walk, int depth, struct qf_err *err)
{
    QF_CLEANUP(entries_done) struct entries entries = { 0 };
    size_t len = walk->path.len;
    qf_rc rc = sg_store_limit_check(walk->limit, qf_strbuf_view(&walk->path), err);

    if (!rc && depth > DEPTH_MAX)
        rc = qf_err_set(err, QF_ELIMIT, "%s: folders nest deeper than %d",
                        qf_strbuf_cstr(&walk->path), DEPTH_MAX);
    if (!rc)
        rc = read_folder(walk->store->root, qf_strbuf_cstr(&walk->path), false, &entries, err);
    for (size_t i = 0; !rc && !walk->stop && i < entries.count; i++) {
        qf_strbuf_puts(&walk->path, entries.items[i].name);
        if (!entries.items[i].folder)
            rc = list_file(walk, err);
        else if (worth_entering(walk, qf_strbuf_view(&walk->path)))
            rc = walk_folder(walk, depth + 1, err);
        walk->path.len = len;
        walk->path.data[len] = '\0';
        if (!rc && i % 1024 == 1023)
            rc = sg_store_limit_check(walk->limit, qf_strbuf_view(&walk->path), err);
    }
    return rc;
}

static qf_rc local_list(struct sg_store *base, struct qf_str prefix, struct qf_str start_after,
                        const struct sg_store_limit *limit, sg_store_list_fn *fn, void *ctx,
                        struct qf_err *err)
{
    struct walk walk = { .store = (struct local_store *)base,
                         .prefix = prefix,
                         .start_after = start_after,
                         .limit = limit,
                         .fn = fn,
                         .ctx = ctx };
    /* Start in the folder that the prefix names. */
    const char *slash = prefix.len ? memrchr(prefix.data, '/', prefix.len) : NULL;
    qf_rc rc;

    if (slash) {
        struct qf_str folder = qf_str_sub(prefix, 0, (size_t)(slash - prefix.data));

        if (!sg_store_name_valid(folder))
            return QF_OK; /* No valid name starts like this. */
        qf_strbuf_str(&walk.path, folder);
        qf_strbuf_putc(&walk.path, '/');
    }
    atomic_fetch_add_explicit(&base->requests, 1, memory_order_relaxed);
    rc = walk_folder(&walk, 0, err);
    qf_strbuf_done(&walk.path);
    return rc;
}

static uint64_t folder_token(const struct stat *st)
{
    uint64_t stamp = (uint64_t)mtime_ns(st);
    int64_t age_ns = qf_clock_wall_ms() * 1000000 - mtime_ns(st);
    uint64_t token;

    if (age_ns < TOKEN_SETTLE_NS)
        return 0;
    token = stamp * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)st->st_ino;
    return token ? token : 1;
}

static qf_rc local_folders(struct sg_store *base, struct qf_str prefix,
                           const struct sg_store_limit *limit, sg_store_folder_fn *fn, void *ctx,
                           struct qf_err *err)
{
    struct local_store *store = (struct local_store *)base;
    QF_CLEANUP(entries_done) struct entries entries = { 0 };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    qf_rc rc = sg_store_limit_check(limit, prefix, err);

    atomic_fetch_add_explicit(&base->requests, 1, memory_order_relaxed);
    qf_strbuf_str(&path, prefix);
    if (!rc)
        rc = read_folder(store->root, qf_strbuf_cstr(&path), false, &entries, err);
    for (size_t i = 0; !rc && i < entries.count; i++) {
        struct sg_store_folder folder;
        struct stat st;

        if (!entries.items[i].folder)
            continue;
        qf_strbuf_reset(&path);
        qf_strbuf_str(&path, prefix);
        qf_strbuf_puts(&path, entries.items[i].name);
        folder.name = qf_strbuf_view(&path);
        if (!sg_store_name_valid(qf_str_sub(folder.name, 0, folder.name.len - 1)))
            continue;
        if (fstatat(store->root, qf_strbuf_cstr(&path), &st, 0)) {
            rc = is_gone(errno) ? QF_OK : fail(err, errno, folder.name, "look at");
            continue;
        }
        folder.token = folder_token(&st);
        if (!fn(ctx, &folder))
            break;
    }
    return rc;
}

/* --- leftovers --- */

struct sweep {
    struct walk walk;
    int64_t older_than_ms;
    bool dry_run;
    size_t removed;
};

static bool is_old(const struct sweep *sweep, const char *path)
{
    struct stat st;

    return !fstatat(sweep->walk.store->root, path, &st, AT_SYMLINK_NOFOLLOW) &&
           mtime_ns(&st) / 1000000 < sweep->older_than_ms;
}

static void sweep_file(struct sweep *sweep, const char *path, const char *name)
{
    if (strncmp(name, TEMPORARY_PREFIX, sizeof(TEMPORARY_PREFIX) - 1) == 0 && is_old(sweep, path) &&
        (sweep->dry_run || !unlinkat(sweep->walk.store->root, path, 0)))
        sweep->removed++;
}

/* The hidden entries of read_folder() are not all there are. */
static bool is_empty_folder(const struct sweep *sweep, const char *path)
{
    QF_CLEANUP(entries_done) struct entries entries = { 0 };

    return is_old(sweep, path) &&
           read_folder(sweep->walk.store->root, path, false, &entries, NULL) == QF_OK &&
           !entries.count;
}

/* What is below the folder at walk.path, then the folder itself if it was empty all along: a put
 * that is about to use it makes it again. Folders that the sweep itself empties go the next time. */
static qf_rc sweep_folder(struct sweep *sweep, int depth, struct qf_err *err)
{
    QF_CLEANUP(entries_done) struct entries entries = { 0 };
    struct walk *walk = &sweep->walk;
    size_t len = walk->path.len;
    qf_rc rc = sg_store_limit_check(walk->limit, qf_strbuf_view(&walk->path), err);

    if (!rc && depth <= DEPTH_MAX)
        rc = read_folder(walk->store->root, qf_strbuf_cstr(&walk->path), true, &entries, err);
    for (size_t i = 0; !rc && i < entries.count; i++) {
        const struct entry *entry = &entries.items[i];

        qf_strbuf_puts(&walk->path, entry->name);
        if (entry->folder && entry->name[0] != '.')
            rc = sweep_folder(sweep, depth + 1, err);
        else if (!entry->folder)
            sweep_file(sweep, qf_strbuf_cstr(&walk->path), entry->name);
        walk->path.len = len;
        walk->path.data[len] = '\0';
    }
    if (!rc && depth && !entries.count && is_empty_folder(sweep, qf_strbuf_cstr(&walk->path)) &&
        (sweep->dry_run || !unlinkat(walk->store->root, qf_strbuf_cstr(&walk->path), AT_REMOVEDIR)))
        sweep->removed++;
    return rc;
}

static qf_rc local_sweep(struct sg_store *base, int64_t age_ms, bool dry_run,
                         const struct sg_store_limit *limit, size_t *ret_removed,
                         struct qf_err *err)
{
    struct sweep sweep = { .walk = { .store = (struct local_store *)base, .limit = limit },
                           .older_than_ms = qf_clock_wall_ms() - age_ms,
                           .dry_run = dry_run };
    qf_rc rc = sweep_folder(&sweep, 0, err);

    qf_strbuf_done(&sweep.walk.path);
    if (!rc)
        *ret_removed = sweep.removed;
    return rc;
}

static const struct sg_store_ops local_ops = {
    .list = local_list,
    .folders = local_folders,
    .stat = local_stat,
    .read = local_read,
    .read_tail = local_read_tail,
    .read_whole = local_read_whole,
    .put = local_put,
    .put_new = local_put_new,
    .clock = local_clock,
    .remove = local_remove,
    .sweep = local_sweep,
    .close = local_close,
    .open = local_open_object,
    .has_tokens = true,
};
