/* test_tables.c - the index and the timers, against simple models. */
#include "tests/lib/test.h"

#include <stdlib.h>

#include "base/pure/prng.h"
#include "table.h"

/* Timers: any order of setting, moving and clearing gives the earliest, lower slots first. */
TEST(timers_give_the_earliest_of_any_mix)
{
    enum { SLOTS = 50 };
    struct wc_carver carver = { NULL, 0 };
    struct wc_timers timers = { 0 };
    struct qf_prng prng = { 3 };
    qf_time_ms model[SLOTS];
    char *block;

    wc_timers_carve(&timers, &carver, SLOTS);
    block = calloc(1, carver.used);
    carver = (struct wc_carver){ block, 0 };
    wc_timers_carve(&timers, &carver, SLOTS);
    for (int i = 0; i < SLOTS; i++)
        model[i] = QF_TIME_NEVER;
    for (int i = 0; i < 20000; i++) {
        uint32_t slot = (uint32_t)qf_prng_below(&prng, SLOTS), first = WC_NONE;
        qf_time_ms due = (qf_time_ms)qf_prng_below(&prng, 100);

        if (qf_prng_chance(&prng, 0.4)) {
            wc_timers_clear(&timers, slot);
            model[slot] = QF_TIME_NEVER;
        } else {
            wc_timers_set(&timers, slot, due);
            model[slot] = due;
        }
        for (uint32_t s = 0; s < SLOTS; s++) {
            if (model[s] != QF_TIME_NEVER && (first == WC_NONE || model[s] < model[first]))
                first = s;
        }
        CHECK_EQ(wc_timers_next(&timers), first == WC_NONE ? QF_TIME_NEVER : model[first]);
        CHECK_EQ(wc_timers_due(&timers, 1000), first);
        CHECK_EQ(wc_timers_due(&timers, -1), WC_NONE);
        CHECK_EQ(wc_timers_due(&timers, QF_TIME_NEVER), first);
    }
    free(block);
}

/* The index finds every slot of a key, also when many keys and duplicates share few buckets. */
TEST(the_index_finds_all_slots_of_a_key)
{
    enum { SLOTS = 64 };
    struct wc_carver carver = { NULL, 0 };
    struct wc_index index;
    struct qf_prng prng = { 5 };
    uint64_t keys[SLOTS] = { 0 };
    char *block;

    wc_index_carve(&index, &carver, SLOTS);
    block = calloc(1, carver.used);
    carver = (struct wc_carver){ block, 0 };
    wc_index_carve(&index, &carver, SLOTS);
    wc_index_clear(&index);
    for (int i = 0; i < 20000; i++) {
        uint32_t slot = (uint32_t)qf_prng_below(&prng, SLOTS), found = 0, want = 0;
        uint64_t key = 1 + qf_prng_below(&prng, 20);

        if (keys[slot]) {
            wc_index_remove(&index, slot);
            keys[slot] = 0;
        } else {
            wc_index_put(&index, key, slot);
            keys[slot] = key;
        }
        for (uint32_t s = wc_index_first(&index, key); s != WC_NONE; s = wc_index_next(&index, s)) {
            CHECK(keys[s] == key);
            found++;
        }
        for (int s = 0; s < SLOTS; s++)
            want += keys[s] == key;
        CHECK_EQ(found, want);
    }
    free(block);
}

/* Times near the end of time do not wrap. */
TEST(adding_to_a_time_stops_at_never)
{
    CHECK_EQ(wc_time_add(1, 2), 3);
    CHECK_EQ(wc_time_add(QF_TIME_NEVER, 1), QF_TIME_NEVER);
}
