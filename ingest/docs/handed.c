/* handed.c - what owners missed of a write is kept for them on this node's disk. */
#include "ingest/docs/replicas_int.h"

/* False: it could not be kept for everybody. */
static bool keep(const struct in_round *round, const struct sg_ring_blob *part)
{
    struct in_replicas *replicas = round->replicas;
    uint64_t handed = 0;
    bool all = true;

    for (size_t i = 0; i < round->count; i++) {
        struct qf_err err = { 0 };

        if (round->copies[i].said.ok)
            continue;
        if (replicas->handoff->add(replicas->handoff->ctx, round->copies[i].said.node, part,
                                   &err) == QF_OK)
            handed++;
        else
            all = false;
    }
    qf_lock_take(replicas->lock);
    replicas->figures.handed += handed;
    qf_lock_drop(replicas->lock);
    return all;
}

/* Everybody has ended: nobody else looks at the round. */
static void run(void *arg)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct in_round *round = arg;
    char name[RG_DOC_PART_TEXT + 1];
    struct sg_store_bytes bytes;
    struct sg_ring_blob part = { .slot = round->place.slot, .bytes = &bytes };
    struct qf_err err = { 0 };

    rg_sheet_encode(&buf, &round->sheet);
    rg_doc_part(round->place.name, qf_strbuf_view(&buf), name);
    bytes = (struct sg_store_bytes){ .data = buf.data, .fd = -1, .size = buf.len };
    part.name = qf_str_from(name);
    if (sg_keep_sum(&bytes, &part.sum, &err) != QF_OK || !keep(round, &part))
        in_replicas_note(round->replicas, &round->place);
    in_round_free(round);
}

void in_round_hand_off(struct in_round *round)
{
    struct in_replicas *replicas = round->replicas;

    if (replicas->handoff && qf_pool_submit(replicas->handing, run, round))
        return;
    in_replicas_note(replicas, &round->place);
    in_round_free(round);
}
