/* download.c - fetch one segment into a file. */
#include "queryworker/cache/download.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"
#include "base/sys/clock.h"
#include "queryworker/cache/head.h"
#include "queryworker/cache/map.h"

static qf_rc fetch_to(struct qw_download *d, const char *temp)
{
    struct sg_store_call call = { .cancel = &d->cancel,
                                  .bytes_max = d->size_expected,
                                  .etag = d->etag_expected };
    int fd = open(temp, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
    qf_rc rc;

    if (fd < 0)
        return qf_err_set(&d->err, errno == ENOSPC || errno == EDQUOT ? QF_ENOSPC : QF_EIO,
                          "cannot make %s: %s", temp, strerror(errno));
    rc = sg_store_read_fd(d->store, qf_str_from(d->name), fd, &call, &d->size, &d->err);
    if (rc == QF_ELIMIT) {
        d->err = (struct qf_err){ 0 };
        rc = qf_err_set(&d->err, QF_ENOTFOUND, "%s has more bytes than the announced %llu", d->name,
                        (unsigned long long)d->size_expected);
    } else if (rc == QF_ECORRUPT) /* on the way here: another worker may get the segment whole */
        rc = d->err.rc = QF_EIO;
    if (close(fd) != 0 && rc == QF_OK)
        rc = qf_err_set(&d->err, errno == ENOSPC || errno == EDQUOT ? QF_ENOSPC : QF_EIO,
                        "cannot write %s: %s", temp, strerror(errno));
    if (rc == QF_OK && d->size != d->size_expected)
        rc = qf_err_set(&d->err, QF_ENOTFOUND, "%s has %llu bytes, not %llu", d->name,
                        (unsigned long long)d->size, (unsigned long long)d->size_expected);
    if (rc == QF_OK && rename(temp, d->path) != 0)
        rc = qf_err_set(&d->err, errno == ENOSPC || errno == EDQUOT ? QF_ENOSPC : QF_EIO,
                        "cannot rename %s: %s", temp, strerror(errno));
    return rc;
}

/* Parts of the segment if that costs less, else all of it. */
static qf_rc fetch_segment(struct qw_download *d, const char *temp)
{
    qf_rc rc = QF_OK;

    if (d->partial)
        return qw_partial_more(d);
    if (d->need_count && d->rule.size_min && d->size_expected >= d->rule.size_min)
        rc = qw_partial_begin(d);
    if (rc || d->partial)
        return rc;
    return fetch_to(d, temp);
}

static qf_rc fetch(struct qw_download *d, const char *temp)
{
    if (d->head)
        return qw_head_fetch(d, temp);
    return d->map ? qw_map_fetch(d, temp) : fetch_segment(d, temp);
}

void qw_download_run(void *arg)
{
    struct qw_download *d = arg;
    struct qf_strbuf temp = QF_STRBUF_INIT;
    int64_t started = qf_clock_mono_ns();
    bool sent;

    qf_strbuf_printf(&temp, "%s" QW_DOWNLOAD_SUFFIX, d->path);
    if (atomic_load(&d->cancel))
        d->rc = QF_ECANCELED;
    else
        d->rc = fetch(d, qf_strbuf_cstr(&temp));
    if (d->rc)
        (void)unlink(qf_strbuf_cstr(&temp));
    qf_strbuf_done(&temp);
    d->duration_ns = qf_clock_mono_ns() - started;
    sent = qf_mailbox_send(d->mailbox, d, -1);
    assert(sent); /* the coordinator outlives its downloads */
    (void)sent;
}

void qw_download_free(struct qw_download *download)
{
    qw_head_ask_free(download->head);
    qw_map_ask_free(download->map);
    for (size_t i = 0; i < download->need_count; i++)
        qw_need_unref(download->needs[i]);
    free(download->needs);
    free(download->partial_path);
    free(download->name);
    free(download->etag_expected);
    free(download->path);
    free(download);
}
