/* behind.c - what compaction has to do still, by the catalogue. */
#include "queryapi/compact/behind.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "segments/plan/plan.h"

struct look {
    const struct sg_pass_options *options;
    int64_t now_ms;
    struct qf_str tenant; /* whose segments are being collected */
    QF_VEC(struct sg_plan_file) files;
    struct qa_behind *behind;
};

/* When the job could have been done: its window was over, its newest file was there, and both had settled. */
static int64_t due_since(const struct sg_plan_job *job, int64_t settle_ms)
{
    int64_t window_end =
        (job->max_ts / job->window_ms - (job->max_ts % job->window_ms < 0) + 1) * job->window_ms;
    int64_t newest = (int64_t)QF_MIN(job->generation / 1000, (uint64_t)INT64_MAX / 2);

    return QF_MAX(window_end, newest) + settle_ms;
}

static void plan_tenant(struct look *look)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct sg_plan_options options = sg_pass_planning(look->options, look->now_ms);
    struct qa_behind_tenant tenant = { .name = qf_xmemdup0(look->tenant.data, look->tenant.len) };
    struct sg_plan plan = { 0 };

    if (sg_plan_make(&options, look->files.items, look->files.count, arena, &plan, NULL) == QF_OK)
        for (size_t i = 0; i < plan.job_count; i++) {
            int64_t since = due_since(&plan.jobs[i], look->options->settle_ms);

            tenant.jobs++;
            tenant.segments += plan.jobs[i].input_count;
            tenant.since_ms = tenant.since_ms ? QF_MIN(tenant.since_ms, since) : since;
        }
    QF_VEC_PUSH(&look->behind->tenants, tenant);
    look->files.count = 0;
}

static void collect(void *ctx, struct qf_str tenant, const struct sg_catalog_segment *segment)
{
    struct look *look = ctx;
    struct sg_plan_file file = { .min_ts = segment->min_ts,
                                 .max_ts = segment->max_ts,
                                 .shard = segment->shard,
                                 .shard_count = segment->shard_count,
                                 .generation = segment->generation,
                                 .size = segment->size,
                                 .replaced_by = SG_PLAN_NONE };

    if (look->files.count && !qf_str_eq(tenant, look->tenant))
        plan_tenant(look);
    look->tenant = tenant;
    sg_pass_set_source(look->options->store, segment->name, &file);
    QF_VEC_PUSH(&look->files, file);
}

struct qa_behind qa_behind_make(struct sg_catalog *catalog, const struct sg_pass_options *options,
                                int64_t now_ms)
{
    QF_CLEANUP(sg_catalog_snapshot_dropp)
    struct sg_catalog_snapshot *snapshot = sg_catalog_snapshot(catalog);
    struct qa_behind behind = { 0 };
    struct look look = { .options = options, .now_ms = now_ms, .behind = &behind };

    if (snapshot)
        sg_catalog_each_live(snapshot, collect, &look);
    if (look.files.count)
        plan_tenant(&look);
    QF_VEC_DONE(&look.files);
    return behind;
}

void qa_behind_done(struct qa_behind *behind)
{
    for (size_t i = 0; i < behind->tenants.count; i++)
        free(behind->tenants.items[i].name);
    QF_VEC_DONE(&behind->tenants);
}
