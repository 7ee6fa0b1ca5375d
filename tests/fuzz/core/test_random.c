/* test_random.c - the fuzz target on random bytes, for machines without libFuzzer. */
#include "tests/lib/test.h"

#include "base/pure/prng.h"
#include "tests/fuzz/core/fuzz_core.h"

/* Any bytes are a sequence of events that both cores survive with their invariants intact. */
TEST(random_events_break_no_invariant)
{
    struct qf_prng prng = { 11 };

    for (int round = 0; round < 400; round++) {
        uint8_t bytes[2048];

        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = (uint8_t)qf_prng_next(&prng);
        fuzz_core(bytes, sizeof(bytes) - qf_prng_below(&prng, 64));
    }
    fuzz_core(NULL, 0);
}
