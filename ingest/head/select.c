/* select.c - matching by pairs, so that a value is looked at once however many series have it. */
#include "ingest/head/select.h"

#include <stdlib.h>

#include "base/pure/alloc.h"

/* What a pair means to the matchers: nothing, a refusal, or that name number k - 1 is satisfied. */
enum { PAIR_IRRELEVANT = 0, PAIR_REFUSED = 255 };

struct names {
    struct qf_str items[IN_MATCH_NAMES_MAX];
    size_t count;
    uint64_t needed; /* those whose matchers do not accept an absent label */
};

static qf_rc note_names(const struct in_select *select, struct names *names, struct qf_err *err)
{
    *names = (struct names){ 0 };
    for (size_t i = 0; i < select->matcher_count; i++) {
        const struct pq_matcher *matcher = &select->matchers[i];
        size_t k = 0;

        while (k < names->count && !qf_str_eq(names->items[k], matcher->name))
            k++;
        if (k == IN_MATCH_NAMES_MAX)
            return qf_err_set(err, QF_ELIMIT, "a selector with more than %d label names",
                              IN_MATCH_NAMES_MAX);
        if (k == names->count)
            names->items[names->count++] = matcher->name;
        if (!pq_matcher_matches(matcher, QF_STR("")))
            names->needed |= UINT64_C(1) << k;
    }
    return QF_OK;
}

static unsigned char judge(const struct in_select *select, const struct names *names,
                           const struct in_pair *pair)
{
    struct qf_str name = in_pair_name(pair);
    size_t k = 0;

    while (k < names->count && !qf_str_eq(names->items[k], name))
        k++;
    if (k == names->count)
        return PAIR_IRRELEVANT;
    for (size_t i = 0; i < select->matcher_count; i++)
        if (qf_str_eq(select->matchers[i].name, name) &&
            !pq_matcher_matches(&select->matchers[i], in_pair_value(pair)))
            return PAIR_REFUSED;
    return (unsigned char)(k + 1);
}

static bool is_wanted(const struct in_memory_series *series, const struct names *names,
                      const unsigned char *verdicts)
{
    const unsigned char *at = series->labels;
    uint64_t missing = names->needed;

    for (uint32_t left = in_labels_next(&at); left > 0; left--) {
        unsigned char verdict = verdicts[in_labels_next(&at)];

        if (verdict == PAIR_REFUSED)
            return false;
        if (verdict)
            missing &= ~(UINT64_C(1) << (verdict - 1));
    }
    return missing == 0;
}

static int by_labels(const void *a, const void *b, void *view)
{
    const struct in_memory_series *x = *(struct in_memory_series *const *)a;
    const struct in_memory_series *y = *(struct in_memory_series *const *)b;

    int order = in_view_cmp(view, x, y);

    return order ? order : (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

static qf_rc collect(struct in_selection *selection, const struct in_select *select,
                     const struct names *names, const unsigned char *verdicts, struct qf_err *err)
{
    /* Sorting takes as much again. */
    uint64_t most = select->memory_bytes / (3 * sizeof(struct in_memory_series *));

    for (uint32_t i = 0; i < selection->view.series_count; i++) {
        struct in_memory_series *series = in_view_series(&selection->view, i);

        if ((series->shard_hash & (select->shards - 1)) != select->shard ||
            !is_wanted(series, names, verdicts))
            continue;
        if (selection->series.count == most)
            return qf_err_set(err, QF_ELIMIT, "more series than memory allows");
        selection->has |= atomic_load_explicit(&series->has, memory_order_relaxed);
        QF_VEC_PUSH(&selection->series, series);
    }
    return QF_OK;
}

qf_rc in_selection_make(struct in_selection *selection, const struct in_memory *memory,
                        const struct in_select *select, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) unsigned char *verdicts = NULL;
    struct names names;
    qf_rc rc = note_names(select, &names, err);

    *selection = (struct in_selection){ .view = in_memory_view(memory) };
    if (rc != QF_OK)
        return rc;
    verdicts = qf_xcalloc(selection->view.pair_count + 1, 1);
    for (uint32_t i = 0; names.count && i < selection->view.pair_count; i++)
        verdicts[i] = judge(select, &names, in_view_pair(&selection->view, i));
    rc = collect(selection, select, &names, verdicts, err);
    if (rc == QF_OK && selection->series.count > 1)
        qsort_r(selection->series.items, selection->series.count,
                sizeof(selection->series.items[0]), by_labels, &selection->view);
    return rc;
}

void in_selection_done(struct in_selection *selection)
{
    QF_VEC_DONE(&selection->series);
}
