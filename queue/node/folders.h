/* folders.h - the folders of a node's queues below one folder of a real disk. */
#ifndef QUEUE_NODE_FOLDERS_H
#define QUEUE_NODE_FOLDERS_H

#include "queue/node/node.h"

struct qn_data;

/* Make the folder @path if need be, and take it for this process alone. QF_EBUSY: another process has
 * it; QF_EIO, QF_EDENIED. */
QF_MUST_CHECK qf_rc qn_data_open(const char *path, struct qn_data **ret_data, struct qf_err *err);
struct qn_data *qn_data_close(struct qn_data *data); /* Accepts NULL, returns NULL. */
struct qn_folders qn_data_folders(struct qn_data *data);

#endif
