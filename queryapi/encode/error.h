/* error.h - the answer that says what went wrong. */
#ifndef QUERYAPI_ENCODE_ERROR_H
#define QUERYAPI_ENCODE_ERROR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/http/stream.h"
#include "base/pure/err.h"
#include "base/pure/strbuf.h"

/* How an endpoint answers, and so how it says that it cannot. */
enum qa_format {
    QA_FORMAT_JSON,   /* Prometheus's documents */
    QA_FORMAT_EVENTS, /* encode/events.h */
    QA_FORMAT_BYTES,  /* something else; errors are plain text */
};

/* @message, or Prometheus's words where it has some for @rc. */
const char *qa_error_text(qf_rc rc, const char *message);

/* Whether an error with @rc is about the question, or about the data it asks for (which is
 * named as in the store): then its words help who asked. Others are about the inside of the fabric;
 * they have addresses and paths, and belong into the log. */
bool qa_error_is_askers(qf_rc rc);
/* What is said instead: the kind of error, and what an operator looks for in the log. @work 0: none in
 * particular. */
void qa_error_hide(qf_rc rc, const char *query_id, uint64_t work, struct qf_strbuf *text);

/* A whole answer, with the status of @rc, before anything else was sent. */
void qa_answer_error(struct qh_stream *stream, enum qa_format format, qf_rc rc,
                     const char *message);

#endif
