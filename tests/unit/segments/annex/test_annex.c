/* test_annex.c - files of exemplars and metadata: what goes in comes out, and nothing else does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/labels.h"
#include "base/pure/map.h"
#include "base/pure/vec.h"
#include "segments/annex/annex.h"
#include "tests/lib/test.h"

#define DAY_MS INT64_C(86400000)

struct kept {
    char *name;
    struct qf_strbuf bytes;
};

struct files {
    QF_VEC(struct kept) items;
};

static qf_rc keep(void *ctx, const char *name, struct qf_str bytes, struct qf_err *err)
{
    struct files *files = ctx;
    struct kept kept = { .name = qf_xstrdup(name) };

    (void)err;
    qf_strbuf_str(&kept.bytes, bytes);
    QF_VEC_PUSH(&files->items, kept);
    return QF_OK;
}

static void files_done(struct files *files)
{
    for (size_t i = 0; i < files->items.count; i++) {
        free(files->items.items[i].name);
        qf_strbuf_done(&files->items.items[i].bytes);
    }
    QF_VEC_DONE(&files->items);
}

static void annex_done(struct sg_annex **annex)
{
    *annex = sg_annex_free(*annex);
}

static void write_files(struct sg_annex *annex, struct files *files)
{
    const struct sg_annex_files options = { .tenant = QF_STR("t"), .file = keep, .ctx = files };
    struct qf_err err = { 0 };

    CHECK_OK(sg_annex_write(annex, &options, &err), &err);
}

static void add_exemplar(struct sg_annex *annex, const char *name, const char *trace, int64_t ts,
                         double value)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf series = QF_STRBUF_INIT, labels = QF_STRBUF_INIT;
    struct qf_label of_series = { QF_STR(QF_METRIC_NAME), qf_str_from(name) };
    struct qf_label own = { QF_STR("trace_id"), qf_str_from(trace) };
    struct sg_exemplar exemplar = { .ts = ts, .value = value };

    qf_labels_encode(&series, (struct qf_labels){ &of_series, 1 });
    qf_labels_encode(&labels, (struct qf_labels){ &own, trace[0] ? 1 : 0 });
    exemplar.series = qf_strbuf_view(&series);
    exemplar.labels = qf_strbuf_view(&labels);
    CHECK(sg_annex_add_exemplar(annex, &exemplar));
}

static void add_metadata(struct sg_annex *annex, const char *name, const char *help,
                         uint64_t generation, bool later)
{
    const struct sg_metadata metadata = { .name = qf_str_from(name),
                                          .type = QF_METRIC_COUNTER,
                                          .help = qf_str_from(help),
                                          .unit = QF_STR("seconds"),
                                          .generation = generation };

    CHECK(sg_annex_add_metadata(annex, &metadata, later));
}

/* What the files have, a line each. */
static char *describe(const struct files *files)
{
    struct qf_strbuf text = QF_STRBUF_INIT;
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);

    for (size_t i = 0; i < files->items.count; i++) {
        struct sg_annex_contents contents;
        struct sg_annex_name name;
        struct qf_err err = { 0 };

        CHECK(sg_annex_name_parse(qf_str_from(files->items.items[i].name), &name));
        CHECK_OK(sg_annex_decode(qf_strbuf_view(&files->items.items[i].bytes), &name, arena,
                                 &contents, &err),
                 &err);
        for (size_t j = 0; j < contents.count; j++) {
            struct qf_labels series, labels;

            if (contents.kind == SG_ANNEX_METADATA) {
                const struct sg_metadata *m = &contents.metadata[j];

                qf_strbuf_printf(&text, "%.*s %s \"%.*s\" %.*s %llu\n", QF_STR_ARG(m->name),
                                 qf_metric_type_text(m->type), QF_STR_ARG(m->help),
                                 QF_STR_ARG(m->unit), (unsigned long long)m->generation);
                continue;
            }
            CHECK_OK(qf_labels_decode(arena, contents.exemplars[j].series, &series, &err), &err);
            CHECK_OK(qf_labels_decode(arena, contents.exemplars[j].labels, &labels, &err), &err);
            qf_labels_print_series(&text, series);
            qf_strbuf_putc(&text, ' ');
            qf_labels_print(&text, labels);
            qf_strbuf_printf(&text, " %g %lld\n", contents.exemplars[j].value,
                             (long long)contents.exemplars[j].ts);
        }
    }
    (void)qf_arena_free(arena);
    return qf_strbuf_take(&text);
}

