/* plan.h - which files of a tenant should become fewer, and when the old ones may go. Pure.
 *
 * A store that is written live gets thousands of small files a day. Compaction turns the files of a shard and a window of
 * time into one: pieces into files of two hours, those into files of a day. What is decided here is decided out of names,
 * sizes and generations alone; segments/compact does the work.
 *
 * Why answers do not change. Where files hold the same series and timestamp, the one of the greatest generation counts. The
 * output of a job holds, of each series and timestamp of its inputs, the sample that counts among them, and carries the
 * greatest generation of its inputs. So a job must take *all* files of a stretch of generations: a file in between that is
 * left out would be older than the output although it is newer than some of what is in it. Hence
 *
 *   runs       The inputs of a job are neighbours in the order of generations among all files that share a shard and a
 *              moment with them. Files that cannot be taken (damaged, cut into another number of shards, reaching over the
 *              end of the window) end a run. Files of one generation are taken together or not at all.
 *   sources    Where what replaces what is said in several logs, a job takes files of one log, which trades them in one step:
 *              files of another source are files that cannot be taken, unless they cannot have the same series.
 *   below      Only generations below sg_plan_below() are taken: nobody can put a file of one of these any more. Whoever
 *              looks for files lists them *after* that was settled.
 *   grace      Inputs are deleted when no listing can be under way that began before the outputs were there
 *              (sg_plan_deletable()): it might have passed the place of the output before it was put, and come to the input
 *              after it was deleted.
 *
 * With these rules inputs and outputs may be listed together, in any mixture, by any number of compactors; each answer is
 * the same. A plan is a function of its arguments: two machines that see the same files plan the same jobs. Each job that
 * merges leaves fewer files than it takes, so that planning comes to an end. */
#ifndef SEGMENTS_PLAN_PLAN_H
#define SEGMENTS_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/arena.h"
#include "base/pure/err.h"

#define SG_PLAN_NONE SIZE_MAX

/* A file as its name and the listing tell, and what was learnt of it. */
struct sg_plan_file {
    int64_t min_ts, max_ts; /* inclusive */
    uint32_t shard, shard_count;
    uint64_t generation;
    uint64_t size;
    uint32_t source;    /* files of one job have the same */
    bool apart;         /* files of other sources that are apart as well have none of its series */
    size_t replaced_by; /* index of a file that replaces it and is whole; SG_PLAN_NONE: it counts */
    bool damaged;       /* cannot be read: it is left alone */
    bool outdated;      /* of an older version of the format: worth a job by itself */
};

struct sg_plan_options {
    const int64_t *windows_ms; /* lengths, ascending, each a multiple of the one before */
    size_t window_count;       /* 1 to SG_PLAN_WINDOWS_MAX */
    int64_t now_ms;            /* windows that ended before now_ms - settle_ms are ripe */
    int64_t settle_ms;
    uint64_t below;        /* only smaller generations are taken */
    uint64_t file_bytes;   /* outputs end when they reach this size */
    uint64_t memory_bytes; /* that the inputs of a job may take while they are read */
    size_t inputs_max;     /* of a job */
    bool whole;            /* files that reach over the end of the longest window are not cut */
};
#define SG_PLAN_WINDOWS_MAX 4
/* A file that reaches over more windows than these is not cut. */
#define SG_PLAN_CUTS_MAX 1024
/* Memory that reading a file takes: so many times its size, at most a row group. */
#define SG_PLAN_MEMORY_FACTOR 16
#define SG_PLAN_MEMORY_MAX (UINT64_C(4) << 20)

/* The inputs become one file, or as many as their size asks for, in each window that they reach into; these are several
 * only if a single file is cut, which reached over the end of the longest window. */
struct sg_plan_job {
    int64_t window_ms;
    uint32_t shard, shard_count;
    uint64_t generation; /* of its outputs */
    int64_t min_ts, max_ts;
    uint64_t bytes;       /* of its inputs */
    const size_t *inputs; /* indexes of files, by generation */
    size_t input_count;
    const size_t *dead; /* files that one of its inputs replaced and that are still listed */
    size_t dead_count;
};

struct sg_plan {
    const struct sg_plan_job *jobs; /* by time, then shard; no file is in two of them */
    size_t job_count;
    uint64_t
        waiting; /* files in windows that are ripe, whose generation is not below options->below */
};

/* Plan for the files of one tenant, in any order. Everything is put into @arena. QF_EINVAL for options that cannot be,
 * QF_ELIMIT if the arena's budget is spent. */
QF_MUST_CHECK qf_rc sg_plan_make(const struct sg_plan_options *options,
                                 const struct sg_plan_file *files, size_t count,
                                 struct qf_arena *arena, struct sg_plan *ret_plan,
                                 struct qf_err *err);

/* The bound for sg_plan_options.below: generations at or above it may still get files.
 * @now_us: the time by the store's own clock, in microseconds, less how long files may take to show in a listing.
 * @unsealed, @imports: the least generations that are not sealed yet, by partition, and those of imports under way. */
uint64_t sg_plan_below(uint64_t now_us, const uint64_t *unsealed, size_t unsealed_count,
                       const uint64_t *imports, size_t import_count);

/* May the files go that an output replaces? @put_ms: when the last of the job's outputs was put, @now_ms: now, both by the
 * store's clock, so that it does not matter whose clock is wrong. False if the store does not tell (0). */
bool sg_plan_deletable(int64_t put_ms, int64_t now_ms, int64_t grace_ms);

#endif
