/* error.h - the answer that says what went wrong. */
#ifndef QUERYAPI_ENCODE_ERROR_H
#define QUERYAPI_ENCODE_ERROR_H

#include "base/http/stream.h"
#include "base/pure/err.h"

/* How an endpoint answers, and so how it says that it cannot. */
enum qa_format {
    QA_FORMAT_JSON,   /* Prometheus's documents */
    QA_FORMAT_EVENTS, /* encode/events.h */
};

/* @message, or Prometheus's words where it has some for @rc. */
const char *qa_error_text(qf_rc rc, const char *message);

/* A whole answer, with the status of @rc, before anything else was sent. */
void qa_answer_error(struct qh_stream *stream, enum qa_format format, qf_rc rc,
                     const char *message);

#endif
