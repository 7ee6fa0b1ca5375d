/* natives.c - the native histograms of groups, added up beside their floats. */
#include "promql/partial/natives.h"

#include "promql/func/texts.h"

/* The columns of avg that tell of an addend. */
enum { ADDED = 3, SHIFT = 4 };

static struct pq_histogram_total *total_at(struct pq_natives *natives, size_t cell)
{
    bool mean = natives->agg->id == PQ_AGG_AVG;

    if (!natives->totals)
        natives->totals =
            QF_ARENA_ARRAY(natives->arena, struct pq_histogram_total *, natives->count);
    if (!natives->totals)
        return NULL;
    if (!natives->totals[cell]) {
        natives->totals[cell] = QF_ARENA_NEW(natives->arena, struct pq_histogram_total);
        if (natives->totals[cell])
            pq_htotal_init(natives->totals[cell], natives->arena,
                           mean ? PQ_HSUM_MEAN : PQ_HSUM_EXACT);
    }
    return natives->totals[cell];
}

bool pq_natives_add(struct pq_natives *natives, size_t cell, const struct pq_histogram *h)
{
    struct pq_histogram_total *total = total_at(natives, cell);

    return total && pq_htotal_add(total, h);
}

bool pq_natives_add_row(struct pq_natives *natives, size_t cell, const struct pq_histogram *h,
                        const double *columns)
{
    struct pq_histogram_total *total = total_at(natives, cell);
    struct pq_haddend addend = { .histogram = h };

    if (natives->agg->id == PQ_AGG_AVG) {
        addend.added = columns[ADDED];
        addend.shift = columns[SHIFT] != 0 ? PQ_HSUM_MEAN_SHIFT : 0;
    }
    return total && pq_htotal_add_addend(total, &addend);
}

void pq_natives_columns(const struct pq_aggregation *agg, const struct pq_haddend *addend,
                        double *columns)
{
    for (size_t c = 0; c < agg->kind->column_count; c++)
        columns[c] = 0;
    if (agg->id == PQ_AGG_AVG) {
        columns[ADDED] = addend->added;
        columns[SHIFT] = addend->shift;
    }
}

bool pq_natives_value(struct pq_natives *natives, size_t cell, bool floats, struct qf_arena *arena,
                      unsigned *flags, const struct pq_histogram **ret)
{
    struct pq_histogram_total *total = natives->totals[cell];
    bool reconciled = false;

    *ret = NULL;
    if (floats || pq_htotal_mixed(total)) {
        *flags |= floats ? PQ_WINDOW_MIXED_KINDS : PQ_WINDOW_MIXED_SCHEMAS;
        return true;
    }
    if (pq_hints_conflict(total->hints))
        *flags |= PQ_WINDOW_CONFLICT_AGG;
    *ret = pq_htotal_value(total, arena, &reconciled);
    if (reconciled)
        *flags |= PQ_WINDOW_RECONCILED_AGG;
    return *ret != NULL;
}

void pq_natives_notes(struct pq_notes *notes, struct pq_pos pos, struct qf_str metric,
                      unsigned flags)
{
    if (flags & PQ_WINDOW_MIXED_KINDS)
        pq_note_mixed_floats_agg(notes, pos);
    if (flags & PQ_WINDOW_MIXED_SCHEMAS)
        pq_note_mixed_schemas(notes, pos, metric);
    if (flags & PQ_WINDOW_CONFLICT_AGG)
        pq_note_reset_conflict(notes, pos, "aggregation");
    if (flags & PQ_WINDOW_RECONCILED_AGG)
        pq_note_reconciled(notes, pos, "aggregation");
}
