/* store_int.h - what the kinds of store share. Names reach them checked, errors leave them named.
 */
#ifndef SEGMENTS_STORE_STORE_INT_H
#define SEGMENTS_STORE_STORE_INT_H

#include "base/pure/strbuf.h"
#include "segments/store/call.h"
#include "segments/store/store.h"

/* Where read bytes go: a buffer, or a file from offset 0. */
struct sg_store_sink {
    char *buf;
    size_t capacity;  /* at most so many bytes */
    int fd;           /* -1: the buffer */
    const char *etag; /* as that of sg_store_call */
};

struct sg_store_ops {
    qf_rc (*list)(struct sg_store *store, struct qf_str prefix, struct qf_str start_after,
                  const struct sg_store_limit *limit, sg_store_list_fn *fn, void *ctx,
                  struct qf_err *err);
    qf_rc (*folders)(struct sg_store *store, struct qf_str prefix,
                     const struct sg_store_limit *limit, sg_store_folder_fn *fn, void *ctx,
                     struct qf_err *err);
    qf_rc (*stat)(struct sg_store *store, struct qf_str name, const struct sg_store_limit *limit,
                  struct sg_store_info *ret_info, struct qf_err *err);
    /* @len bytes from @offset; fewer at the end of the object. */
    qf_rc (*read)(struct sg_store *store, struct qf_str name, uint64_t offset, void *buf,
                  size_t len, const struct sg_store_limit *limit, size_t *ret_len,
                  struct qf_err *err);
    qf_rc (*read_tail)(struct sg_store *store, struct qf_str name, void *buf, size_t len,
                       const struct sg_store_limit *limit, size_t *ret_len, uint64_t *ret_size,
                       struct qf_err *err);
    /* The whole object; QF_ELIMIT if it does not fit the sink. */
    qf_rc (*read_whole)(struct sg_store *store, struct qf_str name,
                        const struct sg_store_sink *sink, const struct sg_store_limit *limit,
                        uint64_t *ret_size, struct qf_err *err);
    /* NULL: objects are files here */
    qf_rc (*read_part)(struct sg_store *store, struct qf_str name, const struct sg_store_part *part,
                       const struct sg_store_sink *sink, const struct sg_store_limit *limit,
                       struct qf_err *err);
    qf_rc (*put)(struct sg_store *store, struct qf_str name, const struct sg_store_bytes *bytes,
                 const struct sg_store_limit *limit, struct qf_err *err);
    qf_rc (*put_new)(struct sg_store *store, struct qf_str name, const struct sg_store_bytes *bytes,
                     const struct sg_store_limit *limit, struct qf_err *err);
    qf_rc (*clock)(struct sg_store *store, const struct sg_store_limit *limit, int64_t *ret_ms,
                   struct qf_err *err);
    qf_rc (*remove)(struct sg_store *store, struct qf_str name, const struct sg_store_limit *limit,
                    struct qf_err *err);
    qf_rc (*sweep)(struct sg_store *store, int64_t age_ms, bool dry_run,
                   const struct sg_store_limit *limit, size_t *ret_removed, struct qf_err *err);
    /* NULL: objects are no files here */
    qf_rc (*open)(struct sg_store *store, struct qf_str name, int *ret_fd, struct qf_err *err);
    /* What the store is known by, @size bytes with the NUL; NULL: an object says it (identity.h) */
    qf_rc (*identity)(struct sg_store *store, const struct sg_store_limit *limit, char *ret_id,
                      size_t size, struct qf_err *err);
    void (*close)(struct sg_store *store); /* frees it */
    bool has_tokens;
};

/* The head of each kind of store. */
struct sg_store {
    const struct sg_store_ops *ops;
    char *url;
    atomic_uint_fast64_t requests, retries, failures, bytes_read, bytes_written;
};

qf_rc local_store_open(const struct sg_store_options *options, const char *path,
                       struct sg_store **ret_store, struct qf_err *err);
qf_rc ring_store_open(const struct sg_store_options *options, struct qf_str rest,
                      struct sg_store **ret_store, struct qf_err *err);
qf_rc s3_store_open(const struct sg_store_options *options, struct qf_str rest,
                    struct sg_store **ret_store, struct qf_err *err);

/* What the store is known by if it needs no object for that. QF_EUNSUPPORTED, nothing in @err: it does. */
qf_rc sg_store_own_identity(struct sg_store *store, const struct sg_store_call *call, char *ret_id,
                            size_t size, struct qf_err *err);

/* When a call ends early. */
struct sg_store_limit sg_store_limit_of(const struct sg_store_call *call);

/* The code for an errno of the file system. */
qf_rc sg_store_rc_from_errno(int error);

/* pwrite all of it; an errno, or 0. */
int sg_store_pwrite_all(int fd, const void *data, size_t len, uint64_t offset);

#endif
