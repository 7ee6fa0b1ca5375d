/* core_int.h - the inside of a core. */
#ifndef QUEUE_CORE_CORE_INT_H
#define QUEUE_CORE_CORE_INT_H

#include "base/pure/vec.h"
#include "queue/core/consensus.h"
#include "queue/core/core.h"

enum qc_pending_kind { QC_PENDING_WRITE, QC_PENDING_READ };

struct qc_pending {
    enum qc_pending_kind kind;
    enum qc_level level;
    uint64_t request;
    uint64_t index, term; /* of its entry */
    uint64_t bytes;       /* of a record that is not applied yet */
    uint64_t round;       /* READ: the round it waits for */
    bool applied;         /* level all: only copies are missing */
};

/* What is known of another member, from its messages. */
struct qc_peer {
    uint64_t id;
    uint64_t space; /* of its disk */
    uint64_t heard; /* when it was last heard of in this term, as follower or leader */
};

struct qc_core {
    struct qc_options options;
    struct qc_log log;
    uint64_t now;
    uint64_t term, vote; /* as saved, until the library runs */
    struct qc_consensus *consensus;
    struct qc_state state;
    uint64_t snapshot_index, snapshot_term;
    uint64_t last, last_term; /* of the log as the library knows it */

    bool leads;
    uint64_t noop_index; /* of this leader's first entry; serving once it is applied */
    uint64_t led_since;  /* a majority had just voted for it */

    /* A follower's: what its leader had committed at a time, until that is applied here; and the last such
     * time that is over. */
    uint64_t wanted, wanted_at, current_at;

    /* Those from `pending_start` on, in the order in which they came. Most end at the start. */
    QF_VEC(struct qc_pending) pending;
    size_t pending_start;
    uint64_t in_flight_bytes; /* of records that are not applied */

    /* Rounds of questions: `round` is under way if it is greater than `round_done`. */
    uint64_t round, round_done, round_sent_at;
    uint64_t round_members[QC_MEMBERS_MAX]; /* who has answered */
    uint32_t round_answers;

    struct qc_message install; /* the snapshot that is fetched or installed; from 0: none */
    uint64_t space;            /* of this node's disk */
    struct qc_peer peers[QC_MEMBERS_MAX];

    QF_VEC(struct ql_entry) submitted; /* what the last submission carries */
    struct qf_strbuf submitted_data, read_buf;
    QF_VEC(struct qc_effect) effects;
    struct qc_figures figures;
    bool stopped;
};

static inline bool qc_off(const struct qc_core *core, enum qc_unsafe rule)
{
    return (core->options.unsafe & rule) != 0;
}

/* update.c */
void qc_emit_vote(struct qc_core *core);
void qc_emit_update(struct qc_core *core, const struct qc_update *update);

/* core.c */
struct qc_effect *qc_emit(struct qc_core *core, enum qc_effect_kind kind);
void qc_stop(struct qc_core *core, qf_rc rc, const char *why);
/* Turn what the library wants into effects and go on from there. */
void qc_absorb(struct qc_core *core, qf_rc rc, const struct qc_update *update);
qf_rc qc_submit(struct qc_core *core, enum ql_type type, struct qf_str data);
/* All of core->submitted, which follow the log. */
qf_rc qc_submit_all(struct qc_core *core);

/* request.c */
void qc_on_commands(struct qc_core *core, const struct qc_request *commands, uint32_t count,
                    bool chained);
void qc_on_read(struct qc_core *core, const struct qc_event *event);
void qc_on_change(struct qc_core *core, const struct qc_event *event);
void qc_on_transfer(struct qc_core *core, const struct qc_event *event);
void qc_done(struct qc_core *core, uint64_t request, qf_rc rc, uint64_t index);
size_t qc_pending_count(const struct qc_core *core);
void qc_pending_add(struct qc_core *core, const struct qc_pending *pending);
struct qc_pending qc_pending_take(struct qc_core *core, size_t at);
void qc_pending_applied(struct qc_core *core, const struct ql_entry *entry, enum qc_applied how);
void qc_pending_check(struct qc_core *core); /* persisted or matched further */
void qc_pending_fail(struct qc_core *core);  /* leadership is gone */

/* confirm.c */
void qc_round_begin(struct qc_core *core);
void qc_round_tick(struct qc_core *core);
void qc_on_confirm(struct qc_core *core, const struct qc_message *message);
void qc_on_confirm_result(struct qc_core *core, const struct qc_message *message);
void qc_round_finish(struct qc_core *core); /* if a majority has answered and this leader serves */

/* receive.c */
void qc_on_message(struct qc_core *core, const struct qc_message *message);
void qc_on_fetched(struct qc_core *core, const struct ql_snapshot *snapshot);
void qc_on_installed(struct qc_core *core, const struct ql_snapshot *snapshot);
/* Do a majority of voters have room for @bytes more beside what is in flight? */
bool qc_space_allows(const struct qc_core *core, uint64_t bytes);

#endif
