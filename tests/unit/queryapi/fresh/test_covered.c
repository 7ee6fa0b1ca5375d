/* test_covered.c - what is covered is bound to one log, never goes back, and is forgotten in order. */
#include <stdio.h>

#include "queryapi/fresh/covered.h"
#include "tests/lib/test.h"

static void covered_freep(struct qa_covered **covered)
{
    *covered = qa_covered_free(*covered);
}

static struct qa_status status_of(const char *cluster, struct qa_fresh_partition *partition,
                                  const char *queue, uint64_t index, int64_t floor)
{
    *partition = (struct qa_fresh_partition){ .queue = qf_str_from(queue),
                                              .sealed_index = index,
                                              .floor = floor };
    return (
        struct qa_status){ .cluster = qf_str_from(cluster), .partitions = partition, .count = 1 };
}

static void cover(struct qa_covered *covered, const char *tenant, const char *cluster,
                  const char *queue, uint64_t index, int64_t floor)
{
    struct qa_fresh_partition partition;
    struct qa_status status = status_of(cluster, &partition, queue, index, floor);

    qa_covered_now(covered, qf_str_from(tenant), &status);
}

static const char *body(struct qa_covered *covered, const char *tenant)
{
    static char text[500];
    struct qf_strbuf buf = QF_STRBUF_INIT;

    qa_covered_ask(covered, qf_str_from(tenant), -1, 2, &buf);
    (void)snprintf(text, sizeof(text), "%s", qf_strbuf_cstr(&buf));
    qf_strbuf_done(&buf);
    return text;
}

TEST(a_question_says_what_is_covered)
{
    QF_CLEANUP(covered_freep) struct qa_covered *covered = qa_covered_new();

    CHECK_STR(body(covered, "a\"b"),
              "{\"tenant\":\"a\\\"b\",\"min_ts\":-1,\"max_ts\":2,\"covered\":[]}");
    cover(covered, "a", "c", "q", 7, INT64_MIN);
    CHECK_STR(body(covered, "a"), "{\"tenant\":\"a\",\"min_ts\":-1,\"max_ts\":2,\"covered\":["
                                  "{\"partition\":0,\"queue\":\"q\",\"index\":7}]}");
    CHECK_STR(body(covered, "b"), "{\"tenant\":\"b\",\"min_ts\":-1,\"max_ts\":2,\"covered\":[]}");
}

/* Answers may overtake each other; another log begins from nothing. */
TEST(an_index_never_goes_back_but_for_another_log)
{
    QF_CLEANUP(covered_freep) struct qa_covered *covered = qa_covered_new();

    cover(covered, "a", "c", "q", 7, 100);
    cover(covered, "a", "c", "q", 5, 50);
    CHECK(strstr(body(covered, "a"), "\"index\":7}"));
    CHECK(qa_covered_below(covered, QF_STR("a"), 99));
    CHECK(!qa_covered_below(covered, QF_STR("a"), 100));
    CHECK(!qa_covered_below(covered, QF_STR("b"), 0));
    cover(covered, "a", "c", "other", 2, INT64_MIN);
    CHECK(strstr(body(covered, "a"), "\"queue\":\"other\",\"index\":2}"));
    CHECK(!qa_covered_below(covered, QF_STR("a"), 0));
    cover(covered, "a", "another", "other", 1, 10);
    CHECK(strstr(body(covered, "a"), "\"index\":1}"));
    CHECK(qa_covered_below(covered, QF_STR("a"), 9));
}

/* An index is one of a log with all tenants, and a listing shows all of them. */
TEST(what_a_listing_covers_is_covered_for_every_tenant)
{
    QF_CLEANUP(covered_freep) struct qa_covered *covered = qa_covered_new();
    struct qa_fresh_partition partition;
    struct qa_status status = status_of("c", &partition, "q", 7, 100);

    qa_covered_listed(covered, &status);
    CHECK(strstr(body(covered, "a"), "\"queue\":\"q\",\"index\":7}"));
    CHECK(qa_covered_below(covered, QF_STR("a"), 99));
    CHECK(!qa_covered_below(covered, QF_STR("a"), 100));
    /* What is known of a tenant itself counts if it is more, or of another log. */
    cover(covered, "a", "c", "q", 8, 200);
    cover(covered, "b", "c", "q", 6, 50);
    cover(covered, "c", "other", "q", 3, 5);
    CHECK(strstr(body(covered, "a"), "\"index\":8}"));
    CHECK(strstr(body(covered, "b"), "\"index\":7}"));
    CHECK(strstr(body(covered, "c"), "\"index\":3}"));
    /* ...but not once a listing has shown that its log is gone. */
    status = status_of("c", &partition, "new", 2, INT64_MIN);
    qa_covered_listed(covered, &status);
    for (const char *tenant = "a\0b\0c\0d\0"; *tenant; tenant += 2)
        CHECK(strstr(body(covered, tenant), "\"queue\":\"new\",\"index\":2}"));
}

/* More tenants than there is room for: the one asked for longest ago lists the store the next time. */
TEST(of_too_many_tenants_the_oldest_are_forgotten)
{
    QF_CLEANUP(covered_freep) struct qa_covered *covered = qa_covered_new();
    char name[20];

    for (int i = 0; i < QA_COVERED_TENANTS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "t%d", i);
        cover(covered, name, "c", "q", 7, INT64_MIN);
    }
    CHECK(strstr(body(covered, "t0"), "\"index\":7}")); /* used again */
    cover(covered, "new", "c", "q", 7, INT64_MIN);
    CHECK(strstr(body(covered, "t0"), "\"index\":7}"));
    CHECK(strstr(body(covered, "t1"), "\"covered\":[]"));
    CHECK(strstr(body(covered, "new"), "\"index\":7}"));
}
