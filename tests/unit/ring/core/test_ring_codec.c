/* test_ring_codec.c - rings and entries as bytes: the same again, or refused. */
#include "base/pure/prng.h"
#include "tests/unit/ring/core/ring_help.h"

#define RING QF_CLEANUP(ring_freep) struct rg_ring *
#define BYTES QF_CLEANUP(qf_strbuf_done) struct qf_strbuf

/* A ring in the middle of everything. */
static struct rg_ring *busy(void)
{
    struct rg_ring *ring = found(RG_SLOTS, 5, 3);
    uint64_t change;

    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_ADD,
                                               .name = QF_STR("n5"),
                                               .zone = QF_STR("a"),
                                               .url = QF_STR("http://n5:1"),
                                               .incarnation = 100 }),
             RG_APPLIED);
    change = ring->applied;
    (void)begin_all(ring, change);
    hold(ring, moving(ring));
    (void)held_by(ring, moving(ring), 5);
    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_REMOVE, .node = 2 }), RG_APPLIED);
    (void)begin_all(ring, ring->applied);
    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_FAILED,
                                               .change = change,
                                               .reason = QF_STR("full") }),
             RG_APPLIED);
    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_DOWN, .node = 1, .time_ms = -5 }),
             RG_APPLIED);
    return ring;
}

TEST(a_ring_comes_back_the_same_and_goes_on_the_same)
{
    RING ring = busy();
    RING again = NULL;
    BYTES one = QF_STRBUF_INIT, two = QF_STRBUF_INIT;

    rg_ring_encode(&one, ring);
    CHECK_EQ(rg_ring_decode(qf_strbuf_view(&one), &again), QF_OK);
    for (uint32_t i = 0; i < RG_SLOTS; i++) {
        CHECK(rg_owners_equal(&ring->slots[i].owners, &again->slots[i].owners));
        CHECK(rg_owners_equal(&ring->slots[i].to, &again->slots[i].to));
    }
    for (int i = 0; i < 3; i++) {
        finish(ring, 7);
        finish(again, 7);
    }
    qf_strbuf_reset(&one);
    rg_ring_encode(&one, ring);
    rg_ring_encode(&two, again);
    CHECK(qf_str_eq(qf_strbuf_view(&one), qf_strbuf_view(&two)));
    CHECK_EQ(rg_node_state(again, 5), RG_NODE_NORMAL);
    CHECK_STR(again->nodes[5].url, "http://n5:1");
}

TEST(an_empty_ring_comes_back)
{
    RING ring = rg_ring_new(RG_SLOTS);
    RING again = NULL;
    BYTES bytes = QF_STRBUF_INIT;

    rg_ring_encode(&bytes, ring);
    CHECK_EQ(rg_ring_decode(qf_strbuf_view(&bytes), &again), QF_OK);
    CHECK(!again->founded);
}

TEST(a_ring_cut_short_or_with_more_behind_is_refused)
{
    RING ring = busy();
    RING again = NULL;
    BYTES bytes = QF_STRBUF_INIT;

    rg_ring_encode(&bytes, ring);
    for (size_t len = 0; len < bytes.len; len += 41)
        CHECK_EQ(rg_ring_decode((struct qf_str){ bytes.data, len }, &again), QF_ECORRUPT);
    qf_strbuf_putc(&bytes, 0);
    CHECK_EQ(rg_ring_decode(qf_strbuf_view(&bytes), &again), QF_ECORRUPT);
}

/* Whatever a damaged byte makes of a snapshot, it is refused or is a ring that goes on. */
TEST(damaged_rings_are_refused_or_whole)
{
    RING ring = busy();
    BYTES bytes = QF_STRBUF_INIT;
    struct qf_prng prng = { 7 };
    unsigned refused = 0;

    rg_ring_encode(&bytes, ring);
    for (int i = 0; i < 60; i++) {
        RING again = NULL;
        BYTES copy = QF_STRBUF_INIT, same = QF_STRBUF_INIT;

        qf_strbuf_str(&copy, qf_strbuf_view(&bytes));
        copy.data[qf_prng_below(&prng, copy.len)] ^= (char)(1 + qf_prng_below(&prng, 255));
        if (rg_ring_decode(qf_strbuf_view(&copy), &again) != QF_OK) {
            refused++;
            continue;
        }
        rg_ring_encode(&same, again);
        CHECK(qf_str_eq(qf_strbuf_view(&same), qf_strbuf_view(&copy)));
        finish(again, 7);
    }
    CHECK(refused > 20);
}

TEST(entries_come_back_the_same)
{
    for (int kind = RG_FOUND; kind < RG_ENTRY__COUNT; kind++) {
        struct rg_entry entry = { .kind = (enum rg_entry_kind)kind,
                                  .time_ms = -12345,
                                  .name = QF_STR("keeper-1"),
                                  .zone = QF_STR("z"),
                                  .url = QF_STR("http://keeper-1:8082"),
                                  .reason = QF_STR("why"),
                                  .incarnation = UINT64_MAX,
                                  .node = 63,
                                  .copies = 7,
                                  .forced = true,
                                  .grace_ms = 5,
                                  .change = 9,
                                  .epoch = 1 << 20,
                                  .blobs = 3,
                                  .bytes = 4,
                                  .slots = rg_slot_set_of(1023) },
                        again;
        BYTES one = QF_STRBUF_INIT, two = QF_STRBUF_INIT;

        rg_entry_encode(&one, &entry);
        CHECK_EQ(rg_entry_decode(qf_strbuf_view(&one), &again), QF_OK);
        rg_entry_encode(&two, &again);
        CHECK(qf_str_eq(qf_strbuf_view(&one), qf_strbuf_view(&two)));
        CHECK_EQ(again.kind, kind);
        CHECK_EQ(again.time_ms, -12345);
        for (size_t len = 0; len < one.len; len++)
            CHECK_EQ(rg_entry_decode((struct qf_str){ one.data, len }, &again), QF_ECORRUPT);
        qf_strbuf_putc(&one, 1);
        CHECK_EQ(rg_entry_decode(qf_strbuf_view(&one), &again), QF_ECORRUPT);
    }
}

TEST(an_entry_of_no_known_kind_is_refused)
{
    struct rg_entry entry;

    CHECK_EQ(rg_entry_decode(QF_STR("\x00\x00"), &entry), QF_ECORRUPT);
    CHECK_EQ(rg_entry_decode(QF_STR("\x7f\x00"), &entry), QF_ECORRUPT);
}

/* Runs of slots that are in and out by turns: only the first one, of those that are out, may be empty. */
TEST(slots_are_written_in_one_way)
{
    BYTES bytes = QF_STRBUF_INIT;
    struct rg_entry entry = { .kind = RG_BEGIN, .slots = rg_slot_set_of(0) };

    rg_entry_encode(&bytes, &entry); /* ends with runs of 0, 1 and 1023 */
    CHECK_EQ(rg_entry_decode(qf_strbuf_view(&bytes), &entry), QF_OK);
    CHECK_EQ(bytes.data[bytes.len - 4], 0);
    bytes.len -= 4;
    qf_strbuf_add(&bytes, "\0\0\0\1\xff\7", 6);
    CHECK_EQ(rg_entry_decode(qf_strbuf_view(&bytes), &entry), QF_ECORRUPT);
}
