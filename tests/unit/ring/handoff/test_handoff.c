/* test_handoff.c - references, payloads, turns and caps. */
#include "ring/handoff/handoff.h"

#include <stdio.h>
#include <string.h>

#include "tests/lib/test.h"

static void handoff_freep(struct rg_handoff **handoff)
{
    *handoff = rg_handoff_free(*handoff);
}
#define HANDOFF QF_CLEANUP(handoff_freep) struct rg_handoff *

static struct rg_handoff_effects effects;
static uint64_t last_send[RG_HANDOFF_NODES]; /* number of the last SEND to each node */

static qf_rc step(struct rg_handoff *h, struct rg_handoff_event event)
{
    qf_rc rc = rg_handoff_step(h, &event, &effects);

    for (size_t i = 0; i < effects.count; i++)
        if (effects.items[i].kind == RG_HANDOFF_SEND)
            last_send[effects.items[i].node] = effects.items[i].send;
    return rc;
}

static qf_rc add(struct rg_handoff *h, uint8_t node, const char *name, uint64_t bytes, int64_t now)
{
    return step(h, (struct rg_handoff_event){ .kind = RG_HANDOFF_ADD,
                                              .node = node,
                                              .name = qf_str_from(name),
                                              .bytes = bytes,
                                              .now_ms = now,
                                              .time_ms = now });
}

static void status(struct rg_handoff *h, uint8_t node, bool up, int64_t now)
{
    CHECK_EQ(step(h,
                  (struct rg_handoff_event){
                      .kind = RG_HANDOFF_STATUS, .node = node, .up = up, .now_ms = now }),
             QF_OK);
}

static void sent(struct rg_handoff *h, uint8_t node, const char *name, bool ok, int64_t now)
{
    CHECK_EQ(step(h, (struct rg_handoff_event){ .kind = RG_HANDOFF_SENT,
                                                .node = node,
                                                .name = qf_str_from(name),
                                                .ok = ok,
                                                .now_ms = now,
                                                .send = last_send[node] }),
             QF_OK);
}

static void tick(struct rg_handoff *h, int64_t now)
{
    CHECK_EQ(step(h, (struct rg_handoff_event){ .kind = RG_HANDOFF_TICK, .now_ms = now }), QF_OK);
}

static unsigned count(enum rg_handoff_effect_kind kind)
{
    unsigned found = 0;

    for (size_t i = 0; i < effects.count; i++)
        found += effects.items[i].kind == kind;
    return found;
}

/* The one thing that is sent; "" if nothing is. */
static const char *sends(uint8_t *ret_node)
{
    static char name[256];

    name[0] = 0;
    for (size_t i = 0; i < effects.count; i++)
        if (effects.items[i].kind == RG_HANDOFF_SEND) {
            CHECK_STR(name, "");
            (void)snprintf(name, sizeof(name), "%.*s", QF_STR_ARG(effects.items[i].name));
            if (ret_node)
                *ret_node = effects.items[i].node;
        }
    return name;
}

TEST(a_payload_is_stored_once_and_goes_with_its_last_reference)
{
    HANDOFF h = rg_handoff_new(&(struct rg_handoff_options){ 0 });

    CHECK_EQ(add(h, 1, "a", 10, 0), QF_OK);
    CHECK_EQ(count(RG_HANDOFF_STORE), 1);
    CHECK_EQ(count(RG_HANDOFF_REF), 1);
    CHECK_EQ(add(h, 2, "a", 10, 1), QF_OK);
    CHECK_EQ(count(RG_HANDOFF_STORE), 0);
    CHECK_EQ(count(RG_HANDOFF_REF), 1);
    CHECK_EQ(add(h, 2, "a", 10, 2), QF_OK);
    CHECK_EQ(effects.count, 0);
    CHECK_EQ(rg_handoff_figures(h).bytes, 10);
    status(h, 1, true, 5);
    CHECK_STR(sends(NULL), "a");
    sent(h, 1, "a", true, 6);
    CHECK_EQ(count(RG_HANDOFF_UNREF), 1);
    CHECK_EQ(count(RG_HANDOFF_FREE), 0);
    status(h, 2, true, 7);
    sent(h, 2, "a", true, 8);
    CHECK_EQ(count(RG_HANDOFF_FREE), 1);
    CHECK(!rg_handoff_stores(h, QF_STR("a")));
    CHECK_EQ(rg_handoff_figures(h).references, 0);
}

