/* up_ingest.h - the ingest nodes of promfabric up, as one cluster. */
#ifndef CLI_UP_INGEST_H
#define CLI_UP_INGEST_H

#include <stdbool.h>

struct up_node {
    char name[32];
    char http[512], peer[64]; /* HOST:PORT */
    bool joined;
};

/* Have @node belong to the cluster of @first and vote, which takes several calls: true once it does, as
 * it may have since an earlier start. Waits for an answer, a second at most. */
bool up_ingest_join(const struct up_node *first, const struct up_node *node);

#endif
