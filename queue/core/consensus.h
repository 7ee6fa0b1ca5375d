/* consensus.h - the consensus library behind our own words; consensus.c is the only file that sees it.
 *
 * One function per event. Each fills a qc_update: what must be made durable, written, sent. Nothing
 * here reads a clock or does I/O. Running out of memory ends the process. */
#ifndef QUEUE_CORE_CONSENSUS_H
#define QUEUE_CORE_CONSENSUS_H

#include "queue/core/members.h"
#include "queue/core/message.h"

struct qc_consensus;

enum qc_standing { QC_FOLLOWER, QC_CANDIDATE, QC_LEADER };

struct qc_update {
    bool vote;     /* term or vote changed: durable before anything else of this update */
    bool standing; /* changed */
    bool commit;   /* moved */
    bool install;  /* the snapshot of the message is wanted */
    const struct ql_entry *entries; /* to be written; they replace what the log has from there on */
    uint32_t count;
    const struct qc_message *messages; /* to be sent, after all of the above */
    size_t message_count;
};

/* What a node starts with. Entries: term and type, and the data of changes. */
struct qc_start {
    uint64_t id, term, vote;
    uint64_t snapshot_index, snapshot_term, change_index; /* 0: no snapshot */
    const struct qc_members *members;                     /* of the snapshot */
    uint64_t first;                                       /* index of entries[0] */
    const struct ql_entry *entries;
    uint32_t count;
    uint32_t seed;
    uint32_t election_ms, heartbeat_ms, in_flight;
};

struct qc_consensus *qc_consensus_new(const struct qc_start *start, uint64_t now,
                                      struct qc_update *ret_update);
struct qc_consensus *qc_consensus_free(struct qc_consensus *consensus); /* Returns NULL. */

/* QF_EINTERNAL from any of these: the log contradicts what is committed; the node must stop. */

/* Not for QC_CONFIRM*. A QC_APPEND has at most one change among its entries, as the first. A
 * QC_INSTALL comes when its files are there; @members are its configuration. */
QF_MUST_CHECK qf_rc qc_consensus_receive(struct qc_consensus *consensus, uint64_t now,
                                         const struct qc_message *message,
                                         const struct qc_members *members,
                                         struct qc_update *ret_update);
/* Entries up to @index are durable; it is greater than qc_consensus_stored(). */
QF_MUST_CHECK qf_rc qc_consensus_persisted(struct qc_consensus *consensus, uint64_t now,
                                           uint64_t index, struct qc_update *ret_update);
/* The snapshot that an update asked for is durable, and the log behind it is empty. */
QF_MUST_CHECK qf_rc qc_consensus_installed(struct qc_consensus *consensus, uint64_t now,
                                           uint64_t index, uint64_t term,
                                           const struct qc_members *members, uint64_t change_index,
                                           struct qc_update *ret_update);
/* This node took a snapshot at @index; the log before @first is about to go. */
QF_MUST_CHECK qf_rc qc_consensus_snapshot(struct qc_consensus *consensus, uint64_t now,
                                          uint64_t index, uint64_t first,
                                          const struct qc_members *members, uint64_t change_index,
                                          struct qc_update *ret_update);
/* The change at @index is committed and on this node's disk. */
QF_MUST_CHECK qf_rc qc_consensus_changed(struct qc_consensus *consensus, uint64_t now,
                                         uint64_t index, const struct qc_members *members,
                                         struct qc_update *ret_update);
QF_MUST_CHECK qf_rc qc_consensus_timeout(struct qc_consensus *consensus, uint64_t now,
                                         struct qc_update *ret_update);
/* As leader. QF_EUNAVAILABLE: not the leader, or handing over; QF_EBUSY: a change is under way. */
QF_MUST_CHECK qf_rc qc_consensus_submit(struct qc_consensus *consensus, uint64_t now,
                                        const struct ql_entry *entries, uint32_t count,
                                        struct qc_update *ret_update);
QF_MUST_CHECK qf_rc qc_consensus_transfer(struct qc_consensus *consensus, uint64_t now, uint64_t id,
                                          struct qc_update *ret_update);

/* Vote for @id in the present term, in which this node has not voted for another: what the library
 * refuses to a node that is no voter in its own, maybe outdated, configuration. */
void qc_consensus_grant(struct qc_consensus *consensus, uint64_t id);

enum qc_standing qc_consensus_standing(const struct qc_consensus *consensus);
uint64_t qc_consensus_term(const struct qc_consensus *consensus);
uint64_t qc_consensus_vote(const struct qc_consensus *consensus);
uint64_t qc_consensus_commit(const struct qc_consensus *consensus);
uint64_t qc_consensus_stored(const struct qc_consensus *consensus);
uint64_t qc_consensus_leader(const struct qc_consensus *consensus); /* 0: unknown */
uint64_t qc_consensus_timeout_at(const struct qc_consensus *consensus);
uint64_t qc_consensus_uncommitted_change(const struct qc_consensus *consensus); /* 0: none */
bool qc_consensus_in_pre_vote(const struct qc_consensus *consensus);
bool qc_consensus_installing(const struct qc_consensus *consensus);
/* As leader: how far @id's log is known to be stored. */
uint64_t qc_consensus_match(const struct qc_consensus *consensus, uint64_t id);
/* The configuration in force, committed or not; empty for who has none yet. */
void qc_consensus_members(const struct qc_consensus *consensus, struct qc_members *ret_members);

#endif
