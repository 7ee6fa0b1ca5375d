/* intake.h - what the leader of a partition makes of requests: the records of its log. Pure.
 *
 * A request comes as a SAMPLES record in which every series is fresh (record.h); the intake looks at
 * what only the leader knows: whether the request was written before, which numbers the series have
 * in the tenant's open range, whether samples are too old, too new or contradict what is there, and
 * what time it is. What it makes of it is appended; records stand in the log in the order in which
 * they were made here.
 *
 * Numbers are good within a range and start anew, with fresh labels, behind a SEAL, and whenever this
 * node begins to lead: behind the greatest number that the range has, so that none ever names two
 * series. A series may so have two numbers in one range.
 *
 * Keys are decided when records are applied: the ledger has those that were, the intake those under
 * way, and a repetition of one under way waits for it (IN_INTAKE_WAIT). So no record of a leader is
 * ever a repetition, and a number that its labels were given with is never lost with one.
 *
 * Series that had samples within the last idle_ms are active, whatever ranges end meanwhile: they count
 * for the tenant's limit. A node that begins to lead has seen none: it counts them as they come.
 *
 * Metadata that the open range has already are not written again, exemplars always.
 *
 * The intake belongs to the thread that owns the ledger, and outlives leaderships. */
#ifndef INGEST_CORE_INTAKE_H
#define INGEST_CORE_INTAKE_H

#include "ingest/core/ledger.h"
#include "ingest/core/outcome.h"
#include "ingest/core/quota.h"

struct in_intake_limits {
    int64_t out_of_order_ms; /* behind the tenant's greatest time here: refused */
    int64_t future_ms;       /* ahead of the leader's clock: refused */
    uint32_t metadata_max;   /* of a tenant in an open range; more are passed over */
    int64_t ha_failover_ms;  /* another replica is elected when the elected one is so far behind */
    int64_t idle_ms;         /* a series without samples for so long is not active */
};

struct in_intake;

/* @quota, borrowed: what tenants may have (quota.h), shared with other intakes. @seed: random, so that
 * nobody can choose labels whose hashes are equal. */
struct in_intake *in_intake_new(const struct in_intake_limits *limits, struct in_quota *quota,
                                uint64_t seed);
struct in_intake *in_intake_free(struct in_intake *intake); /* Accepts NULL, returns NULL. */

/* --- on every node --- */

/* A record was applied (@verdict as the ledger said), or read again at a start: which numbers the open
 * ranges have. After in_ledger_apply(). */
void in_intake_applied(struct in_intake *intake, const struct in_record *record,
                       enum in_verdict verdict);
/* The ledger was replaced: nothing was seen yet. */
void in_intake_reset(struct in_intake *intake);

/* --- on the leader --- */

/* This node serves: all that is in the log is applied to @ledger. Times as for in_intake_take(). */
void in_intake_begin(struct in_intake *intake, const struct in_ledger *ledger, int64_t wall_ms,
                     int64_t mono_ms);
void in_intake_end(struct in_intake *intake); /* not any more: what is under way is forgotten */

enum in_intake_verdict {
    IN_INTAKE_RECORD,  /* append the record; then in_intake_ended() */
    IN_INTAKE_KNOWN,   /* it was written before: the outcome is what was told then */
    IN_INTAKE_NOTHING, /* nothing of it can be written: the outcome says why */
    IN_INTAKE_WAIT,    /* the same is under way: ask again when more was applied */
    IN_INTAKE_OTHER    /* its key was used for another body */
};

/* One proposal under way; the caller's until in_intake_ended(). */
struct in_pending;

/* The request @batch at this time: @wall_ms by the calendar, @mono_ms by a clock that never goes back.
 * The record is appended to @buf. */
enum in_intake_verdict in_intake_take(struct in_intake *intake, const struct in_ledger *ledger,
                                      const struct in_record *batch, int64_t wall_ms,
                                      int64_t mono_ms, struct qf_strbuf *buf,
                                      struct in_outcome *ret_outcome,
                                      struct in_pending **ret_pending);

/* Close the open range of @tenant. NULL: there is none, one such record is under way, or too many
 * ranges wait to be sealed. */
