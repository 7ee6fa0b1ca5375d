/* test_once.c - requests with an idempotency key, one at a time of each. */
#include "ingest/docs/once.h"

#include <string.h>

#include "base/sys/clock.h"
#include "base/sys/thread.h"
#include "tests/lib/test.h"

#define T QF_STR("t")

TEST(of_a_key_one_is_under_way_and_others_are_not_held_up)
{
    struct in_once *once = in_once_new();
    uint8_t first[RG_DIGEST_BYTES], next[RG_DIGEST_BYTES];

    CHECK(in_once_begin(once, T, QF_STR("k"), QF_STR("r"), first));
    CHECK(!in_once_begin(once, T, QF_STR("k"), QF_STR("r"), next));
    CHECK(memcmp(first, next, sizeof(first)) == 0);
    CHECK(in_once_begin(once, T, QF_STR("k"), QF_STR("s"), next));
    in_once_end(once, next);
    CHECK(in_once_begin(once, T, QF_STR("l"), QF_STR("r"), next));
    in_once_end(once, next);
    CHECK(in_once_begin(once, QF_STR("u"), QF_STR("k"), QF_STR("r"), next));
    in_once_end(once, next);
    in_once_end(once, first);
    CHECK(in_once_begin(once, T, QF_STR("k"), QF_STR("r"), first));
    in_once_end(once, first);
    (void)in_once_free(once);
}

struct waiting {
    struct in_once *once;
    bool begun;
};

static void wait_for_it(void *arg)
{
    struct waiting *waiting = arg;
    uint8_t id[RG_DIGEST_BYTES];

    /* As often as it takes on a busy machine: each try waits for the first one to end. */
    for (int64_t until_ms = qf_clock_mono_ms() + 30000;
         !waiting->begun && qf_clock_mono_ms() < until_ms;)
        waiting->begun = in_once_begin(waiting->once, T, QF_STR("k"), QF_STR("r"), id);
    in_once_end(waiting->once, id);
}

TEST(a_second_one_goes_on_when_the_first_ends)
{
    struct waiting waiting = { .once = in_once_new() };
    uint8_t id[RG_DIGEST_BYTES];
    struct qf_thread *thread;

    CHECK(in_once_begin(waiting.once, T, QF_STR("k"), QF_STR("r"), id));
    thread = qf_thread_start("second", wait_for_it, &waiting);
    CHECK(thread != NULL);
    in_once_end(waiting.once, id);
    (void)qf_thread_join(thread);
    CHECK(waiting.begun);
    (void)in_once_free(waiting.once);
}

TEST(so_many_are_under_way_and_no_more)
{
    struct in_once *once = in_once_new();
    uint8_t ids[IN_ONCE_MAX + 1][RG_DIGEST_BYTES];
    char key[8];

    for (int i = 0; i <= IN_ONCE_MAX; i++) {
        (void)snprintf(key, sizeof(key), "k%d", i);
        CHECK_EQ(in_once_begin(once, T, qf_str_from(key), QF_STR("r"), ids[i]), i < IN_ONCE_MAX);
    }
    in_once_end(once, ids[0]);
    CHECK(in_once_begin(once, T, qf_str_from(key), QF_STR("r"), ids[0]));
    (void)in_once_free(once);
}
