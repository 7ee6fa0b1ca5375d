/* fetcher.h - downloads artifacts from workers into the API's spool and verifies every byte.
 *
 * One thread drives all transfers (libcurl multi) with a bounded number at a time; connections are
 * kept and reused. A request is given away with qa_fetcher_submit() and comes back through `done`,
 * exactly once. */
#ifndef QUERYAPI_FETCH_FETCHER_H
#define QUERYAPI_FETCH_FETCHER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/macros.h"
#include "workcoord/types.h"

struct qa_fetcher;

/* "xxh3:" and 32 hex digits. */
bool qa_checksum_parse(const char *text, size_t len, struct wc_checksum *ret_checksum);

struct qa_fetch {
    /* Who asks; the fetcher does not look at these. */
    uint64_t query, work;
    uint32_t attempt;
    int64_t ready_ns;

    char *url; /* owned */
    uint64_t size_bytes;
    struct wc_checksum checksum;

    /* How it went. */
    bool ok;
    bool spool_full;           /* not ok, and no use in trying again now */
    enum wc_fetch_error error; /* if not ok */
    char detail[200];          /* for logs */
    char *path;                /* if ok: the file, whose bytes were counted in spool_bytes; owned */
    int64_t started_ns, ended_ns;
};
/* Remove the file, if there is one, and free. Accepts NULL, returns NULL. */
struct qa_fetch *qa_fetch_free(struct qa_fetch *fetch);

struct qa_fetcher_options {
    const char *spool_dir; /* made if missing; what an earlier process left in it is removed */
    uint64_t spool_bytes_max;
    _Atomic uint64_t *spool_bytes; /* counts what lies in the spool; users subtract */
    size_t concurrency_max;        /* 0: 16 */
    size_t queue_max;              /* 0: 65536 */
    int64_t stall_timeout_ms;      /* 0: 5 s without a byte */
    const char *tls_ca_file;       /* of workers with HTTPS, or NULL */
    void (*done)(void *ctx, struct qa_fetch *fetch); /* on the fetcher's thread; may wait */
    void *ctx;
};

/* NULL and @err filled: QF_EIO for a spool that cannot be used. */
struct qa_fetcher *qa_fetcher_new(const struct qa_fetcher_options *options, struct qf_err *err);
/* Ends all transfers; those under way are freed without `done`. Accepts NULL, returns NULL. */
struct qa_fetcher *qa_fetcher_free(struct qa_fetcher *fetcher);

/* False if the queue is full: the request stays the caller's. Never blocks. */
QF_MUST_CHECK bool qa_fetcher_submit(struct qa_fetcher *fetcher, struct qa_fetch *fetch);

#endif
