/* answer.c - what a client hears of an ask, as JSON. */
#include <inttypes.h>

#include "base/pure/base64.h"
#include "base/pure/utf8.h"
#include "ingest/http/routes_int.h"

static void add_record(struct qf_strbuf *body, const struct qn_record *record)
{
    qf_strbuf_printf(body, "{\"offset\":%" PRIu64 ",\"time\":%" PRId64 ",", record->offset,
                     record->time_ms);
    if (qf_utf8_valid(record->data)) {
        qf_strbuf_puts(body, "\"data\":");
        qf_strbuf_json(body, record->data);
    } else {
        qf_strbuf_puts(body, "\"base64\":\"");
        qf_base64_encode(body, record->data);
        qf_strbuf_putc(body, '"');
    }
    qf_strbuf_putc(body, '}');
}

static void add_records(struct qf_strbuf *body, const struct qn_answer *answer)
{
    qf_strbuf_puts(body, "{\"records\":[");
    for (size_t i = 0; i < answer->records.count; i++) {
        if (i)
            qf_strbuf_putc(body, ',');
        add_record(body, &answer->records.items[i]);
    }
    qf_strbuf_printf(body, "],\"next\":%" PRIu64 ",\"first\":%" PRIu64 ",\"end\":%" PRIu64 "}\n",
                     answer->next, answer->first, answer->end);
}

static void add_error(struct qf_strbuf *body, const struct qn_ask *ask)
{
    const struct qn_answer *answer = &ask->answer;

    qf_strbuf_puts(body, "{\"error\":");
    qf_strbuf_json(body, qf_str_from(answer->gone ? "gone" : qf_rc_name(answer->err.rc)));
    qf_strbuf_puts(body, ",\"message\":");
    qf_strbuf_json(body, qf_str_from(answer->err.msg));
    if (answer->gone)
        qf_strbuf_printf(body, ",\"first\":%" PRIu64, answer->first);
    if (ask->verb == QN_OFFER && answer->count)
        qf_strbuf_printf(body, ",\"acknowledged\":%" PRIu64, answer->count);
    if (answer->unknown)
        qf_strbuf_puts(body, ",\"unknown\":true");
    qf_strbuf_puts(body, "}\n");
}

static void add_success(struct qf_strbuf *body, const struct qn_ask *ask)
{
    const struct qn_answer *answer = &ask->answer;

    switch (ask->verb) {
    case QN_OFFER:
        qf_strbuf_printf(body,
                         "{\"count\":%" PRIu64 ",\"first\":%" PRIu64 ",\"last\":%" PRIu64 "}\n",
                         answer->count, answer->first, answer->last);
        break;
    case QN_POLL:
    case QN_TAKE:
    case QN_PEEK:
        add_records(body, answer);
        break;
    case QN_OFFSET:
        qf_strbuf_printf(body, "{\"offset\":%" PRIu64 "}\n", answer->next);
        break;
    case QN_OFFSETS:
    case QN_LIST:
    case QN_SHOW:
        qf_strbuf_str(body, qf_strbuf_view(&answer->text));
        qf_strbuf_putc(body, '\n');
        break;
    case QN_CREATE:
    case QN_DELETE:
    case QN_CHANGE:
    case QN_TRANSFER:
    case QN_FOUND:
        qf_strbuf_puts(body, "{\"status\":\"ok\"}\n");
        break;
    case QN_WRITE: /* of applications: they wrote JSON */
    case QN_QUESTION:
        qf_strbuf_str(body, qf_strbuf_view(&answer->text));
        qf_strbuf_putc(body, '\n');
        break;
    case QN_LOOK: /* of the node itself, not of HTTP */
    case QN_VERB__COUNT:
        break;
    }
}

void in_answer(struct qn_ask *ask, struct qh_stream *stream)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    qf_rc rc = ask->answer.err.rc;
    int status = rc == QF_OK ? 200 : ask->answer.gone ? 410 : qf_rc_http_status(rc);

    if (rc == QF_OK)
        add_success(&body, ask);
    else
        add_error(&body, ask);
    if (status == 503 || status == 429)
        qh_stream_header(stream, "Retry-After", "1");
    qh_stream_answer(stream, status, "application/json", qf_strbuf_view(&body));
    (void)qn_ask_free(ask);
}
