/* metric_counts.c - how many series of each metric there are. */
#include "ingest/core/metric_counts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/macros.h"

/* Names without series are kept until there are so many: most come back. */
#define UNUSED_MAX 1024

void in_metric_counts_done(struct in_metric_counts *counts)
{
    for (size_t i = 0; i < counts->places.count; i++)
        free(counts->places.items[i].name);
    QF_VEC_DONE(&counts->places);
    qf_map_done(&counts->names);
    *counts = (struct in_metric_counts){ 0 };
}

/* Free the places of names without series; the others keep their numbers. */
static void sweep(struct in_metric_counts *counts)
{
    qf_map_clear(&counts->names);
    for (uint32_t i = 1; i < counts->places.count; i++) {
        struct in_metric_count *place = &counts->places.items[i];

        if (!place->name)
            continue;
        if (place->series) {
            (void)qf_map_put(&counts->names, (struct qf_str){ place->name, place->len }, i, NULL);
            continue;
        }
        free(place->name);
        *place = (struct in_metric_count){ .next_free = counts->first_free };
        counts->first_free = i;
    }
    counts->unused = 0;
}

/* A place for a name that has none; 0: there is no room. */
static uint32_t take_place(struct in_metric_counts *counts, struct qf_str name)
{
    uint32_t number = counts->first_free;

    if (number) {
        counts->first_free = counts->places.items[number].next_free;
    } else if (counts->places.count <= IN_METRICS_MAX) {
        number = (uint32_t)counts->places.count;
        QF_VEC_PUSH(&counts->places, ((struct in_metric_count){ 0 }));
    } else {
        return 0;
    }
    counts->places.items[number] =
        (struct in_metric_count){ .name = qf_xmemdup0(name.data, name.len), .len = name.len };
    counts->unused++;
    (void)qf_map_put(&counts->names, (struct qf_str){ counts->places.items[number].name, name.len },
                     number, NULL);
    return number;
}

uint32_t in_metric_counts_add(struct in_metric_counts *counts, struct qf_str name)
{
    const uint64_t *known = qf_map_get(&counts->names, name);
    uint32_t number;

    if (!counts->places.count)
        QF_VEC_PUSH(&counts->places, ((struct in_metric_count){ 0 }));
    number = known ? (uint32_t)*known : take_place(counts, name);
    if (number && !counts->places.items[number].series)
        counts->unused--;
    counts->places.items[number].series++;
    return number;
}

void in_metric_counts_remove(struct in_metric_counts *counts, uint32_t number)
{
    struct in_metric_count *place = &counts->places.items[number];

    assert(number < counts->places.count);
    assert(place->series > 0);
    place->series--;
    if (!number || place->series)
        return;
    counts->unused++;
    if (counts->unused > UNUSED_MAX && counts->unused > counts->places.count / 2)
        sweep(counts);
}

static bool is_before(const struct in_metric_count *a, const struct in_metric_count *b)
{
    return a->series != b->series ? a->series > b->series : strcmp(a->name, b->name) < 0;
}

size_t in_metric_counts_top(const struct in_metric_counts *counts, size_t max,
                            const struct in_metric_count **ret_top)
{
    size_t count = 0;

    for (size_t i = 1; i < counts->places.count; i++) {
        const struct in_metric_count *place = &counts->places.items[i];
        size_t at = count;

        if (!place->name || !place->series ||
            (count == max && !is_before(place, ret_top[count - 1])))
            continue;
        count += count < max;
        at = QF_MIN(at, count - 1);
        for (; at > 0 && is_before(place, ret_top[at - 1]); at--)
            ret_top[at] = ret_top[at - 1];
        ret_top[at] = place;
    }
    return count;
}
