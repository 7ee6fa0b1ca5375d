/* wire.c - asks and answers as bytes. */
#include "queue/node/wire.h"

#include "base/pure/alloc.h"
#include "queue/log/bytes.h"
#include "queue/node/node_int.h"

enum { VERSION = 1 };

/* --- writing and reading --- */

static void put(struct qf_strbuf *buf, uint64_t value, size_t bytes)
{
    unsigned char out[8];

    ql_put(out, value, bytes);
    qf_strbuf_add(buf, out, bytes);
}

static void put_text(struct qf_strbuf *buf, struct qf_str text)
{
    put(buf, text.len, 4);
    qf_strbuf_str(buf, text);
}

/* Bytes that are read; the first fault sticks. */
struct reader {
    struct qf_str rest;
    bool bad;
};

static uint64_t get(struct reader *reader, size_t bytes)
{
    uint64_t value;

    if (reader->bad || reader->rest.len < bytes) {
        reader->bad = true;
        return 0;
    }
    value = ql_get((const unsigned char *)reader->rest.data, bytes);
    reader->rest = qf_str_sub(reader->rest, bytes, reader->rest.len);
    return value;
}

static struct qf_str get_text(struct reader *reader, size_t max)
{
    uint64_t len = get(reader, 4);
    struct qf_str text = { "", 0 };

    if (reader->bad || len > reader->rest.len || len > max) {
        reader->bad = true;
        return text;
    }
    text = qf_str_sub(reader->rest, 0, (size_t)len);
    reader->rest = qf_str_sub(reader->rest, (size_t)len, reader->rest.len);
    return text;
}

/* A text without a NUL inside that fits @out. */
static void get_name(struct reader *reader, char *out, size_t size)
{
    struct qf_str text = get_text(reader, size - 1);

    reader->bad |= text.len && memchr(text.data, 0, text.len) != NULL;
    if (reader->bad)
        text.len = 0;
    if (text.len)
        memcpy(out, text.data, text.len);
    out[text.len] = 0;
}

static uint64_t get_below(struct reader *reader, uint64_t bound)
{
    uint64_t value = get(reader, 1);

    reader->bad |= value >= bound;
    return reader->bad ? 0 : value;
}

/* --- asks --- */

void qn_ask_encode(struct qf_strbuf *buf, const struct qn_ask *ask)
{
    const struct qn_queue_options *options = &ask->options;

    put(buf, VERSION, 1);
    put(buf, ask->verb, 1);
    put(buf, ask->operates, 1);
    put(buf, ask->level_set, 1);
    put(buf, ask->level, 1);
    put(buf, ask->change, 1);
    put(buf, options->delete_on_consume, 1);
    put(buf, options->level, 1);
    put(buf, (uint64_t)options->retention_ms, 8);
    put(buf, options->retention_bytes, 8);
    put(buf, (uint64_t)options->consumer_expiry_ms, 8);
    put(buf, ask->from, 8);
    put(buf, ask->max, 4);
    put(buf, ask->member_id, 8);
    put_text(buf, qf_str_from(ask->queue));
    put_text(buf, qf_str_from(ask->tenant));
    put_text(buf, qf_str_from(ask->consumer));
    put_text(buf, qf_str_from(ask->member));
    put(buf, ask->records.count, 4);
    for (size_t i = 0; i < ask->records.count; i++)
        put_text(buf, qn_ask_record(ask, i));
    if (ask->wait_ms) /* behind the rest: nodes before it was known can still read other asks */
        put(buf, (uint64_t)ask->wait_ms, 4);
}

static void get_options(struct reader *reader, struct qn_queue_options *options)
{
    options->delete_on_consume = get_below(reader, 2);
    options->level = (enum qc_level)get_below(reader, QC_LEVEL_ALL + 1);
    options->retention_ms = (int64_t)get(reader, 8);
    options->retention_bytes = get(reader, 8);
    options->consumer_expiry_ms = (int64_t)get(reader, 8);
    reader->bad |= options->retention_ms < 0 || options->consumer_expiry_ms < 0 ||
                   options->retention_bytes > INT64_MAX;
}

static void get_records(struct reader *reader, struct qn_ask *ask)
{
    uint64_t count = get(reader, 4);

    reader->bad |= count > QN_BATCH_MAX;
    for (uint64_t i = 0; i < count && !reader->bad; i++) {
        struct qf_str record = get_text(reader, QN_RECORD_BYTES_MAX);

        if (!reader->bad)
            qn_ask_add(ask, record);
    }
}

