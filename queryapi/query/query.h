/* query.h - the life of one query: from what the client asked to the last byte of its answer.
 *
 *     SUBMITTED -> PLAN turn -> WORK (workers run, artifacts arrive) -> ANSWER turns -> over
 *                     |  ^
 *                     v  | RESUME turn
 *                  ASK: ingest nodes say what is fresh
 *
 * What comes when is decided by core_workcoord (workcoord/life.h).
 *
 * A query belongs to the coordinator, which lends it to a pool thread for one turn at a time: a
 * turn plans, or evaluates and writes as long as the client's stream has room. Between turns nobody
 * waits: no thread is held by a query whose workers or whose client are slow.
 *
 * Every kind of request takes this path. Series and labels are instant queries as well:
 * last_over_time() over the time range asked for, one plan per match[]. */
#ifndef QUERYAPI_QUERY_QUERY_H
#define QUERYAPI_QUERY_QUERY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/http/stream.h"
#include "base/pure/arena.h"
#include "base/pure/duration.h"
#include "base/pure/err.h"
#include "base/pure/purse.h"
#include "base/pure/strbuf.h"
#include "promql/eval.h"
#include "promql/parse.h"
#include "promql/plan.h"
#include "proto/codec/control.h"
#include "queryapi/audit/audit.h"
#include "queryapi/encode/explain.h"
#include "queryapi/fetch/fetcher.h"
#include "queryapi/fresh/asker.h"
#include "queryapi/query/ask.h"
#include "queryapi/query/costs.h"
#include "queryapi/tenant/tenants.h"
#include "segments/catalog/catalog.h"
#include "workcoord/api.h"

/* Prometheus's feature flags that concern queries. */
struct qa_features {
    struct pq_parse_options parse;
    bool delayed_name_removal, start_timestamps;
};
/* Switch on the feature called @name, as Prometheus's --enable-feature; false if there is none. */
bool qa_features_enable(struct qa_features *features, const char *name);

/* What all queries of a process share. */
struct qa_query_env {
    struct qa_features features;
    struct sg_store *store;
    struct sg_catalog *catalog;
    size_t memory_bytes_max; /* per query: plan, evaluation, artifact readers, collected answer */
    struct qf_purse *purse;  /* what all queries together may use of it */
    struct qa_tenants *tenants; /* NULL: no tenant has limits */
    uint64_t samples_max;       /* of queries of tenants that have no limit; 0: none */
    uint64_t series_max;        /* 0: none */
    uint64_t items_max;         /* work items of one query */
    struct pb_limits limits;    /* sent to workers */
    struct qa_costs *costs;
    struct qf_pool *helpers;  /* who may help to write large answers; NULL: nobody */
    int64_t cost_max_ms;      /* scanning that a query may be expected to take; 0: any */
    struct qa_asker *asker;   /* asks ingest nodes what is fresh; NULL: there are none */
    int64_t state_age_ms_max; /* what is known of a state map may be so old */
    struct qa_annex *annex;   /* exemplars and metadata; queries need none */
    uint64_t
        small_scan_us; /* a leaf that takes no longer is one work item, and work items of others take
                               * about that long, if there are shards enough; 0: one per shard */
};

/* One unit of work: a leaf over one shard group, or over several if they take little. */
struct qa_item {
    uint32_t plan, leaf; /* leaf within its plan */
    uint32_t leaf_id;    /* within the query */
    uint32_t column;     /* which of the leaf's readers it becomes */
    struct qf_str spec;
    uint64_t affinity;
    struct qf_str affinity_key;
    uint64_t owners[WC_OWNERS_MAX]; /* wc_worker_key() of those that keep its segments */
    uint32_t owner_count;           /* 0: nobody does, or it is not known who */
    bool all_shards;                /* several of them, at least */
    struct pb_segment *segments;
    size_t segment_count;
    struct pb_heads heads;
    struct pb_maps maps;
    int64_t expect_ms; /* how long such a work takes a worker; 0: not known */
    /* Set by the coordinator. */
    struct qa_artifact artifact; /* the committed bytes; the query removes them */
    uint64_t announced_bytes;    /* what the worker says it is */
    uint64_t scan_us;            /* what the worker took for it */
    unsigned missing;            /* workers that did not find a segment of it */
    int64_t waiting_ns;          /* since when it has no worker: plan, or loss of the last one */
    int64_t assigned_ns;         /* when it was last sent */
};

enum qa_turn { QA_TURN_PLAN, QA_TURN_RESUME, QA_TURN_ANSWER };
/* What a turn wants next. */
enum qa_next {
    QA_NEXT_ASK,  /* find out what is fresh in query->wants, then RESUME with query->fresh */
    QA_NEXT_WORK, /* planned: run query->items */
    QA_NEXT_ROOM, /* the stream is full: another ANSWER turn once it has room */
    QA_NEXT_OVER, /* answered, with success or an error */
};

