/* routes_int.h - what the families of routes share. Each is a file route_<family>.c: handlers, and
 * at its end the table of their paths. */
#ifndef INGEST_HTTP_ROUTES_INT_H
#define INGEST_HTTP_ROUTES_INT_H

#include "base/http/router.h"
#include "ingest/http/routes.h"

extern const struct qh_routes in_write_routes;    /* samples */
extern const struct qh_routes in_head_routes;     /* what is fresh, for queries */
extern const struct qh_routes in_extra_routes;    /* exemplars and metadata, likewise */
extern const struct qh_routes in_below_routes;    /* which segments are all there, for compactors */
extern const struct qh_routes in_ha_routes;       /* pairs of senders */
extern const struct qh_routes in_queue_routes;    /* records and offsets */
extern const struct qh_routes in_admin_routes;    /* queues and members */
extern const struct qh_routes in_watch_routes;    /* what changes in meta */
extern const struct qh_routes in_peer_routes;     /* for other nodes, and about them */
extern const struct qh_routes in_operate_routes;  /* metrics and probes */
extern const struct qh_routes in_node_routes;     /* what this node says of itself */
extern const struct qh_routes in_ring_routes;     /* storage nodes */
extern const struct qh_routes in_tenant_routes;   /* what each may have */
extern const struct qh_routes in_document_routes; /* small values */
extern const struct qh_routes in_manifest_routes; /* which blobs are on our own nodes */
extern const struct qh_routes in_whole_queue_routes; /* a queue itself */
extern const struct qh_routes in_state_routes;       /* state maps */
extern const struct qh_routes in_state_rule_routes;  /* what samples are told of them */
extern const struct qh_routes in_state_look_routes;  /* what they say; behind those */
extern const struct qh_routes in_state_info_routes;  /* those that are info series, for queries */

static inline struct in_routes *in_routes_of(const struct qh_visit *visit)
{
    return visit->role;
}

/* {"error":NAME,"message":TEXT}; what may be tried again says when. */
void in_fail(struct qh_visit *visit, const struct qf_err *err);

/* The same for an answer that comes later. */
void in_fail_to(struct qh_stream *stream, const struct qf_err *err);
void in_fail_as(struct qh_stream *stream, const struct qf_err *err, int status);

/* An ask about the queue that the path names; NULL: it was answered that it is no name. */
struct qn_ask *in_visit_ask(struct qh_visit *visit, enum qn_verb verb, struct qf_str queue);
/* Have it answered. */
void in_visit_submit(struct qh_visit *visit, struct qn_ask *ask);

/* Parameters. False, and answered, if there is one that is not what it should be. */
bool in_param_u64(struct qh_visit *visit, const char *name, uint64_t standard, uint64_t max,
                  uint64_t *ret_value);
/* How long something may be kept ("7d", "0" for ever) or waited for. */
bool in_param_duration(struct qh_visit *visit, const char *name, int64_t standard_ms,
                       int64_t *ret_ms);
/* A name of one's own choice, 1 to @size - 1 bytes of text without control characters; @out is ""
 * if it is absent. */
bool in_param_text(struct qh_visit *visit, const char *name, char *out, size_t size);
bool in_param_level(struct qh_visit *visit, bool *ret_set, enum qc_level *ret_level);

/* answer.c: what the client hears of an ask. Frees it. */
void in_answer(struct qn_ask *ask, struct qh_stream *stream);

#endif