TEST(a_node_gets_one_payload_at_a_time_oldest_first)
{
    HANDOFF h = rg_handoff_new(&(struct rg_handoff_options){ 0 });

    CHECK_EQ(add(h, 1, "late", 1, 20), QF_OK);
    CHECK_EQ(add(h, 1, "early", 1, 10), QF_OK); /* after a restart they come in any order */
    status(h, 1, true, 30);
    CHECK_STR(sends(NULL), "early");
    tick(h, 31);
    CHECK_STR(sends(NULL), "");
    sent(h, 1, "early", true, 32);
    CHECK_STR(sends(NULL), "late");
}

TEST(what_goes_down_gets_nothing_until_it_is_back)
{
    HANDOFF h = rg_handoff_new(&(struct rg_handoff_options){ 0 });

    CHECK_EQ(add(h, 1, "a", 1, 0), QF_OK);
    tick(h, 1);
    CHECK_STR(sends(NULL), "");
    status(h, 1, true, 2);
    status(h, 1, false, 3);
    sent(h, 1, "a", false, 4);
    CHECK_STR(sends(NULL), "");
    tick(h, 100000);
    CHECK_STR(sends(NULL), "");
    status(h, 1, true, 100001);
    CHECK_STR(sends(NULL), "a");
}

TEST(turns_go_round_and_a_node_rests_between_two)
{
    HANDOFF h = rg_handoff_new(&(struct rg_handoff_options){ .quantum = 2, .turns = 1 });
    char name[8], order[64] = "";
    uint8_t node = 0;
    int64_t now = 100;

    for (int i = 0; i < 4; i++)
        for (uint8_t n = 1; n <= 3; n++) {
            (void)snprintf(name, sizeof(name), "%d%d", n, i);
            CHECK_EQ(add(h, n, name, 1, 10 - n), QF_OK); /* 3 has the oldest */
        }
    for (uint8_t n = 1; n <= 3; n++)
        CHECK_EQ(step(h, (struct rg_handoff_event){ .kind = RG_HANDOFF_LIVE,
                                                    .node = n,
                                                    .name = QF_STR("x") }),
                 QF_OK);
    status(h, 1, true, now);
    (void)snprintf(name, sizeof(name), "%s", sends(&node));
    status(h, 2, true, now);
    status(h, 3, true, now);
    for (int i = 0; i < 12; i++) {
        snprintf(order + strlen(order), sizeof(order) - strlen(order), "%c", '0' + node);
        sent(h, node, name, true, now);
        for (int wait = 0; !*sends(&node) && wait < 3; wait++)
            tick(h, now += 1000);
        (void)snprintf(name, sizeof(name), "%s", sends(&node));
    }
    /* 1 was there first; of those that had no turn, 3 has the oldest reference; then round and round. */
    CHECK_STR(order, "113322113322");
}

TEST(a_rest_lies_between_two_turns)
{
    HANDOFF h = rg_handoff_new(&(struct rg_handoff_options){ .quantum = 1 });

    CHECK_EQ(add(h, 1, "a", 1, 0), QF_OK);
    CHECK_EQ(add(h, 1, "b", 1, 1), QF_OK);
    status(h, 1, true, 10);
    sent(h, 1, "a", true, 20);
    CHECK_STR(sends(NULL), "");
    CHECK_EQ(rg_handoff_deadline(h, 20), 1020);
    tick(h, 1019);
    CHECK_STR(sends(NULL), "");
    tick(h, 1020);
    CHECK_STR(sends(NULL), "b");
}

