/* head_int.h - what fetching heads and state maps from ingest nodes have in common. */
#ifndef QUERYWORKER_CACHE_HEAD_INT_H
#define QUERYWORKER_CACHE_HEAD_INT_H

#include "queryworker/cache/head.h"
#include "segments/store/http.h"

/* "Authorization: Bearer KEY", or NULL; a key that changed counts a second later. */
char *qw_head_authorization(struct qw_head_source *source);
/* A client that waits longer for the first byte. */
struct http_client *qw_head_patient_http(struct qw_head_source *source);

/* Where a body goes. */
struct qw_sink {
    int fd;
    uint64_t size, size_max;
    int error; /* an errno; 0: none */
    bool too_large;
};
/* For http_request.sink: @ctx begins with a struct qw_sink. */
bool qw_sink_write(void *ctx, const struct http_response *response, const void *data, size_t len);

qf_rc qw_disk_error(struct qf_err *err, const char *what, const char *path, int error);

/* Ask one node: QF_OK with the bytes in @fd and d->size, or d->empty; QF_EGONE: it has not got it; QF_EBUSY, QF_EUNAVAILABLE,
 * QF_ETIMEOUT: ask others, and it again; anything else ends it. */
typedef qf_rc qw_ask_one(struct qw_download *d, const char *replica, int fd, struct qf_err *err);
/* Ask @replicas in their order, round after round, into the file @temp, and rename it to d->path. Errors as qw_head_fetch(). */
QF_MUST_CHECK qf_rc qw_fetch_into(struct qw_download *d, const char *temp, char *const *replicas,
                                  size_t count, qw_ask_one *ask_one);

#endif
