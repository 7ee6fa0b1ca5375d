/* topk.h - the k best of a stream of values, as Prometheus chooses them.
 *
 * Of equal values it does not keep the first or the last: which one goes is decided by its binary heap,
 * and with it by every value that it ever took, kept or not. To keep the same ones, values are offered
 * in the order in which Prometheus meets the series to a heap that moves like its own: the worst value
 * on top, a new one in its place only if it is better. NaN is worse than any number.
 *
 * A value that is not taken changes nothing, so a shard need not send it: it sends every value that a
 * heap over its own series took, in a group of n in no particular order about k * (1 + ln(n / k)). What
 * the heap over all series would take is among them. Whatever came before in the shard came before in
 * the whole as well, so the worst of the best k there is no worse than in the shard: what is better
 * than it there is better than it here. */
#ifndef PROMQL_PARTIAL_TOPK_H
#define PROMQL_PARTIAL_TOPK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* FIRST keeps what comes first; the heap decides the order alone. */
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

/* Offer a value; it is taken if it is among the best k so far. False: it was not, and the heap is as
 * before. */
bool pq_topk_offer(struct pq_topk *topk, double value, uint32_t id);
/* Put the best first, as Prometheus lists them; FIRST leaves the heap as it is. Of equal values the
 * one nearer to the heap's top comes first, of NaNs last. That is Prometheus's order of up to 12; how
 * its sort arranges equal values among more is its own. Set count to 0 before the next offer. */
void pq_topk_sort(struct pq_topk *topk);

#endif
