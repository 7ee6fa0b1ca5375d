/* combine.c - a histogram plus or minus another, for series such as {{sum:1}}+{{sum:2}}x5. */
#include "promql/histogram/arith.h"
#include "promql/testing/series_int.h"

struct pq_histogram *pq_literal_combine(struct pq_parser *p, const struct pq_histogram *base,
                                        const struct pq_histogram *inc, double factor)
{
    struct pq_histogram_joined joined;

    if (base->schema > inc->schema) {
        pq_parser_fail(p, p->last, "error combining histograms: cannot merge from schema %d to %d",
                       inc->schema, base->schema);
        return NULL;
    }
    if (!pq_histogram_combine(p->arena, base, inc, factor, 1, &joined)) {
        pq_parser_out_of_memory(p);
        return NULL;
    }
    if (joined.mixed) {
        pq_parser_fail(p, p->last,
                       "cannot apply this operation on histograms with a mix of exponential and "
                       "custom bucket schemas");
        return NULL;
    }
    joined.histogram->reset_hint_given = base->reset_hint_given;
    return joined.histogram;
}
