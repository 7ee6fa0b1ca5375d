/* test_maps.c - what an ingest node says of state maps, read. */
#include "queryapi/fresh/maps.h"
#include "tests/lib/test.h"

#define TEAM                                                                                       \
    "{\"name\":\"team\",\"kind\":\"state\",\"metric\":\"team_info\",\"short_keys\":true,"          \
    "\"interval_ms\":60000,\"created\":5,\"version\":17,\"bytes\":8192,\"behind_ms\":30}"
#define SITE                                                                                       \
    "{\"name\":\"site\",\"kind\":\"temporal\",\"metric\":\"site_info\",\"short_keys\":false,"      \
    "\"interval_ms\":1000,\"created\":6,\"version\":0,\"bytes\":0,\"behind_ms\":0}"
#define NODES "\"nodes\":[\"http://a:1\",\"https://b:2\"]"

TEST(an_answer_is_read_with_all_that_it_says)
{
    struct qf_err err = { 0 };
    struct qa_maps *maps =
        qa_maps_parse(QF_STR("{\"age_ms\":12," NODES ",\"maps\":[" SITE "," TEAM "]}"), 1000, &err);
    const struct qa_map *team;

    CHECK_MSG(maps, "%s", err.msg);
    CHECK_EQ(maps->count, 2);
    CHECK_EQ(maps->node_count, 2);
    CHECK(qf_str_is(maps->nodes[1], "https://b:2"));
    team = &maps->items[1];
    CHECK(qf_str_is(team->name, "team") && qf_str_is(team->kind, "state"));
    CHECK(qf_str_is(team->metric, "team_info") && team->short_keys);
    CHECK_EQ(team->interval_ms, 60000);
    CHECK_EQ(team->created, 5);
    CHECK_EQ(team->version, 17);
    CHECK_EQ(team->bytes, 8192);
    /* What the node said, what the copy lacks, and what has passed since. */
    CHECK_EQ(qa_maps_age(maps, team, 1500), 12 + 30 + 500);
    CHECK_EQ(qa_maps_age(maps, &maps->items[0], 900), 12);
    (void)qa_maps_drop(qa_maps_ref(maps));
    (void)qa_maps_drop(maps);
}

TEST(an_answer_that_is_not_as_documented_is_refused)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{\"age_ms\":1," NODES "}",
        "{" NODES ",\"maps\":[]}",
        "{\"age_ms\":-1," NODES ",\"maps\":[]}",
        "{\"age_ms\":1,\"maps\":[]}",
        "{\"age_ms\":1,\"nodes\":[],\"maps\":[" TEAM "]}",
        "{\"age_ms\":1,\"nodes\":[\"ftp://a\"],\"maps\":[]}",
        "{\"age_ms\":1," NODES ",\"maps\":[" TEAM "," SITE "]}", /* not by name */
        "{\"age_ms\":1," NODES ",\"maps\":[" TEAM "," TEAM "]}",
        "{\"age_ms\":1," NODES ",\"maps\":[1]}",
        "{\"age_ms\":1," NODES ",\"maps\":[{\"name\":\"a\"}]}",
    };

    for (size_t i = 0; i < QF_COUNT_OF(bad); i++) {
        struct qf_err err = { 0 };

        CHECK_MSG(!qa_maps_parse(qf_str_from(bad[i]), 0, &err), "%s", bad[i]);
        CHECK_EQ(err.rc, QF_EPROTO);
    }
}
