/* error.c - error answers in the formats of the endpoints. */
#include "queryapi/encode/error.h"

#include <inttypes.h>

#include "queryapi/encode/prom_json.h"

const char *qa_error_text(qf_rc rc, const char *message)
{
    if (rc == QF_ETIMEOUT)
        return "query timed out in query execution";
    if (rc == QF_ECANCELED)
        return "query was canceled in query execution";
    return message;
}

bool qa_error_is_askers(qf_rc rc)
{
    switch (rc) {
    case QF_EIO:
    case QF_ENOTFOUND:
    case QF_EGONE:
    case QF_ENOSPC:
    case QF_EPROTO:
    case QF_EEXIST:
    case QF_EINTERNAL:
        return false;
    }
    return true;
}

void qa_error_hide(qf_rc rc, const char *query_id, uint64_t work, struct qf_strbuf *text)
{
    qf_strbuf_printf(text, "%s (query %s", qf_rc_text(rc), query_id);
    if (work)
        qf_strbuf_printf(text, ", work %" PRIu64, work);
    qf_strbuf_puts(text, "; the server's log says more)");
}

void qa_answer_error(struct qh_stream *stream, enum qa_format format, qf_rc rc, const char *message)
{
    struct qf_strbuf body = QF_STRBUF_INIT;

    message = qa_error_text(rc, message);
    if (rc == QF_EBUSY || rc == QF_EUNAVAILABLE || rc == QF_ENOSPC || rc == QF_EGONE ||
        rc == QF_ESTORE)
        qh_stream_header(stream, "Retry-After", "1");
    switch (format) {
    case QA_FORMAT_EVENTS:
        qf_strbuf_printf(&body,
                         "{\"status\":\"error\",\"code\":\"%s\",\"message\":", qf_rc_name(rc));
        qf_strbuf_json(&body, qf_str_from(message));
        qf_strbuf_putc(&body, '}');
        break;
    case QA_FORMAT_JSON:
        qa_json_error(&body, qf_rc_prom_type(rc), qf_str_from(message));
        break;
    case QA_FORMAT_BYTES:
        qh_stream_header(stream, "X-Content-Type-Options", "nosniff");
        qf_strbuf_printf(&body, "%s\n", message);
        break;
    }
    qh_stream_answer(stream, qf_rc_http_status(rc),
                     format == QA_FORMAT_BYTES ? "text/plain; charset=utf-8" : "application/json",
                     qf_strbuf_view(&body));
    qf_strbuf_done(&body);
}
