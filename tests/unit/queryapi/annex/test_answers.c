/* test_answers.c - answers about exemplars and metadata, out of a store and of what ingest nodes said. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/labels.h"
#include "promql/parse.h"
#include "queryapi/annex/annex.h"
#include "segments/annex/files.h"
#include "tests/lib/http/answers.h"
#include "tests/lib/segments/memory_store.h"
#include "tests/lib/test.h"

#define DAY_MS INT64_C(86400000)

struct rig {
    struct memory_store *memory;
    struct sg_store *store;
    struct qf_purse purse;
    struct qa_annex *annex;
};

static void begin(struct rig *rig)
{
    memset(rig, 0, sizeof(*rig));
    rig->memory = memory_store_new();
    rig->store = memory_store_base(rig->memory);
    atomic_init(&rig->purse.limit, (size_t)256 << 20);
    rig->annex = qa_annex_new(&(struct qa_annex_options){
        .store = rig->store, .purse = &rig->purse, .memory_bytes_max = (size_t)4 << 20 });
    CHECK(rig->annex);
}

static void end(struct rig *rig)
{
    rig->annex = qa_annex_free(rig->annex);
    rig->store = sg_store_free(rig->store);
    CHECK_EQ(qf_purse_used(&rig->purse), 0);
}

/* A file with one exemplar, of series {i="@i"}. */
static void put_exemplar(struct rig *rig, int i, int64_t ts)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf series = QF_STRBUF_INIT;
    struct sg_annex *annex = sg_annex_new(1 << 20);
    struct sg_annex_result result;
    struct qf_err err = { 0 };
    char text[16];
    struct qf_label label = { QF_STR("i"),
                              { text, (size_t)snprintf(text, sizeof(text), "%d", i) } };

    qf_labels_encode(&series, (struct qf_labels){ &label, 1 });
    CHECK(sg_annex_add_exemplar(
        annex, &(struct sg_exemplar){ .series = qf_strbuf_view(&series), .ts = ts, .value = i }));
    CHECK_OK(sg_annex_put(annex, rig->store, QF_STR("t"), NULL, &result, &err), &err);
    annex = sg_annex_free(annex);
}

static void put_metadata(struct rig *rig, const char *name, const char *help, uint64_t generation)
{
    struct sg_annex *annex = sg_annex_new(1 << 20);
    struct sg_annex_result result;
    struct qf_err err = { 0 };

    CHECK(sg_annex_add_metadata(annex,
                                &(struct sg_metadata){ .name = qf_str_from(name),
                                                       .help = qf_str_from(help),
                                                       .generation = generation },
                                true));
    CHECK_OK(sg_annex_put(annex, rig->store, QF_STR("t"), NULL, &result, &err), &err);
    annex = sg_annex_free(annex);
}

/* The answer, from its status on; free() it. */
static char *answer(struct rig *rig, enum sg_annex_kind kind, const char *selector,
                    const char *heads, int64_t min_ts)
{
    struct qf_strbuf text = QF_STRBUF_INIT;
    struct qh_stream *stream = answers_stream((size_t)16 << 20);
    struct qa_annex_ask *ask = qa_annex_ask_new(rig->annex, kind, stream, QF_STR("t"));
    struct qf_err err = { 0 };

    ask->min_ts = min_ts;
    if (kind == SG_ANNEX_EXEMPLARS) {
        CHECK_OK(pq_parse_selector(ask->arena, qf_str_from(selector), NULL, &ask->matchers[0],
                                   &ask->matcher_counts[0], &err),
                 &err);
        ask->selector_count = 1;
    }
    qf_strbuf_puts(&ask->heads, heads);
    CHECK(qa_annex_submit(ask));
    answers_read(stream, &text);
    (void)qh_stream_drop(stream);
    return qf_strbuf_take(&text);
}

static size_t count_of(const char *text, const char *what)
{
    size_t count = 0;

    for (const char *at = text; (at = strstr(at, what)); at++)
        count++;
    return count;
}

#define CHECK_ANSWER(rig, kind, selector, heads, min_ts, want)                                     \
    do {                                                                                           \
        char *text_ = answer(rig, kind, selector, heads, min_ts);                                  \
        CHECK_STR(text_, "200 application/json\n\n{\"status\":\"success\",\"data\":" want "}");    \
        free(text_);                                                                               \
    } while (0)

