/* outcome.c - what came of a request in one partition. */
#include "ingest/core/outcome.h"

#include <string.h>

#include "base/pure/macros.h"
#include "base/pure/varint.h"

/* No leader says more. */
#define WAIT_MS_MAX (UINT64_C(3600) * 1000)

static void add(struct in_amounts *sum, const struct in_amounts *more)
{
    sum->series += more->series;
    sum->samples += more->samples;
    sum->histograms += more->histograms;
    sum->exemplars += more->exemplars;
}

void in_outcome_add(struct in_outcome *sum, const struct in_outcome *more)
{
    add(&sum->accepted, &more->accepted);
    add(&sum->refused, &more->refused);
    sum->limited |= more->limited;
    sum->wait_ms = QF_MAX(sum->wait_ms, more->wait_ms);
    for (size_t i = 0; i < QF_WRITE_LIMITS; i++)
        sum->limited_by[i] += more->limited_by[i];
    if (!sum->first[0])
        memcpy(sum->first, more->first, sizeof(sum->first));
}

static void put_amounts(struct qf_strbuf *buf, const struct in_amounts *amounts)
{
    qf_strbuf_varint(buf, amounts->series);
    qf_strbuf_varint(buf, amounts->samples);
    qf_strbuf_varint(buf, amounts->histograms);
    qf_strbuf_varint(buf, amounts->exemplars);
}

void in_outcome_encode(struct qf_strbuf *buf, const struct in_outcome *outcome)
{
    put_amounts(buf, &outcome->accepted);
    put_amounts(buf, &outcome->refused);
    qf_strbuf_varint(buf, outcome->limited ? 1 + (uint64_t)outcome->wait_ms : 0);
    qf_strbuf_puts(buf, outcome->first);
}

static bool get_amounts(struct qf_str *rest, struct in_amounts *ret_amounts)
{
    return qf_varint_take(rest, &ret_amounts->series) &&
           qf_varint_take(rest, &ret_amounts->samples) &&
           qf_varint_take(rest, &ret_amounts->histograms) &&
           qf_varint_take(rest, &ret_amounts->exemplars);
}

qf_rc in_outcome_decode(struct qf_str bytes, struct in_outcome *ret_outcome)
{
    uint64_t limited;

    *ret_outcome = (struct in_outcome){ 0 };
    if (!get_amounts(&bytes, &ret_outcome->accepted) ||
        !get_amounts(&bytes, &ret_outcome->refused) || !qf_varint_take(&bytes, &limited) ||
        limited > 1 + WAIT_MS_MAX || bytes.len >= sizeof(ret_outcome->first) ||
        (bytes.len && memchr(bytes.data, 0, bytes.len) != NULL))
        return QF_ECORRUPT;
    ret_outcome->limited = limited > 0;
    ret_outcome->wait_ms = limited ? (int64_t)limited - 1 : 0;
    if (bytes.len)
        memcpy(ret_outcome->first, bytes.data, bytes.len);
    return QF_OK;
}
