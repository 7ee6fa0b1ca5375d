/* test_state.c - records of meta about the ring: applied alike everywhere, saved, tried first. */
#include "ring/state/state.h"

#include "base/pure/base64.h"
#include "ring/core/verdicts.h"
#include "tests/unit/ring/core/ring_help.h"

#define STATE QF_CLEANUP(state_freep) struct rg_state *
#define BYTES QF_CLEANUP(qf_strbuf_done) struct qf_strbuf

static void state_freep(struct rg_state **state)
{
    *state = rg_state_free(*state);
}

static struct rg_entry adding(const char *name)
{
    return (struct rg_entry){
        .kind = RG_ADD, .name = qf_str_from(name), .url = QF_STR("http://k:1"), .time_ms = 5
    };
}

static void apply(struct rg_state *state, uint64_t index, struct rg_entry entry)
{
    BYTES record = QF_STRBUF_INIT;

    rg_record_encode(&record, &entry);
    CHECK_EQ(rg_state_apply(state, index, qf_strbuf_view(&record)), QF_OK);
}

/* Three nodes and a ring of them. */
static struct rg_state *founded(void)
{
    struct rg_state *state = rg_state_new();

    apply(state, 3, adding("a"));
    apply(state, 7, adding("b"));
    apply(state, 8, adding("c"));
    apply(state, 9, (struct rg_entry){ .kind = RG_FOUND, .copies = 3, .grace_ms = 1 });
    return state;
}

TEST(records_become_a_ring_and_verdicts_are_remembered)
{
    STATE state = founded();
    enum rg_verdict verdict;

    CHECK(rg_state_ring(state)->founded);
    CHECK_EQ(rg_state_ring(state)->applied, 9);
    CHECK(rg_state_verdict(state, 7, &verdict));
    CHECK_EQ(verdict, RG_APPLIED);
    apply(state, 12, adding("a"));
    CHECK(rg_state_verdict(state, 12, &verdict));
    CHECK_EQ(verdict, RG_EXISTS);
    CHECK(!rg_state_verdict(state, 11, &verdict));
    CHECK(!rg_state_verdict(state, 0, &verdict));
    for (uint64_t i = 0; i < RG_VERDICTS_KEPT; i++)
        apply(state, 100 + i, (struct rg_entry){ .kind = RG_DOWN, .node = 1 });
    CHECK(!rg_state_verdict(state, 12, &verdict));
}

TEST(records_about_other_things_change_nothing)
{
    STATE state = founded();

    CHECK_EQ(rg_state_apply(state, 10, QF_STR("{\"create\":\"orders\"}")), QF_ENOTFOUND);
    CHECK_EQ(rg_state_apply(state, 10, QF_STR("")), QF_ENOTFOUND);
    CHECK_EQ(rg_state_ring(state)->applied, 9);
}

/* Whoever skipped it would have another ring than the others. */
TEST(a_record_about_the_ring_that_cannot_be_read_is_said_so)
{
    static const char *const records[] = { "{\"ring\":\"", "{\"ring\":\"\"}", "{\"ring\":\"!!!!\"}",
                                           "{\"ring\":\"fwA=\"}", "{\"ring\":\"AQA=\",\"x\":1}" };
    STATE state = founded();

    for (size_t i = 0; i < QF_COUNT_OF(records); i++)
        CHECK_EQ(rg_state_apply(state, 10 + i, qf_str_from(records[i])), QF_EUNSUPPORTED);
    CHECK_EQ(rg_state_ring(state)->applied, 9);
}

TEST(a_state_comes_back_the_same_and_an_empty_one_saves_nothing)
{
    STATE state = founded();
    STATE again = rg_state_new();
    BYTES one = QF_STRBUF_INIT, two = QF_STRBUF_INIT;

    rg_state_save(&one, again);
    CHECK_EQ(one.len, 0);
    rg_state_save(&one, state);
    CHECK_EQ(rg_state_restore(again, qf_strbuf_view(&one)), QF_OK);
    rg_state_save(&two, again);
    CHECK(qf_str_eq(qf_strbuf_view(&one), qf_strbuf_view(&two)));
    CHECK_STR(rg_state_ring(again)->nodes[2].url, "http://k:1");
    CHECK_EQ(rg_state_restore(again, QF_STR("")), QF_OK);
    CHECK_EQ(rg_state_ring(again)->applied, 0);
}

TEST(a_state_that_is_damaged_or_newer_is_refused_and_the_old_one_stays)
{
    STATE state = founded();
    BYTES bytes = QF_STRBUF_INIT;

    rg_state_save(&bytes, state);
    bytes.data[0] = 2;
    CHECK_EQ(rg_state_restore(state, qf_strbuf_view(&bytes)), QF_EUNSUPPORTED);
    bytes.data[0] = 0;
    CHECK_EQ(rg_state_restore(state, qf_strbuf_view(&bytes)), QF_ECORRUPT);
    bytes.data[0] = 1;
    for (size_t len = 1; len < bytes.len; len++)
        CHECK_EQ(rg_state_restore(state, (struct qf_str){ bytes.data, len }), QF_ECORRUPT);
    CHECK_EQ(rg_state_ring(state)->applied, 9);
}

