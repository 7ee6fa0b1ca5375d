/* response.c - what an exporter hears. */
#include "base/pure/varint.h"
#include "ingest/core/wire.h"
#include "ingest/otlp/otlp.h"

enum { RESPONSE_PARTIAL = 1, PARTIAL_REFUSED = 1, PARTIAL_WHY = 2 };
enum { STATUS_CODE = 1, STATUS_MESSAGE = 2 };

static void put_number(struct qf_strbuf *buf, uint32_t number, uint64_t value)
{
    unsigned char bytes[2 * QF_VARINT_MAX];
    size_t len = qf_varint_put(bytes, (uint64_t)number << 3 | IN_WIRE_VARINT);

    qf_strbuf_add(buf, bytes, len + qf_varint_put(bytes + len, value));
}

static void put_text(struct qf_strbuf *buf, uint32_t number, struct qf_str text)
{
    unsigned char bytes[2 * QF_VARINT_MAX];
    size_t len = qf_varint_put(bytes, (uint64_t)number << 3 | IN_WIRE_BYTES);

    qf_strbuf_add(buf, bytes, len + qf_varint_put(bytes + len, text.len));
    qf_strbuf_str(buf, text);
}

void in_otlp_put_response(struct qf_strbuf *buf, bool json, uint64_t refused, struct qf_str why)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf partial = QF_STRBUF_INIT;

    if (json) {
        qf_strbuf_putc(buf, '{');
        if (refused || why.len) {
            qf_strbuf_puts(buf, "\"partialSuccess\":{\"rejectedDataPoints\":\"");
            qf_strbuf_u64(buf, refused);
            qf_strbuf_puts(buf, "\",\"errorMessage\":");
            qf_strbuf_json(buf, why);
            qf_strbuf_putc(buf, '}');
        }
        qf_strbuf_putc(buf, '}');
        return;
    }
    if (!refused && !why.len)
        return; /* the empty message */
    put_number(&partial, PARTIAL_REFUSED, refused);
    put_text(&partial, PARTIAL_WHY, why);
    put_text(buf, RESPONSE_PARTIAL, qf_strbuf_view(&partial));
}

/* google.rpc.Code */
static unsigned code_of(int http_status)
{
    switch (http_status) {
    case 400:
        return 3; /* INVALID_ARGUMENT */
    case 413:
    case 429:
        return 8; /* RESOURCE_EXHAUSTED */
    case 415:
        return 12; /* UNIMPLEMENTED */
    case 422:
        return 9; /* FAILED_PRECONDITION */
    case 503:
        return 14; /* UNAVAILABLE */
    default:
        return 13; /* INTERNAL */
    }
}

void in_otlp_put_status(struct qf_strbuf *buf, bool json, int http_status, struct qf_str why)
{
    if (!json) {
        put_number(buf, STATUS_CODE, code_of(http_status));
        put_text(buf, STATUS_MESSAGE, why);
        return;
    }
    qf_strbuf_printf(buf, "{\"code\":%u,\"message\":", code_of(http_status));
    qf_strbuf_json(buf, why);
    qf_strbuf_putc(buf, '}');
}
