/* store.h - where segments live: a local folder, an S3 bucket or our own nodes, behind one interface.
 *
 * A store holds immutable objects under names such as "tenant=t/date=2026-01-31/x.parquet". An
 * object is there completely or not at all: a reader never sees one half-written. Names use '/',
 * are relative to the root of the store and are checked by sg_store_name_valid() before anything else
 * happens to them, so that no name leads outside the root; symbolic links in a folder are not
 * followed, and are no objects.
 *
 * Calls block. Run them on a pool thread, with a cancel flag and a timeout where somebody may lose
 * interest. One store may be used by any number of threads at once.
 *
 * Errors, for every call below; the message names the object and what the server said:
 *   QF_ENOTFOUND  there is no such object (or bucket, or folder)
 *   QF_EDENIED    refused: wrong key, wrong signature, no permission (HTTP 403, EACCES)
 *   QF_EAUTH      no credentials were found, or the place that issues them failed
 *   QF_EIO        the disk failed; or 5xx, broken or stalled connections, after every retry
 *   QF_ETIMEOUT   the timeout of the call passed first
 *   QF_ECANCELED  the cancel flag was set
 *   QF_ECORRUPT   the bytes received do not have the promised length or checksum, after every retry
 *   QF_ENOSPC     disk full
 *   QF_EINVAL     a name, range or URL that cannot be
 *   QF_EPROTO     the server answered something that S3 does not answer */
#ifndef SEGMENTS_STORE_STORE_H
#define SEGMENTS_STORE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/slice.h"

struct sg_store;

/* Everything but the URL may be zero: then the URL's own parameters count, then the environment,
 * then the default. */
struct sg_store_options {
    /* "./folder", "/folder", "file:///folder", "ring://host:port[,host:port]" (ring.h), or
     * "s3://bucket/prefix?endpoint=http://host:9000&region=eu-west-1&style=path". Parameters of an
     * S3 URL, each %-encoded where needed:
     *   endpoint   AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL; default: Amazon's for the region
     *   region     AWS_REGION, AWS_DEFAULT_REGION; default us-east-1
     *   style      "path" (endpoint/bucket/name) or "virtual" (bucket.endpoint/name); default: path
     *              with an endpoint of one's own or a dotted bucket name, else virtual
     *   profile    AWS_PROFILE; default "default"
     *   anonymous  "1": send no signature
     *   etag       "opaque": the server's ETags are not MD5 sums, do not verify them
     * Keys are never part of a URL. */
    const char *url;
    bool create; /* local: make the root folder if it is missing */

    /* Credentials given outright. Otherwise, the first that is there: AWS_ACCESS_KEY_ID,
     * AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN
     * (STS); the profile in AWS_SHARED_CREDENTIALS_FILE or ~/.aws/credentials, then AWS_CONFIG_FILE
     * or ~/.aws/config; AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI. Those that expire are
     * renewed five minutes before they do. */
    const char *access_key, *secret_key, *session_token;

    int64_t connect_timeout_ms; /* 5 s */
    int64_t stall_timeout_ms;   /* 20 s without a byte is a broken connection */
    unsigned attempts_max;      /* 5 tries in all */
    int64_t backoff_min_ms;     /* 100 ms, doubled each time, half of it random */
    int64_t backoff_max_ms;     /* 5 s */
    uint64_t part_bytes;        /* 16 MiB: objects larger than four parts go up in parts */
};

/* Open the store of @options->url. Local: the folder must exist (or `create`). S3: nothing is sent
 * yet, so a wrong bucket or key shows with the first call. QF_EINVAL: a bad URL or parameter. */
QF_MUST_CHECK qf_rc sg_store_open(const struct sg_store_options *options,
                                  struct sg_store **ret_store, struct qf_err *err);
struct sg_store *sg_store_free(struct sg_store *store); /* Accepts NULL, returns NULL. */
void sg_store_freep(struct sg_store **store);

/* The URL in its canonical form, parameters included: equal for equal places, free of secrets, and
 * good for sg_store_open() in another process ("s3://b/p?endpoint=...", "file:///srv/data"). */
const char *sg_store_url(const struct sg_store *store);

