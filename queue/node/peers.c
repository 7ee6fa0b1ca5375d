/* peers.c - what goes to other nodes and comes from them. */
#include <stdlib.h>

#include "queue/node/node_int.h"

const char *qn_name_of(const struct qn_queue *queue, uint64_t id)
{
    static const struct qc_members none;
    struct qc_members members = none;
    const struct qn_node *node = queue->node;

    if (id == node->incarnation)
        return node->name;
    for (size_t i = 0; i < QF_COUNT_OF(node->known); i++)
        if (node->known[i].id == id)
            return node->known[i].name;
    qc_members(queue->core, &members);
    (void)members;
    return NULL;
}

void qn_send(struct qn_queue *queue, const struct qc_message *message)
{
    (void)message;
    atomic_fetch_add(&queue->node->figures.messages_dropped, 1);
}

void qn_fetch(struct qn_queue *queue, const struct qc_message *message)
{
    (void)queue;
    (void)message;
}

bool qn_install(struct qn_queue *queue)
{
    (void)queue;
    return false;
}

void qn_bundle_free(struct qn_queue *queue)
{
    free(queue->bundle);
    queue->bundle = NULL;
}

bool qn_forward(struct qn_queue *queue, struct qn_ask *ask, const char *leader)
{
    (void)queue;
    (void)ask;
    (void)leader;
    return false;
}

void qn_on_note_of_peer(struct qn_node *node, struct qn_note *note)
{
    (void)node;
    (void)note;
}
