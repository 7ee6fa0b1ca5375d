/* explain.h - encoder of the events that show a query while it runs, and of its plan.
 *
 * Only clients that ask for them ("explain":true, "format":"batch") get these events, in the frame of
 * encode/events.h:
 *
 *     stage   {"name":"queued|planning|working|answering","t_ms"}
 *     plan    {"query_id","plan":pq_plan_json(),"estimate":{...},"works":[...]}; again after a re-plan
 *     works   {"t_ms","changed":[...]}: where work items are now, those that changed
 *     series  {"first","list":[labels...]}: ids first, first+1, ... before their first values
 *     batch   {"start","step","steps","rows":[[id,v0,null,...]...]}: one value per step; JSON has no
 *             NaN and no infinities: those are strings, native histograms objects
 *     done    {"status":"ok",...notes,"stats":{...},"nodes":[...],"coverage":{...}}: nodes has an element
 *             per node of the plan's tree, in the order in which they are opened */
#ifndef QUERYAPI_ENCODE_EXPLAIN_H
#define QUERYAPI_ENCODE_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/labels.h"
#include "base/pure/strbuf.h"
#include "promql/eval.h"
#include "promql/plan.h"
#include "promql/value.h"

struct qa_head_figures;

void qa_sse_stage(struct qf_strbuf *buf, const char *name, int64_t t_ms);

/* What a query will read, before it has: bounds and guesses. */
struct qa_estimate {
    uint64_t segments, bytes; /* exactly what the plan names */
    double samples;           /* in its time range, whatever the matchers leave of them */
    double seconds;           /* of workers scanning: what it took before, or a guess */
};

/* A work item of a plan. */
struct qa_planned_work {
    uint32_t leaf, shards;
    uint64_t segments, bytes;
    uint64_t heads; /* inputs from heads of ingest nodes; told if there are any */
    uint64_t maps;  /* state maps, likewise */
};

struct qa_planned {
    const char *query_id;
    const struct pq_plan *plan;
    struct qa_estimate estimate;
    const struct qa_planned_work *works; /* their ids are their places */
    size_t work_count;
};
/* The object of the event `plan`, without its frame. */
void qa_json_planned(struct qf_strbuf *buf, const struct qa_planned *planned);
void qa_sse_plan(struct qf_strbuf *buf, const struct qa_planned *planned);

/* What a worker says of the artifact it made, and the API of its download. */
struct qa_figures {
    uint64_t queued_us, download_us, scan_us, write_us; /* on the worker */
    uint64_t fetch_us;                                  /* from the worker to the API */
    uint64_t rows, series, samples;
    uint64_t artifact_bytes, download_bytes;
    uint32_t cache_hits, cache_misses;
};

/* Where a work item is. */
struct qa_work_view {
    uint32_t id;
    const char *state;  /* of enum wc_item_state */
    const char *worker; /* NULL: none yet */
    uint32_t attempt, failures;
    const char *reason; /* why an earlier attempt came to nothing; "" or NULL: none did */
    bool hedged;
    bool has_figures; /* its artifact is here */
    struct qa_figures figures;
};
/* works, in three parts: open, items one by one, close. */
void qa_sse_works_open(struct qf_strbuf *buf, int64_t t_ms);
void qa_sse_works_item(struct qf_strbuf *buf, const struct qa_work_view *view, bool first);
/* series and batch likewise. */
void qa_sse_series_open(struct qf_strbuf *buf, uint64_t first_id);
void qa_sse_series_item(struct qf_strbuf *buf, struct qf_labels labels, bool first);
void qa_sse_batch_open(struct qf_strbuf *buf, int64_t start_ms, int64_t step_ms, size_t steps);
/* @present has bit k for a value at step k; @histograms is NULL, or NULL for a float. */
void qa_sse_batch_row(struct qf_strbuf *buf, uint64_t id, const double *values, uint64_t present,
                      const struct pq_histogram *const *histograms, size_t steps, bool first);
/* The end of any of the three. */
void qa_sse_list_close(struct qf_strbuf *buf);

/* What the query took. */
struct qa_done_stats {
    double queued_seconds, planning_seconds, working_seconds, answering_seconds, total_seconds;
    uint64_t samples, series, points;
    uint64_t artifact_bytes, download_bytes;
    uint32_t retries, hedges, replans;
    uint64_t peak_memory_bytes;
    const struct qa_head_figures *heads; /* encode/events.h; NULL: there are no ingest nodes */
};
/* What the answer stands on. */
struct qa_coverage {
    uint64_t segments, works, heads;
    uint64_t
        checksum; /* of which leaf read which segments: equal for equal data, however divided */
};
struct qa_receipt {
    struct qa_done_stats stats;
    const struct pq_node_figures *nodes;
    size_t node_count;
    struct qa_coverage coverage;
};
/* "stats":{...},"nodes":[...],"coverage":{...} */
void qa_json_receipt(struct qf_strbuf *buf, const struct qa_receipt *receipt);
void qa_sse_done_explained(struct qf_strbuf *buf, const struct pq_notes *notes, struct qf_str query,
                           const struct qa_receipt *receipt);

#endif