TEST(failures_back_off_and_park_after_three_tries_with_a_mark)
{
    HANDOFF h = rg_handoff_new(&(struct rg_handoff_options){ 0 });
    int64_t now = 0;

    CHECK_EQ(add(h, 1, "a", 1, 0), QF_OK);
    status(h, 1, true, now);
    for (int i = 0; i < RG_TRIES_MAX; i++) {
        CHECK_STR(sends(NULL), "a");
        sent(h, 1, "a", false, now);
        CHECK_EQ(count(RG_HANDOFF_MARK), i == RG_TRIES_MAX - 1);
        tick(h, now + (1000 << i) - 1);
        CHECK_STR(sends(NULL), "");
        tick(h, now += 1000 << i);
    }
    tick(h, now + 1000000);
    CHECK_STR(sends(NULL), "");
    CHECK(rg_handoff_has(h, 1, QF_STR("a"))); /* it is not thrown away */
    status(h, 1, false, now + 1000001);
    status(h, 1, true, now + 1000002);
    CHECK_STR(sends(NULL), "a");
}

TEST(live_sends_and_replay_leave_each_other_alone)
{
    HANDOFF h = rg_handoff_new(&(struct rg_handoff_options){ 0 });
    struct rg_handoff_event live = { .kind = RG_HANDOFF_LIVE, .node = 1, .name = QF_STR("a") };

    CHECK_EQ(add(h, 1, "a", 1, 0), QF_OK);
    CHECK_EQ(add(h, 1, "b", 1, 1), QF_OK);
    CHECK_EQ(step(h, live), QF_OK);
    CHECK_EQ(step(h, live), QF_EEXIST);
    status(h, 1, true, 5);
    CHECK_STR(sends(NULL), "b"); /* a is in flight */
    live.name = QF_STR("b");
    CHECK_EQ(step(h, live), QF_EEXIST);
    live.name = QF_STR("a");
    live.kind = RG_HANDOFF_LIVE_ENDED;
    live.ok = true;
    CHECK_EQ(step(h, live), QF_OK);
    CHECK(!rg_handoff_has(h, 1, QF_STR("a")));
    sent(h, 1, "b", true, 6);
    CHECK_EQ(rg_handoff_figures(h).references, 0);
    CHECK_EQ(rg_handoff_figures(h).delivered, 2);
}

TEST(at_a_nodes_cap_its_oldest_references_become_repair_marks)
{
    HANDOFF h = rg_handoff_new(&(struct rg_handoff_options){ .node_bytes = 100 });

    CHECK_EQ(add(h, 1, "a", 60, 0), QF_OK);
    CHECK_EQ(add(h, 2, "a", 60, 0), QF_OK);
    CHECK_EQ(add(h, 1, "b", 60, 1), QF_OK);
    CHECK_EQ(count(RG_HANDOFF_MARK), 1);
    CHECK(!rg_handoff_has(h, 1, QF_STR("a")));
    CHECK(rg_handoff_has(h, 2, QF_STR("a"))); /* the other node's is untouched */
    CHECK(rg_handoff_has(h, 1, QF_STR("b")));
    CHECK_EQ(add(h, 1, "huge", 101, 2), QF_OK);
    CHECK_EQ(count(RG_HANDOFF_MARK), 1);
    CHECK(rg_handoff_has(h, 1, QF_STR("b"))); /* nothing was dropped for what cannot fit */
}

TEST(at_the_stores_cap_the_oldest_of_all_go)
{
    HANDOFF h = rg_handoff_new(&(struct rg_handoff_options){ .store_bytes = 100 });

    CHECK_EQ(add(h, 1, "a", 60, 0), QF_OK);
    CHECK_EQ(add(h, 2, "a", 60, 5), QF_OK);
    CHECK_EQ(add(h, 3, "b", 40, 1), QF_OK);
    CHECK_EQ(add(h, 3, "c", 30, 6), QF_OK);
    CHECK_EQ(count(RG_HANDOFF_MARK), 2); /* a of 1, which freed nothing, and b */
    CHECK_EQ(count(RG_HANDOFF_FREE), 1);
    CHECK(rg_handoff_has(h, 2, QF_STR("a")));
    CHECK_EQ(rg_handoff_figures(h).bytes, 90);
}