static void fill(struct sg_annex *annex)
{
    add_exemplar(annex, "b", "2", 2000, 2);
    add_exemplar(annex, "a", "1", 1000, 1.5);
    add_exemplar(annex, "b", "1", 1000, 1);
    add_exemplar(annex, "b", "2", 2000, 2);
    add_exemplar(annex, "b", "", DAY_MS + 5, -1);
    add_metadata(annex, "up", "Is it?", 1000000, true);
    add_metadata(annex, "a", "first", 3000000, true);
}

TEST(what_is_collected_comes_out_once_sorted_and_by_day)
{
    QF_CLEANUP(annex_done) struct sg_annex *annex = sg_annex_new(1 << 20);
    QF_CLEANUP(files_done) struct files files = { 0 };
    char *text;

    fill(annex);
    write_files(annex, &files);
    CHECK_EQ(files.items.count, 3);
    text = describe(&files);
    CHECK_STR(text, "a {trace_id=\"1\"} 1.5 1000\n"
                    "b {trace_id=\"1\"} 1 1000\n"
                    "b {trace_id=\"2\"} 2 2000\n"
                    "b {} -1 86400005\n"
                    "a counter \"first\" seconds 3000000\n"
                    "up counter \"Is it?\" seconds 1000000\n");
    free(text);
    CHECK(strstr(files.items.items[0].name,
                 "annex/tenant=t/exemplars/date=1970-01-01/0000000001000_0000000002000_"));
    CHECK(strstr(files.items.items[1].name,
                 "annex/tenant=t/exemplars/date=1970-01-02/0000086400005_0000086400005_"));
    CHECK(strstr(files.items.items[2].name,
                 "annex/tenant=t/metadata/date=1970-01-01/0000000001000_0000000003000_"));
}

TEST(equal_collections_have_equal_files_in_whatever_order_they_came)
{
    QF_CLEANUP(annex_done) struct sg_annex *one = sg_annex_new(1 << 20);
    QF_CLEANUP(annex_done) struct sg_annex *other = sg_annex_new(1 << 20);
    QF_CLEANUP(files_done) struct files a = { 0 }, b = { 0 };

    fill(one);
    add_metadata(other, "a", "first", 3000000, true);
    add_exemplar(other, "b", "", DAY_MS + 5, -1);
    add_exemplar(other, "b", "1", 1000, 1);
    add_exemplar(other, "a", "1", 1000, 1.5);
    add_metadata(other, "up", "Is it?", 1000000, true);
    add_exemplar(other, "b", "2", 2000, 2);
    write_files(one, &a);
    write_files(other, &b);
    CHECK_EQ(a.items.count, b.items.count);
    for (size_t i = 0; i < a.items.count; i++) {
        CHECK_STR(a.items.items[i].name, b.items.items[i].name);
        CHECK(qf_str_eq(qf_strbuf_view(&a.items.items[i].bytes),
                        qf_strbuf_view(&b.items.items[i].bytes)));
    }
}

