/* state.h - what the applied log amounts to, records aside: positions and members.
 *
 * Equal logs give equal states, whoever applies them and in however many runs. The state at an
 * index together with the entries from `first` on is all that a node needs; a snapshot is just
 * that. */
#ifndef QUEUE_CORE_STATE_H
#define QUEUE_CORE_STATE_H

#include "queue/core/command.h"
#include "queue/core/members.h"
#include "queue/log/frame.h"

enum { QC_CONSUMERS_MAX = 256 };

struct qc_consumer {
    char name[QC_CONSUMER_SIZE];
    uint64_t offset;
    uint64_t changed; /* index of the entry that moved it last: the oldest makes room */
};

struct qc_state {
    uint64_t applied;      /* index of the last entry that is in it */
    uint64_t applied_term; /* its term */
    uint64_t first;        /* first offset that is kept */
    uint64_t position;     /* delete-on-consume: the next offset to hand out */
    struct qc_members members;
    uint64_t change_index; /* of the entry that made them so */
    uint32_t consumer_count;
    struct qc_consumer consumers[QC_CONSUMERS_MAX];
};

/* What applying an entry told its proposer. */
enum qc_applied {
    QC_APPLIED,
    QC_APPLIED_NOT, /* CONSUME: the position had moved on; OFFSET: it would have gone back */
    QC_APPLIED_BAD  /* an entry that cannot be read: it counts for nothing, on every node */
};

void qc_state_init(struct qc_state *state);
/* Apply @entry, whose index is applied + 1. */
enum qc_applied qc_state_apply(struct qc_state *state, const struct ql_entry *entry);
const struct qc_consumer *qc_state_consumer(const struct qc_state *state, struct qf_str name);

/* For snapshots; members travel beside it. Decoding leaves members and change_index alone. */
void qc_state_encode(struct qf_strbuf *buf, const struct qc_state *state);
QF_MUST_CHECK qf_rc qc_state_decode(struct qf_str bytes, struct qc_state *ret_state);

#endif
