/* explain.h - what a query tells of itself while it runs, for a client that asked for it.
 *
 * Stages and the plan are written when they come. Work items change far more often than a client can
 * look: a change only marks the item, and every now and then one event tells where the marked ones
 * are. What that costs is bounded by whoever writes the events, not by the number of changes.
 *
 * All of it belongs to the query, so to the thread that has it: the coordinator while its work runs,
 * a turn's thread else. */
#ifndef QUERYAPI_QUERY_EXPLAIN_H
#define QUERYAPI_QUERY_EXPLAIN_H

#include "queryapi/query/query.h"

/* The least time between two `works` events, and the most items in one that the coordinator writes. */
#define QA_WORKS_INTERVAL_MS 100
#define QA_WORKS_AT_ONCE 256
/* Of all queries together, between two intervals. */
#define QA_WORKS_PER_INTERVAL 1024

struct qa_work_note {
    struct qa_work_view view;
    uint64_t worker; /* whose name view.worker is */
    bool changed;
    char reason[120]; /* view.reason */
};

struct qa_explain {
    struct qa_work_note *notes; /* of query->items */
    size_t count;
    uint32_t *changed; /* those marked, in the order of their changes */
    size_t changed_count;
    struct qa_worker_name {
        uint64_t worker;
        const char *text;
    } * names; /* of workers that had some of the work */
    size_t name_count;
    size_t memory_peak;
    bool answering; /* that stage was told */
    bool silent;    /* figures are kept for the end, and nothing is told before it */
};

/* Does the client want to see all this? */
bool qa_explained(const struct qa_query *query);

/* Does it want the same figures at the end of a document? */
bool qa_profiled(const struct qa_query *query);

/* stage: begins the answer, if nothing was sent yet. */
void qa_explain_stage(struct qa_query *query, const char *name);

/* plan: makes the notes too. QF_ELIMIT. */
QF_MUST_CHECK qf_rc qa_explain_plan(struct qa_query *query, struct qf_err *err);
/* The notes alone, for a query that is profiled. QF_ELIMIT. */
QF_MUST_CHECK qf_rc qa_explain_silently(struct qa_query *query, struct qf_err *err);
/* The plan as a document, instead of an answer. QF_ELIMIT. */
QF_MUST_CHECK qf_rc qa_explain_document(struct qa_query *query, struct qf_err *err);

/* The item is told about with the next `works`. */
void qa_explain_mark(struct qa_explain *explain, size_t index);
/* @name as long as the query lives, or NULL if there is no memory for it. */
const char *qa_explain_name(struct qa_query *query, uint64_t worker, const char *name);

/* works: of at most @max marked items, the oldest marks first. How many it was; with none, nothing is
 * written. */
size_t qa_explain_works(struct qa_query *query, size_t max);

/* done, with what it took and what it stands on. @series: of the answer. */
void qa_explain_done(const struct qa_query *query, struct qf_strbuf *buf, uint64_t series);
/* The figures of done, without its frame. */
void qa_explain_receipt(const struct qa_query *query, struct qf_strbuf *buf, uint64_t series);

#endif
