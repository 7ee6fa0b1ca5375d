/* coretest.h - what the tests of the work coordination share: worlds with a chosen placement. */
#ifndef TESTS_LIB_CORE_CORETEST_H
#define TESTS_LIB_CORE_CORETEST_H

#include <stddef.h>
#include <stdint.h>

#include "workcoord/api.h"
#include "workcoord/worker.h"

/* The rendezvous key of worker number @worker (from 1) in every test. */
uint64_t core_worker_key(uint64_t worker);

/* The workers of the bits of @owners keep what @item reads: 1 << w for worker w. */
void core_own(struct wc_api_item_spec *item, unsigned owners);

/* An affinity whose choice among workers 1..@workers is order[0], then order[1] and so on. */
uint64_t core_affinity(const uint64_t *order, size_t order_count, size_t workers);

/* The same with one wish only. */
uint64_t core_affinity_to(uint64_t worker, size_t workers);

#endif
