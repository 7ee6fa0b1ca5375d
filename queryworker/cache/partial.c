/* partial.c - fetch those row groups of a segment that works read. */
#include "queryworker/cache/partial.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/arena.h"
#include "promql/leaf.h"
#include "queryworker/cache/download.h"

#define NEED_MEMORY ((size_t)16 << 20) /* a leaf that takes more to read is taken to want all */
#define TAIL_MIN ((uint64_t)64 << 10)  /* holds the footer of most files; */
#define TAIL_PART 256                  /* larger files have larger ones */
#define TAIL_ROUNDS 3

struct qw_need *qw_need_new(struct qf_str spec)
{
    struct qw_need *need = qf_xcalloc(1, sizeof(*need));

    atomic_init(&need->refs, 1);
    need->spec = (struct qf_str){ qf_xmemdup0(spec.data ? spec.data : "", spec.len), spec.len };
    return need;
}

struct qw_need *qw_need_ref(struct qw_need *need)
{
    atomic_fetch_add(&need->refs, 1);
    return need;
}

void qw_need_unref(struct qw_need *need)
{
    if (!need || atomic_fetch_sub(&need->refs, 1) > 1)
        return;
    free((void *)(uintptr_t)need->spec.data);
    free(need);
}

struct qw_partial *qw_partial_free(struct qw_partial *partial)
{
    if (partial)
        free(partial->have);
    free(partial);
    return NULL;
}

/* -- What to fetch ----------------------------------------------------------------------------- */

/* A request: bytes [start, end), and the row groups that come with them. */
struct range {
    uint64_t start, end;
    size_t first, last;
};

struct ranges {
    struct range *items; /* in order */
    size_t count;
    uint64_t bytes;
};

static void ranges_done(struct ranges *ranges)
{
    free(ranges->items);
}

static void mark_all(bool *wanted, size_t count)
{
    memset(wanted, true, count * sizeof(*wanted));
}

static void mark_wanted(const struct sg_reader *reader, const struct qw_need *need, bool *wanted,
                        size_t count)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(NEED_MEMORY);
    struct qf_err err = { 0 };
    struct pq_leaf *leaf;

    if (!need->spec.len || pq_leaf_decode(arena, need->spec, &leaf, &err)) {
        mark_all(wanted, count); /* whoever runs it will say what is wrong with it */
        return;
    }
    for (size_t i = 0; i < count; i++)
        wanted[i] |= sg_reader_group_wanted(reader, i, &leaf->select);
}

/* The requests for groups that are @wanted and not there. What lies between two of them and costs less
 * than a request is fetched with them. */
static void plan_ranges(const struct qw_download *d, const struct qw_partial *partial,
                        const bool *wanted, struct ranges *ret_ranges)
{
    struct ranges ranges = { qf_xcalloc(partial->group_count + 1, sizeof(*ranges.items)), 0, 0 };
    struct range *range = NULL;

    for (size_t i = 0; i < partial->group_count; i++) {
        uint64_t start, end;

        if (!wanted[i] || partial->have[i])
            continue;
        sg_reader_group_span(d->reader, i, &start, &end);
        if (!range || start - range->end > d->rule.request_bytes) {
            range = &ranges.items[ranges.count++];
            *range = (struct range){ start, end, i, i };
            ranges.bytes += end - start;
        }
        ranges.bytes += end - range->end;
        range->end = end;
        range->last = i;
    }
    *ret_ranges = ranges;
}

/* -- Fetching ---------------------------------------------------------------------------------- */

static qf_rc failed(struct qw_download *d, const char *what)
{
    return qf_err_set(&d->err, errno == ENOSPC || errno == EDQUOT ? QF_ENOSPC : QF_EIO,
                      "cannot %s %s: %s", what, d->partial_path, strerror(errno));
}

static qf_rc fetch_range(struct qw_download *d, int fd, uint64_t start, uint64_t end)
{
    struct sg_store_call call = { .cancel = &d->cancel, .etag = d->etag_expected };
    struct sg_store_part part = { start, end - start, d->size_expected };
    qf_rc rc = sg_store_read_part_fd(d->store, qf_str_from(d->name), &part, fd, &call, &d->err);

    if (rc == QF_OK)
        d->size += part.len;
    else if (rc == QF_ECORRUPT) /* on the way here: another worker may get it */
        rc = d->err.rc = QF_EIO;
    return rc;
}

static bool all_there(const struct qw_partial *partial)
{
    for (size_t i = 0; i < partial->group_count; i++)
        if (!partial->have[i])
            return false;
    return true;
}

static qf_rc fetch_ranges(struct qw_download *d, struct qw_partial *partial, int fd,
                          const struct ranges *ranges)
{
    for (size_t i = 0; i < ranges->count; i++) {
        const struct range *range = &ranges->items[i];
        qf_rc rc = fetch_range(d, fd, range->start, range->end);

        if (rc)
            return rc;
        for (size_t g = range->first; g <= range->last; g++) {
            uint64_t start, end;

            sg_reader_group_span(d->reader, g, &start, &end);
            if (!partial->have[g]) /* what came with the end of the file may be counted twice */
                partial->bytes = QF_MIN(partial->bytes + (end - start), d->size_expected);
            partial->have[g] = true;
        }
    }
    partial->whole = all_there(partial);
    return QF_OK;
}

