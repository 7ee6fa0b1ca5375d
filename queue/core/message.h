/* message.h - what the nodes of a queue say to each other.
 *
 * Plain data; encoding is the peers' business. Every message is checked (qc_message_check) before
 * consensus sees it: the library trusts what it is given. */
#ifndef QUEUE_CORE_MESSAGE_H
#define QUEUE_CORE_MESSAGE_H

#include "queue/core/members.h"
#include "queue/log/frame.h"

enum qc_message_kind {
    QC_APPEND = 1,    /* index, index_term: the entry before; commit; entries */
    QC_APPEND_RESULT, /* index: how far the log is stored; rejected: 0, or what did not match */
    QC_VOTE,          /* index, index_term: the candidate's last entry; pre_vote, disrupt */
    QC_VOTE_RESULT,   /* granted, pre_vote */
    QC_INSTALL,       /* index, index_term, change_index of a snapshot to be fetched */
    QC_TIMEOUT_NOW,   /* index, index_term: the leader's last entry */
    QC_CONFIRM,       /* nonce: are you still my follower? */
    QC_CONFIRM_RESULT,
    QC_MESSAGE__COUNT
};

enum { QC_ENTRIES_MAX = 4096 }; /* in one message */

struct qc_message {
    enum qc_message_kind kind;
    uint64_t cluster;
    uint64_t from, to; /* incarnations */
    uint64_t term;
    uint64_t space; /* free bytes of the sender's disk */
    uint64_t index, index_term;
    uint64_t commit, rejected, change_index, nonce;
    bool pre_vote, disrupt, granted;
    /* Borrowed. In a message to be sent the core leaves them NULL: whoever sends it reads @count
     * entries behind @index from the log. */
    const struct ql_entry *entries;
    uint32_t count;
};

/* NULL, or why a received message is not to be believed. Says nothing about whom it is for. */
const char *qc_message_check(const struct qc_message *message);

#endif
