/* ask_int.h - what the files about asks share. */
#ifndef QUEUE_NODE_ASK_INT_H
#define QUEUE_NODE_ASK_INT_H

#include "queue/node/node_int.h"

enum { QN_PARKED_MAX = 4096, QN_TAKERS_MAX = 1024 };

/* verbs.c: the leader of @queue, which serves, begins to do what is asked. */
void qn_verb_begin(struct qn_queue *queue, struct qn_ask *ask);
/* The one request of an ask that needs one at a time. */
void qn_submit(struct qn_queue *queue, struct qn_ask *ask, struct qc_event *event);
void qn_submit_command(struct qn_queue *queue, struct qn_ask *ask,
                       const struct qc_command *command);
const char *qn_refusal(qf_rc rc); /* why a command was refused */

/* Per family of verbs: how an ask begins, and what the end of a request means for it.
 * offer.c */
void qn_offer_begin(struct qn_queue *queue, struct qn_ask *ask);
void qn_offer_ended(struct qn_queue *queue, struct qn_ask *ask, const struct qn_end *end);
int64_t qn_record_time(struct qn_queue *queue); /* of a record that is taken now */
/* False: the log has too many entries, and @ask was told so. */
bool qn_log_has_room(struct qn_queue *queue, struct qn_ask *ask);
/* consume.c: records out, and consumers' positions. */
void qn_read_begin(struct qn_queue *queue, struct qn_ask *ask);
void qn_read_ended(struct qn_queue *queue, struct qn_ask *ask, const struct qn_end *end);
void qn_take_begin(struct qn_queue *queue, struct qn_ask *ask);
void qn_take_ended(struct qn_queue *queue, struct qn_ask *ask, const struct qn_end *end);
void qn_offset_begin(struct qn_queue *queue, struct qn_ask *ask);
void qn_offset_ended(struct qn_queue *queue, struct qn_ask *ask, const struct qn_end *end);
/* manage.c: queues, members, leadership. */
void qn_create_begin(struct qn_queue *meta, struct qn_ask *ask);
void qn_delete_begin(struct qn_queue *meta, struct qn_ask *ask);
void qn_table_ended(struct qn_queue *meta, struct qn_ask *ask, const struct qn_end *end);
void qn_change_begin(struct qn_queue *meta, struct qn_ask *ask);
void qn_change_ended(struct qn_ask *ask, const struct qn_end *end);
void qn_transfer_begin(struct qn_queue *queue, struct qn_ask *ask);
/* app.c: what is asked of an application. */
void qn_write_begin(struct qn_queue *queue, struct qn_ask *ask);
void qn_write_ended(struct qn_queue *queue, struct qn_ask *ask, const struct qn_end *end);
void qn_question_ended(struct qn_queue *queue, struct qn_ask *ask, const struct qn_end *end);
void qn_look(struct qn_queue *queue, struct qn_ask *ask);

#endif
