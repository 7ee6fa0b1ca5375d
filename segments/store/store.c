/* store.c - the front of every store: checks names, keeps time, counts. */
#include "segments/store/store.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "base/pure/path_name.h"
#include "base/sys/clock.h"
#include "segments/store/store_int.h"

qf_rc sg_store_open(const struct sg_store_options *options, struct sg_store **ret_store,
                    struct qf_err *err)
{
    struct qf_str url = qf_str_from(options->url ? options->url : "");
    const char *colon = strstr(url.data, "://");

    if (!url.len)
        return qf_err_set(err, QF_EINVAL, "a store needs a folder or a URL");
    if (qf_str_starts(url, QF_STR("s3://")))
        return s3_store_open(options, qf_str_sub(url, 5, url.len), ret_store, err);
    if (qf_str_starts(url, QF_STR("ring://")))
        return ring_store_open(options, qf_str_sub(url, 7, url.len), ret_store, err);
    if (qf_str_starts(url, QF_STR("file:///")))
        return local_store_open(options, url.data + 7, ret_store, err);
    if (colon && !memchr(url.data, '/', (size_t)(colon - url.data)))
        return qf_err_set(err, QF_EINVAL,
                          "store \"%s\": want a folder, file:///folder, s3://bucket/prefix "
                          "or ring://host:port",
                          url.data);
    return local_store_open(options, url.data, ret_store, err);
}

struct sg_store *sg_store_free(struct sg_store *store)
{
    if (store) {
        free(store->url);
        store->ops->close(store);
    }
    return NULL;
}

void sg_store_freep(struct sg_store **store)
{
    *store = sg_store_free(*store);
}

const char *sg_store_url(const struct sg_store *store)
{
    return store->url;
}

bool sg_store_has_tokens(const struct sg_store *store)
{
    return store->ops->has_tokens;
}

bool sg_store_name_valid(struct qf_str name)
{
    static const struct qf_path_name_rule rule = { SG_STORE_NAME_MAX, SG_STORE_NAME_PART_MAX, 0 };

    return qf_path_name_valid(name, &rule);
}

struct sg_store_limit sg_store_limit_of(const struct sg_store_call *call)
{
    struct sg_store_limit limit = { .deadline_ms = QF_TIME_NEVER };

    if (call) {
        limit.cancel = call->cancel;
        if (call->timeout_ms > 0)
            limit.deadline_ms = qf_clock_mono_ms() + call->timeout_ms;
    }
    return limit;
}

qf_rc sg_store_limit_check(const struct sg_store_limit *limit, struct qf_str what,
                           struct qf_err *err)
{
    if (limit->cancel && atomic_load_explicit(limit->cancel, memory_order_relaxed))
        return qf_err_set(err, QF_ECANCELED, "%.*s: canceled", QF_STR_ARG(what));
    if (limit->deadline_ms != QF_TIME_NEVER && qf_clock_mono_ms() >= limit->deadline_ms)
        return qf_err_set(err, QF_ETIMEOUT, "%.*s: the store took too long", QF_STR_ARG(what));
    return QF_OK;
}

int64_t sg_store_limit_left(const struct sg_store_limit *limit, int64_t most_ms)
{
    int64_t left;

    if (limit->deadline_ms == QF_TIME_NEVER)
        return most_ms;
    left = limit->deadline_ms - qf_clock_mono_ms();
    return left < 0 ? 0 : left < most_ms ? left : most_ms;
}

/* Every call starts here: check the name, work out the limit. */
static qf_rc begin(struct sg_store *store, struct qf_str name, const struct sg_store_call *call,
                   struct sg_store_limit *ret_limit, struct qf_err *err)
{
    (void)store;
    if (!sg_store_name_valid(name))
        return qf_err_set(err, QF_EINVAL, "\"%.*s\" is not a name for an object of a store",
                          QF_STR_ARG(name));
    *ret_limit = sg_store_limit_of(call);
    return sg_store_limit_check(ret_limit, name, err);
}

static qf_rc finish(struct sg_store *store, qf_rc rc)
{
    if (rc)
        atomic_fetch_add_explicit(&store->failures, 1, memory_order_relaxed);
    return rc;
}

qf_rc sg_store_own_identity(struct sg_store *store, const struct sg_store_call *call, char *ret_id,
                            size_t size, struct qf_err *err)
{
    struct sg_store_limit limit = sg_store_limit_of(call);

    if (!store->ops->identity)
        return QF_EUNSUPPORTED;
    return finish(store, store->ops->identity(store, &limit, ret_id, size, err));
}

static bool prefix_valid(struct qf_str prefix)
{
    return prefix.len <= SG_STORE_NAME_MAX && (!prefix.len || !memchr(prefix.data, 0, prefix.len));
}

qf_rc sg_store_list(struct sg_store *store, struct qf_str prefix, struct qf_str start_after,
                    const struct sg_store_call *call, sg_store_list_fn *fn, void *ctx,
                    struct qf_err *err)
{
    struct sg_store_limit limit = sg_store_limit_of(call);

