/* test_atlas.c - what is known of tenants' maps: asked for once a second, waited for, and used for a while if nobody answers. */
#include "queryapi/fresh/atlas.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "tests/lib/test.h"

struct bench {
    struct qa_atlas *atlas;
    struct qa_question *asked[4]; /* for maps, not answered yet */
    size_t asked_count, all;
    struct qa_question *back; /* the last one that came back */
    size_t back_count;
};

static void on_ask(void *ctx, struct qa_question *question)
{
    struct bench *bench = ctx;

    CHECK(bench->asked_count < QF_COUNT_OF(bench->asked));
    CHECK_STR(question->path, "/v1/state/info");
    bench->asked[bench->asked_count++] = question;
    bench->all++;
}

static void on_back(void *ctx, struct qa_question *question)
{
    struct bench *bench = ctx;

    (void)qa_question_free(bench->back);
    bench->back = question;
    bench->back_count++;
}

static void start(struct bench *bench)
{
    *bench = (struct bench){ 0 };
    bench->atlas = qa_atlas_new(&(struct qa_atlas_options){ .age_ms_max = 60000,
                                                            .fresh_ms = 1000,
                                                            .patience_ms = 500,
                                                            .ask = on_ask,
                                                            .hand_back = on_back,
                                                            .ctx = bench });
}

static void stop(struct bench *bench)
{
    while (bench->asked_count)
        (void)qa_question_free(bench->asked[--bench->asked_count]);
    bench->atlas = qa_atlas_free(bench->atlas);
    (void)qa_question_free(bench->back);
}

/* A question of @tenant whose status is there at once. */
static void pass(struct bench *bench, const char *tenant, bool anew, int64_t now)
{
    struct qa_question *question = qf_xcalloc(1, sizeof(*question));

    question->tenant = qf_xstrdup(tenant);
    question->anew = anew;
    qa_atlas_begin(bench->atlas, question, now);
    qa_atlas_end(bench->atlas, question, now);
}

/* The oldest question for maps ends; @body NULL: nobody answers. */
static void tell(struct bench *bench, const char *body)
{
    struct qa_question *question = bench->asked[0];

    CHECK(bench->asked_count > 0);
    bench->asked_count--;
    memmove(bench->asked, bench->asked + 1, bench->asked_count * sizeof(question));
    question->rc = body ? QF_OK : QF_EUNAVAILABLE;
    qf_strbuf_puts(&question->answer, body ? body : "");
    question->done(question);
}

static const char *answer(uint64_t version)
{
    static char text[400];

    (void)snprintf(text, sizeof(text),
                   "{\"age_ms\":0,\"nodes\":[\"http://a\"],\"maps\":[{\"name\":\"team\",\"kind\":"
                   "\"state\",\"metric\":\"team_info\",\"interval_ms\":1000,\"created\":1,"
                   "\"version\":%d,\"bytes\":1,\"behind_ms\":0}]}",
                   (int)version);
    return text;
}

static uint64_t version_back(const struct bench *bench)
{
    CHECK(bench->back && bench->back->maps && bench->back->maps->count == 1);
    return bench->back->maps->items[0].version;
}

TEST(questions_come_back_with_the_maps_that_were_asked_for_beside_them)
{
    struct bench bench;

    start(&bench);
    pass(&bench, "a", false, qf_clock_mono_ms());
    pass(&bench, "a", false, qf_clock_mono_ms()); /* one answer is for both */
    CHECK_EQ(bench.all, 1);
    CHECK_EQ(bench.back_count, 0);
    tell(&bench, answer(7));
    CHECK_EQ(bench.back_count, 2);
    CHECK_EQ(version_back(&bench), 7);
    pass(&bench, "b", false, qf_clock_mono_ms()); /* another tenant has others */
    CHECK_EQ(bench.all, 2);
    stop(&bench);
}

TEST(what_is_a_second_old_is_asked_for_again_and_what_led_to_nothing_at_once)
{
    struct bench bench;
    int64_t now;

    start(&bench);
    pass(&bench, "a", false, qf_clock_mono_ms());
    tell(&bench, answer(7));
    now = qf_clock_mono_ms();
    pass(&bench, "a", false, now + 500);
    CHECK_EQ(bench.all, 1);
    CHECK_EQ(bench.back_count, 2);
    pass(&bench, "a", true, now + 500); /* its version was gone */
    CHECK_EQ(bench.all, 2);
    tell(&bench, answer(8));
    CHECK_EQ(version_back(&bench), 8);
    pass(&bench, "a", false, qf_clock_mono_ms() + 1000);
    CHECK_EQ(bench.all, 3);
    CHECK_EQ(bench.back_count, 3);
    tell(&bench, answer(9));
    CHECK_EQ(version_back(&bench), 9);
    stop(&bench);
}

/* What was known goes back after a while where nobody answers, and what is too old only once that is certain. */
TEST(where_nobody_answers_what_was_known_goes_back)
{
    struct bench bench;
    int64_t now;

    start(&bench);
    pass(&bench, "a", false, qf_clock_mono_ms());
    tell(&bench, answer(7));
    now = qf_clock_mono_ms() + 2000;
    pass(&bench, "a", false, now);
    CHECK_EQ(bench.back_count, 1);
    CHECK_EQ(qa_atlas_beat(bench.atlas, now + 499), now + 500);
    CHECK_EQ(bench.back_count, 1);
    CHECK(qa_atlas_beat(bench.atlas, now + 500) == INT64_MAX);
    CHECK_EQ(bench.back_count, 2);
    CHECK_EQ(version_back(&bench), 7);
    tell(&bench, NULL);
    now += 100000;
    pass(&bench, "a", false, now);
    CHECK(qa_atlas_beat(bench.atlas, now + 5000) == INT64_MAX);
    CHECK_EQ(bench.back_count, 2);
    tell(&bench, NULL);
    CHECK_EQ(bench.back_count, 3);
    CHECK_EQ(version_back(&bench), 7); /* whether it is too old is the plan's business */
    stop(&bench);
}

TEST(nothing_known_is_not_none)
{
    struct bench bench;
    struct qa_question *question;

    start(&bench);
    pass(&bench, "a", false, qf_clock_mono_ms());
    tell(&bench, "nonsense");
    CHECK(!bench.back->maps);
    pass(&bench, "b", false, qf_clock_mono_ms());
    question = bench.asked[0];
    question->lacking = 1; /* nodes of before: there are none */
    tell(&bench, "");
    CHECK(bench.back->maps && bench.back->maps->count == 0);
    stop(&bench);
}

TEST(more_tenants_than_are_remembered_are_all_answered)
{
    struct bench bench;
    char name[20];

    start(&bench);
    for (int i = 0; i < QA_ATLAS_TENANTS_MAX + 50; i++) {
        (void)snprintf(name, sizeof(name), "t%d", i);
        pass(&bench, name, false, qf_clock_mono_ms());
        tell(&bench, answer(7));
        CHECK_EQ(version_back(&bench), 7);
    }
    pass(&bench, "t0", false, qf_clock_mono_ms()); /* it was forgotten */
    CHECK_EQ(bench.asked_count, 1);
    stop(&bench);
}
