/* documents.c - documents are read and written at quorum: what was acknowledged is seen by whoever reads later. */
#include <stdio.h>

#include "tests/sim_ring/world.h"

static bool knows(const struct rg_document *document, const struct rg_clock_entry *entry)
{
    for (unsigned v = 0; v < document->count; v++)
        for (unsigned i = 0; i < document->values[v].clock.count; i++)
            if (document->values[v].clock.entries[i].coordinator == entry->coordinator &&
                document->values[v].clock.entries[i].counter >= entry->counter)
                return true;
    return false;
}

static void has_read(struct world *w, struct op *op)
{
    w->figures.reads++;
    for (unsigned i = 0; !op->tainted && i < op->expected.count; i++)
        if (!knows(&op->seen, &op->expected.entries[i]))
            fail(w,
                 "document %d: a read at quorum does not know write %d of %d, which was "
                 "acknowledged",
                 op->document, (int)op->expected.entries[i].counter,
                 (int)op->expected.entries[i].coordinator);
}

/* The op has answers of a quorum. A read becomes a write, of something new or of what it found. */
void documents_enough(struct world *w, int at, struct op *op)
{
    struct coordinator *c = &w->coordinators[at];

    if (op->kind == OP_READ) {
        bool repair = op->repair;

        has_read(w, op);
        if (!repair && !w->quiet) {
            struct rg_value value = rg_document_write(&op->seen, (uint64_t)at + 1, ++c->counter,
                                                      w->now, (uint64_t)between(w, 1, 1 << 30));

            (void)rg_document_add(&op->seen, &value);
        }
        op->kind = OP_WRITE;
        op_put(w, at, op);
        return;
    }
    w->figures.writes++;
    for (unsigned v = 0; !op->tainted && v < op->seen.count; v++)
        rg_clock_join(&w->acknowledged[op->document], &op->seen.values[v].clock);
    op->kind = OP_NONE;
}