struct qa_plan_part {
    const struct pq_plan *plan;
    uint32_t match; /* which of ask.matches it is of */
    struct pq_eval *eval;
    uint32_t leaf_base; /* leaf_id of its first leaf */
    size_t columns;     /* readers per leaf */
};

struct qa_timings {
    int64_t submitted_ns, admitted_ns, planned_ns, fetched_ns, first_ns, over_ns;
};

struct qa_answer;  /* answer.c */
struct qa_explain; /* explain.h */

struct qa_query {
    uint64_t id;
    char name[96]; /* the query_id in logs, answers and on workers */
    struct qf_purse purse;
    struct qf_arena *arena;
    struct qa_ask ask;
    const struct qa_query_env *env;
    struct qa_tenant *tenant;     /* held; NULL if there are no limits */
    struct qa_audit_entry *audit; /* held; NULL if there is no audit log */
    struct qf_limits limits;      /* its tenant's, when it was asked */
    uint64_t samples_max;         /* 0: none */
    int64_t oldest_ts; /* its tenant's retention, when it was asked: earlier samples do not exist */
    struct qh_stream *stream;
    atomic_bool canceled;
    qf_rc cancel_rc; /* why; written before canceled */

    /* Of the thread that has the turn. */
    struct sg_catalog_snapshot *snapshot;
    struct sg_catalog_told *unlisted; /* segments that no listing shows yet, or NULL */
    struct {
        int64_t min_ts, max_ts;
    } wants;                 /* of ASK: the times that the plan reads */
    struct qa_status *fresh; /* what ingest nodes say; NULL: there are none, or not asked yet */
    struct qa_maps *maps;    /* state maps that are info series; NULL: likewise, or not known */
    struct qa_plan_part *parts;
    size_t part_count;
    struct qa_item *items;
    size_t item_count;
    size_t segment_count, head_count;
    struct qa_answer *answer;
    struct qa_explain *explain; /* NULL: nobody wants to know */
    struct qa_estimate estimate;
    enum qa_next next;
    qf_rc rc; /* how it ended */
    struct qf_err err;
    char told[200];      /* what the client heard of an error */
    enum qf_limit limit; /* its tenant's that was met; QF_LIMIT__COUNT: none */
    struct qa_timings timings;
    uint64_t points;

    /* Of the coordinator. */
    struct {
        void *coord;
        enum qa_turn turn; /* the one it is lent for */
        qf_time_ms deadline;
        uint64_t first_work; /* the id of items[0]; the others follow */
        size_t committed;
        size_t total, segments;            /* items and segments of the plan that is worked on */
        uint64_t artifact_bytes;           /* of committed artifacts, counted in the spool */
        uint64_t head_samples, head_bytes; /* what workers had from heads for them */
        uint64_t announced_bytes;          /* of all artifacts that workers have ready */
        uint32_t replans;                  /* because segments vanished, or heads */
        bool vanished;                     /* the last time it was segments: list the store */
        bool working;     /* work is under way, and with it query->explain the coordinator's */
        char reason[300]; /* what a worker said of the work that failed */
    } co;
};

/* A new query with an arena of its own and in it a copy of @ask; qf_arena_failed() if there was no
 * memory for that. The stream is kept until the query is freed. */
struct qa_query *qa_query_new(const struct qa_query_env *env, const struct qa_ask *ask,
                              struct qh_stream *stream);
struct qa_query *qa_query_free(struct qa_query *query); /* Accepts NULL, returns NULL. */

/* Forget plan, work and artifacts, for another PLAN turn. Nothing of the answer was sent yet. */
void qa_query_reset(struct qa_query *query);

/* Run a turn on this thread and set query->next. */
void qa_query_turn(struct qa_query *query, enum qa_turn turn);

/* What came from heads, in *@room; NULL if there are no ingest nodes. */
struct qa_head_figures;
const struct qa_head_figures *qa_query_heads(const struct qa_query *query,
                                             struct qa_head_figures *room);

/* What a canceled query's client is told. */
const char *qa_query_cancel_text(const struct qa_query *query);

/* QF_ELIMIT of a query, QF_EBUSY if it was the other queries of its tenant that had the memory,
 * QF_EUNAVAILABLE if it was those of all. */
QF_MUST_CHECK qf_rc qa_query_no_memory(struct qa_query *query, struct qf_err *err);

/* End the answer with an error: a JSON document with the right status if nothing was sent yet, else
 * an error event or a cut connection. Never waits. */
void qa_query_fail(struct qa_query *query, qf_rc rc, const char *message);

#endif
