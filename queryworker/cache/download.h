/* download.h - fetch one segment into a file, on a pool thread. */
#ifndef QUERYWORKER_CACHE_DOWNLOAD_H
#define QUERYWORKER_CACHE_DOWNLOAD_H

#include <stdatomic.h>

#include "base/pure/err.h"
#include "base/sys/mailbox.h"
#include "queryworker/work/message.h"
#include "segments/store/store.h"

struct qw_segment;

/* The task, and the message it comes back as. */
struct qw_download {
    struct qw_message message; /* QW_MESSAGE_DOWNLOAD */
    struct qf_mailbox *mailbox;
    struct sg_store *store;
    struct qw_segment *segment;
    char *name, *path;      /* owned */
    uint64_t size_expected; /* never 0; not a byte more is taken */
    atomic_bool cancel;
    /* out */
    qf_rc rc;
    struct qf_err err;
    uint64_t size;
    int64_t duration_ns;
};

/* For qf_pool_submit: @arg is a struct qw_download. Writes "<path>.part", then renames. */
void qw_download_run(void *arg);
void qw_download_free(struct qw_download *download);

#define QW_DOWNLOAD_SUFFIX ".part"

#endif
