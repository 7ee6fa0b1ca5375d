/* err.h - return codes and the one error object that travels up the stack.
 *
 * A fallible function returns qf_rc and takes a nullable `struct qf_err *` as its last argument.
 * The error is filled once, where it is born; callers may put context in front of it. */
#ifndef BASE_PURE_ERR_H
#define BASE_PURE_ERR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/pure/macros.h"

typedef int qf_rc;

enum {
    QF_OK = 0,
#define QF_ERROR(code, number, name, text, http, grpc, prom_type, retryable) code = number,
#include "base/pure/errors.def"
#undef QF_ERROR
};

/* Long enough for PromQL's longest message with two label sets; longer ones are cut. */
#define QF_ERR_MSG_SIZE 1024

struct qf_err {
    qf_rc rc;                  /* QF_OK until filled. */
    char msg[QF_ERR_MSG_SIZE]; /* Always terminated. */
    size_t pos_start, pos_end; /* Byte range in the query, both 0 if there is none. */
    size_t subject; /* Which of several inputs it is about, from 1 on; 0: none in particular. */
};

/* Fill @err, unless it is NULL or already filled, and return @rc. */
qf_rc qf_err_set(struct qf_err *err, qf_rc rc, const char *fmt, ...) QF_PRINTF(3, 4);

/* Put "context: " in front of a filled error and return its code. */
qf_rc qf_err_prefix(struct qf_err *err, qf_rc rc, const char *fmt, ...) QF_PRINTF(3, 4);

/* Say which of several inputs a filled error is about, unless it is said already: the one at
 * @index. */
void qf_err_about(struct qf_err *err, size_t index);

/* The columns of errors.def. An unknown code answers as QF_EINTERNAL does. */
const char *qf_rc_name(qf_rc rc);
const char *qf_rc_text(qf_rc rc);
int qf_rc_http_status(qf_rc rc);
int qf_rc_grpc_status(qf_rc rc);
const char *qf_rc_prom_type(qf_rc rc);
bool qf_rc_retryable(qf_rc rc);

/* The code whose name is @name, or QF_EINTERNAL: for errors that arrive over a wire. */
qf_rc qf_rc_from_name(const char *name);

#endif
