/* bytes.h - numbers, texts and sets of slots as bytes: what the codecs of the ring share. Pure. */
#ifndef RING_CORE_BYTES_H
#define RING_CORE_BYTES_H

#include "base/pure/strbuf.h"
#include "ring/core/entry.h"

void rg_put(struct qf_strbuf *buf, uint64_t value);
void rg_put_text(struct qf_strbuf *buf, struct qf_str text);
/* Runs of slots that are in and out by turns: a node's share is short, all slots are two bytes. */
void rg_put_slots(struct qf_strbuf *buf, const struct rg_slot_set *slots);

/* Reads on, until something is wrong: then everything is 0 or empty, and `bad`. */
struct rg_cursor {
    struct qf_str rest;
    bool bad;
};

uint64_t rg_get(struct rg_cursor *cursor,
                uint64_t max); /* above @max: bad. Only the shortest form is good */
struct qf_str rg_get_text(struct rg_cursor *cursor, size_t max); /* without NUL */
void rg_get_slots(struct rg_cursor *cursor, struct rg_slot_set *ret_slots);

#endif
