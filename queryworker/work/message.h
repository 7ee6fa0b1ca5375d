/* message.h - what the coordinator's mailbox carries.
 *
 * Every message starts with a struct qw_message that says what follows. The coordinator is the only
 * reader; completion tags are embedded in their call, all others belong to whoever receives them.
 */
#ifndef QUERYWORKER_WORK_MESSAGE_H
#define QUERYWORKER_WORK_MESSAGE_H

enum qw_message_kind {
    QW_MESSAGE_RPC,      /* rpc/control_server.h: an operation of a call completed */
    QW_MESSAGE_RUN,      /* work/executor.h: a run ended */
    QW_MESSAGE_DOWNLOAD, /* cache/cache.h: a download ended */
    QW_MESSAGE_JOB,      /* work/job_task.h: a background job ended */
    QW_MESSAGE_FETCH,    /* artifact/serve.h: an artifact was sent to a client */
};

struct qw_message {
    enum qw_message_kind kind;
};

/* More than can be on their way at once; a writer that finds it full waits. */
#define QW_MAILBOX_CAPACITY 4096

#endif
