/* ask.h - what clients and operators ask a node for, and what they hear.
 *
 * An ask is made by anyone, given to qn_ask() and answered once, by a call of `done` on the node's
 * thread, which must not wait; whoever answers frees it with qn_ask_free(). A node that does not lead
 * the queue has the leader answer. */
#ifndef QUEUE_NODE_ASK_H
#define QUEUE_NODE_ASK_H

#include "queue/node/table.h"

enum qn_verb {
    QN_OFFER,   /* records, level */
    QN_POLL,    /* consumer or from; max: records behind the consumer's offset, which stays */
    QN_TAKE,    /* consumer (not for delete-on-consume), max: records, and the position moves */
    QN_PEEK,    /* max: the oldest records that are left */
    QN_OFFSET,  /* consumer, from: everything below was read */
    QN_OFFSETS, /* all consumers, as text */
    QN_CREATE,  /* options */
    QN_DELETE,
    QN_LIST,     /* all queues as this node knows them, as text */
    QN_SHOW,     /* one queue as this node knows it, as text */
    QN_CHANGE,   /* change, member: of the cluster, that is, of `meta` */
    QN_TRANSFER, /* member ("": any): hand leadership of the queue over */
    /* For the queue's application (application.h); their bytes are in records, answers in text. */
    QN_WRITE,    /* something that its leader makes a record of */
    QN_QUESTION, /* answered by its leader, who confirms itself first */
    QN_LOOK,     /* answered by this node as it is */
    QN_FOUND,    /* this node, which is in no cluster, makes one of itself alone */
    QN_VERB__COUNT
};

enum {
    QN_BATCH_MAX = 4096,            /* records in one offer */
    QN_POLL_MAX = 10000,            /* records in one answer */
    QN_POLL_BYTES_MAX = 4 << 20,    /* of them together, but always one */
    QN_RECORD_BYTES_MAX = 16 << 20, /* of one, whatever a role allows */
    QN_BATCH_BYTES_MAX = 24 << 20,
    QN_WAIT_MS_MAX = 60000
};

struct qn_record {
    uint64_t offset;
    int64_t time_ms; /* when the leader took it, by its clock */
    struct qf_str data;
};

struct qn_answer {
    struct qf_err err; /* rc, and why */
    bool gone;         /* the records asked for are no longer kept: `first` says what is */
    bool unknown;      /* an error after which the thing may have been done all the same */
    uint64_t count;    /* OFFER: records that were acknowledged */
    uint64_t first;    /* OFFER: offset of the first record; else the first offset that is kept */
    uint64_t last;     /* OFFER: offset of the last record */
    uint64_t next;     /* POLL, TAKE, PEEK: where to go on; OFFSET: the offset; LIST: of meta */
    uint64_t end;      /* POLL, TAKE, PEEK: everything below can be read now */
    QF_VEC(struct qn_record) records; /* borrow from `bytes` */
    struct qf_strbuf bytes;
    struct qf_strbuf text; /* JSON */
};

struct qn_node;

struct qn_ask {
    enum qn_verb verb;
    char queue[QN_NAME_SIZE];
    char tenant[QF_TENANT_MAX + 1];
    bool operates; /* with the operator's key: all queues */
    char consumer[QC_CONSUMER_SIZE];
    uint64_t from;
    uint32_t max;
    bool level_set;
    enum qc_level level;
    struct qn_queue_options options;
    enum qc_change change;
    char member[QC_NAME_SIZE];
    uint64_t member_id; /* CHANGE; 0: the present one of that name, or asked of the node */
    QF_VEC(struct qf_str) records; /* OFFER commands; borrow from `bytes` once qn_ask() is called */
    struct qf_strbuf bytes;
    int64_t timeout_ms; /* 0: 10 s */
    int64_t wait_ms;    /* POLL, TAKE, PEEK: for records, if there are none; beside the timeout */

    void (*done)(void *ctx, struct qn_ask *ask);
    void *ctx;
    struct qn_answer answer;

    /* The node's own. */
    struct qn_part *parts;
    void *pending;       /* WRITE: the application's */
    uint32_t parts_open; /* requests that the core has not ended */
    bool answered, forwarded, waiting, invited;
    int phase;
    int64_t due_ms, leader_due_ms, wait_due_ms;
    uint64_t queue_id;
    uint64_t sent_to; /* the leader that was asked; 0: this node itself */
    struct qn_node *node;
    struct qn_ask *next;                  /* parked, waiting, or behind another TAKE */
    struct qn_ask *open_next, *open_prev; /* not answered yet */
};

/* An empty ask for @queue, which is cut to its bound if it is longer. */
struct qn_ask *qn_ask_new(enum qn_verb verb, struct qf_str queue);
/* Copy a record into it. */
void qn_ask_add(struct qn_ask *ask, struct qf_str record);
/* The record that was added as number @i, once qn_ask() was called. */
struct qf_str qn_ask_record(const struct qn_ask *ask, size_t i);
struct qn_ask *qn_ask_free(struct qn_ask *ask); /* Accepts NULL, returns NULL. */

#endif
