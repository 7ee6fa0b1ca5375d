/* ask.h - what a client asks: made once from a request, copied once into the query. */
#ifndef QUERYAPI_QUERY_ASK_H
#define QUERYAPI_QUERY_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/arena.h"
#include "base/pure/slice.h"
#include "queryapi/encode/error.h"
#include "queryapi/encode/exposition.h"

enum qa_query_kind {
#define QA_KIND(kind, name, asks, format) QA_QUERY_##kind,
#include "queryapi/query/kinds.def"
#undef QA_KIND
    QA_QUERY__COUNT,
};

enum qa_asks { QA_ASKS_EXPRESSION, QA_ASKS_MATCHES, QA_ASKS_SAMPLES };

/* The columns of kinds.def. */
const char *qa_query_kind_name(enum qa_query_kind kind);
enum qa_asks qa_query_kind_asks(enum qa_query_kind kind);
enum qa_format qa_query_kind_format(enum qa_query_kind kind);

/* Milliseconds, both ends included. */
struct qa_ask_range {
    int64_t start_ms, end_ms;
};

struct qa_ask {
    enum qa_query_kind kind;
    struct qf_str tenant;
    struct qf_str text; /* PromQL; of series and labels what the client wrote, for logs */
    int64_t start_ms, end_ms, step_ms; /* step 0: one point at start */
    int64_t timeout_ms;                /* 0: the server's */
    int64_t lookback_ms;               /* 0: the default */
    uint64_t limit;                    /* series or names in the answer; 0: none */
    bool stats, stats_all, progress;
    bool known;                   /* names from the catalogue will do, see known.h */
    bool batch, explain;          /* of events: columnar values; what the query does meanwhile */
    const struct qf_str *matches; /* of series, labels and samples */
    size_t match_count;
    const struct qa_ask_range *ranges; /* of remote read: one for each match; NULL: start to end */
    bool takes_chunks, takes_samples;  /* of remote read: the forms of its answer */
    struct qa_exposition exposition;   /* of federation: the form of its answer */
    struct qf_str label;               /* of label values */
    struct qf_str traceparent;         /* of the request, or empty */
};

/* @ask with its strings in @arena; qf_arena_failed() if there was no room for them. */
struct qa_ask qa_ask_copy(struct qf_arena *arena, const struct qa_ask *ask);

#endif