    if (!prefix_valid(prefix) || !prefix_valid(start_after))
        return qf_err_set(err, QF_EINVAL, "a prefix to list is too long or has a NUL");
    return finish(store, store->ops->list(store, prefix, start_after, &limit, fn, ctx, err));
}

qf_rc sg_store_folders(struct sg_store *store, struct qf_str prefix,
                       const struct sg_store_call *call, sg_store_folder_fn *fn, void *ctx,
                       struct qf_err *err)
{
    struct sg_store_limit limit = sg_store_limit_of(call);

    if (prefix.len && (prefix.data[prefix.len - 1] != '/' ||
                       !sg_store_name_valid(qf_str_sub(prefix, 0, prefix.len - 1))))
        return qf_err_set(err, QF_EINVAL, "\"%.*s\" is not a folder's name", QF_STR_ARG(prefix));
    return finish(store, store->ops->folders(store, prefix, &limit, fn, ctx, err));
}

qf_rc sg_store_stat(struct sg_store *store, struct qf_str name, const struct sg_store_call *call,
                    struct sg_store_info *ret_info, struct qf_err *err)
{
    struct sg_store_limit limit;
    qf_rc rc = begin(store, name, call, &limit, err);

    return finish(store, rc ? rc : store->ops->stat(store, name, &limit, ret_info, err));
}

qf_rc sg_store_read(struct sg_store *store, struct qf_str name, uint64_t offset, void *buf,
                    size_t len, const struct sg_store_call *call, size_t *ret_len,
                    struct qf_err *err)
{
    struct sg_store_limit limit;
    qf_rc rc = begin(store, name, call, &limit, err);

    if (!rc && (offset > INT64_MAX || len > INT64_MAX - offset))
        rc = qf_err_set(err, QF_EINVAL, "%.*s: a range beyond all files", QF_STR_ARG(name));
    if (!rc && !len) {
        *ret_len = 0;
        return QF_OK;
    }
    return finish(store,
                  rc ? rc : store->ops->read(store, name, offset, buf, len, &limit, ret_len, err));
}

qf_rc sg_store_read_tail(struct sg_store *store, struct qf_str name, void *buf, size_t len,
                         const struct sg_store_call *call, size_t *ret_len, uint64_t *ret_size,
                         struct qf_err *err)
{
    struct sg_store_limit limit;
    qf_rc rc = begin(store, name, call, &limit, err);

    assert(len > 0);
    return finish(
        store,
        rc ? rc : store->ops->read_tail(store, name, buf, len, &limit, ret_len, ret_size, err));
}

qf_rc sg_store_read_all(struct sg_store *store, struct qf_str name, size_t bytes_max,
                        const struct sg_store_call *call, char **ret_data, size_t *ret_len,
                        struct qf_err *err)
{
    struct sg_store_limit limit;
    struct sg_store_info info = { 0 };
    uint64_t size = 0;
    struct sg_store_sink sink = { .fd = -1 };
    qf_rc rc = begin(store, name, call, &limit, err);

    /* Ask for the size first, so that memory is allocated for the object and not for @bytes_max. */
    if (!rc)
        rc = store->ops->stat(store, name, &limit, &info, err);
    if (!rc && info.size > bytes_max)
        rc = qf_err_set(err, QF_ELIMIT, "%.*s has %llu bytes, at most %zu are allowed here",
                        QF_STR_ARG(name), (unsigned long long)info.size, bytes_max);
    if (rc)
        return finish(store, rc);
    sink.capacity = (size_t)info.size;
    sink.buf = qf_xmalloc(sink.capacity + 1);
    rc = store->ops->read_whole(store, name, &sink, &limit, &size, err);
    if (rc) {
        free(sink.buf);
        return finish(store, rc);
    }
    sink.buf[size] = '\0';
    *ret_data = sink.buf;
    *ret_len = (size_t)size;
    return QF_OK;
}

qf_rc sg_store_read_fd(struct sg_store *store, struct qf_str name, int fd,
                       const struct sg_store_call *call, uint64_t *ret_size, struct qf_err *err)
{
    struct sg_store_limit limit;
    struct sg_store_sink sink = { .fd = fd,
                                  .capacity = call && call->bytes_max ? call->bytes_max : SIZE_MAX,
                                  .etag = call ? call->etag : NULL };
    qf_rc rc = begin(store, name, call, &limit, err);

    return finish(store,
                  rc ? rc : store->ops->read_whole(store, name, &sink, &limit, ret_size, err));
}

qf_rc sg_store_read_part_fd(struct sg_store *store, struct qf_str name,
                            const struct sg_store_part *part, int fd,
                            const struct sg_store_call *call, struct qf_err *err)
{
    struct sg_store_limit limit;
    struct sg_store_sink sink = { .fd = fd, .etag = call ? call->etag : NULL };
    qf_rc rc = begin(store, name, call, &limit, err);

    if (!rc && (!part->len || part->offset > part->object_size ||
                part->len > part->object_size - part->offset || part->object_size > INT64_MAX))
        rc = qf_err_set(err, QF_EINVAL, "%.*s: no part of an object of %llu bytes",
                        QF_STR_ARG(name), (unsigned long long)part->object_size);
    if (!rc && !store->ops->read_part)
        rc = qf_err_set(err, QF_EUNSUPPORTED, "%s: objects are files", store->url);
    return finish(store, rc ? rc : store->ops->read_part(store, name, part, &sink, &limit, err));
}

