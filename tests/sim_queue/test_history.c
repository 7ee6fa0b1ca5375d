/* The checker of histories rejects what it is there for, and nothing else. */
#include <string.h>

#include "tests/lib/test.h"
#include "tests/sim_queue/history.h"

static void done(struct history **history)
{
    *history = history_free(*history);
}

#define FINE(call) CHECK_STR((call) ? "wrong" : "", "")
#define WRONG(call, text)                                                                          \
    do {                                                                                           \
        const char *got_ = (call);                                                                 \
        CHECK_MSG(got_ &&strstr(got_, text), "got: %s", got_ ? got_ : "nothing");                  \
    } while (0)

/* Two records acknowledged at offsets 3 and 5. */
static struct history *two(void)
{
    struct history *history = history_new();
    uint64_t a = history_offer(history), b = history_offer(history);

    FINE(history_acked(history, a, 3));
    FINE(history_acked(history, b, 5));
    return history;
}

TEST(an_honest_history_passes)
{
    QF_CLEANUP(done) struct history *history = two();
    struct history_begin begin = history_begin(history);
    struct history_record records[] = { { 3, 1 }, { 5, 2 } };

    FINE(history_read(history, &begin, 1, 6, records, 2));
    begin = history_begin(history);
    FINE(history_read(history, &begin, 4, 6, records + 1, 1));
    FINE(history_consumed(history, 3, 4));
    FINE(history_consumed(history, 5, 5));
    FINE(history_offset(4, 4));
    CHECK_EQ(history_acked_count(history), 2);
}

TEST(a_stale_read_is_found)
{
    QF_CLEANUP(done) struct history *history = two();
    struct history_begin begin = history_begin(history);
    struct history_record record = { 3, 1 };

    WRONG(history_read(history, &begin, 1, 4, &record, 1), "stale read");
}

TEST(a_read_older_than_an_earlier_read_is_found)
{
    QF_CLEANUP(done) struct history *history = two();
    struct history_record records[] = { { 3, 1 }, { 5, 2 } };
    struct history_begin begin = history_begin(history);

    FINE(history_read(history, &begin, 1, 9, records, 2));
    begin = history_begin(history);
    WRONG(history_read(history, &begin, 1, 8, records, 2), "stale read");
}

/* A read that began before the acknowledgement need not see it. */
TEST(a_concurrent_read_may_be_older)
{
    QF_CLEANUP(done) struct history *history = history_new();
    struct history_begin begin = history_begin(history);

    FINE(history_acked(history, history_offer(history), 3));
    FINE(history_read(history, &begin, 1, 2, NULL, 0));
}

TEST(a_lost_write_is_found)
{
    QF_CLEANUP(done) struct history *history = two();
    struct history_begin begin = history_begin(history);
    struct history_record record = { 5, 2 };

    WRONG(history_read(history, &begin, 1, 6, &record, 1), "lost write");
}

TEST(resurrections_are_found)
{
    QF_CLEANUP(done) struct history *history = two();
    struct history_begin begin = history_begin(history);
    struct history_record records[] = { { 3, 1 }, { 5, 2 }, { 6, 3 } };

    FINE(history_refused(history, history_offer(history)));
    WRONG(history_read(history, &begin, 1, 6, records, 3),
          "resurrection: a record that was refused");
    begin = history_begin(history);
    FINE(history_read(history, &begin, 4, 6, records + 1, 1));
    begin = history_begin(history);
    WRONG(history_read(history, &begin, 1, 6, records, 2), "resurrection: records below");
    WRONG(history_refused(history, 1), "refused that is there");
}

TEST(records_that_change_move_or_come_from_nowhere_are_found)
{
    QF_CLEANUP(done) struct history *history = two();
    struct history_begin begin = history_begin(history);
    struct history_record changed[] = { { 3, 2 } }, moved[] = { { 3, 1 }, { 4, 2 } },
                          invented[] = { { 3, 1 }, { 4, 77 } }, disorder[] = { { 5, 2 }, { 3, 1 } };

    WRONG(history_read(history, &begin, 1, 3 + 2, changed, 1), "changed");
    WRONG(history_read(history, &begin, 1, 6, moved, 2), "two offsets");
    WRONG(history_read(history, &begin, 1, 6, invented, 2), "nobody offered");
    WRONG(history_read(history, &begin, 1, 6, disorder, 2), "lost write");
    WRONG(history_acked(history, 1, 9), "two offsets");
}

TEST(what_is_handed_out_twice_or_goes_back_is_found)
{
    QF_CLEANUP(done) struct history *history = two();

    FINE(history_consumed(history, 3, 5));
    WRONG(history_consumed(history, 5, 6), "twice");
    WRONG(history_offset(3, 4), "went back");
}
