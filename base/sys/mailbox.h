/* mailbox.h - bounded queue of messages: many writers, one reader.
 *
 * Sending gives the message away; the reader owns what it receives. This and the ring of a
 * connection are the only places where threads meet. A mailbox can also wake a poll loop: its
 * eventfd is readable while messages are waiting. */
#ifndef BASE_SYS_MAILBOX_H
#define BASE_SYS_MAILBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/macros.h"

struct qf_mailbox;

/* Holds at most @capacity messages. Never NULL. */
struct qf_mailbox *qf_mailbox_new(size_t capacity);
/* Messages still inside are given to @drop, which may be NULL if there are none. Returns NULL. */
struct qf_mailbox *qf_mailbox_free(struct qf_mailbox *box, void (*drop)(void *message));

/* False if the mailbox is full or closed: the message stays the caller's. Never blocks. */
QF_MUST_CHECK bool qf_mailbox_try_send(struct qf_mailbox *box, void *message);
/* The same without waking the reader: it sees the message with the next one, or when its wait is
 * over. For what can wait as long as that. */
QF_MUST_CHECK bool qf_mailbox_try_send_later(struct qf_mailbox *box, void *message);
/* Wake the reader if messages that were sent later are all that waits. */
void qf_mailbox_nudge(struct qf_mailbox *box);
/* Waits for room up to @timeout_ms (-1: for ever). False on timeout or when closed. For pool
 * threads only: a coordinator never waits. */
QF_MUST_CHECK bool qf_mailbox_send(struct qf_mailbox *box, void *message, int64_t timeout_ms);

/* The oldest message, or NULL at once. */
void *qf_mailbox_try_receive(struct qf_mailbox *box);
/* The oldest message, waiting up to @timeout_ms (-1: for ever); NULL on timeout, or when closed and
 * empty. */
void *qf_mailbox_receive(struct qf_mailbox *box, int64_t timeout_ms);

/* No further sends; the reader still gets what is inside. Wakes everyone. */
void qf_mailbox_close(struct qf_mailbox *box);
size_t qf_mailbox_count(struct qf_mailbox *box);
/* Readable while messages wait (or after close); those that were sent later do not count. For poll();
 * do not read it. Who never asks for it does not pay for it: keeping it up to date takes two system
 * calls a message. */
int qf_mailbox_fd(struct qf_mailbox *box);

#endif
