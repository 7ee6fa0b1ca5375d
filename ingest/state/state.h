/* state.h - state maps at this node: the queue `state-maps`, done by an owner (statemap/owner), and what clients ask of it.
 *
 * Every ingest node is an owner of all maps. A thread reads the queue and does what it says; what clients want changed goes into the
 * queue, and is answered once this node has done it. The queue's consumers are the nodes: what all of them have done is trimmed.
 *
 * Calls block, but where they say not: they are for threads of a pool. They fail with QF_EUNAVAILABLE until the
 * folder is open, and once this node stops. */
#ifndef INGEST_STATE_STATE_H
#define INGEST_STATE_STATE_H

#include <stdatomic.h>

#include "ingest/core/request.h"
#include "queue/node/node.h"
#include "statemap/core/filter.h"
#include "statemap/load/load.h"
#include "statemap/core/rule.h"
#include "statemap/owner/owner.h"

struct in_state;

struct in_state_options {
    const char
        *data; /* maps lie in the folder `state` in it, which is of one cluster as all of it is */
    const char *name;  /* of this node */
    int64_t upkeep_ms; /* condensation and retention of all maps, so often; 0: never */
    /* Whether all nodes know what rules are; else *ret_name is one that is not known to. May be NULL: they do. */
    bool (*all_know)(void *ctx, char ret_name[QC_NAME_SIZE]);
    void *ctx;
};

struct in_state *in_state_new(const struct in_state_options *options);
/* Begin with @node, which is asked from here on. QF_EUNAVAILABLE: no threads. */
QF_MUST_CHECK qf_rc in_state_start(struct in_state *state, struct qn_node *node,
                                   struct qf_err *err);
/* Nothing is asked of the node any more; what was is still heard of. Accepts NULL. */
void in_state_halt(struct in_state *state);
/* After the node has ended. Accepts NULL, returns NULL. */
struct in_state *in_state_free(struct in_state *state);

/* --- what is said of maps --- */

/* Like entries: only if the definition is of version @expected. @text is the definition without its name, or with the same.
 * QF_EINVAL, QF_EEXIST, QF_ENOTFOUND, QF_ELIMIT: the verdict. */
QF_MUST_CHECK qf_rc in_state_define(struct in_state *state, struct qf_str tenant,
                                    const struct sm_definition *definition, uint64_t expected,
                                    struct qf_err *err);
QF_MUST_CHECK qf_rc in_state_drop(struct in_state *state, struct qf_str tenant, struct qf_str name,
                                  uint64_t expected, struct qf_err *err);
/* All maps, or one, as JSON for `data`. QF_ENOTFOUND: there is no such map. */
QF_MUST_CHECK qf_rc in_state_maps(struct in_state *state, struct qf_str tenant, struct qf_str name,
                                  struct qf_strbuf *json, struct qf_err *err);

/* --- rules of enrichment: statemap/core/rule.h --- */

/* Like entries: only if the rule is of version @expected. The verdict: QF_EINVAL, QF_EEXIST, QF_ENOTFOUND, QF_ELIMIT. */
QF_MUST_CHECK qf_rc in_state_put_rule(struct in_state *state, struct qf_str tenant,
                                      const struct sm_rule *rule, uint64_t expected,
                                      struct qf_err *err);
QF_MUST_CHECK qf_rc in_state_drop_rule(struct in_state *state, struct qf_str tenant,
                                       struct qf_str name, uint64_t expected, struct qf_err *err);
/* All rules in their order, or one, as JSON for `data`. QF_ENOTFOUND: there is no such rule. */
QF_MUST_CHECK qf_rc in_state_rules(struct in_state *state, struct qf_str tenant, struct qf_str name,
                                   struct qf_strbuf *json, struct qf_err *err);

/* As of which position a request of @tenant that comes now is enriched; 0: the tenant has no rules, nor had any of late. */
QF_MUST_CHECK qf_rc in_state_position(struct in_state *state, struct qf_str tenant,
                                      uint64_t *ret_position, struct qf_err *err);
/* Enrich @request by rules and maps as of @position, with memory of @arena, which must live as long. QF_EUNAVAILABLE: a map has no
 * rows, or this node has not come so far; QF_EGONE: what was then is not known any more; QF_ELIMIT: the arena is spent. */
QF_MUST_CHECK qf_rc in_state_enrich(struct in_state *state, struct qf_str tenant, uint64_t position,
                                    struct in_request *request, struct qf_arena *arena,
                                    struct qf_err *err);

/* --- rows --- */

struct in_state_load {
    struct qf_str tenant, map; /* of rows that do not say theirs */
    enum sm_format format;
    bool skip;
    int64_t now_ms;
    struct qf_str body;
    struct sm_loaded loaded;  /* what became of it */
    struct qf_strbuf reasons; /* of the first rows that were skipped: JSON strings */
    uint64_t reasons_count, position;
};

