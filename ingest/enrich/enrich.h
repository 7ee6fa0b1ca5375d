/* enrich.h - a request's series get the labels that rules (statemap/core/rule.h) have maps say.
 *
 * Done before anything is checked: limits hold for the labels that come of it. A series of which samples lie on both sides of a change
 * becomes one for each run of samples with the same labels; exemplars go to those of their time.
 *
 * Equal requests, rules and maps give equal series. Everything that is added is in the arena. */
#ifndef INGEST_ENRICH_ENRICH_H
#define INGEST_ENRICH_ENRICH_H

#include "ingest/core/request.h"
#include "statemap/core/rule.h"

/* Series with more labels are left: they are refused anyway. */
enum { IN_ENRICH_LABELS_MAX = 512 };

struct in_enrich_rule {
    const struct sm_rule *rule;
    bool timed;   /* what its map says depends on the time */
    bool missing; /* its map has no rows here */
};

/* What a map says of a key. Bytes of the value stay as they are, where they are, until all is done. */
struct in_enrich_found {
    bool found;
    struct sm_value value; /* of type SM_ANY: a session */
};

struct in_enrich_options {
    const struct in_enrich_rule *rules; /* in their order */
    size_t rule_count;
    qf_rc (*find)(void *ctx, size_t rule, struct qf_str key, int64_t time,
                  struct in_enrich_found *ret_found, struct qf_err *err);
    void *ctx;
    struct qf_arena *arena;
};

/* What came of a request. */
struct in_enrich_figures {
    uint64_t samples; /* that got labels */
    uint64_t misses;  /* look-ups, as far as they were made, that found nothing */
    uint64_t splits;  /* series that became several: how many more */
};

/* QF_EUNAVAILABLE: a map that a series needs has no rows here, and its rule wants them. QF_ELIMIT: the arena is spent. Or
 * what find() says. After an error @request must not be used. */
QF_MUST_CHECK qf_rc in_enrich(const struct in_enrich_options *options, struct in_request *request,
                              struct in_enrich_figures *ret_figures, struct qf_err *err);

#endif
