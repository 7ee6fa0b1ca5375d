/* ledger_past.c - which records of the unsealed log counted for nothing: whoever reads that part of
 * the log again (a head after a restart) comes to what it came to before. */
#include <string.h>

#include "ingest/core/ledger_int.h"

void in_ledger_note_void(struct in_ledger *ledger, uint64_t index)
{
    if (ledger->voids.count == IN_VOIDS_MAX)
        memmove(ledger->voids.items, ledger->voids.items + 1,
                --ledger->voids.count * sizeof(ledger->voids.items[0]));
    QF_VEC_PUSH(&ledger->voids, index);
}

void in_ledger_forget_voids(struct in_ledger *ledger)
{
    uint64_t from = ledger->voids.count ? in_ledger_needed_from(ledger) : 0;
    size_t gone = 0;

    while (gone < ledger->voids.count && ledger->voids.items[gone] < from)
        gone++;
    ledger->voids.count -= gone;
    if (gone && ledger->voids.count)
        memmove(ledger->voids.items, ledger->voids.items + gone,
                ledger->voids.count * sizeof(ledger->voids.items[0]));
}

bool in_ledger_is_void(const struct in_ledger *ledger, uint64_t index)
{
    for (size_t i = ledger->voids.count; i > 0 && ledger->voids.items[i - 1] >= index; i--)
        if (ledger->voids.items[i - 1] == index)
            return true;
    return false;
}