/* All of it, or nothing: parsed here, sent to all owners, merged here. QF_EINVAL has line and reason. QF_ENOSPC: it waits until
 * there is room. */
QF_MUST_CHECK qf_rc in_state_load(struct in_state *state, struct in_state_load *load,
                                  struct qf_err *err);

/* The store of @tenant to read from: QF_ENOTFOUND. It stays. */
QF_MUST_CHECK qf_rc in_state_store(struct in_state *state, struct qf_str tenant,
                                   struct sm_store **ret_store, struct qf_err *err);

/* --- what maps say --- */

enum { IN_STATE_KEYS_MAX = 10000, IN_STATE_ROWS_MAX = 10000 };
/* About: of rows in one answer. */
#define IN_STATE_ANSWER_MAX ((size_t)16 << 20)

struct in_state_keys {
    struct qf_str tenant, map;
    const struct qf_str *keys; /* of ranged maps: numbers as text */
    size_t count;
    int64_t time;
};
struct in_state_found {
    size_t found;     /* keys that the map says something of */
    uint64_t version; /* the last part in the map; 0: it has no rows yet */
};
/* Its rows of these keys at that time, in their order, with commas between them: null for a key of which it says nothing. All are of
 * one version. QF_ENOTFOUND: there is no such map; QF_EINVAL: a key is no number; QF_ELIMIT: too long an answer. */
QF_MUST_CHECK qf_rc in_state_look_up(struct in_state *state, const struct in_state_keys *keys,
                                     struct in_state_found *ret_found, struct qf_strbuf *json,
                                     struct qf_err *err);

struct in_state_page {
    struct qf_str tenant, map;
    struct sm_filter filter;
    uint64_t limit;      /* rows */
    struct qf_str after; /* where the page before ended; empty: from the first row on */
};
/* {"version":V,"rows":[...],"next":"..."}; without `next` there are no more. A page may have few rows, or none, and a `next`: so many
 * were looked at. QF_ENOTFOUND, QF_EINVAL as above. */
QF_MUST_CHECK qf_rc in_state_rows(struct in_state *state, const struct in_state_page *page,
                                  struct qf_strbuf *json, struct qf_err *err);

/* --- snapshots --- */

/* A snapshot to be sent. */
struct in_state_snapshot {
    uint64_t version, created; /* 0, created: the map has no rows yet */
    struct sm_snapshot_file file;
};
/* The one of @version; 0: of now, unless that is @after: then *ret has the version and no file (-1). QF_EGONE: not here any
 * more. @whole: it is looked through first. */
QF_MUST_CHECK qf_rc in_state_snapshot(struct in_state *state, struct qf_str tenant,
                                      struct qf_str name, uint64_t version, uint64_t after,
                                      bool whole, struct in_state_snapshot *ret_snapshot,
                                      struct qf_err *err);

/* [MAP,...]: the maps of @tenant that are info series and have rows, by name, each with the copy that workers are to read
 * (docs/PROTOCOL.md). A copy is made if the newest is older than it should be: at once of a small map; of others by the thread
 * of upkeep, and what there is (version 0: nothing) is told meanwhile. */
QF_MUST_CHECK qf_rc in_state_info(struct in_state *state, struct qf_str tenant,
                                  struct qf_strbuf *json, struct qf_err *err);
/* Each map of the tenant that is an info series, and the metric that it is. */
QF_MUST_CHECK qf_rc in_state_metrics(struct in_state *state, struct qf_str tenant,
                                     void (*each)(void *ctx, struct qf_str metric,
                                                  struct qf_str map),
                                     void *ctx, struct qf_err *err);

/* When this node last knew that it has done everything; 0: not yet. Does not block. */
int64_t in_state_as_of(const struct in_state *state);

struct in_state_figures {
    uint64_t maps, map_rows, map_bytes; /* as of the last counting, some seconds ago */
    uint64_t applied, waiting, behind;  /* positions; parts that wait; entries not done yet */
    uint64_t loads, rows, skipped;      /* that this node took */
    uint64_t merges, refused, snapshots,
        look_ups;                      /* parts merged here; entries that count for nothing */
    uint64_t dropped, upkeep_failures; /* rows that maintenance let go of */
    uint64_t compacted;                /* bytes that it gave back to the disk */
    uint64_t enriched, enrich_misses, enrich_splits; /* samples; look-ups; series */
    uint64_t enrich_refused, enrich_us;              /* requests; microseconds */
    int64_t age_ms; /* since it last knew that it has done everything */
    bool stuck;     /* what the log says cannot be done here: see the log of this node */
};
/* Does not block. */
struct in_state_figures in_state_figures(struct in_state *state);

#endif
