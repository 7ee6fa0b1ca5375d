/* queue_rescue.h - promfabric queue rescue: go on with one node when the others are lost. */
#ifndef CLI_QUEUE_RESCUE_H
#define CLI_QUEUE_RESCUE_H

#include <stdbool.h>

/* Say what the stopped node's folder @data holds; with @yes make that node the only one of a new cluster,
 * under the name @name (NULL: its own). The exit code. */
int cli_queue_rescue(const char *data, const char *name, bool yes);

#endif
