/* partial.h - copies of large segments in a bucket, of which only those row groups are fetched that
 * works read.
 *
 * The copy is a file as long as the segment, with holes. The end of the segment comes first: seal and
 * footer, verified, tell where row groups lie, what they hold and which checksums their columns have. The
 * groups that a leaf's selection may match by their statistics follow, neighbours in one request. A scan
 * verifies each column before it looks at it, as ever, and it looks at the same groups, by the same
 * function: what lies in a hole is never asked for, and would not pass for data if it were.
 *
 * Row groups are the unit: labels and samples of a group lie side by side, and to fetch labels alone
 * first would take as many requests as there are groups.
 *
 * Whoever fetches owns the copy: a download's task while one is under way, else the cache. One download
 * at a time goes on with a segment, for all works that wait for it. */
#ifndef QUERYWORKER_CACHE_PARTIAL_H
#define QUERYWORKER_CACHE_PARTIAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/slice.h"

struct qw_download;

/* What a work will read: its leaf. Shared by the work's hold and downloads, on several threads. */
struct qw_need {
    atomic_uint refs;
    struct qf_str spec;
};
struct qw_need *qw_need_new(struct qf_str spec);
struct qw_need *qw_need_ref(struct qw_need *need);
void qw_need_unref(struct qw_need *need); /* Accepts NULL. */

struct qw_partial {
    bool *have; /* per row group */
    size_t group_count;
    uint64_t bytes; /* that were fetched and are there */
    bool whole;     /* nothing is left to fetch */
};
struct qw_partial *qw_partial_free(struct qw_partial *partial); /* Accepts NULL, returns NULL. */

/* When parts are fetched at all, and where they end. */
struct qw_partial_rule {
    uint64_t size_min;      /* of a segment; 0: never */
    uint64_t request_bytes; /* one more request costs as much as so many bytes */
};

/* Begin a copy at @d->partial_path for @d's needs, on a pool thread. QF_OK with @d->partial NULL: to
 * fetch the whole segment is not worse, or its end is not what we can read; there is no file. Other errors
 * are those of the store; there is no file either. */
QF_MUST_CHECK qf_rc qw_partial_begin(struct qw_download *d);
/* Go on with @d->partial for @d's needs. On failure what was there stays. */
QF_MUST_CHECK qf_rc qw_partial_more(struct qw_download *d);

#endif
