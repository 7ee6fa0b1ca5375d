/* ask_int.h - what the files about asks share. */
#ifndef QUEUE_NODE_ASK_INT_H
#define QUEUE_NODE_ASK_INT_H

#include "queue/node/node_int.h"

enum { QN_PARKED_MAX = 4096, QN_TAKERS_MAX = 1024 };

/* verbs.c: the leader of @queue, which serves, begins to do what is asked. */
void qn_verb_begin(struct qn_queue *queue, struct qn_ask *ask);

#endif
