/* handoff.h - what nodes that were away still have to get: references, payloads, and whose turn it is. Pure.
 *
 * For every put that reached its quorum but not every owner, the payload is kept once, with one reference for each node
 * that lacks it. Feed one event, perform the effects it returns, in order. Equal states given equal events give equal
 * effects. Not thread-safe.
 *
 *   payload     stored with its first reference (STORE), freed with its last (FREE)
 *   reference   goes when the node has it, whoever brought it; when its blob leaves the manifest; when the node is
 *               removed; after `life_ms`, which leaves a repair mark (MARK)
 *   in flight   (node, payload) is sent by one at a time, replay or live: the other one skips it. Receivers take a payload
 *               that they have for delivered, so that a send that is heard of late, or twice, does no harm
 *   replay      One per node at a time. It begins when the node comes up, and looks every time for what was missed. A
 *               turn is `quantum` references, one send after the other; then the node rests `rest_ms` and the others
 *               have theirs. Among nodes that wait the one whose turn is longest ago comes first; of several that had
 *               none, the one with the oldest reference. The node's status is looked at before each send. A failed send ends
 *               the turn and backs off. A reference that failed RG_TRIES_MAX times is parked until the node comes up
 *               again, and marked for repair
 *   caps        Bytes of what one node lacks, bytes of all payloads. At a cap the oldest references become repair marks
 *               (drop-oldest) or the put is refused with QF_EBUSY (backpressure). By default the former: with a quorum
 *               met, one dead keeper never stops writers (!). Live sends are never held up
 *
 * What the caller owes: STORE and REF are durable before the put is answered; after a restart everything that is on the
 * disk comes back with RG_HANDOFF_ADD, payloads without a reference are swept. */
#ifndef RING_HANDOFF_HANDOFF_H
#define RING_HANDOFF_HANDOFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/slice.h"

enum {
    RG_HANDOFF_NODES = 64, /* numbers of nodes, as in ring/core/place.h */
    RG_HANDOFF_NAME_MAX = 255,
    RG_PAYLOADS_MAX = 1 << 16,
    RG_REFERENCES_MAX = 1 << 16, /* of one node */
    RG_LIVE_MAX = 4096,          /* live sends that are known of; more are not held up */
    RG_TRIES_MAX = 3,
};
#define RG_HANDOFF_LIFE_MS (INT64_C(7) * 24 * 60 * 60 * 1000)

enum rg_handoff_policy { RG_DROP_OLDEST, RG_BACKPRESSURE };

struct rg_handoff_options {
    uint64_t node_bytes;  /* 0: 1 GiB */
    uint64_t store_bytes; /* 0: 10 GiB */
    enum rg_handoff_policy policy;
    uint32_t quantum;       /* 0: 100 references a turn */
    int64_t rest_ms;        /* 0: 1 s between two turns of a node */
    int64_t life_ms;        /* 0: 7 days */
    int64_t unnamed_ms;     /* 0: 1 day; so long what is in no manifest may still come into one */
    int64_t backoff_ms;     /* 0: 1 s, doubled up to backoff_max_ms */
    int64_t backoff_max_ms; /* 0: 5 min */
    uint32_t turns;         /* 0: 4; nodes that have their turn at the same time */
};

enum rg_handoff_event_kind {
    RG_HANDOFF_ADD, /* node lacks name (slot, bytes), since time_ms. QF_EBUSY: a cap, nothing changed */
    RG_HANDOFF_STATUS, /* node is up, or not */
    RG_HANDOFF_LIVE, /* name is about to be sent to node. QF_EEXIST: it is being sent already, do not */
    RG_HANDOFF_LIVE_ENDED, /* ok: node has name */
    RG_HANDOFF_SENT, /* what came of SEND number send, after a while at the latest; ok: node has name */
    RG_HANDOFF_UNNAMED, /* name left the manifest */
    RG_HANDOFF_LISTED, /* all manifests were read: ok if one has name. Else it is UNNAMED, unless nothing may have named it yet */
    RG_HANDOFF_LOST,   /* name's payload is not there, or damaged: every reference becomes a mark */
    RG_HANDOFF_REMOVED, /* node is no more */
    RG_HANDOFF_TICK
};

struct rg_handoff_event {
    enum rg_handoff_event_kind kind;
    int64_t now_ms;
    uint8_t node;
    bool up, ok;
    struct qf_str name;
    uint32_t slot;
    uint64_t bytes;
    int64_t time_ms;
    uint64_t send; /* SENT: the number that SEND had */
};

enum rg_handoff_effect_kind {
    RG_HANDOFF_STORE, /* the payload of name, once */
    RG_HANDOFF_REF,   /* node's reference to name */
    RG_HANDOFF_UNREF, /* it goes */
    RG_HANDOFF_FREE,  /* the payload goes */
    RG_HANDOFF_SEND, /* to node, under the number send; then RG_HANDOFF_SENT. Void if the node goes down */
    RG_HANDOFF_MARK /* node lacks name of slot: repair it */
};

struct rg_handoff_effect {
    enum rg_handoff_effect_kind kind;
    uint8_t node;
    uint32_t slot;
    struct qf_str name; /* borrowed until the next step */
    uint64_t send;
};

struct rg_handoff_effects {
    const struct rg_handoff_effect *items;
    size_t count;
};

struct rg_handoff_figures {
    uint64_t references, payloads, bytes; /* now */
    uint64_t delivered, dropped, expired, parked, refused, unnamed, lost;
    uint32_t waiting;  /* nodes with references */
    int64_t oldest_ms; /* of all references; INT64_MAX: none */
};

struct rg_handoff;

struct rg_handoff *rg_handoff_new(const struct rg_handoff_options *options);
struct rg_handoff *rg_handoff_free(struct rg_handoff *handoff); /* Accepts NULL, returns NULL. */
/* @ret_effects borrows from @handoff until the next step. QF_EBUSY, QF_EEXIST as above; QF_EINVAL: a name or a node that cannot be. */
QF_MUST_CHECK qf_rc rg_handoff_step(struct rg_handoff *handoff,
                                    const struct rg_handoff_event *event,
                                    struct rg_handoff_effects *ret_effects);
/* When RG_HANDOFF_TICK is due at the latest; INT64_MAX: never. */
int64_t rg_handoff_deadline(const struct rg_handoff *handoff, int64_t now_ms);
struct rg_handoff_figures rg_handoff_figures(const struct rg_handoff *handoff);
bool rg_handoff_has(const struct rg_handoff *handoff, uint8_t node, struct qf_str name);
/* Would RG_HANDOFF_ADD be refused with QF_EBUSY now? For who does not want to write bytes in vain. */
bool rg_handoff_refuses(const struct rg_handoff *handoff, uint8_t node, struct qf_str name,
                        uint64_t bytes);
/* References of @node. */
size_t rg_handoff_waiting(const struct rg_handoff *handoff, uint8_t node);
/* Names of payloads, by row from 0 on below rg_handoff_rows(); empty rows have an empty name. Until the next step. */
size_t rg_handoff_rows(const struct rg_handoff *handoff);
struct qf_str rg_handoff_payload(const struct rg_handoff *handoff, size_t row);
bool rg_handoff_stores(const struct rg_handoff *handoff, struct qf_str name);

#endif
