/* block.h - a native histogram in one block of memory, for those who forget samples one by one. */
#ifndef PROMQL_HISTOGRAM_BLOCK_H
#define PROMQL_HISTOGRAM_BLOCK_H

#include "promql/value.h"

/* A deep copy; free() frees it. Never NULL. */
struct pq_histogram *pq_histogram_block(const struct pq_histogram *h);
/* The bytes of such a copy. */
size_t pq_histogram_block_bytes(const struct pq_histogram *h);

#endif
