/* totals.c - the native histograms of a group, added up step by step. */
#include "promql/partial/totals.h"

#include "promql/func/texts.h"

struct pq_histogram_total *pq_total_at(struct pq_histogram_total ***totals, size_t count, size_t i,
                                       const struct pq_aggregation *agg, struct qf_arena *arena)
{
    if (!*totals)
        *totals = QF_ARENA_ARRAY(arena, struct pq_histogram_total *, count);
    if (!*totals)
        return NULL;
    if (!(*totals)[i]) {
        (*totals)[i] = QF_ARENA_NEW(arena, struct pq_histogram_total);
        if ((*totals)[i])
            pq_htotal_init((*totals)[i], arena, agg->total);
    }
    return (*totals)[i];
}

bool pq_total_value(const struct pq_total_reader *reader, struct pq_histogram_total *total,
                    bool floats, struct pq_value *ret_value)
{
    unsigned hints = total->hints;
    bool reconciled = false;

    *ret_value = pq_number(0);
    if (floats) {
        pq_note_mixed_floats_agg(reader->notes, reader->pos);
        return true;
    }
    if (pq_htotal_mixed(total)) {
        pq_note_mixed_schemas(reader->notes, reader->pos, QF_STR(""));
        return true;
    }
    ret_value->histogram = pq_htotal_value(total, reader->scope, &reconciled);
    if (reconciled)
        pq_note_reconciled(reader->notes, reader->pos, "aggregation");
    if (pq_hints_conflict(hints))
        pq_note_reset_conflict(reader->notes, reader->pos, "aggregation");
    return ret_value->histogram != NULL;
}
