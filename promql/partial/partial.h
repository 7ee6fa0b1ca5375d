/* partial.h - aggregations as objects: what they add up, how partial results join, what comes out.
 *
 * An aggregation over a group has two halves. A leaf adds the values of its series to a partial, a
 * few plain numbers per group and step; those travel, are merged with the partials of other shards
 * and become a value in the end. Where no leaf can do its half (the input is no plain leaf), a node
 * of the evaluation does both. All of it asks the same object, found by the number the parser gave
 * the aggregation (aggregations.def). Objects are constants, one file per family.
 *
 * Whoever uses an object dispatches once for many values: per series, or per group. */
#ifndef PROMQL_PARTIAL_PARTIAL_H
#define PROMQL_PARTIAL_PARTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "promql/functions.h"
#include "promql/leaf_result.h"
#include "promql/partial/topk.h"

/* What becomes of the series of a group. */
enum pq_agg_shape {
    PQ_AGG_FOLDS,   /* one value: sum, quantile ... */
    PQ_AGG_SELECTS, /* some of the series, as they are: topk ... */
    PQ_AGG_TALLIES, /* a series for every value: count_values */
};

struct pq_aggregation {
    enum pq_agg id;
    enum pq_agg_shape shape;
    /* What a leaf answers for it. NULL: partials would not do, it is computed above the leaves. */
    const struct pq_leaf_kind *kind;
    /* What becomes of native histograms: ALIKE, IGNORE, or EITHER. */
    enum pq_histogram_rule histograms;

    /* FOLDS with a kind. Add values[k] to step k wherever present[k] is 1; columns are those of the
     * kind, seen[k] says that step k has values already. Where present[k] is 0, values[k] is a
     * finite number and what is written does not count. */
    void (*add)(double *const *columns, const uint8_t *seen, const double *values,
                const uint8_t *present, size_t count);
    /* FOLDS and TALLIES with a kind. Add the partial @from to @into, both as many numbers as the
     * kind has columns. Equal to the last bit whichever is added to which (short of overflows). */
    void (*merge)(double *into, const double *from);
    /* FOLDS with a kind: the value of a partial. */
    double (*value)(const double *partial);

    /* SELECTS with a kind: which values are the best; an instant query lists them in that order. */
    enum pq_preference prefers;
};

/* The object of @id, which is less than PQ_AGG__COUNT. */
const struct pq_aggregation *pq_aggregation_get(enum pq_agg id);
/* By its name in PromQL; NULL if there is none. */
const struct pq_aggregation *pq_aggregation_find(struct qf_str name);

#define PQ_AGGREGATION(id, name, param, experimental, object)                                      \
    extern const struct pq_aggregation pq_aggregation_##object;
#include "promql/aggregations.def"
#undef PQ_AGGREGATION

#endif
