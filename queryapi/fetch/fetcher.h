/* fetcher.h - downloads artifacts from workers into the API's spool and verifies every byte.
 *
 * A small artifact stays in memory as long as the spool as a whole holds little: a file costs more
 * than all the rest of a small query. What is in memory counts as spool too.
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

/* The bytes of an artifact, in memory or in a file; both NULL: none. */
struct qa_artifact {
    char *path;
    char *data;
    uint64_t size_bytes;
};
static inline bool qa_artifact_present(const struct qa_artifact *artifact)
{
    return artifact->path || artifact->data;
}
/* Remove the file, free the memory. */
void qa_artifact_done(struct qa_artifact *artifact);

/* The largest artifact that is kept in memory. */
#define QA_MEMORY_ARTIFACT_MAX (1u << 20)

/* What a worker says of an artifact it made, besides its bytes. */
struct qa_said {
    uint64_t queued_us, download_us, write_us;
    uint64_t rows, series, samples, download_bytes;
    uint32_t cache_hits, cache_misses;
    uint64_t head_samples, head_bytes;
};

struct qa_fetch {
    /* Who asks; the fetcher does not look at these. */
    uint64_t query, work;
    uint32_t attempt;
    int64_t ready_ns;
    uint64_t scan_us;
    uint64_t worker;     /* the id of the worker that has it */
    struct qa_said said; /* what it said of it */
    struct qa_fetch *next, *prev;
    /* Set by who asked, until it is back: nobody needs it any more, end it soon. */
    atomic_bool unwanted;

    char *url; /* owned */
    uint64_t size_bytes;
    struct wc_checksum checksum;

    /* How the download went. */
    bool ok;
    bool spool_full;             /* not ok, and no use in trying again now */
    enum wc_fetch_error error;   /* if not ok */
    char detail[200];            /* for logs */
    struct qa_artifact artifact; /* if ok: its bytes, counted in spool_bytes; owned */
    int64_t started_ns, ended_ns;
};
/* Remove the artifact, if there is one, and free. Accepts NULL, returns NULL. */
struct qa_fetch *qa_fetch_free(struct qa_fetch *fetch);

struct qa_fetcher_options {
    const char *spool_dir; /* made if missing; what an earlier process left in it is removed */
    uint64_t spool_bytes_max;
    _Atomic uint64_t *spool_bytes; /* counts what lies in the spool; users subtract */
    uint64_t memory_bytes_max; /* small artifacts are files while the spool holds more than this */
    size_t concurrency_max;    /* 0: 16 */
    size_t queue_max;          /* 0: 65536 */
    int64_t stall_timeout_ms;  /* 0: 5 s without a byte */
    struct qf_tls_files
        *tls; /* for workers with HTTPS, looked at every second; or NULL; borrowed */
    const char *tls_server_name; /* in their certificates instead of their address; or NULL */
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