TEST(what_would_count_for_nothing_is_not_worth_a_record)
{
    STATE state = founded();
    struct rg_wish add = { .entry = adding("a") },
                   gone = { .node = QF_STR("nobody"), .entry = { .kind = RG_REMOVE } },
                   remove = { .node = QF_STR("b"), .entry = { .kind = RG_REMOVE } };

    CHECK_EQ(rg_state_try(state, &add, 10), RG_EXISTS);
    CHECK_EQ(rg_state_try(state, &gone, 10), RG_NO_SUCH);
    CHECK_EQ(rg_state_try(state, &remove, 10), RG_TOO_FEW);
    add.entry.name = QF_STR("d");
    CHECK_EQ(rg_state_try(state, &add, 10), RG_APPLIED);
    CHECK_EQ(add.entry.time_ms, 10);
    CHECK_EQ(rg_ring_node(rg_state_ring(state), QF_STR("d")), RG_NODES_MAX); /* only tried */
    apply(state, 10, add.entry);
    CHECK_EQ(rg_state_try(state, &remove, 11), RG_APPLIED);
    CHECK_EQ(remove.entry.node, 1);
}

static bool says(const struct rg_state *state, uint64_t index, enum rg_verdict wanted)
{
    enum rg_verdict verdict;

    return rg_state_verdict(state, index, &verdict) && verdict == wanted;
}

/* Tenants that ask for three copies keep the ring from having two; a change that may be undone promises the less. */
TEST(copies_that_tenants_ask_for_are_kept)
{
    STATE state = founded();
    struct rg_wish fewer = { .entry = { .kind = RG_FACTOR, .copies = 2 } };

    CHECK_EQ(rg_state_kept(state), 3);
    rg_state_need(state, 3);
    CHECK_EQ(rg_state_try(state, &fewer, 10), RG_NEEDED);
    apply(state, 10, fewer.entry);
    CHECK(says(state, 10, RG_NEEDED));
    CHECK_EQ(rg_state_kept(state), 3);
    rg_state_need(state, 2);
    apply(state, 11, fewer.entry);
    CHECK(says(state, 11, RG_APPLIED));
    CHECK_EQ(rg_state_kept(state), 2);
    apply(state, 12,
          (struct rg_entry){ .kind = RG_CANCEL, .change = 11, .reason = QF_STR("not yet") });
    CHECK(says(state, 12, RG_APPLIED));
    CHECK_EQ(rg_state_ring(state)->copies, 3);
    CHECK_EQ(rg_state_kept(state), 3); /* nothing had moved yet */
}

TEST(a_ring_that_is_not_founded_keeps_no_copies)
{
    STATE state = rg_state_new();

    CHECK_EQ(rg_state_kept(state), 0);
}

TEST(wishes_travel)
{
    struct rg_wish wish = { .node = QF_STR("b"),
                            .entry = { .kind = RG_CLEAN,
                                       .forced = true,
                                       .reason = QF_STR("it is full"),
                                       .slots = rg_slot_set_of(5) } },
                   again;
    BYTES bytes = QF_STRBUF_INIT;

    rg_wish_encode(&bytes, &wish);
    CHECK_EQ(rg_wish_decode(qf_strbuf_view(&bytes), &again), QF_OK);
    CHECK(qf_str_is(again.node, "b"));
    CHECK(qf_str_is(again.entry.reason, "it is full"));
    CHECK(again.entry.forced);
    for (size_t len = 0; len < bytes.len; len++)
        CHECK_EQ(rg_wish_decode((struct qf_str){ bytes.data, len }, &again), QF_ECORRUPT);
}

TEST(each_verdict_has_its_error)
{
    CHECK_EQ(rg_verdict_rc(RG_NOTHING), QF_OK);
    CHECK_EQ(rg_verdict_rc(RG_NO_SUCH), QF_ENOTFOUND);
    CHECK_EQ(rg_verdict_rc(RG_NO_REASON), QF_EINVAL);
    CHECK_EQ(rg_verdict_rc(RG_FULL), QF_ELIMIT);
    CHECK_EQ(rg_verdict_rc(RG_EXISTS), QF_EEXIST);
    CHECK_EQ(rg_verdict_rc(RG_LOCKED), QF_ECONFLICT);
    CHECK_EQ(rg_verdict_rc(RG_TOO_FEW), QF_ECONFLICT);
    CHECK_EQ(rg_verdict_rc(RG_IS_OWNER), QF_ECONFLICT);
    for (int verdict = RG_EXISTS; verdict < RG_VERDICT__COUNT; verdict++)
        CHECK(rg_verdict_rc((enum rg_verdict)verdict) != QF_EINTERNAL);
}