/* How long a call may take and who may end it. NULL, or zero: for ever and nobody. */
struct sg_store_call {
    const atomic_bool *cancel; /* looked at every 50 ms at least */
    int64_t timeout_ms;        /* for the whole call with its retries */
    uint64_t bytes_max; /* sg_store_read_fd(): of a larger object QF_ELIMIT, and no more bytes
                                * than these are taken from it; 0: any size */
    const char
        *etag; /* sg_store_read_fd(), sg_store_read_part_fd() from a bucket: an object that has
                                * another one counts as not there, QF_ENOTFOUND; NULL or empty: any */
};

#define SG_STORE_NAME_MAX 1024
#define SG_STORE_NAME_PART_MAX 255

/* 1 to SG_STORE_NAME_MAX bytes of UTF-8 without control characters or '\\'; parts separated by single
 * '/', none at the ends; no part longer than SG_STORE_NAME_PART_MAX or starting with '.'. */
bool sg_store_name_valid(struct qf_str name);

struct sg_store_object {
    struct qf_str name;
    uint64_t size;
    int64_t mtime_ms;   /* Unix time of the last change, as far as the store knows it; else 0 */
    struct qf_str etag; /* changes when the content does; opaque */
};

/* Return false to end the listing early; that is not an error. @object is borrowed. */
typedef bool sg_store_list_fn(void *ctx, const struct sg_store_object *object);

/* Call @fn for every object whose name starts with @prefix (any bytes, need not end at a '/') and
 * sorts after @start_after (bytewise), in bytewise order of names, each once. Temporary files and
 * names that are not valid are left out. An empty listing is QF_OK.
 *
 * Not a snapshot: an object that is put or deleted meanwhile may or may not be seen. */
QF_MUST_CHECK qf_rc sg_store_list(struct sg_store *store, struct qf_str prefix,
                                  struct qf_str start_after, const struct sg_store_call *call,
                                  sg_store_list_fn *fn, void *ctx, struct qf_err *err);

struct sg_store_folder {
    struct qf_str name; /* with the prefix and a trailing '/' */
    /* Differs from the token seen before if an object directly inside was put or deleted since; 0:
     * the store cannot tell, list it. */
    uint64_t token;
};
typedef bool sg_store_folder_fn(void *ctx, const struct sg_store_folder *folder);

/* Call @fn for each folder directly inside @prefix, which is empty or ends in '/'; bytewise order.
 */
QF_MUST_CHECK qf_rc sg_store_folders(struct sg_store *store, struct qf_str prefix,
                                     const struct sg_store_call *call, sg_store_folder_fn *fn,
                                     void *ctx, struct qf_err *err);
/* True if folders carry tokens: then looking at them first makes a repeated listing cheap. */
bool sg_store_has_tokens(const struct sg_store *store);

struct sg_store_info {
    uint64_t size;
    int64_t mtime_ms;
    char etag[128];
};
/* QF_ENOTFOUND if it is not there. */
QF_MUST_CHECK qf_rc sg_store_stat(struct sg_store *store, struct qf_str name,
                                  const struct sg_store_call *call, struct sg_store_info *ret_info,
                                  struct qf_err *err);

/* Read up to @len bytes from @offset into @buf. *ret_len is less than @len only where the object
 * ends, 0 at or beyond its end. */
QF_MUST_CHECK qf_rc sg_store_read(struct sg_store *store, struct qf_str name, uint64_t offset,
                                  void *buf, size_t len, const struct sg_store_call *call,
                                  size_t *ret_len, struct qf_err *err);
/* Read the last @len bytes (all of it if it is shorter) into @buf; *ret_size is the whole size. */
QF_MUST_CHECK qf_rc sg_store_read_tail(struct sg_store *store, struct qf_str name, void *buf,
                                       size_t len, const struct sg_store_call *call,
                                       size_t *ret_len, uint64_t *ret_size, struct qf_err *err);
/* Read a whole object of at most @bytes_max bytes (QF_ELIMIT if it is larger), checksum verified.
 * *ret_data is the caller's to free(); a NUL follows the bytes. */
