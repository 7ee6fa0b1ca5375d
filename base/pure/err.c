/* err.c - return codes and error messages. */
#include "base/pure/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct row {
    qf_rc rc;
    const char *name;
    const char *text;
    int http;
    int grpc;
    const char *prom_type;
    bool retryable;
};

static const struct row ok_row = { QF_OK, "ok", "ok", 200, 0, "", false };

static const struct row rows[] = {
#define QF_ERROR(code, number, name, text, http, grpc, prom_type, retryable)                       \
    { code, name, text, http, grpc, prom_type, retryable },
#include "base/pure/errors.def"
#undef QF_ERROR
};

static const struct row *find(qf_rc rc)
{
    const struct row *internal = &ok_row;

    if (rc == QF_OK)
        return &ok_row;
    for (size_t i = 0; i < QF_COUNT_OF(rows); i++) {
        if (rows[i].rc == rc)
            return &rows[i];
        if (rows[i].rc == QF_EINTERNAL)
            internal = &rows[i];
    }
    return internal;
}

qf_rc qf_err_set(struct qf_err *err, qf_rc rc, const char *fmt, ...)
{
    va_list args;

    if (!err || err->rc != QF_OK)
        return rc;
    err->rc = rc;
    va_start(args, fmt);
    (void)vsnprintf(err->msg, sizeof(err->msg), fmt, args);
    va_end(args);
    return rc;
}

qf_rc qf_err_prefix(struct qf_err *err, qf_rc rc, const char *fmt, ...)
{
    char old[QF_ERR_MSG_SIZE];
    va_list args;
    int len;

    if (!err)
        return rc;
    memcpy(old, err->msg, sizeof(old));
    va_start(args, fmt);
    len = vsnprintf(err->msg, sizeof(err->msg), fmt, args);
    va_end(args);
    if (len < 0)
        len = 0;
    if ((size_t)len < sizeof(err->msg))
        (void)snprintf(err->msg + len, sizeof(err->msg) - (size_t)len, ": %s", old);
    err->rc = rc;
    return rc;
}

void qf_err_about(struct qf_err *err, size_t index)
{
    if (err && err->rc != QF_OK && err->subject == 0)
        err->subject = index + 1;
}

const char *qf_rc_name(qf_rc rc)
{
    return find(rc)->name;
}

const char *qf_rc_text(qf_rc rc)
{
    return find(rc)->text;
}

int qf_rc_http_status(qf_rc rc)
{
    return find(rc)->http;
}

int qf_rc_grpc_status(qf_rc rc)
{
    return find(rc)->grpc;
}

const char *qf_rc_prom_type(qf_rc rc)
{
    return find(rc)->prom_type;
}

bool qf_rc_retryable(qf_rc rc)
{
    return find(rc)->retryable;
}

qf_rc qf_rc_from_name(const char *name)
{
    for (size_t i = 0; i < QF_COUNT_OF(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].rc;
    return QF_EINTERNAL;
}