TEST(with_backpressure_a_cap_refuses_and_changes_nothing)
{
    HANDOFF h = rg_handoff_new(
        &(struct rg_handoff_options){ .node_bytes = 100, .policy = RG_BACKPRESSURE });

    CHECK(!rg_handoff_refuses(h, 1, QF_STR("a"), 60));
    CHECK_EQ(add(h, 1, "a", 60, 0), QF_OK);
    CHECK(rg_handoff_refuses(h, 1, QF_STR("b"), 60));
    CHECK(!rg_handoff_refuses(h, 1, QF_STR("a"), 60));
    CHECK(!rg_handoff_refuses(h, 2, QF_STR("b"), 60));
    CHECK_EQ(add(h, 1, "b", 60, 1), QF_EBUSY);
    CHECK_EQ(effects.count, 0);
    CHECK(rg_handoff_has(h, 1, QF_STR("a")));
    CHECK(!rg_handoff_stores(h, QF_STR("b")));
}

TEST(references_expire_into_repair_marks)
{
    HANDOFF h = rg_handoff_new(&(struct rg_handoff_options){ 0 });

    CHECK_EQ(add(h, 1, "a", 1, 5), QF_OK);
    tick(h, RG_HANDOFF_LIFE_MS + 4);
    CHECK_EQ(effects.count, 0);
    CHECK_EQ(rg_handoff_deadline(h, 6), RG_HANDOFF_LIFE_MS + 5);
    tick(h, RG_HANDOFF_LIFE_MS + 5);
    CHECK_EQ(count(RG_HANDOFF_MARK), 1);
    CHECK_EQ(count(RG_HANDOFF_FREE), 1);
    CHECK_EQ(rg_handoff_figures(h).expired, 1);
}

TEST(what_nobody_names_and_what_nobody_lacks_goes)
{
    HANDOFF h = rg_handoff_new(&(struct rg_handoff_options){ 0 });

    CHECK_EQ(add(h, 1, "a", 1, 0), QF_OK);
    CHECK_EQ(add(h, 2, "a", 1, 0), QF_OK);
    CHECK_EQ(add(h, 2, "b", 1, 0), QF_OK);
    CHECK_EQ(step(h, (struct rg_handoff_event){ .kind = RG_HANDOFF_UNNAMED, .name = QF_STR("a") }),
             QF_OK);
    CHECK_EQ(count(RG_HANDOFF_UNREF), 2);
    CHECK_EQ(count(RG_HANDOFF_FREE), 1);
    CHECK_EQ(count(RG_HANDOFF_MARK), 0);
    CHECK_EQ(step(h, (struct rg_handoff_event){ .kind = RG_HANDOFF_REMOVED, .node = 2 }), QF_OK);
    CHECK_EQ(rg_handoff_figures(h).payloads, 0);
    CHECK_EQ(rg_handoff_figures(h).oldest_ms, INT64_MAX);
}

TEST(a_delivery_heard_of_late_still_counts)
{
    HANDOFF h = rg_handoff_new(&(struct rg_handoff_options){ 0 });

    CHECK_EQ(add(h, 1, "a", 1, 0), QF_OK);
    status(h, 1, true, 1);
    status(h, 1, false, 2);
    sent(h, 1, "a", true, 3);
    CHECK(!rg_handoff_has(h, 1, QF_STR("a")));
    sent(h, 1, "a", true, 4); /* twice */
    CHECK_EQ(rg_handoff_figures(h).delivered, 1);
}

TEST(names_and_nodes_that_cannot_be_are_refused)
{
    HANDOFF h = rg_handoff_new(&(struct rg_handoff_options){ 0 });

    CHECK_EQ(add(h, 64, "a", 1, 0), QF_EINVAL);
    CHECK_EQ(add(h, 1, "", 1, 0), QF_EINVAL);
}

