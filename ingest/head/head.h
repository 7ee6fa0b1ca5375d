/* head.h - what was applied to a partition and is not in the store yet.
 *
 * A tenant's samples are in ranges of the log (ingest/core/ledger.h). The head has them all:
 *
 *     open     in memory (memory.h), every sample with its position
 *     closed   in memory for `keep_ms` more, for questions with a cut inside of it, and as segment files
 *              in a folder of this node from in_head_build() on
 *     sealed   in the store. What is here stays for `keep_ms`: queries that were planned before read it
 *
 * It is built from the log, record by record, and from nothing else: after a restart, or a snapshot
 * of another node, it is built again; files that are there already spare the work (manifest.h). Equal
 * logs give equal heads.
 *
 * The queue's thread applies and never waits: it takes a lock only to find a range, and nobody holds
 * that lock while reading, writing or encoding anything. Any number of other threads read, build
 * files and seal. */
#ifndef INGEST_HEAD_HEAD_H
#define INGEST_HEAD_HEAD_H

#include <stdatomic.h>

#include "ingest/core/ledger.h"
#include "ingest/head/extras.h"
#include "promql/ast.h"

struct in_head;
struct in_files;

struct in_head_options {
    const char *dir;   /* of this head's files alone */
    uint32_t shards;   /* of segments; a power of two */
    int64_t window_ms; /* segments end where a multiple of it begins; 0: two hours */
    struct in_extras_limits extras;
    int64_t keep_ms;         /* the longest that a query may take */
    int64_t (*now_ms)(void); /* NULL: qf_clock_mono_ms() */
};

/* NULL and @err filled: QF_EINVAL, QF_EIO, QF_EDENIED. */
struct in_head *in_head_new(const struct in_head_options *options, struct qf_err *err);
/* Nobody may use it any more. Files of ranges that are not sealed stay for the next process. Accepts
 * NULL, returns NULL. */
struct in_head *in_head_free(struct in_head *head);

/* --- the queue's thread --- */

/* The record at @index, for which @ledger already stands: in_ledger_apply() was called for it, or the
 * ledger is of a snapshot at or behind @index. */
void in_head_apply(struct in_head *head, const struct in_ledger *ledger, uint64_t index,
                   const struct in_record *record);
/* Everything up to @index was applied, whatever it was. */
void in_head_advance(struct in_head *head, uint64_t index);
/* Forget everything: the log will be applied again from its beginning. */
void in_head_reset(struct in_head *head);

/* --- any thread --- */

uint64_t in_head_applied(const struct in_head *head);
/* Memory of the tenant's ranges that are not sealed; 0 for one that has none. */
uint64_t in_head_tenant_bytes(struct in_head *head, struct qf_str tenant);

struct in_head_figures {
    uint64_t memory_bytes, file_bytes;
    uint64_t open_ranges, closed_ranges, sealed_ranges;
    uint64_t waiting_ranges; /* closed, without files yet */
    uint64_t open_series;    /* of open ranges; a series with two numbers counts twice */
    uint64_t unknown_series; /* samples dropped since the start: nobody defined their series */
    uint64_t extras_dropped; /* exemplars and metadata since the start: no room in their range */
};
struct in_head_figures in_head_figures(struct in_head *head);

/* Exemplars and metadata of the partition: not only of what is unsealed, but the newest. */
struct in_extras *in_head_extras(struct in_head *head);

struct in_head_ask {
    struct qf_str tenant;
    uint64_t generation;
    uint64_t cut; /* samples of records behind it are not there yet */
    uint32_t shard, shards;
    int64_t min_ts, max_ts;
    const struct pq_matcher *matchers;
    size_t matcher_count;
    uint64_t memory_bytes;     /* that it may take, files' footers aside */
    const atomic_bool *cancel; /* may be NULL */
    const char *path;          /* where to write; no file is there */
};
struct in_head_answer {
    uint64_t series, samples; /* 0: nothing matches, and there is no file */
};
/* Write a segment with what @ask asks for. QF_ENOTFOUND: the range is not, or no longer, here, or not
 * with positions; QF_EUNAVAILABLE: not applied up to the cut yet; QF_ELIMIT: more than its memory
 * holds; QF_EINVAL, QF_ECANCELED, QF_ENOSPC, QF_EIO, QF_ECORRUPT. @err is needed. */
QF_MUST_CHECK qf_rc in_head_read(struct in_head *head, const struct in_head_ask *ask,
                                 struct in_head_answer *ret_answer, struct qf_err *err);

/* Make files of the oldest closed range that has none; *ret_built: there was one. QF_ENOSPC, QF_EIO:
 * the range stays in memory and is tried again by the next call. @err is needed. */
QF_MUST_CHECK qf_rc in_head_build(struct in_head *head, bool *ret_built, struct qf_err *err);
/* Let go of what nobody can ask for any more. */
void in_head_tick(struct in_head *head);

/* For want of memory: give up what the range that was closed first has in memory, of those that have
 * files or are sealed; cuts inside of it are gone. False: there is none. */
bool in_head_give_up(struct in_head *head);

/* --- the sealer --- */

struct in_head_file {
    char *path; /* on this node */
    char *name; /* that it is to have in the store */
    uint64_t size;
    uint32_t shard; /* of options.shards */
};
struct in_head_sealable {
    char *tenant;
    uint64_t generation, from, to;
    const struct in_head_file *files; /* none if all of its samples were below the floor */
    size_t file_count;
    const struct in_head_file *annexes; /* exemplars and metadata (annex.h) */
    size_t annex_count;
    struct in_files *held;
};
/* The oldest range of the first tenant after @after (NULL: of the first), by name, whose oldest
 * unsealed range has its files. False: there is none. The files stay until in_head_sealable_done(). */
bool in_head_next_sealable(struct in_head *head, const char *after,
                           struct in_head_sealable *ret_sealable);
void in_head_sealable_done(struct in_head_sealable *sealable);
/* The name of the tenant that was the @i-th to come, the caller's to free; NULL: there are not so many. A head that was
 * reset begins anew. */
char *in_head_tenant_name(struct in_head *head, size_t i);

#endif
