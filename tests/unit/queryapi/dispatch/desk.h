/* desk.h - a coordinator without a thread, among workers, downloads and turns that do what a test
 * says.
 *
 * The control client, the fetcher, the pool and the turns are made of paper (desk.c, fakes.c): what
 * the coordinator asks of them is written down, and the test answers for them. The rest is real. */
#ifndef TESTS_UNIT_QUERYAPI_DISPATCH_DESK_H
#define TESTS_UNIT_QUERYAPI_DISPATCH_DESK_H

#include "base/pure/strbuf.h"
#include "queryapi/dispatch/coordinator_int.h"

struct task {
    void (*fn)(void *arg);
    void *arg;
};

struct desk {
    struct qa_coord *coord;
    struct qa_metrics metrics;
    struct qa_query_env env;
    struct qf_strbuf log; /* what the coordinator said and had done, "; " between */
    char *shown;
    QF_VEC(struct task) tasks;
    QF_VEC(struct qa_fetch *) fetches;
    bool pool_full, fetcher_full;
    int64_t later_ms; /* how far the clock is ahead */

    /* How turns go. */
    size_t items;              /* works of a plan */
    struct pb_segment segment; /* what each of them reads */
    struct pb_maps maps;       /* and beside it */
    uint32_t protocol;         /* that workers say; 0: today's */
    int pauses;                /* so many answer turns end with a full stream */
    qf_rc plan_rc;             /* a plan fails with it */
    int64_t expect_ms;         /* what a work is expected to take; twice that is too long */
};

/* The one that is in use; fakes write to it. */
extern struct desk *desk_now;

struct desk *desk_new(size_t queries_max, size_t active_max, size_t tenant_queue_max);
/* From now on tenants have these limits. */
void desk_limit(struct desk *desk, const struct qf_limits *limits);
void desk_freep(struct desk **desk);
void desk_note(const char *fmt, ...) QF_PRINTF(1, 2);
/* What happened since the last call. */
const char *desk_log(struct desk *desk);

/* Messages that are waiting for the coordinator. */
void desk_pump(struct desk *desk);
/* Run the oldest task of the pool, and what follows from it. */
void desk_turn(struct desk *desk);
/* Messages that are waiting, and then the youngest task of the pool: what they asked to be shown. */
void desk_show(struct desk *desk);
void desk_time_passes(struct desk *desk, int64_t ms);

/* A client asks; the stream is the caller's to drop. */
struct qh_stream *desk_ask(struct desk *desk, const char *tenant);
/* "200 body", "open" before the answer begins, "cut". */
const char *desk_answer(struct qh_stream *stream);

/* Worker number @session is discovered, dialed and says that it accepts. */
void desk_worker_up(struct desk *desk, uint64_t session);
void desk_say(struct desk *desk, uint64_t session, const struct pb_worker_message *message);
void desk_accept(struct desk *desk, uint64_t session, uint64_t work, uint32_t attempt);
void desk_ready(struct desk *desk, uint64_t session, uint64_t work, uint32_t attempt,
                uint64_t size);
void desk_fail(struct desk *desk, uint64_t session, uint64_t work, uint32_t attempt,
               const char *code, bool retryable);
/* The oldest download comes back, with its bytes or with an error. */
void desk_fetched(struct desk *desk, bool ok);

#endif
