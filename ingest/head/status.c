/* status.c - a partition's status out of its ledger. */
#include "ingest/head/status.h"

#include <inttypes.h>

#include "base/pure/varint.h"

/* --- the question --- */

void in_status_ask_encode(struct qf_strbuf *buf, const struct in_status_ask *ask)
{
    qf_strbuf_putc(buf, IN_QUESTION_STATUS);
    qf_strbuf_varint(buf, qf_zigzag(ask->min_ts));
    qf_strbuf_varint(buf, qf_zigzag(ask->max_ts));
    qf_strbuf_varint(buf, ask->covered_queue);
    qf_strbuf_varint(buf, ask->covered_index);
    qf_strbuf_str(buf, ask->tenant);
}

qf_rc in_status_ask_decode(struct qf_str bytes, struct in_status_ask *ret_ask)
{
    struct qf_str rest = qf_str_sub(bytes, 1, bytes.len);
    uint64_t min_ts, max_ts;

    if (!bytes.len || bytes.data[0] != IN_QUESTION_STATUS || !qf_varint_take(&rest, &min_ts) ||
        !qf_varint_take(&rest, &max_ts) || !qf_varint_take(&rest, &ret_ask->covered_queue) ||
        !qf_varint_take(&rest, &ret_ask->covered_index) || rest.len == 0 ||
        rest.len > IN_TENANT_MAX)
        return QF_ECORRUPT;
    ret_ask->min_ts = qf_unzigzag(min_ts);
    ret_ask->max_ts = qf_unzigzag(max_ts);
    ret_ask->tenant = rest;
    return QF_OK;
}

/* --- the answer --- */

static void add_files(struct qf_strbuf *buf, const struct in_tenant *tenant, uint64_t covered)
{
    const char *comma = "";

    qf_strbuf_printf(buf, ",\"list\":%s,\"files\":[",
                     tenant && covered < tenant->files_after ? "true" : "false");
    for (size_t i = 0; tenant && i < tenant->file_count; i++) {
        const struct in_recent_file *file = &tenant->files[i];

        if (file->index <= covered)
            continue;
        qf_strbuf_printf(buf, "%s{\"name\":", comma);
        qf_strbuf_json(buf, qf_str_from(file->name));
        qf_strbuf_printf(buf, ",\"size\":%" PRIu64 ",\"etag\":", file->size);
        qf_strbuf_json(buf, qf_str_from(file->etag));
        qf_strbuf_printf(buf, ",\"index\":%" PRIu64 "}", file->index);
        comma = ",";
    }
    qf_strbuf_putc(buf, ']');
}

static void add_ranges(struct qf_strbuf *buf, const struct in_tenant *tenant,
                       const struct in_status_ask *ask)
{
    const char *comma = "";

    qf_strbuf_puts(buf, ",\"ranges\":[");
    for (size_t i = 0; tenant && i < tenant->range_count; i++) {
        const struct in_range *range = &tenant->ranges[i];

        if (range->min_ts > ask->max_ts || range->max_ts < ask->min_ts ||
            range->min_ts > range->max_ts)
            continue;
        qf_strbuf_printf(buf,
                         "%s{\"generation\":%" PRIu64 ",\"from\":%" PRIu64 ",\"to\":%" PRIu64
                         ",\"min_ts\":%" PRId64 ",\"max_ts\":%" PRId64 ",\"samples\":%" PRIu64 "}",
                         comma, range->generation, range->from, range->to, range->min_ts,
                         range->max_ts, range->samples);
        comma = ",";
    }
    qf_strbuf_putc(buf, ']');
}

static void add_members(struct qf_strbuf *buf, const struct in_status_of *of)
{
    if (!of->member_count)
        return;
    qf_strbuf_printf(buf, ",\"epoch\":%" PRIu64 ",\"members\":", of->epoch);
    for (size_t i = 0; i < of->member_count; i++) {
        qf_strbuf_putc(buf, i ? ',' : '[');
        qf_strbuf_json(buf, qf_str_from(of->members[i]));
    }
    qf_strbuf_putc(buf, ']');
}

qf_rc in_status_answer(struct qf_str question, const struct in_ledger *ledger,
                       const struct in_status_of *of, struct qf_strbuf *buf)
{
    const struct in_tenant *tenant;
    struct in_status_ask ask;
    uint64_t covered;

    if (in_status_ask_decode(question, &ask) != QF_OK)
        return QF_ECORRUPT;
    tenant = in_ledger_tenant(ledger, ask.tenant);
    covered = ask.covered_queue == of->queue_id ? ask.covered_index : 0;
    qf_strbuf_printf(buf,
                     "{\"partition\":%u,\"queue\":\"%016" PRIx64 "\",\"leader\":", of->partition,
                     of->queue_id);
    qf_strbuf_json(buf, qf_str_from(of->node));
    add_members(buf, of);
    qf_strbuf_printf(buf, ",\"applied\":%" PRIu64 ",\"sealed_index\":%" PRIu64,
                     in_ledger_applied(ledger), in_ledger_applied(ledger));
    add_files(buf, tenant, covered);
    if (in_ledger_floor(ledger) == INT64_MIN)
        qf_strbuf_puts(buf, ",\"floor\":null");
    else
        qf_strbuf_printf(buf, ",\"floor\":%" PRId64, in_ledger_floor(ledger));
    qf_strbuf_printf(buf, ",\"shards\":%u", of->shards);
    add_ranges(buf, tenant, &ask);
    return QF_OK;
}

void in_elected_answer(struct qf_str question, const struct in_ledger *ledger,
                       struct qf_strbuf *buf)
{
    const struct in_tenant *tenant =
        in_ledger_tenant(ledger, qf_str_sub(question, 1, question.len));

    for (size_t i = 0; tenant && i < tenant->elected_count; i++) {
        const struct in_elected *elected = &tenant->elected[i];

        qf_strbuf_puts(buf, ",{\"cluster\":");
        qf_strbuf_json(buf, qf_str_from(elected->cluster));
        qf_strbuf_puts(buf, ",\"replica\":");
        qf_strbuf_json(buf, qf_str_from(elected->replica));
        qf_strbuf_printf(buf,
                         ",\"since\":%" PRId64 ",\"heard\":%" PRId64 ",\"newest_sample\":%" PRId64
                         ",\"elections\":%" PRIu64 "}",
                         elected->since_ms, elected->time_ms, elected->newest_ts,
                         elected->elections);
    }
}
