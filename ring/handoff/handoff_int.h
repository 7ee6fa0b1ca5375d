/* handoff_int.h - the inside of hand-off. */
#ifndef RING_HANDOFF_HANDOFF_INT_H
#define RING_HANDOFF_HANDOFF_INT_H

#include "base/pure/vec.h"
#include "ring/handoff/handoff.h"

#define RG_NO_PAYLOAD UINT32_MAX

struct rg_payload {
    char *name; /* NULL: the row is free */
    uint64_t hash;
    uint32_t slot;
    uint32_t references;
    uint64_t bytes;
    int64_t time_ms; /* since then somebody lacks it */
    bool named;      /* a manifest had it */
    uint32_t next;   /* row in the same bucket, or next free row */
};

struct rg_reference {
    uint32_t payload;
    uint8_t tries;
    bool parked;
    int64_t time_ms;
};

struct rg_handoff_node {
    bool up;
    QF_VEC(struct rg_reference) references; /* oldest first */
    uint64_t bytes;
    bool has_turn;
    uint32_t left;    /* of its turn */
    uint64_t send;    /* number of what is under way; 0: nothing */
    uint32_t sending; /* its payload; RG_NO_PAYLOAD: its reference went meanwhile */
    uint64_t turn;    /* number of its last turn; 0: none yet */
    int64_t next_ms;  /* no turn before */
    uint32_t failures;
};

struct rg_live {
    uint8_t node;
    char name[RG_HANDOFF_NAME_MAX + 1];
};

enum { RG_BUCKETS = 1 << 12 };

struct rg_handoff {
    struct rg_handoff_options options;
    QF_VEC(struct rg_payload) payloads;
    uint32_t buckets[RG_BUCKETS]; /* 1 + row */
    uint32_t free;                /* 1 + row */
    uint64_t payload_count, bytes;
    struct rg_handoff_node nodes[RG_HANDOFF_NODES];
    QF_VEC(struct rg_live) live;
    uint64_t turns, sends; /* numbers given so far */
    QF_VEC(struct rg_handoff_effect) effects;
    QF_VEC(char *) graves; /* names of payloads that went in this step */
    struct rg_handoff_figures figures;
};

/* table.c */
uint32_t rg_payload_find(const struct rg_handoff *h, struct qf_str name);
uint32_t rg_payload_add(struct rg_handoff *h, const struct rg_handoff_event *event);
/* Index of @node's reference to @payload; SIZE_MAX: none. */
size_t rg_reference_find(const struct rg_handoff *h, uint8_t node, uint32_t payload);
void rg_reference_add(struct rg_handoff *h, uint8_t node, uint32_t payload, int64_t time_ms);
/* The reference at @at goes, its payload with the last one. @mark: the node is to be repaired. */
void rg_reference_drop(struct rg_handoff *h, uint8_t node, size_t at, bool mark);
void rg_handoff_emit(struct rg_handoff *h, enum rg_handoff_effect_kind kind, uint8_t node,
                     uint32_t payload);

/* replay.c */
void rg_replay_sent(struct rg_handoff *h, const struct rg_handoff_event *event);
void rg_replay_end_turn(struct rg_handoff *h, uint8_t node, int64_t now_ms);
/* Give turns and send. */
void rg_replay_plan(struct rg_handoff *h, int64_t now_ms);
bool rg_live_has(const struct rg_handoff *h, uint8_t node, const char *name);

#endif
