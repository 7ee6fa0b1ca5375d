/* table.c - payloads by name, references by node. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "ring/handoff/handoff_int.h"

void rg_handoff_emit(struct rg_handoff *h, enum rg_handoff_effect_kind kind, uint8_t node,
                     uint32_t payload)
{
    struct rg_handoff_effect effect = { .kind = kind,
                                        .node = node,
                                        .slot = h->payloads.items[payload].slot,
                                        .name = qf_str_from(h->payloads.items[payload].name) };

    QF_VEC_PUSH(&h->effects, effect);
}

uint32_t rg_payload_find(const struct rg_handoff *h, struct qf_str name)
{
    uint64_t hash = qf_hash_bytes(name);

    for (uint32_t row = h->buckets[hash % RG_BUCKETS]; row; row = h->payloads.items[row - 1].next) {
        const struct rg_payload *payload = &h->payloads.items[row - 1];

        if (payload->hash == hash && qf_str_is(name, payload->name))
            return row - 1;
    }
    return RG_NO_PAYLOAD;
}

uint32_t rg_payload_add(struct rg_handoff *h, const struct rg_handoff_event *event)
{
    struct rg_payload payload = { .name = qf_xmemdup0(event->name.data, event->name.len),
                                  .hash = qf_hash_bytes(event->name),
                                  .slot = event->slot,
                                  .bytes = event->bytes,
                                  .time_ms = event->time_ms };
    uint32_t *bucket = &h->buckets[payload.hash % RG_BUCKETS], row = h->free;

    payload.next = *bucket;
    if (row) {
        h->free = h->payloads.items[row - 1].next;
        h->payloads.items[row - 1] = payload;
    } else {
        QF_VEC_PUSH(&h->payloads, payload);
        row = (uint32_t)h->payloads.count;
    }
    *bucket = row;
    h->payload_count++;
    h->bytes += event->bytes;
    return row - 1;
}

static void payload_free(struct rg_handoff *h, uint32_t at)
{
    struct rg_payload *payload = &h->payloads.items[at];
    uint32_t *link = &h->buckets[payload->hash % RG_BUCKETS];

    while (*link != at + 1)
        link = &h->payloads.items[*link - 1].next;
    *link = payload->next;
    h->payload_count--;
    h->bytes -= payload->bytes;
    QF_VEC_PUSH(&h->graves, payload->name); /* effects of this step name it */
    *payload = (struct rg_payload){ .next = h->free };
    h->free = at + 1;
}

size_t rg_reference_find(const struct rg_handoff *h, uint8_t node, uint32_t payload)
{
    for (size_t i = 0; i < h->nodes[node].references.count; i++)
        if (h->nodes[node].references.items[i].payload == payload)
            return i;
    return SIZE_MAX;
}

void rg_reference_add(struct rg_handoff *h, uint8_t node, uint32_t payload, int64_t time_ms)
{
    struct rg_handoff_node *n = &h->nodes[node];
    struct rg_reference reference = { .payload = payload, .time_ms = time_ms };
    size_t at = n->references.count;

    QF_VEC_PUSH(&n->references, reference);
    for (; at > 0 && n->references.items[at - 1].time_ms > time_ms; at--)
        n->references.items[at] = n->references.items[at - 1];
    n->references.items[at] = reference;
    n->bytes += h->payloads.items[payload].bytes;
    h->payloads.items[payload].references++;
    h->figures.references++;
}

void rg_reference_drop(struct rg_handoff *h, uint8_t node, size_t at, bool mark)
{
    struct rg_handoff_node *n = &h->nodes[node];
    uint32_t payload = n->references.items[at].payload;

    if (mark)
        rg_handoff_emit(h, RG_HANDOFF_MARK, node, payload);
    rg_handoff_emit(h, RG_HANDOFF_UNREF, node, payload);
    n->references.count--;
    memmove(&n->references.items[at], &n->references.items[at + 1],
            (n->references.count - at) * sizeof(n->references.items[0]));
    n->bytes -= h->payloads.items[payload].bytes;
    h->figures.references--;
    if (n->sending == payload)
        n->sending = RG_NO_PAYLOAD;
    assert(h->payloads.items[payload].references > 0);
    if (--h->payloads.items[payload].references == 0) {
        rg_handoff_emit(h, RG_HANDOFF_FREE, node, payload);
        payload_free(h, payload);
    }
}
