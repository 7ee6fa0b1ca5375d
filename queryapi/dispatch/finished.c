/* finished.c - what is left of queries that are over: the newest of them, for whoever asks what ran. */
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "queryapi/dispatch/coordinator_int.h"
#include "queryapi/query/explain.h"

static double seconds(int64_t from_ns, int64_t to_ns)
{
    return from_ns && to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0;
}

static void forget(struct finished *row)
{
    free(row->tenant);
    free(row->text);
    *row = (struct finished){ 0 };
}

/* A stage that was not reached took no time; one that was not left ended with the query. */
static void keep_times(struct finished *row, const struct qa_timings *t)
{
    int64_t planned_ns = t->planned_ns ? t->planned_ns : t->over_ns;
    int64_t fetched_ns = t->fetched_ns ? t->fetched_ns : t->over_ns;

    row->queued_seconds = seconds(t->submitted_ns, t->admitted_ns ? t->admitted_ns : t->over_ns);
    row->planning_seconds = seconds(t->admitted_ns, planned_ns);
    row->working_seconds = seconds(t->planned_ns, fetched_ns);
    row->answering_seconds = seconds(t->fetched_ns, t->over_ns);
    row->total_seconds = seconds(t->submitted_ns, t->over_ns);
}

void co_remember(struct qa_coord *coord, const struct qa_query *query)
{
    struct finished *row = &coord->finished.rows[coord->finished.count % FINISHED_MAX];
    struct qf_str text = qf_str_sub(query->ask.text, 0, FINISHED_TEXT_MAX);

    forget(row);
    coord->finished.count++;
    memcpy(row->name, query->name, sizeof(row->name));
    row->tenant = qf_xmemdup0(query->ask.tenant.data, query->ask.tenant.len);
    row->text = qf_xmemdup0(text.data, text.len);
    row->kind = query->ask.kind;
    row->rc = query->rc;
    (void)snprintf(row->told, sizeof(row->told), "%s", query->rc == QF_OK ? "" : query->told);
    row->start_ms = query->ask.start_ms;
    row->end_ms = query->ask.end_ms;
    row->step_ms = query->ask.step_ms;
    row->ended_ms = qf_clock_wall_ms();
    keep_times(row, &query->timings);
    row->segments = query->co.segments;
    row->works = query->co.total;
    row->replans = query->co.replans;
    row->points = query->points;
    row->artifact_bytes = query->co.artifact_bytes;
    for (size_t i = 0; i < query->part_count; i++)
        if (query->parts[i].eval)
            row->samples += pq_eval_stats(query->parts[i].eval).samples_read;
}

void co_finished_done(struct qa_coord *coord)
{
    for (size_t i = 0; i < FINISHED_MAX; i++)
        forget(&coord->finished.rows[i]);
}
