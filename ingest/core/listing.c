/* listing.c - pages of a partition's manifest. */
#include "ingest/core/listing.h"

#include <stdlib.h>

#include "base/pure/varint.h"
#include "ring/wire/listing.h"

void in_listing_ask_encode(struct qf_strbuf *buf, const struct in_listing_ask *ask)
{
    qf_strbuf_putc(buf, IN_QUESTION_LISTING);
    qf_strbuf_varint(buf, ask->queue);
    qf_strbuf_varint(buf, ask->since);
    qf_strbuf_varint(buf, ask->after);
}

qf_rc in_listing_answer(struct qf_str question, const struct in_ledger *ledger,
                        const struct in_listing_of *of, struct qf_strbuf *buf)
{
    struct qf_str rest = qf_str_sub(question, 1, question.len);
    struct rg_page page = { .cluster = of->cluster,
                            .queue = of->queue,
                            .partitions = of->partitions,
                            .applied = in_ledger_applied(ledger) };
    struct in_listing_ask ask;
    struct rg_blob *items;

    if (!question.len || question.data[0] != IN_QUESTION_LISTING ||
        !qf_varint_take(&rest, &ask.queue) || !qf_varint_take(&rest, &ask.since) ||
        !qf_varint_take(&rest, &ask.after) || rest.len)
        return QF_ECORRUPT;
    page.whole = ask.queue != of->queue;
    if (!page.whole && ask.since >= in_ledger_manifest_changed(ledger) && !ask.after) {
        page.epoch = in_ledger_manifest(ledger) ? rg_manifest_epoch(in_ledger_manifest(ledger)) : 0;
        rg_page_encode(buf, &page); /* the ordinary case: nothing happened */
        return QF_OK;
    }
    rg_page_make(in_ledger_manifest(ledger), ask.since, ask.after, &page, &items);
    rg_page_encode(buf, &page);
    free(items);
    return QF_OK;
}
