/* test_annex.c - exemplars and metadata of a range become files beside its segments. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "ingest/core/extras.h"
#include "segments/annex/annex.h"
#include "tests/lib/test.h"
#include "tests/unit/ingest/head/rig.h"

static void add_metadata(struct qf_strbuf *extras, const char *name, const char *help)
{
    in_extra_put_metadata(extras, &(struct in_metadata){ .name = qf_str_from(name),
                                                         .type = QF_METRIC_GAUGE,
                                                         .help = qf_str_from(help),
                                                         .unit = QF_STR("") });
}

static void add_exemplar(struct qf_strbuf *extras, const char *trace, int64_t ts)
{
    struct qf_label series = { QF_STR(QF_METRIC_NAME), QF_STR("m") };
    struct qf_label own = { QF_STR("trace_id"), qf_str_from(trace) };
    const struct in_exemplar exemplar = { .labels = &own, .label_count = 1, .value = 1, .ts = ts };

    in_extra_put_exemplar(extras, (struct qf_labels){ &series, 1 }, &exemplar);
}

/* A record with @extras and nothing else. */
static void write_extras(struct rig *rig, struct qf_strbuf *extras)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct in_record record = { .kind = IN_SAMPLES,
                                .tenant = QF_STR("t"),
                                .extras = qf_strbuf_view(extras) };

    in_record_put_samples(&bytes, &record, NULL, 0);
    CHECK_EQ(rig_append(rig, qf_strbuf_view(&bytes)), IN_APPLIED);
    qf_strbuf_reset(extras);
}

static void print_file(struct qf_strbuf *text, const struct in_head_file *file)
{
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    FILE *stream = fopen(file->path, "re");
    struct sg_annex_contents contents;
    struct sg_annex_name name;
    struct qf_err err = { 0 };
    char *bytes = qf_xmalloc(file->size);

    CHECK(stream && fread(bytes, 1, file->size, stream) == file->size);
    (void)fclose(stream);
    CHECK(sg_annex_name_parse(qf_str_from(file->name), &name));
    CHECK_OK(sg_annex_decode((struct qf_str){ bytes, file->size }, &name, arena, &contents, &err),
             &err);
    for (size_t i = 0; i < contents.count; i++)
        if (contents.kind == SG_ANNEX_EXEMPLARS)
            qf_strbuf_printf(text, "exemplar@%lld ", (long long)contents.exemplars[i].ts);
        else
            qf_strbuf_printf(text, "%.*s=%.*s ", QF_STR_ARG(contents.metadata[i].name),
                             QF_STR_ARG(contents.metadata[i].help));
    free(bytes);
    (void)qf_arena_free(arena);
}

/* Close the range, make its files, and say what its annexes have; @seal: and seal it. */
static char *close_range(struct rig *rig, bool seal)
{
    struct qf_strbuf text = QF_STRBUF_INIT;
    struct in_head_sealable sealable;
    struct qf_err err = { 0 };
    bool built;

    CHECK_EQ(rig_seal(rig, "t"), IN_APPLIED);
    CHECK_OK(in_head_build(rig->head, &built, &err), &err);
    CHECK(in_head_next_sealable(rig->head, NULL, &sealable));
    for (size_t i = 0; i < sealable.annex_count; i++)
        print_file(&text, &sealable.annexes[i]);
    in_head_sealable_done(&sealable);
    if (seal)
        CHECK_EQ(rig_sealed(rig, "t"), IN_APPLIED);
    return qf_strbuf_take(&text);
}

#define CHECK_RANGE(rig, seal, want)                                                               \
    do {                                                                                           \
        char *text_ = close_range(rig, seal);                                                      \
        CHECK_STR(text_, want);                                                                    \
        free(text_);                                                                               \
    } while (0)

