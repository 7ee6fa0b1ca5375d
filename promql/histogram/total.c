/* total.c - the sum or the average of a group of native histograms. */
#include "promql/histogram/total.h"

#include <math.h>

void pq_htotal_init(struct pq_histogram_total *total, struct qf_arena *arena,
                    enum pq_hsum_mode mode)
{
    *total = (struct pq_histogram_total){ .arena = arena, .mode = mode };
}

static bool same_bounds(const struct pq_histogram_sum *kind, const struct pq_histogram *h)
{
    bool same = kind->bound_count == h->custom_value_count;

    for (size_t i = 0; same && i < kind->bound_count; i++)
        same = kind->bounds[i] == h->custom_values[i];
    return same;
}

static bool is_kind(const struct pq_histogram_sum *kind, const struct pq_histogram *h)
{
    return kind->schema == h->schema && kind->hints == 1u << h->reset_hint &&
           kind->zero_threshold == h->zero_threshold && same_bounds(kind, h);
}

/* The sum of what is like @h, made if there is none. NULL: budget spent. */
static struct pq_histogram_sum *find_kind(struct pq_histogram_total *total,
                                          const struct pq_histogram *h)
{
    struct pq_histogram_sum *kinds = total->kinds;

    for (size_t i = 0; i < total->count; i++)
        if (is_kind(&kinds[i], h))
            return &kinds[i];
    if (total->count == total->capacity) {
        size_t capacity = total->capacity ? total->capacity * 2 : 1;

        kinds = qf_arena_grow(total->arena, kinds, total->capacity, capacity, sizeof(*kinds));
        if (!kinds)
            return NULL;
        total->kinds = kinds;
        total->capacity = capacity;
    }
    pq_hsum_init(&kinds[total->count], total->arena, total->mode);
    return &kinds[total->count++];
}

static void look_at(struct pq_histogram_total *total, const struct pq_histogram *h, double added)
{
    *(pq_histogram_is_custom(h) ? &total->custom : &total->exponential) = true;
    total->hints |= 1u << h->reset_hint;
    total->added += added;
}

bool pq_htotal_add(struct pq_histogram_total *total, const struct pq_histogram *h)
{
    struct pq_histogram_sum *kind = find_kind(total, h);

    look_at(total, h, 1);
    return kind && pq_hsum_add(kind, h, 1) == PQ_HSUM_OK;
}

/* An order of the kinds that does not depend on who came first: fine ones first, so that a wide
 * zero bucket meets the buckets it might cut as they are. */
static bool comes_before(const struct pq_histogram_sum *a, const struct pq_histogram_sum *b)
{
    if (a->schema != b->schema)
        return a->schema > b->schema;
    if (a->zero_threshold != b->zero_threshold)
        return a->zero_threshold < b->zero_threshold;
    return a->hints < b->hints;
}

static void sort_kinds(struct pq_histogram_total *total)
{
    for (size_t i = 1; i < total->count; i++) {
        struct pq_histogram_sum kind = total->kinds[i];
        size_t at = i;

        for (; at > 0 && comes_before(&kind, &total->kinds[at - 1]); at--)
            total->kinds[at] = total->kinds[at - 1];
        total->kinds[at] = kind;
    }
}

const struct pq_histogram *pq_htotal_value(struct pq_histogram_total *total, struct qf_arena *arena,
                                           bool *ret_reconciled)
{
    struct pq_histogram_sum *sum = total->kinds;

    sort_kinds(total);
    for (size_t i = 1; i < total->count; i++)
        if (pq_hsum_merge(sum, &total->kinds[i]) != PQ_HSUM_OK)
            return NULL;
    *ret_reconciled = sum->reconciled;
    return pq_hsum_value(sum, total->mode == PQ_HSUM_MEAN ? total->added : 1, arena);
}

static bool is_nothing(const struct pq_histogram *h)
{
    return h->count == 0 && h->sum == 0 && h->zero_count == 0 && h->positive_bucket_count == 0 &&
           h->negative_bucket_count == 0;
}

bool pq_htotal_addends(const struct pq_histogram_total *total, struct pq_haddend **ret_addends,
                       size_t *ret_count)
{
    struct pq_haddend *addends =
        QF_ARENA_ARRAY(total->arena, struct pq_haddend, total->count * PQ_HSUM_PART__COUNT);
    size_t count = 0;
    double added = total->added; /* all stand with the first one */

    if (!addends)
        return false;
    for (size_t i = 0; i < total->count; i++)
        for (int part = 0; part < PQ_HSUM_PART__COUNT; part++) {
            const struct pq_histogram_sum *kind = &total->kinds[i];
            const struct pq_histogram *h = pq_hsum_part(kind, (enum pq_hsum_part)part);

            if (!h)
                return false;
            if (part != PQ_HSUM_HIGH && is_nothing(h))
                continue;
            addends[count++] = (struct pq_haddend){ h, added, kind->shift };
            added = 0;
        }
    *ret_addends = addends;
    *ret_count = count;
    return true;
}

bool pq_htotal_add_addend(struct pq_histogram_total *total, const struct pq_haddend *addend)
{
    struct pq_histogram_sum *kind = find_kind(total, addend->histogram), part;

    look_at(total, addend->histogram, addend->added);
    if (!kind)
        return false;
    if (addend->shift == 0)
        return pq_hsum_add(kind, addend->histogram, 1) == PQ_HSUM_OK;
    pq_hsum_init(&part, total->arena, total->mode);
    if (!pq_hsum_load(&part, addend->histogram, 1))
        return false;
    part.shift = addend->shift;
    return pq_hsum_merge(kind, &part) == PQ_HSUM_OK;
}
