/* annex.h - answers about exemplars and metadata: those of the store's annexes and those that ingest nodes have.
 *
 * Ingest nodes are asked first (http/route_fresh.c), then the store is listed. What they had sealed by then is in the
 * listing, what was not sealed is in their answer: nothing that was acknowledged before the question is missing, and what
 * is in both counts once (segments/annex/annex.h).
 *
 * An answer is made on a thread of its own pool, since it waits for the store. Files never change, so those that were read
 * are kept, up to a number of bytes. Files that go while the store is listed were merged into others: it is listed until there is
 * nothing new. */
#ifndef QUERYAPI_ANNEX_ANNEX_H
#define QUERYAPI_ANNEX_ANNEX_H

#include "base/http/stream.h"
#include "base/pure/purse.h"
#include "promql/ast.h"
#include "segments/annex/annex.h"
#include "segments/store/store.h"

enum { QA_ANNEX_SELECTORS_MAX = 64 };

struct qa_annex;

struct qa_annex_options {
    struct sg_store *store;  /* borrowed */
    struct qf_purse *purse;  /* of all queries; borrowed */
    size_t memory_bytes_max; /* for one answer */
    int64_t timeout_ms;      /* for one answer; 0: none */
};

/* NULL: there are no threads to be had. */
struct qa_annex *qa_annex_new(const struct qa_annex_options *options);
/* Ends what is under way. Nobody submits any more. Accepts NULL, returns NULL. */
struct qa_annex *qa_annex_free(struct qa_annex *annex);

/* A question. Made by qa_annex_ask_new(), filled, given away with qa_annex_submit(). */
struct qa_annex_ask {
    struct qa_annex *annex;
    enum sg_annex_kind kind;
    struct qh_stream *stream; /* where the answer goes; held */
    struct qf_purse purse;
    struct qf_arena *arena; /* of everything that the ask points to, and of the answer */
    struct qf_str tenant;
    int64_t min_ts, max_ts; /* of exemplars; of metadata, when it was told */
    uint64_t limit;         /* of series or names; 0: none */
    struct qf_str metric;   /* METADATA: this one alone; empty: all */
    /* EXEMPLARS: a series counts that one of these selectors matches. */
    const struct pq_matcher *matchers[QA_ANNEX_SELECTORS_MAX];
    size_t matcher_counts[QA_ANNEX_SELECTORS_MAX];
    size_t selector_count;
    struct qf_strbuf heads; /* what ingest nodes answered; empty: nobody was asked */
    int64_t deadline_ms;    /* of qa_annex_submit() */
};
struct qa_annex_ask *qa_annex_ask_new(struct qa_annex *annex, enum sg_annex_kind kind,
                                      struct qh_stream *stream, struct qf_str tenant);
struct qa_annex_ask *qa_annex_ask_free(struct qa_annex_ask *ask); /* Accepts NULL, returns NULL. */

/* Have it answered. False: too many wait, and it stays the caller's. */
QF_MUST_CHECK bool qa_annex_submit(struct qa_annex_ask *ask);

#endif