TEST(what_a_range_says_besides_samples_is_in_its_annexes)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf extras = QF_STRBUF_INIT;
    struct rig rig;

    rig_begin(&rig, 2);
    (void)rig_sample(&rig, "t", 0, true, 100, 1);
    add_exemplar(&extras, "a", 100);
    add_metadata(&extras, "m", "old");
    write_extras(&rig, &extras);
    add_exemplar(&extras, "b", 200);
    add_exemplar(&extras, "b", 200);
    add_metadata(&extras, "m", "new");
    write_extras(&rig, &extras);
    CHECK(in_head_tenant_bytes(rig.head, QF_STR("t")) > 0);
    CHECK_RANGE(&rig, true, "exemplar@100 exemplar@200 m=new ");
    rig_end(&rig);
}

/* Of what senders tell again in every range the store gets one copy a day. */
TEST(metadata_that_was_told_that_day_is_left_out)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf extras = QF_STRBUF_INIT;
    struct rig rig;

    rig_begin(&rig, 1);
    add_metadata(&extras, "a", "1");
    add_metadata(&extras, "b", "1");
    write_extras(&rig, &extras);
    CHECK_RANGE(&rig, true, "a=1 b=1 ");
    add_metadata(&extras, "a", "1");
    add_metadata(&extras, "b", "2");
    write_extras(&rig, &extras);
    CHECK_RANGE(&rig, true, "b=2 ");
    add_metadata(&extras, "b", "1");
    write_extras(&rig, &extras);
    CHECK_RANGE(&rig, true, "b=1 ");
    rig_end(&rig);
}

/* Another process cannot know what the one before has sealed. */
TEST(after_a_restart_metadata_is_told_again)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf extras = QF_STRBUF_INIT;
    struct rig rig;

    rig_begin(&rig, 1);
    add_metadata(&extras, "a", "1");
    write_extras(&rig, &extras);
    CHECK_RANGE(&rig, true, "a=1 ");
    rig_restart(&rig);
    add_metadata(&extras, "a", "1");
    write_extras(&rig, &extras);
    CHECK_RANGE(&rig, true, "a=1 ");
    rig_end(&rig);
}

TEST(annexes_of_a_closed_range_outlive_the_process)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf extras = QF_STRBUF_INIT;
    struct in_head_sealable sealable;
    struct qf_strbuf text = QF_STRBUF_INIT;
    struct rig rig;
    bool built;

    rig_begin(&rig, 1);
    (void)rig_sample(&rig, "t", 0, true, 100, 1);
    add_exemplar(&extras, "a", 100);
    write_extras(&rig, &extras);
    CHECK_RANGE(&rig, false, "exemplar@100 ");
    rig_restart(&rig);
    CHECK_EQ(in_head_build(rig.head, &built, &(struct qf_err){ 0 }), QF_OK);
    CHECK(!built);
    CHECK(in_head_next_sealable(rig.head, NULL, &sealable));
    CHECK(sealable.file_count == 1 && sealable.annex_count == 1);
    print_file(&text, &sealable.annexes[0]);
    CHECK_STR(qf_strbuf_cstr(&text), "exemplar@100 ");
    qf_strbuf_done(&text);
    in_head_sealable_done(&sealable);
    rig_end(&rig);
}

/* What this process found made by the one before it may tell anything. */
TEST(a_range_made_by_the_process_before_is_no_reason_to_leave_something_out)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf extras = QF_STRBUF_INIT;
    struct rig rig;

    rig_begin(&rig, 1);
    add_metadata(&extras, "a", "1");
    write_extras(&rig, &extras);
    CHECK_RANGE(&rig, false, "a=1 ");
    rig_restart(&rig);
    CHECK_EQ(rig_sealed(&rig, "t"), IN_APPLIED);
    add_metadata(&extras, "a", "1");
    write_extras(&rig, &extras);
    CHECK_RANGE(&rig, true, "a=1 ");
    rig_install(&rig);
    add_metadata(&extras, "a", "1");
    write_extras(&rig, &extras);
    CHECK_RANGE(&rig, true, "a=1 ");
    rig_end(&rig);
}
