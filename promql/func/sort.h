/* sort.h - qsort that can be stopped. */
#ifndef PROMQL_FUNC_SORT_H
#define PROMQL_FUNC_SORT_H

#include "promql/func/poll.h"

/* Sort as qsort does. When @poll (may be NULL) stops, the items are left in any order. */
void pq_sort(void *items, size_t count, size_t size, int (*compare)(const void *, const void *),
             struct pq_poll *poll);

#endif