TEST(a_send_whose_reference_went_is_still_the_only_one_under_way)
{
    HANDOFF h = rg_handoff_new(&(struct rg_handoff_options){ 0 });

    CHECK_EQ(add(h, 1, "a", 1, 0), QF_OK);
    CHECK_EQ(add(h, 1, "b", 1, 1), QF_OK);
    status(h, 1, true, 2);
    CHECK_STR(sends(NULL), "a");
    CHECK_EQ(step(h, (struct rg_handoff_event){ .kind = RG_HANDOFF_UNNAMED,
                                                .name = QF_STR("a"),
                                                .now_ms = 3 }),
             QF_OK);
    CHECK_STR(sends(NULL), "");
    sent(h, 1, "a", true, 4);
    CHECK_STR(sends(NULL), "b");
}

static void listed(struct rg_handoff *h, const char *name, bool ok, int64_t now)
{
    CHECK_EQ(step(h, (struct rg_handoff_event){ .kind = RG_HANDOFF_LISTED,
                                                .name = qf_str_from(name),
                                                .ok = ok,
                                                .now_ms = now }),
             QF_OK);
}

/* A put is named a while after it: until then no manifest has it, and it is kept. */
TEST(what_is_not_named_yet_is_kept_and_what_was_named_goes_with_its_name)
{
    HANDOFF h = rg_handoff_new(&(struct rg_handoff_options){ .unnamed_ms = 100 });

    CHECK_EQ(add(h, 1, "a", 1, 0), QF_OK);
    CHECK_EQ(add(h, 1, "b", 1, 0), QF_OK);
    CHECK_EQ(add(h, 2, "b", 1, 0), QF_OK);
    listed(h, "a", false, 99);
    CHECK_EQ(effects.count, 0);
    listed(h, "b", true, 50);
    listed(h, "b", false, 60);
    CHECK(!rg_handoff_has(h, 1, QF_STR("b")) && !rg_handoff_has(h, 2, QF_STR("b")));
    CHECK(!rg_handoff_stores(h, QF_STR("b")));
    CHECK_EQ(rg_handoff_figures(h).unnamed, 2);
    listed(h, "a", false, 100);
    CHECK_EQ(rg_handoff_figures(h).references, 0);
    listed(h, "a", false, 101); /* unknown */
    CHECK_EQ(effects.count, 0);
}

TEST(a_lost_payload_becomes_a_mark_for_each_node)
{
    HANDOFF h = rg_handoff_new(&(struct rg_handoff_options){ 0 });
    int marks = 0, frees = 0;

    CHECK_EQ(add(h, 1, "a", 1, 0), QF_OK);
    CHECK_EQ(add(h, 2, "a", 1, 0), QF_OK);
    CHECK_EQ(add(h, 2, "b", 1, 0), QF_OK);
    CHECK_EQ(step(h, (struct rg_handoff_event){ .kind = RG_HANDOFF_LOST, .name = QF_STR("a") }),
             QF_OK);
    for (size_t i = 0; i < effects.count; i++) {
        marks += effects.items[i].kind == RG_HANDOFF_MARK;
        frees += effects.items[i].kind == RG_HANDOFF_FREE;
    }
    CHECK_EQ(marks, 2);
    CHECK_EQ(frees, 1);
    CHECK_EQ(rg_handoff_figures(h).lost, 2);
    CHECK_EQ(rg_handoff_waiting(h, 1), 0);
    CHECK_EQ(rg_handoff_waiting(h, 2), 1);
}

TEST(payloads_can_be_looked_through)
{
    HANDOFF h = rg_handoff_new(&(struct rg_handoff_options){ 0 });
    char seen[8] = "";

    CHECK_EQ(add(h, 1, "a", 1, 0), QF_OK);
    CHECK_EQ(add(h, 1, "b", 1, 0), QF_OK);
    CHECK_EQ(step(h, (struct rg_handoff_event){ .kind = RG_HANDOFF_UNNAMED, .name = QF_STR("a") }),
             QF_OK);
    for (size_t i = 0; i < rg_handoff_rows(h); i++)
        (void)snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%.*s",
                       QF_STR_ARG(rg_handoff_payload(h, i)));
    CHECK_STR(seen, "b");
}