struct in_pending *in_intake_seal(struct in_intake *intake, const struct in_ledger *ledger,
                                  struct qf_str tenant, struct qf_strbuf *buf);
/* From now on nothing older than @floor_ms is taken. NULL: something older waits to be sealed, or the
 * floor is there already. */
struct in_pending *in_intake_floor(struct in_intake *intake, const struct in_ledger *ledger,
                                   int64_t floor_ms, struct qf_strbuf *buf);
/* No range of @tenant up to @generation will come any more; less than that if some are not sealed, or if
 * the time has not come (as for in_intake_take()): *@ret_settled says how far. NULL: nothing needs to be
 * written for that; *@ret_settled is 0 if nothing can be settled. */
struct in_pending *in_intake_below(struct in_intake *intake, const struct in_ledger *ledger,
                                   const struct in_record *wanted, int64_t wall_ms, int64_t mono_ms,
                                   struct qf_strbuf *buf, uint64_t *ret_settled);
/* What such a record settles once it is applied, or a PIN's position; 0 for any other. */
uint64_t in_pending_settles(const struct in_pending *pending);
/* Whether the samples of a replica (ELECT: tenant, cluster, replica, newest_ts) are to be written. The
 * elected one stays until another has samples that are newer than all of its own by ha_failover_ms; times
 * are those of samples, so that no clock of ours has a say. Times as for in_intake_take(). */
enum in_elect_verdict {
    IN_ELECT_IS,     /* it is the elected one */
    IN_ELECT_IS_NOT, /* it is not: its samples are dropped */
    IN_ELECT_RECORD, /* append the record; then in_intake_ended(): once it is applied, it is */
    IN_ELECT_WAIT,   /* an election of the cluster is under way: ask again when more was applied */
    IN_ELECT_FULL    /* the tenant has too many clusters */
};
enum in_elect_verdict in_intake_elect(struct in_intake *intake, const struct in_ledger *ledger,
                                      const struct in_record *wanted, int64_t wall_ms,
                                      int64_t mono_ms, struct qf_strbuf *buf,
                                      struct in_pending **ret_pending);
/* Such a record, and whether it replaces a replica. */
bool in_pending_elects(const struct in_pending *pending, bool *ret_replaces);
/* As of which position of the log of state maps a request (PIN: tenant, key, position) is enriched: as of that which was said first.
 * Times as for in_intake_take(). */
enum in_pin_verdict {
    IN_PIN_IS, /* *@ret_position */
    IN_PIN_RECORD, /* append the record; then in_intake_ended(): once it is applied, it is that of @wanted */
    IN_PIN_WAIT, /* the same is under way: ask again when more was applied */
    IN_PIN_OTHER /* its key was used for another body */
};
enum in_pin_verdict in_intake_pin(struct in_intake *intake, const struct in_ledger *ledger,
                                  const struct in_record *wanted, int64_t wall_ms, int64_t mono_ms,
                                  struct qf_strbuf *buf, uint64_t *ret_position,
                                  struct in_pending **ret_pending);
/* Any other record, as it is. */
struct in_pending *in_intake_pass(struct in_intake *intake);

/* What was proposed is applied (QF_OK), or did not get into the log, or nobody knows. Frees it. The
 * outcome that goes with it is in *@ret_outcome. */
void in_intake_ended(struct in_intake *intake, struct in_pending *pending, qf_rc rc,
                     struct in_outcome *ret_outcome);

/* A tenant whose range is open for @age_ms or has @bytes of log; i counts up from 0. False: no more. */
bool in_intake_due(const struct in_intake *intake, size_t *i, int64_t mono_ms, int64_t age_ms,
                   uint64_t bytes, struct qf_str *ret_tenant);
/* Once a second: series that were idle for too long are forgotten, some of them each time. */
void in_intake_tick(struct in_intake *intake, int64_t mono_ms);
/* Series of all open ranges that it knows numbers of; active ones. */
uint64_t in_intake_series(const struct in_intake *intake);
uint64_t in_intake_active(const struct in_intake *intake);
/* Ranges that are open, if it leads. */
uint64_t in_intake_open(const struct in_intake *intake);

#endif