qf_rc sg_store_open_file(struct sg_store *store, struct qf_str name, int *ret_fd,
                         struct qf_err *err)
{
    struct sg_store_limit limit;
    qf_rc rc = begin(store, name, NULL, &limit, err);

    if (!rc && !store->ops->open)
        rc = qf_err_set(err, QF_EUNSUPPORTED, "%s: objects are not files", store->url);
    return finish(store, rc ? rc : store->ops->open(store, name, ret_fd, err));
}

static qf_rc put(struct sg_store *store, struct qf_str name, const struct sg_store_bytes *bytes,
                 const struct sg_store_call *call, struct qf_err *err)
{
    struct sg_store_limit limit;
    qf_rc rc = begin(store, name, call, &limit, err);

    rc = finish(store, rc ? rc : store->ops->put(store, name, bytes, &limit, err));
    if (!rc)
        atomic_fetch_add_explicit(&store->bytes_written, bytes->size, memory_order_relaxed);
    return rc;
}

qf_rc sg_store_put(struct sg_store *store, struct qf_str name, const void *data, size_t len,
                   const struct sg_store_call *call, struct qf_err *err)
{
    struct sg_store_bytes bytes = { .data = len ? data : "", .fd = -1, .size = len };

    return put(store, name, &bytes, call, err);
}

qf_rc sg_store_put_fd(struct sg_store *store, struct qf_str name, int fd, uint64_t size,
                      const struct sg_store_call *call, struct qf_err *err)
{
    struct sg_store_bytes bytes = { .fd = fd, .size = size };

    return put(store, name, &bytes, call, err);
}

qf_rc sg_store_put_new(struct sg_store *store, struct qf_str name, const void *data, size_t len,
                       const struct sg_store_call *call, struct qf_err *err)
{
    struct sg_store_bytes bytes = { .data = len ? data : "", .fd = -1, .size = len };
    struct sg_store_limit limit;
    qf_rc rc = begin(store, name, call, &limit, err);

    rc = rc ? rc : store->ops->put_new(store, name, &bytes, &limit, err);
    if (!rc)
        atomic_fetch_add_explicit(&store->bytes_written, len, memory_order_relaxed);
    /* That somebody was first is an answer, not a failure. */
    return rc == QF_EEXIST ? rc : finish(store, rc);
}

qf_rc sg_store_clock(struct sg_store *store, const struct sg_store_call *call, int64_t *ret_ms,
                     struct qf_err *err)
{
    struct sg_store_limit limit = sg_store_limit_of(call);

    return finish(store, store->ops->clock(store, &limit, ret_ms, err));
}

qf_rc sg_store_delete(struct sg_store *store, struct qf_str name, const struct sg_store_call *call,
                      struct qf_err *err)
{
    struct sg_store_limit limit;
    qf_rc rc = begin(store, name, call, &limit, err);

    return finish(store, rc ? rc : store->ops->remove(store, name, &limit, err));
}

qf_rc sg_store_sweep(struct sg_store *store, int64_t age_ms, bool dry_run,
                     const struct sg_store_call *call, size_t *ret_removed, struct qf_err *err)
{
    struct sg_store_limit limit = sg_store_limit_of(call);

    return finish(store, store->ops->sweep(store, age_ms, dry_run, &limit, ret_removed, err));
}

struct sg_store_counters sg_store_counters(const struct sg_store *store)
{
    return (struct sg_store_counters){
        .requests = atomic_load_explicit(&store->requests, memory_order_relaxed),
        .retries = atomic_load_explicit(&store->retries, memory_order_relaxed),
        .failures = atomic_load_explicit(&store->failures, memory_order_relaxed),
        .bytes_read = atomic_load_explicit(&store->bytes_read, memory_order_relaxed),
        .bytes_written = atomic_load_explicit(&store->bytes_written, memory_order_relaxed),
    };
}

qf_rc sg_store_rc_from_errno(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return QF_ENOTFOUND;
    case EACCES:
    case ELOOP: /* a symbolic link, which a store does not follow */
    case EPERM:
    case EROFS:
        return QF_EDENIED;
    case ENOSPC:
    case EDQUOT:
        return QF_ENOSPC;
    case ENAMETOOLONG:
        return QF_EINVAL;
    default:
        return QF_EIO;
    }
}

int sg_store_pwrite_all(int fd, const void *data, size_t len, uint64_t offset)
{
    const char *from = data;

    while (len) {
        ssize_t wrote = pwrite(fd, from, len, (off_t)offset);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return wrote < 0 ? errno : EIO;
        from += wrote;
        len -= (size_t)wrote;
        offset += (uint64_t)wrote;
    }
    return 0;
}
