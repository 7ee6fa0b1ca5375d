/* test_contents.c - the names of a segment: in and out, bounded, and what is no such text. */
#include "segments/parquet/contents.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/base64.h"
#include "tests/lib/test.h"

static struct qf_labels labels_of(struct qf_label *items, const char *metric, const char *name,
                                  const char *value)
{
    items[0] = (struct qf_label){ QF_STR("__name__"), qf_str_from(metric) };
    items[1] = (struct qf_label){ qf_str_from(name), qf_str_from(value) };
    return (struct qf_labels){ items, 2 };
}

static void add(struct sg_contents_builder *builder, const char *metric, const char *name,
                const char *value, uint64_t samples)
{
    struct qf_label items[2];

    sg_contents_builder_add(builder, labels_of(items, metric, name, value));
    sg_contents_builder_count(builder, samples);
}

/* The text of a builder, which ends here; the caller frees it. */
static char *text_of(struct sg_contents_builder *builder)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;

    sg_contents_builder_print(builder, &buf);
    (void)sg_contents_builder_free(builder);
    return buf.len ? qf_strbuf_take(&buf) : qf_xmemdup0("", 0);
}

TEST(names_samples_and_values_come_out_as_they_went_in)
{
    struct sg_contents_builder *builder = sg_contents_builder_new(),
                               *other = sg_contents_builder_new();
    struct sg_contents *contents;
    char *text, *again;

    add(builder, "up", "job", "web", 3);
    add(builder, "up", "job", "api", 4);
    add(builder, "load", "host", "a", 5);
    sg_contents_builder_count(builder, 1); /* more of the same series */
    add(other, "load", "host", "a", 6);
    add(other, "up", "job", "api", 4);
    add(other, "up", "job", "web", 3);
    text = text_of(builder);
    again = text_of(other);
    CHECK_STR(text, again); /* in any order */
    contents = sg_contents_parse(qf_str_from(text));
    CHECK(contents);
    CHECK_EQ(contents->metric_count, 2);
    CHECK(qf_str_is(contents->metrics[0].name, "load") &&
          qf_str_is(contents->metrics[1].name, "up"));
    CHECK_EQ(contents->metrics[0].samples, 6);
    CHECK_EQ(contents->metrics[1].samples, 7);
    CHECK_EQ(contents->samples, 13);
    CHECK_EQ(contents->label_count, 2);
    CHECK(qf_str_is(contents->labels[1].name, "job") && !contents->labels[1].open);
    CHECK_EQ(contents->labels[1].value_count, 2);
    CHECK(qf_str_is(contents->labels[1].values[0], "api"));
    CHECK(sg_contents_bytes(contents) > 0);
    (void)sg_contents_free(contents);
    free(text);
    free(again);
}

/* Values go first, those of the most diverse label; names stay. */
TEST(labels_with_many_values_are_open)
{
    struct sg_contents_builder *builder = sg_contents_builder_new();
    struct sg_contents *contents;
    char value[32], *text;

    for (int i = 0; i < 5000; i++) {
        (void)snprintf(value, sizeof(value), "10.0.0.%d", i);
        add(builder, "up", "instance", value, 1);
    }
    add(builder, "up", "job", "web", 1);
    text = text_of(builder);
    contents = sg_contents_parse(qf_str_from(text));
    CHECK(contents);
    CHECK_EQ(contents->label_count, 2);
    CHECK(contents->labels[0].open && contents->labels[0].value_count == 0);
    CHECK(!contents->labels[1].open && contents->labels[1].value_count == 1);
    CHECK_EQ(contents->metrics[0].samples, 5001);
    (void)sg_contents_free(contents);
    free(text);
}

TEST(more_names_than_fit_are_no_contents)
{
    struct sg_contents_builder *builder = sg_contents_builder_new();
    char name[32], *text;

    for (int i = 0; i < 2000; i++) {
        (void)snprintf(name, sizeof(name), "metric_number_%d", i);
        add(builder, name, "job", "web", 1);
    }
    text = text_of(builder);
    CHECK_STR(text, "");
    CHECK(!sg_contents_parse(qf_str_from(text)));
    free(text);
}

/* Cut or changed anywhere: an error or another list, never anything worse. */
TEST(damaged_text_is_refused_or_harmless)
{
    struct sg_contents_builder *builder = sg_contents_builder_new();
    char *text;
    size_t len;

    add(builder, "up", "job", "web", 3);
    add(builder, "load", "host", "a", 5);
    text = text_of(builder);
    len = strlen(text);
    for (size_t i = 0; i < len; i++)
        CHECK(!sg_contents_parse((struct qf_str){ text, i }));
    for (size_t i = 0; i < len; i++) {
        char kept = text[i];

        for (const char *other = "AZaz09+/=:"; *other; other++) {
            text[i] = *other;
            (void)sg_contents_free(sg_contents_parse((struct qf_str){ text, len }));
        }
        text[i] = kept;
    }
    CHECK(!sg_contents_parse(QF_STR("2:AAAA")));
    CHECK(!sg_contents_parse(QF_STR("1:!")));
    free(text);
}
