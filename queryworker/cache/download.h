/* download.h - fetch one segment, parts of one, a head input or a state map into a file, on a pool thread. */
#ifndef QUERYWORKER_CACHE_DOWNLOAD_H
#define QUERYWORKER_CACHE_DOWNLOAD_H

#include <stdatomic.h>

#include "base/pure/err.h"
#include "base/sys/mailbox.h"
#include "queryworker/cache/partial.h"
#include "queryworker/work/message.h"
#include "segments/parquet/hot.h"
#include "segments/parquet/segment_reader.h"
#include "segments/store/store.h"

struct qw_segment;
struct qw_head_source;
struct qw_head_ask;
struct qw_map_ask;

/* The task, and the message it comes back as. */
struct qw_download {
    struct qw_message message; /* QW_MESSAGE_DOWNLOAD */
    struct qf_mailbox *mailbox;
    struct sg_store *store;
    struct qw_segment *segment;
    char *name, *path;            /* owned */
    uint64_t size_expected;       /* of a segment: never 0; not a byte more is taken */
    char *etag_expected;          /* owned; of a segment: empty: any */
    struct qw_head_source *heads; /* who asks for heads and maps */
    struct qw_head_ask *head;     /* owned; NULL: none */
    struct qw_map_ask *map;       /* likewise. Neither: a segment of the store */
    atomic_bool cancel;
    /* Parts of a segment, if @needs are told: */
    struct qw_partial_rule rule;
    struct qw_need **needs; /* of the works that wait; owned */
    size_t need_count;
    uint64_t upto;              /* number of the last hold among them */
    char *partial_path;         /* owned; where a copy with holes is, or comes to be */
    const char *partial_label;  /* the end of it */
    struct qw_partial *partial; /* what is there; NULL: nothing yet. Out: NULL if the whole came */
    struct sg_reader *reader;   /* of the copy; borrowed, or NULL */
    bool reader_opened;         /* out: by the task, and the cache's to take */
    struct sg_hot *hot;         /* for the reader */
    /* out */
    qf_rc rc;
    struct qf_err err;
    uint64_t size;
    bool empty;       /* of a head: it has nothing, and there is no file */
    uint64_t samples; /* of a head */
    int64_t duration_ns;
};

/* For qf_pool_submit: @arg is a struct qw_download. Writes "<path>.part", then renames. A segment of
 * another size or etag than expected was replaced since the query was planned: QF_ENOTFOUND. */
void qw_download_run(void *arg);
void qw_download_free(struct qw_download *download);

#define QW_DOWNLOAD_SUFFIX ".part"

#endif