QF_MUST_CHECK qf_rc sg_store_read_all(struct sg_store *store, struct qf_str name, size_t bytes_max,
                                      const struct sg_store_call *call, char **ret_data,
                                      size_t *ret_len, struct qf_err *err);
/* Copy a whole object to the start of the regular file @fd, which is cut to its size; checksum
 * verified. On failure the file's content is undefined. Does not fsync. */
QF_MUST_CHECK qf_rc sg_store_read_fd(struct sg_store *store, struct qf_str name, int fd,
                                     const struct sg_store_call *call, uint64_t *ret_size,
                                     struct qf_err *err);

/* A part of an object of which the whole is known: where it lies, and how large the object is. */
struct sg_store_part {
    uint64_t offset, len; /* len > 0, inside of the object */
    uint64_t object_size;
};
/* Copy a part of an object in a bucket to the same place in the regular file @fd. An object of another
 * size, or of another ETag than the call's, counts as not there: QF_ENOTFOUND. Nothing but the length of
 * what came is verified: the caller must have a checksum of its own. On failure the content of that
 * place is undefined. QF_EUNSUPPORTED if the store is a folder. */
QF_MUST_CHECK qf_rc sg_store_read_part_fd(struct sg_store *store, struct qf_str name,
                                          const struct sg_store_part *part, int fd,
                                          const struct sg_store_call *call, struct qf_err *err);

/* Open an object that is a file of this machine, to read it in place: the descriptor is the caller's.
 * QF_EUNSUPPORTED if the store is no folder. */
QF_MUST_CHECK qf_rc sg_store_open_file(struct sg_store *store, struct qf_str name, int *ret_fd,
                                       struct qf_err *err);

/* Create or replace @name, atomically and durably: once this returns QF_OK a crash of the machine
 * does not lose it, and on any other answer either nothing or the whole object is there (an S3
 * server may have finished what it could not acknowledge). */
QF_MUST_CHECK qf_rc sg_store_put(struct sg_store *store, struct qf_str name, const void *data,
                                 size_t len, const struct sg_store_call *call, struct qf_err *err);
/* The same with the first @size bytes of the file @fd, which nobody may change meanwhile. */
QF_MUST_CHECK qf_rc sg_store_put_fd(struct sg_store *store, struct qf_str name, int fd,
                                    uint64_t size, const struct sg_store_call *call,
                                    struct qf_err *err);

/* As sg_store_put(), but only if @name is not there: of several that do this at once one succeeds,
 * the others get QF_EEXIST. So may one whose first answer was lost on the way: the content tells.
 * QF_EUNSUPPORTED: the store has no such thing. (A server that does not know the condition and does
 * not say so overwrites: use this to save work, not for safety.) */
QF_MUST_CHECK qf_rc sg_store_put_new(struct sg_store *store, struct qf_str name, const void *data,
                                     size_t len, const struct sg_store_call *call,
                                     struct qf_err *err);

/* What time it is where the store is, Unix time: the clock that mtime_ms is told by, to the second
 * at least. Costs a request. */
QF_MUST_CHECK qf_rc sg_store_clock(struct sg_store *store, const struct sg_store_call *call,
                                   int64_t *ret_ms, struct qf_err *err);

/* Remove @name. QF_OK also if it was not there. */
QF_MUST_CHECK qf_rc sg_store_delete(struct sg_store *store, struct qf_str name,
                                    const struct sg_store_call *call, struct qf_err *err);

/* Remove what writers that crashed left behind and that is older than @age_ms: temporary files,
 * unfinished multipart uploads, folders that are empty. Nothing a reader could see. @dry_run: only
 * count it. */
QF_MUST_CHECK qf_rc sg_store_sweep(struct sg_store *store, int64_t age_ms, bool dry_run,
                                   const struct sg_store_call *call, size_t *ret_removed,
                                   struct qf_err *err);

/* What the store has done since it was opened; for metrics. */
struct sg_store_counters {
    uint64_t requests, retries, failures; /* failures: calls that ended with an error */
    uint64_t bytes_read, bytes_written;
};
struct sg_store_counters sg_store_counters(const struct sg_store *store);

#endif
