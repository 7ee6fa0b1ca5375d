/* test_show.c - what operators read. */
#include "ring/state/show.h"

#include "tests/unit/ring/core/ring_help.h"

#define RING QF_CLEANUP(ring_freep) struct rg_ring *
#define TEXT QF_CLEANUP(qf_strbuf_done) struct qf_strbuf

TEST(a_node_is_shown_with_what_it_keeps)
{
    RING ring = found(4, 3, 3);
    TEXT text = QF_STRBUF_INIT;

    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_UP,
                                               .node = 1,
                                               .incarnation = 0xab,
                                               .url = QF_STR("http://n1:9") }),
             RG_APPLIED);
    rg_show_node(&text, ring, 1);
    CHECK_STR(qf_strbuf_cstr(&text),
              "{\"name\":\"n1\",\"number\":1,\"zone\":\"\",\"url\":\"http://n1:9\","
              "\"state\":\"NORMAL\",\"down\":false,\"incarnation\":\"ab\",\"slots\":4,"
              "\"slots_to_clean\":0}");
}

TEST(nodes_come_with_the_health_of_the_ring)
{
    RING ring = found(4, 3, 3);
    TEXT text = QF_STRBUF_INIT;

    CHECK_EQ(do_entry(ring, (struct rg_entry){ .kind = RG_DOWN, .node = 0, .time_ms = 1000 }),
             RG_APPLIED);
    rg_show_nodes(&text, ring, 5000, 1000);
    CHECK(strstr(qf_strbuf_cstr(&text), "\"down\":true,\"down_since\":1000"));
    CHECK(strstr(qf_strbuf_cstr(&text),
                 "\"ring\":{\"founded\":true,\"epoch\":1,\"copies\":3,\"slots\":4,"
                 "\"grace_ms\":86400000,\"slots_moving\":0,\"slots_with_node_down\":4,"
                 "\"slots_under_replicated\":4,\"slots_without_quorum\":0,\"slots_to_clean\":0}}"));
}

TEST(a_ring_that_is_not_founded_cannot_be_written)
{
    RING ring = rg_ring_new(4);
    TEXT text = QF_STRBUF_INIT;

    rg_show_nodes(&text, ring, 0, 1000);
    CHECK(strstr(qf_strbuf_cstr(&text), "{\"nodes\":[],\"ring\":{\"founded\":false"));
    CHECK(strstr(qf_strbuf_cstr(&text), "\"slots_without_quorum\":4"));
}

/* From its beginning to its end: how much is done grows, and what is left behind is said. */
TEST(a_migration_shows_how_far_it_is)
{
    RING ring = found(8, 3, 2);
    TEXT text = QF_STRBUF_INIT;
    uint64_t id;

    CHECK_EQ(
        do_entry(ring, (struct rg_entry){ .kind = RG_ADD, .name = QF_STR("n3"), .time_ms = 1000 }),
        RG_APPLIED);
    id = ring->applied;
    rg_show_change(&text, ring, rg_ring_change(ring, id), 2000);
    CHECK(strstr(qf_strbuf_cstr(&text), "\"type\":\"node_addition\",\"status\":\"running\","
                                        "\"node\":\"n3\",\"started\":1000,\"failures\":0"));
    CHECK(strstr(qf_strbuf_cstr(&text), "\"slots_done\":0"));
    CHECK(!strstr(qf_strbuf_cstr(&text), "eta_ms"));
    finish(ring, id);
    qf_strbuf_reset(&text);
    rg_show_changes(&text, ring, 2000);
    CHECK(strstr(qf_strbuf_cstr(&text), "\"status\":\"completed\""));
    CHECK(strstr(qf_strbuf_cstr(&text), "\"percent\":100.0}}]}"));
    CHECK(!strstr(qf_strbuf_cstr(&text), "\"slots_to_clean\":0,\"progress\""));
}