TEST(exemplars_of_files_and_of_ingest_nodes_are_one_answer)
{
    struct rig rig;

    begin(&rig);
    put_exemplar(&rig, 1, 1000);
    put_exemplar(&rig, 2, DAY_MS + 1);
    CHECK_ANSWER(&rig, SG_ANNEX_EXEMPLARS, "{i=~'1|3'}",
                 "{\"data\":[{\"seriesLabels\":{\"i\":\"1\"},\"exemplars\":["
                 "{\"labels\":{},\"value\":\"1\",\"timestamp\":1.000},"
                 "{\"labels\":{\"a\":\"b\"},\"value\":\"2\",\"timestamp\":0.5}]}]}",
                 INT64_MIN,
                 "[{\"seriesLabels\":{\"i\":\"1\"},\"exemplars\":["
                 "{\"labels\":{\"a\":\"b\"},\"value\":\"2\",\"timestamp\":0.500},"
                 "{\"labels\":{},\"value\":\"1\",\"timestamp\":1.000}]}]");
    CHECK_ANSWER(&rig, SG_ANNEX_EXEMPLARS, "{i!=''}", "", 1001,
                 "[{\"seriesLabels\":{\"i\":\"2\"},\"exemplars\":["
                 "{\"labels\":{},\"value\":\"2\",\"timestamp\":86400.001}]}]");
    end(&rig);
}

TEST(of_metadata_the_newest_is_told_whoever_has_it)
{
    static const char heads[] = "{\"data\":{\"a\":[{\"type\":\"gauge\",\"help\":\"head\",\"unit\":"
                                "\"\",\"generation\":5000}]}}";
    struct rig rig;

    begin(&rig);
    put_metadata(&rig, "a", "old", 4000);
    CHECK_ANSWER(&rig, SG_ANNEX_METADATA, "", heads, INT64_MIN,
                 "{\"a\":[{\"type\":\"gauge\",\"help\":\"head\",\"unit\":\"\"}]}");
    put_metadata(&rig, "a", "import", 6000);
    CHECK_ANSWER(&rig, SG_ANNEX_METADATA, "", heads, INT64_MIN,
                 "{\"a\":[{\"type\":\"unknown\",\"help\":\"import\",\"unit\":\"\"}]}");
    CHECK_ANSWER(&rig, SG_ANNEX_METADATA, "", heads, 7, "{}"); /* told behind the retention */
    end(&rig);
}

TEST(many_files_are_read_whole_and_twice_the_same)
{
    struct rig rig;

    begin(&rig);
    for (int i = 0; i < 300; i++)
        put_exemplar(&rig, i, i);
    for (int round = 0; round < 2; round++) {
        char *text = answer(&rig, SG_ANNEX_EXEMPLARS, "{i!=''}", "", INT64_MIN);

        CHECK_EQ(count_of(text, "seriesLabels"), 300);
        free(text);
    }
    end(&rig);
}

/* Between the listing and the reading somebody merges what was listed. */
static void merge_once(void *ctx, struct qf_str name)
{
    struct rig *rig = ctx;
    struct sg_annex_merge merge = { .store = rig->store,
                                    .tenant = QF_STR("t"),
                                    .before_ms = DAY_MS };
    struct sg_annex_merged merged;
    struct qf_err err = { 0 };

    (void)name;
    memory_store_hook(rig->memory, NULL, NULL);
    CHECK_OK(sg_annex_merge(&merge, &merged, &err), &err);
    CHECK_EQ(merged.outputs, 1);
}

TEST(files_that_are_merged_while_they_are_read_are_found_again)
{
    struct rig rig;
    char *text;

    begin(&rig);
    for (int i = 0; i < 10; i++)
        put_exemplar(&rig, i, i);
    memory_store_hook(rig.memory, merge_once, &rig);
    text = answer(&rig, SG_ANNEX_EXEMPLARS, "{i!=''}", "", INT64_MIN);
    CHECK_EQ(count_of(text, "seriesLabels"), 10);
    free(text);
    end(&rig);
}

TEST(what_is_wrong_is_said)
{
    static const char damaged[] = "annex/tenant=t/exemplars/date=1970-01-01/"
                                  "0000000000005_0000000000005_0123456789abcdef.annex";
    struct rig rig;
    char *text;

    begin(&rig);
    text = answer(&rig, SG_ANNEX_METADATA, "", "{\"data\":[1]}", INT64_MIN);
    CHECK(strstr(text, "503 ") == text);
    free(text);
    memory_store_fail(rig.memory, QF_EIO);
    text = answer(&rig, SG_ANNEX_METADATA, "", "", INT64_MIN);
    CHECK(strstr(text, "503 ") == text && strstr(text, "the store cannot be read"));
    free(text);
    memory_store_fail(rig.memory, QF_OK);
    memory_store_put(rig.memory, damaged, QF_STR("PFANNEX"));
    text = answer(&rig, SG_ANNEX_EXEMPLARS, "{i!=''}", "", INT64_MIN);
    CHECK(strstr(text, "0123456789abcdef.annex: not an annex"));
    free(text);
    CHECK(memory_store_remove(rig.memory, damaged));
    for (int i = 0; i < 200; i++)
        put_exemplar(&rig, i, i);
    atomic_store(&rig.purse.limit, 24 << 10);
    text = answer(&rig, SG_ANNEX_EXEMPLARS, "{i!=''}", "", INT64_MIN);
    CHECK_MSG(strstr(text, "503 ") == text && strstr(text, "other queries use all memory"),
              "%.300s", text);
    free(text);
    end(&rig);
}