/* Nothing that happened to a file on its way goes by unnoticed. */
TEST(every_flipped_bit_and_every_cut_is_found)
{
    QF_CLEANUP(annex_done) struct sg_annex *annex = sg_annex_new(1 << 20);
    QF_CLEANUP(files_done) struct files files = { 0 };
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);

    fill(annex);
    write_files(annex, &files);
    for (size_t i = 0; i < files.items.count; i++) {
        struct qf_strbuf *bytes = &files.items.items[i].bytes;
        struct sg_annex_contents contents;

        for (size_t bit = 0; bit < bytes->len * 8; bit++) {
            struct qf_err err = { 0 };
            qf_rc rc;

            bytes->data[bit / 8] = (char)(bytes->data[bit / 8] ^ (1 << bit % 8));
            rc = sg_annex_decode(qf_strbuf_view(bytes), NULL, arena, &contents, &err);
            CHECK_MSG(rc == QF_ECORRUPT || rc == QF_EUNSUPPORTED, "bit %zu: %d", bit, rc);
            bytes->data[bit / 8] = (char)(bytes->data[bit / 8] ^ (1 << bit % 8));
        }
        for (size_t len = 0; len < bytes->len; len++)
            CHECK_EQ(
                sg_annex_decode((struct qf_str){ bytes->data, len }, NULL, arena, &contents, NULL),
                QF_ECORRUPT);
    }
    (void)qf_arena_free(arena);
}

/* Also not if the checksum was made to fit: counts, order and times are looked at. */
TEST(a_file_that_lies_is_refused_whatever_its_checksum)
{
    QF_CLEANUP(annex_done) struct sg_annex *annex = sg_annex_new(1 << 20);
    QF_CLEANUP(files_done) struct files files = { 0 };
    struct qf_arena *arena = qf_arena_new((size_t)1 << 20);
    size_t wrong = 0;

    fill(annex);
    write_files(annex, &files);
    for (size_t i = 0; i < files.items.count; i++) {
        struct qf_strbuf *bytes = &files.items.items[i].bytes;

        for (size_t at = 8; at < 40; at++) { /* kind, count, times, length */
            struct sg_annex_contents contents;
            uint64_t hash;

            bytes->data[at] = (char)(bytes->data[at] + 1);
            hash = qf_hash_bytes(qf_str_sub(qf_strbuf_view(bytes), 0, bytes->len - 8));
            memcpy(bytes->data + bytes->len - 8, &hash, sizeof(hash));
            wrong += sg_annex_decode(qf_strbuf_view(bytes), NULL, arena, &contents, NULL) == QF_OK;
            bytes->data[at] = (char)(bytes->data[at] - 1);
        }
    }
    CHECK_EQ(wrong, 0);
    (void)qf_arena_free(arena);
}

TEST(a_name_that_does_not_fit_is_refused)
{
    QF_CLEANUP(annex_done) struct sg_annex *annex = sg_annex_new(1 << 20);
    QF_CLEANUP(files_done) struct files files = { 0 };
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct sg_annex_contents contents;
    struct sg_annex_name name;

    fill(annex);
    write_files(annex, &files);
    CHECK(sg_annex_name_parse(qf_str_from(files.items.items[1].name), &name));
    CHECK_EQ(
        sg_annex_decode(qf_strbuf_view(&files.items.items[0].bytes), &name, arena, &contents, NULL),
        QF_ECORRUPT);
    (void)qf_arena_free(arena);
}

TEST(only_what_is_written_is_a_name)
{
    static const char *const bad[] = {
        "annex/tenant=t/exemplars/date=1970-01-01/"
        "0000000001000_0000000002000_0123456789abcde.annex",
        "annex/tenant=t/exemplars/date=1970-01-01/"
        "0000000001000_0000000002000_0123456789ABCDEF.annex",
        "annex/tenant=t/exemplars/date=1970-01-02/"
        "0000000001000_0000000002000_0123456789abcdef.annex",
        "annex/tenant=t/others/date=1970-01-01/0000000001000_0000000002000_0123456789abcdef.annex",
        "annex/tenant=t/exemplars/date=1970-01-01/"
        "0000000002000_0000000001000_0123456789abcdef.annex",
        "annex/tenant=/exemplars/date=1970-01-01/"
        "0000000001000_0000000002000_0123456789abcdef.annex",
        "annex/tenant=t/exemplars/date=1970-01-01/"
        "0000000001000_0000000002000_0123456789abcdef.annexe",
        "tenant=t/date=1970-01-01/0000000001000_0000000002000_0123456789abcdef.annex",
        "annex/",
        "",
    };
    static const char good[] = "annex/tenant=t/exemplars/date=1970-01-01/"
                               "0000000001000_0000000002000_0123456789abcdef.annex";
    struct sg_annex_name name;

    CHECK(sg_annex_name_parse(qf_str_from(good), &name));
    CHECK(qf_str_is(name.tenant, "t") && name.kind == SG_ANNEX_EXEMPLARS);
    CHECK(name.min_ts == 1000 && name.max_ts == 2000 && name.id == 0x0123456789abcdef);
    for (size_t i = 0; i < QF_COUNT_OF(bad); i++)
        CHECK_MSG(!sg_annex_name_parse(qf_str_from(bad[i]), &name), "%s", bad[i]);
}

