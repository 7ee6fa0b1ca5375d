/* replicas_int.h - what the files of replicas share. */
#ifndef INGEST_DOCS_REPLICAS_INT_H
#define INGEST_DOCS_REPLICAS_INT_H

#include <stdatomic.h>

#include "base/pure/vec.h"
#include "base/sys/pool.h"
#include "base/sys/thread.h"
#include "ingest/docs/replicas.h"

/* A document by its name. */
struct in_doc_place {
    char name[RG_DOC_NAME_TEXT + 1];
    uint32_t slot;
};

struct in_doc_repair {
    struct in_doc_place place;
    int64_t due_ms;
    unsigned tries;
};

struct in_replicas {
    struct sg_keep_client *client;
    struct rg_board *board;
    struct qf_pool *callers;
    struct qf_pool *handing;               /* one thread */
    const struct sg_ring_handoff *handoff; /* or NULL */
    struct qf_thread *mender;
    atomic_bool stopping;

    struct qf_lock *lock; /* of what follows */
    struct rg_ring *ring; /* NULL: not known yet */
    uint64_t applied;
    int64_t away_ms[RG_NODES_MAX]; /* not asked before */
    QF_VEC(struct in_doc_repair) repairs;
    struct in_replicas_figures figures;
};

enum in_round_kind { IN_ROUND_READ, IN_ROUND_JOIN };

struct in_round_wish {
    enum in_round_kind kind;
    enum rg_level level;
    bool mends;                   /* it is a repair: notes nothing, and waits for everybody */
    const struct rg_sheet *sheet; /* JOIN */
};

/* round.c: rounds until the owners are known. @ret_sheet: READ. */
qf_rc in_replicas_round(struct in_replicas *replicas, const struct in_doc_place *place,
                        const struct in_round_wish *wish, struct rg_sheet *ret_sheet,
                        struct in_round_of *ret_round, struct qf_err *err);

/* replicas.c: an owner of @place lacks something. */
void in_replicas_note(struct in_replicas *replicas, const struct in_doc_place *place);

/* An owner that is asked. */
struct in_round_copy {
    struct in_round *round;
    uint8_t node;
    char url[RG_URL_MAX + 1];
    struct rg_sheet sheet; /* what it has, READ */
    struct in_replica said;
};

/* Lives until the last of those that were asked has ended, and what they missed is kept. */
struct in_round {
    struct in_replicas *replicas;
    struct in_doc_place place;
    struct in_round_wish wish;
    struct rg_sheet sheet; /* JOIN: its own copy */
    uint64_t epoch;
    struct sg_store_limit limit;
    struct qf_lock *lock; /* of what follows */
    struct rg_tally tally;
    size_t count, left;
    bool waited; /* somebody waits for it */
    struct in_round_copy copies[IN_REPLICAS_MAX];
};

/* round.c */
void in_round_free(struct in_round *round);
/* handed.c: what owners missed of a JOIN that reached its level is kept for them, later; @round is taken. */
void in_round_hand_off(struct in_round *round);

#endif