static qf_rc open_reader(struct qw_download *d)
{
    int fd;

    if (d->reader)
        return QF_OK;
    fd = open(d->partial_path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return failed(d, "open");
    d->reader = sg_reader_open_fd(fd, d->partial_label, &d->err);
    if (!d->reader)
        return d->err.rc ? d->err.rc : QF_EIO;
    sg_hot_join(d->hot, d->reader);
    d->reader_opened = true;
    return QF_OK;
}

/* -- The end of the file ------------------------------------------------------------------------ */

/* How much of the end is needed, once @have bytes of it are there. */
static qf_rc look_at_tail(struct qw_download *d, int fd, uint64_t have, uint64_t *ret_need)
{
    QF_CLEANUP(qf_freep) char *tail = qf_xmalloc(have);
    ssize_t got = pread(fd, tail, have, (off_t)(d->size_expected - have));

    if (got < 0 || (uint64_t)got != have)
        return failed(d, "read");
    return sg_tail_need((struct qf_str){ tail, have }, d->size_expected, ret_need, &d->err);
}

/* Seal and footer. QF_ELIMIT: they are most of the file. */
static qf_rc fetch_tail(struct qw_download *d, int fd)
{
    uint64_t size = d->size_expected, have = 0;
    uint64_t guess = QF_MAX(TAIL_MIN, size / TAIL_PART), need = QF_MIN(size / 2, guess);

    for (int round = 0; round < TAIL_ROUNDS && need; round++) {
        qf_rc rc = QF_OK;

        if (need <= have || need > size / 2)
            return qf_err_set(&d->err, QF_ELIMIT, "%s is mostly footer", d->name);
        rc = fetch_range(d, fd, size - need, size - have);
        have = need;
        if (rc == QF_OK)
            rc = look_at_tail(d, fd, have, &need);
        if (rc)
            return rc;
    }
    return need ? qf_err_set(&d->err, QF_ECORRUPT, "%s: no footer", d->name) : QF_OK;
}

/* A file as long as the segment, with its beginning and its end. */
static qf_rc make_file(struct qw_download *d, int *ret_fd)
{
    qf_rc rc = QF_OK;
    int fd = open(d->partial_path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0)
        return failed(d, "make");
    if (ftruncate(fd, (off_t)d->size_expected) != 0 ||
        pwrite(fd, SG_FILE_START, strlen(SG_FILE_START), 0) != (ssize_t)strlen(SG_FILE_START))
        rc = failed(d, "write");
    if (rc == QF_OK)
        rc = fetch_tail(d, fd);
    if (rc)
        (void)close(fd);
    else
        *ret_fd = fd;
    return rc;
}

/* -- Both steps -------------------------------------------------------------------------------- */

static bool *wanted_groups(const struct qw_download *d, size_t count)
{
    bool *wanted = qf_xcalloc(count + 1, sizeof(*wanted));

    for (size_t i = 0; i < d->need_count; i++)
        mark_wanted(d->reader, d->needs[i], wanted, count);
    return wanted;
}

/* Would it cost more than half of the segment? Then all of it is fetched: it is likely to be wanted. */
static bool too_much(const struct qw_download *d, const struct qw_partial *partial,
                     const struct ranges *ranges)
{
    return partial->bytes + ranges->bytes + ranges->count * d->rule.request_bytes >
           d->size_expected / 2;
}

static qf_rc begin_groups(struct qw_download *d, int fd, struct qw_partial **ret_partial)
{
    QF_CLEANUP(qf_freep) bool *wanted = NULL;
    QF_CLEANUP(ranges_done) struct ranges ranges = { 0 };
    struct qw_partial *partial;
    qf_rc rc = open_reader(d);

    if (rc)
        return rc;
    partial = qf_xcalloc(1, sizeof(*partial));
    partial->group_count = sg_reader_group_count(d->reader);
    partial->have = qf_xcalloc(partial->group_count + 1, sizeof(*partial->have));
    partial->bytes = d->size;
    wanted = wanted_groups(d, partial->group_count);
    plan_ranges(d, partial, wanted, &ranges);
    if (!too_much(d, partial, &ranges)) {
        rc = fetch_ranges(d, partial, fd, &ranges);
        if (rc == QF_OK)
            *ret_partial = QF_TAKE(partial);
    }
    (void)qw_partial_free(partial);
    return rc;
}

/* A failure that says nothing about whether the whole can be had. */
static bool try_whole(qf_rc rc)
{
    return rc == QF_ECORRUPT || rc == QF_EUNSUPPORTED || rc == QF_ELIMIT || rc == QF_EPROTO;
}

qf_rc qw_partial_begin(struct qw_download *d)
{
    int fd = -1;
    qf_rc rc = make_file(d, &fd);

    if (rc == QF_OK)
        rc = begin_groups(d, fd, &d->partial);
    if (fd >= 0)
        (void)close(fd);
    if (d->partial)
        return QF_OK;
    if (d->reader_opened)
        d->reader = sg_reader_free(d->reader);
    d->reader_opened = false;
    (void)unlink(d->partial_path);
    if (!try_whole(rc))
        return rc;
    d->err = (struct qf_err){ 0 };
    return QF_OK;
}

qf_rc qw_partial_more(struct qw_download *d)
{
    QF_CLEANUP(qf_freep) bool *wanted = NULL;
    QF_CLEANUP(ranges_done) struct ranges ranges = { 0 };
    struct qw_partial *partial = d->partial;
    qf_rc rc = open_reader(d);
    int fd;

    if (rc)
        return rc;
    wanted = wanted_groups(d, partial->group_count);
    plan_ranges(d, partial, wanted, &ranges);
    if (ranges.count == 0)
        return QF_OK;
    if (too_much(d, partial, &ranges)) {
        ranges_done(&ranges);
        mark_all(wanted, partial->group_count);
        plan_ranges(d, partial, wanted, &ranges);
    }
    fd = open(d->partial_path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return failed(d, "open");
    rc = fetch_ranges(d, partial, fd, &ranges);
    if (close(fd) != 0 && rc == QF_OK)
        rc = failed(d, "write");
    return rc;
}