TEST(of_a_names_metadata_the_greatest_generation_stays)
{
    QF_CLEANUP(annex_done) struct sg_annex *annex = sg_annex_new(1 << 20);
    QF_CLEANUP(files_done) struct files files = { 0 };
    char *text;

    add_metadata(annex, "x", "new", 2000000, false);
    add_metadata(annex, "x", "old", 1000000, true);
    add_metadata(annex, "y", "b", 5000, false);
    add_metadata(annex, "y", "a", 5000, false); /* whichever came first, the greater one */
    add_metadata(annex, "z", "b", 5000, true);
    add_metadata(annex, "z", "a", 5000, true); /* the later one */
    write_files(annex, &files);
    text = describe(&files);
    CHECK_STR(text, "x counter \"new\" seconds 2000000\n"
                    "y counter \"b\" seconds 5000\n"
                    "z counter \"a\" seconds 5000\n");
    free(text);
}

TEST(a_collection_is_bounded)
{
    QF_CLEANUP(annex_done) struct sg_annex *annex = sg_annex_new(256 << 10);
    static char long_text[SG_ANNEX_ENTRY_MAX + 1];
    struct sg_exemplar exemplar = { .series = QF_STR("\001a\001b"), .labels = QF_STR("") };
    size_t added = 0;

    while (sg_annex_add_exemplar(annex, &exemplar)) {
        exemplar.ts = (int64_t)++added;
        CHECK(added < 100000);
    }
    CHECK(added > 1000);
    CHECK(sg_annex_bytes(annex) <= 512 << 10);
    annex = sg_annex_free(annex);
    annex = sg_annex_new(SIZE_MAX);
    exemplar.labels = (struct qf_str){ long_text, sizeof(long_text) };
    CHECK(!sg_annex_add_exemplar(annex, &exemplar));
    exemplar = (struct sg_exemplar){ .series = exemplar.series, .ts = INT64_MIN };
    CHECK(!sg_annex_add_exemplar(annex, &exemplar));
    CHECK(!sg_annex_add_metadata(annex, &(struct sg_metadata){ .name = QF_STR("a\xff") }, true));
    CHECK(sg_annex_is_empty(annex));
}

/* A day of more than a file takes is several, none beyond what readers take. */
TEST(much_becomes_several_files)
{
    QF_CLEANUP(annex_done) struct sg_annex *annex = sg_annex_new(SIZE_MAX);
    QF_CLEANUP(files_done) struct files files = { 0 };
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    char trace[64];
    size_t total = 0;

    for (int i = 0; i < 300000; i++) {
        (void)snprintf(trace, sizeof(trace), "%032d", i);
        add_exemplar(annex, i % 3 ? "a" : "b", trace, 1000 + i % 1000, i);
    }
    write_files(annex, &files);
    CHECK(files.items.count >= 2);
    for (size_t i = 0; i < files.items.count; i++) {
        struct sg_annex_contents contents;
        struct qf_err err = { 0 };

        CHECK(files.items.items[i].bytes.len <= SG_ANNEX_BYTES_AIM + SG_ANNEX_ENTRY_MAX);
        CHECK_OK(sg_annex_decode(qf_strbuf_view(&files.items.items[i].bytes), NULL, arena,
                                 &contents, &err),
                 &err);
        total += contents.count;
    }
    CHECK_EQ(total, 300000);
    (void)qf_arena_free(arena);
}
