/* executor.h - run one leaf over its segments and write the artifact, on a pool thread.
 *
 * The task carries all it needs and comes back to the coordinator as a message. It owns its
 * assignment; segments are pinned by the coordinator until it is back. */
#ifndef QUERYWORKER_WORK_EXECUTOR_H
#define QUERYWORKER_WORK_EXECUTOR_H

#include <stdatomic.h>

#include "base/pure/arena.h"
#include "base/sys/mailbox.h"
#include "proto/codec/control.h"
#include "queryworker/artifact/spool.h"
#include "queryworker/cache/results.h"
#include "queryworker/work/message.h"
#include "segments/parquet/artifact.h"
#include "segments/parquet/hot.h"
#include "segments/parquet/segment_reader.h"
#include "segments/store/store.h"

struct qw_task_segment {
    const char *path;         /* borrowed */
    const char *label;        /* for messages: which it is, and not where; borrowed */
    struct sg_store *store;   /* NULL: a copy, at @path; else it is read in place */
    const char *name;         /* of it in the store; borrowed */
    uint64_t size;            /* as announced; 0: unknown */
    struct sg_reader *reader; /* borrowed; NULL: the task opens it */
    bool opened;              /* by the task: the coordinator takes it over */
    bool head;                /* what was written not long ago: other samples each time */
};

struct qw_task {
    struct qw_message message; /* QW_MESSAGE_RUN */
    struct qf_mailbox *mailbox;
    uint64_t run;
    atomic_bool cancel;
    struct qw_spool *spool;
    struct qw_token token;
    struct qf_str spec;               /* the leaf; borrowed */
    struct qf_str tenant;             /* whose segments these are; borrowed */
    struct pb_limits limits;          /* none is 0 */
    struct qw_task_segment *segments; /* owned */
    size_t segment_count;
    struct pb_maps maps;        /* read as info series beside them; what they name is borrowed */
    const char **map_files;     /* of each, its copy; owned, the paths are not */
    struct sg_hot *hot;         /* where readers that it opens keep what they read; NULL: nowhere */
    struct qw_results *results; /* where results are kept; NULL: nowhere */
    const struct qw_kept *kept; /* one that is in use */

    /* out */
    qf_rc rc;
    struct qf_err err;
    struct sg_artifact_info info;
    bool in_memory; /* the artifact is no file */
    uint64_t series_count, samples_read;
    int64_t started_ns, scanned_ns, ended_ns;
};

/* For qf_pool_submit: @arg is a struct qw_task. On success the artifact is published. */
void qw_task_run(void *arg);
/* Closes no readers: the coordinator has taken them. */
void qw_task_free(struct qw_task *task);

#endif
