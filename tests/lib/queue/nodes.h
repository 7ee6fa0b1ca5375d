/* nodes.h - up to three nodes of a cluster in one process, on real folders, wired to each other
 * directly: for tests of what happens between nodes above the cores. */
#ifndef TESTS_LIB_QUEUE_NODES_H
#define TESTS_LIB_QUEUE_NODES_H

#include "queue/node/node.h"

enum { NODES_MAX = 3 };

struct nodes;

struct nodes_options {
    size_t count;
    struct qn_applications applications[NODES_MAX];
    uint64_t file_bytes;
};

/* Folders below a temporary one; nothing runs yet. */
struct nodes *nodes_new(const struct nodes_options *options);
struct nodes *nodes_free(struct nodes *nodes); /* stops all, removes the folders */

/* Node 0 makes the cluster when it is first started. */
void nodes_start(struct nodes *nodes, size_t i);
void nodes_stop(struct nodes *nodes, size_t i);
/* Lose the folder of a stopped node. */
void nodes_wipe(struct nodes *nodes, size_t i);
struct qn_node *nodes_at(struct nodes *nodes, size_t i);
/* Make node @i a voter, asking node @at. */
void nodes_join(struct nodes *nodes, size_t at, size_t i);
/* Messages between it and the others are lost, or are not any more. */
void nodes_cut(struct nodes *nodes, size_t i, bool cut);

/* Ask node @i as an operator and wait: the answered ask, to be freed. Fails the test after 20 s. */
struct qn_ask *nodes_ask(struct nodes *nodes, size_t i, struct qn_ask *ask);
/* Only what came of it. */
qf_rc nodes_ask_rc(struct nodes *nodes, size_t i, struct qn_ask *ask);
/* The node that says it leads @queue; waits for one. */
size_t nodes_leader(struct nodes *nodes, const char *queue);
const char *nodes_fatal(struct nodes *nodes); /* "" if nothing was */

#endif
