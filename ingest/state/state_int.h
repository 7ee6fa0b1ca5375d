/* state_int.h - the inside of state maps at a node. */
#ifndef INGEST_STATE_STATE_INT_H
#define INGEST_STATE_STATE_INT_H

#include "base/sys/thread.h"
#include "ingest/state/state.h"

enum { VERDICTS_KEPT = 1024 };

/* Large maps that have gone on since they were copied. */
enum { WANTED_MAX = 64 };
struct in_wanted {
    char *tenant, *map; /* owned */
    int64_t since_ms;   /* when that was noticed */
    bool asked;         /* somebody wants a newer copy */
};

struct in_verdict {
    uint64_t position, upload;
    struct sm_verdict verdict;
};

struct in_state {
    char *data, *name;
    struct qn_node *node;
    struct qf_thread *thread, *upkeep;
    int64_t upkeep_ms, started_ms;
    struct qf_lock *work; /* held by who applies, merges or maintains */
    struct qf_lock *copy; /* held by who makes a snapshot: one at a time */
    struct qf_lock *lock; /* of what follows */
    bool stopping;
    struct sm_owner *owner; /* NULL: not in a cluster yet */
    uint64_t applied;
    size_t loads; /* under way */
    struct in_verdict verdicts[VERDICTS_KEPT];
    size_t verdict_next;
    struct in_wanted wanted[WANTED_MAX];
    size_t wanted_count;
    bool was_stuck;
    uint64_t told; /* the offset that was told last */
    atomic_int_fast64_t as_of_ms;
    atomic_bool stuck;
    atomic_uint_fast64_t
        changes; /* of definitions or rows: what was counted before is not so any more */
    atomic_uint_fast64_t maps, map_rows, map_bytes, merges, upkeep_failures;
    atomic_uint_fast64_t enriched, enrich_misses, enrich_splits, enrich_refused, enrich_us;
    bool (*all_know)(void *ctx, char ret_name[QC_NAME_SIZE]);
    void *ctx;
    atomic_uint_fast64_t waiting, behind, loads_done, rows, skipped, refused, snapshots, dropped,
        compacted, look_ups;
};

/* upkeep.c: a thread's. */
void in_state_run_upkeep(void *state);

/* info.c: note whether @map has gone on since it was copied; make one copy that is wanted, if there is one; and let go of what
 * was not made. */
void in_state_notice(struct in_state *state, struct sm_store *store, struct qf_str tenant,
                     const char *map, const struct sm_about *about);
void in_state_copy_wanted(struct in_state *state);
void in_state_forget_wanted(struct in_state *state);

/* log.c: the queue. Ask, and wait for the answer; the ask is the caller's again. */
QF_MUST_CHECK qf_rc in_state_ask(struct in_state *state, struct qn_ask **ask, struct qf_err *err);
/* Put entries into the queue, which is made if need be; @ret_last: the position of the last one. *ret_unknown: they may be in all the
 * same. */
QF_MUST_CHECK qf_rc in_state_offer(struct in_state *state, const struct sm_entry *entries,
                                   size_t count, uint64_t *ret_last, bool *ret_unknown,
                                   struct qf_err *err);
/* Wait until @position is done here. */
QF_MUST_CHECK qf_rc in_state_wait(struct in_state *state, uint64_t position, int64_t timeout_ms,
                                  struct sm_verdict *ret_verdict, struct qf_err *err);
/* define.c: one entry, and what became of it. */
QF_MUST_CHECK qf_rc in_state_decide(struct in_state *state, const struct sm_entry *entry,
                                    struct qf_err *err);
/* A load of @upload has counted. */
bool in_state_loaded(struct in_state *state, uint64_t upload, struct sm_verdict *ret_verdict,
                     uint64_t *ret_position);
/* Wait until all up to @position is done here. QF_EUNAVAILABLE: it is not. */
QF_MUST_CHECK qf_rc in_state_reach(struct in_state *state, uint64_t position, int64_t timeout_ms,
                                   struct qf_err *err);
/* False: it is stopping. */
bool in_state_pause(struct in_state *state, int64_t ms);
/* The owner, once there is one: QF_EUNAVAILABLE. */
QF_MUST_CHECK qf_rc in_state_owner(struct in_state *state, struct sm_owner **ret_owner,
                                   struct qf_err *err);

#endif