qf_rc qn_ask_decode(struct qf_str bytes, struct qn_ask **ret_ask)
{
    struct reader reader = { .rest = bytes };
    struct qn_ask *ask = qn_ask_new(QN_LIST, QF_STR(""));

    reader.bad |= get(&reader, 1) != VERSION;
    ask->verb = (enum qn_verb)get_below(&reader, QN_VERB__COUNT);
    ask->operates = get_below(&reader, 2);
    ask->level_set = get_below(&reader, 2);
    ask->level = (enum qc_level)get_below(&reader, QC_LEVEL_ALL + 1);
    ask->change = (enum qc_change)get_below(&reader, QC_REMOVE + 1);
    get_options(&reader, &ask->options);
    ask->from = get(&reader, 8);
    ask->max = (uint32_t)get(&reader, 4);
    ask->member_id = get(&reader, 8);
    get_name(&reader, ask->queue, sizeof(ask->queue));
    get_name(&reader, ask->tenant, sizeof(ask->tenant));
    get_name(&reader, ask->consumer, sizeof(ask->consumer));
    get_name(&reader, ask->member, sizeof(ask->member));
    get_records(&reader, ask);
    if (!reader.bad && reader.rest.len) {
        ask->wait_ms = (int64_t)get(&reader, 4);
        reader.bad |= !ask->wait_ms || ask->wait_ms > QN_WAIT_MS_MAX;
    }
    reader.bad |= ask->max > QN_POLL_MAX || !qn_name_valid(qf_str_from(ask->queue));
    if (reader.bad || reader.rest.len) {
        (void)qn_ask_free(ask);
        return QF_EPROTO;
    }
    *ret_ask = ask;
    return QF_OK;
}

/* --- answers --- */

void qn_answer_encode(struct qf_strbuf *buf, const struct qn_answer *answer)
{
    put(buf, VERSION, 1);
    put_text(buf, qf_str_from(answer->err.rc == QF_OK ? "" : qf_rc_name(answer->err.rc)));
    put_text(buf, qf_str_from(answer->err.msg));
    put(buf, answer->gone, 1);
    put(buf, answer->unknown, 1);
    put(buf, answer->count, 8);
    put(buf, answer->first, 8);
    put(buf, answer->last, 8);
    put(buf, answer->next, 8);
    put(buf, answer->end, 8);
    put_text(buf, qf_strbuf_view(&answer->text));
    put(buf, answer->records.count, 4);
    for (size_t i = 0; i < answer->records.count; i++) {
        put(buf, answer->records.items[i].offset, 8);
        put(buf, (uint64_t)answer->records.items[i].time_ms, 8);
        put_text(buf, answer->records.items[i].data);
    }
}

static void get_answer_records(struct reader *reader, struct qn_answer *answer)
{
    uint64_t count = get(reader, 4);

    reader->bad |= count > QN_POLL_MAX;
    for (uint64_t i = 0; i < count && !reader->bad; i++) {
        struct qn_record record = { .offset = get(reader, 8) };

        record.time_ms = (int64_t)get(reader, 8);
        record.data = get_text(reader, QN_RECORD_BYTES_MAX);
        if (reader->bad)
            break;
        /* The buffer moves while it grows: where, for now. */
        qf_strbuf_str(&answer->bytes, record.data);
        record.data.data = (const char *)(answer->bytes.len - record.data.len);
        QF_VEC_PUSH(&answer->records, record);
    }
    for (size_t i = 0; i < answer->records.count; i++)
        answer->records.items[i].data.data =
            answer->bytes.data + (size_t)answer->records.items[i].data.data;
}

qf_rc qn_answer_decode(struct qf_str bytes, struct qn_answer *ret_answer)
{
    struct reader reader = { .rest = bytes };
    char rc[32] = "", why[QF_ERR_MSG_SIZE] = "";

    reader.bad |= get(&reader, 1) != VERSION;
    get_name(&reader, rc, sizeof(rc));
    get_name(&reader, why, sizeof(why));
    ret_answer->gone = get_below(&reader, 2);
    ret_answer->unknown = get_below(&reader, 2);
    ret_answer->count = get(&reader, 8);
    ret_answer->first = get(&reader, 8);
    ret_answer->last = get(&reader, 8);
    ret_answer->next = get(&reader, 8);
    ret_answer->end = get(&reader, 8);
    qf_strbuf_str(&ret_answer->text, get_text(&reader, 16 << 20));
    get_answer_records(&reader, ret_answer);
    if (reader.bad || reader.rest.len) {
        ret_answer->records.count = 0;
        return QF_EPROTO;
    }
    if (rc[0])
        (void)qf_err_set(&ret_answer->err, qf_rc_from_name(rc), "%s", why);
    return QF_OK;
}
