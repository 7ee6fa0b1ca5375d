/* ledger_note.c - the manifest of a partition: which blobs it has on our own nodes. */
#include "ingest/core/ledger_int.h"

bool in_ledger_note(struct in_ledger *ledger, uint64_t index, const struct in_record *record)
{
    enum rg_noted noted = RG_NOTED_BAD;
    struct rg_note note;

    if (rg_note_decode(record->note, &note) != QF_OK)
        return false;
    if (!ledger->manifest)
        ledger->manifest = rg_manifest_new(RG_SLOTS, 0, 0);
    if (ledger->manifest)
        noted = rg_manifest_apply(ledger->manifest, index, &note);
    rg_note_done(&note);
    if (noted == RG_NOTED)
        ledger->manifest_changed = index;
    return noted == RG_NOTED || noted == RG_NOTED_NOTHING;
}

const struct rg_manifest *in_ledger_manifest(const struct in_ledger *ledger)
{
    return ledger->manifest;
}

uint64_t in_ledger_manifest_changed(const struct in_ledger *ledger)
{
    return ledger->manifest_changed;
}
