/* ask_int.h - what the files about asks share. */
#ifndef QUEUE_NODE_ASK_INT_H
#define QUEUE_NODE_ASK_INT_H

#include "queue/node/node_int.h"

enum { QN_PARKED_MAX = 4096, QN_TAKERS_MAX = 1024 };

/* verbs.c: the leader of @queue, which serves, begins to do what is asked. */
void qn_verb_begin(struct qn_queue *queue, struct qn_ask *ask);
/* False: the log has too many entries, and @ask was told so. */
bool qn_log_has_room(struct qn_queue *queue, struct qn_ask *ask);
/* Append a record of @ask, which begins with room for the envelope. */
void qn_submit_record(struct qn_queue *queue, struct qn_ask *ask, struct qf_strbuf *record);

/* app.c: what is asked of an application. */
void qn_write_begin(struct qn_queue *queue, struct qn_ask *ask);
void qn_write_ended(struct qn_queue *queue, struct qn_ask *ask, const struct qn_end *end);
void qn_question_ended(struct qn_queue *queue, struct qn_ask *ask, const struct qn_end *end);
void qn_look(struct qn_queue *queue, struct qn_ask *ask);

#endif
