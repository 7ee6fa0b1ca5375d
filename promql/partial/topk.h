/* topk.h - the k best of a stream of values, in a total order: results never depend on how the
 * stream was cut into pieces.
 *
 * NaN is worse than any number. Of equal values the one with the smaller id is better. */
#ifndef PROMQL_PARTIAL_TOPK_H
#define PROMQL_PARTIAL_TOPK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every value is compared: a table of functions would show. */
enum pq_preference { PQ_PREFER_FIRST, PQ_PREFER_LARGEST, PQ_PREFER_SMALLEST };

struct pq_topk_item {
    double value;
    uint32_t id;
};

struct pq_topk {
    enum pq_preference prefers;
    size_t k;
    struct pq_topk_item *items; /* heap, the worst kept one on top; room for k */
    size_t count;
};

/* Offer a value; it is kept if it is among the best k so far. */
void pq_topk_offer(struct pq_topk *topk, double value, uint32_t id);
/* Put the best first. The heap is none after that: set count to 0 before the next offer. */
void pq_topk_sort(struct pq_topk *topk);

#endif
