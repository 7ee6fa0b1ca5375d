/* queue_rescue.c - go on with one node when the others are lost. */
#include "cli/queue_rescue.h"

#include <inttypes.h>
#include <stdio.h>

#include "queue/node/rescue.h"

static void print_queue(void *ctx, const struct qn_rescued *queue)
{
    (void)ctx;
    printf("%-12s %8" PRIu64 " %12" PRIu64 " %14" PRIu64 "\n", queue->folder, queue->term,
           queue->index, queue->bytes);
}

int cli_queue_rescue(const char *data, const char *name, bool yes)
{
    struct qf_err err = { 0 };

    printf("%-12s %8s %12s %14s\n", "folder", "term", "index", "bytes");
    if (qn_rescue(data, name, yes, print_queue, NULL, &err) != QF_OK) {
        (void)fflush(stdout);
        fprintf(stderr, "error: %s\n", err.msg);
        return 1;
    }
    printf(yes ? "this node is a new cluster: start it, then add others (promfabric queue form)\n"
               : "nothing was changed; with --yes this node becomes a new cluster, and what only "
                 "other nodes have is lost\n");
    return 0;
}
