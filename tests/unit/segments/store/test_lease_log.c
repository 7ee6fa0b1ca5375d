/* test_lease_log.c - when a lease in a log is over. */
#include "segments/store/lease_log.h"

#include "segments/store/lease.h"
#include "tests/lib/test.h"

#define STAMP INT64_C(1700000000000)

static bool over(const char *name, int64_t now_ms)
{
    return lease_log_is_over(qf_str_from(name), now_ms);
}

TEST(a_lease_in_a_log_is_over_when_its_time_is_or_it_was_given_back)
{
    const char *name = "_leases/compaction/00000001700000000000-10000-0123456789abcdef";

    CHECK(!over(name, STAMP));
    CHECK(!over(name, STAMP + 10000 + SG_LEASE_GRAIN_MS - 1));
    CHECK(over(name, STAMP + 10000 + SG_LEASE_GRAIN_MS));
    CHECK(!over(name, STAMP - 10000)); /* another node's clock */
    CHECK(over(name, STAMP - 10000 - SG_LEASE_GRAIN_MS));
    CHECK(over("_leases/compaction/00000000000000000000-0-0123456789abcdef", STAMP));
    CHECK(over("_leases/compaction/00000001700000000000-999999999-0",
               STAMP)); /* no lease lasts so long */
    CHECK(over("_leases/compaction/word", STAMP));
    CHECK(over("_leases/compaction/", STAMP));
    CHECK(over("", STAMP));
}
