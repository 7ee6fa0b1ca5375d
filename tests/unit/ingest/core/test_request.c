#include "ingest/core/request.h"

#include <math.h>

#include "tests/lib/test.h"

static const struct in_check_limits limits = { 4, 10, 20, 0, 1000 };

#define L(name, value)                                                                             \
    {                                                                                              \
        QF_STR_INIT(name), QF_STR_INIT(value)                                                      \
    }

/* Check a series with one sample at 5. */
static struct in_request check(struct qf_label *labels, size_t count, struct in_series *series,
                               struct in_sample *sample)
{
    struct in_request request = { .series = series, .series_count = 1 };

    *sample = (struct in_sample){ .ts = 5, .value = 1 };
    *series = (struct in_series){
        .labels = labels, .label_count = count, .samples = sample, .sample_count = 1
    };
    in_request_check(&request, &limits);
    return request;
}

#define CHECK_REFUSED(words, ...)                                                                  \
    do {                                                                                           \
        struct qf_label labels[] = { __VA_ARGS__ };                                                \
        struct in_series series;                                                                   \
        struct in_sample sample;                                                                   \
        struct in_request request = check(labels, QF_COUNT_OF(labels), &series, &sample);          \
        CHECK(request.series_count == 0 && request.refused.series == 1 &&                          \
              request.refused.samples == 1 && request.accepted.samples == 0);                      \
        CHECK_MSG(strncmp(request.first, words ": series {", strlen(words) + 10) == 0, "%s",       \
                  request.first);                                                                  \
    } while (0)

TEST(series_with_bad_labels_are_refused_by_name)
{
    CHECK_REFUSED("it has no metric name", L("a", "b"));
    CHECK_REFUSED("it has no metric name", L("__name__", ""), L("a", "b"));
    CHECK_REFUSED("a label has no name", L("__name__", "x"), L("", "b"));
    CHECK_REFUSED("a label is there twice", L("a", "b"), L("__name__", "x"), L("a", "c"));
    CHECK_REFUSED("a label is there twice", L("a", "b"), L("__name__", "x"), L("a", ""));
    CHECK_REFUSED("a label is not UTF-8", L("__name__", "x"), L("a", "\xff"));
    CHECK_REFUSED("a label is not UTF-8", L("__name__", "x"), L("\xc0\x80", "a"));
    CHECK_REFUSED("a label's name is too long (its limit is label-name-bytes=10)",
                  L("__name__", "x"), L("abcdefghijk", "a"));
    CHECK_REFUSED("a label's value is too long (its limit is label-value-bytes=20)",
                  L("__name__", "x"), L("a", "123456789012345678901"));
    CHECK_REFUSED("its metric name is too long (its limit is label-name-bytes=10)",
                  L("__name__", "abcdefghijk"));
    CHECK_REFUSED("it has too many labels (its limit is labels=4)", L("__name__", "x"), L("a", "1"),
                  L("b", "1"), L("c", "1"), L("d", "1"));
}

TEST(what_limits_refuse_is_counted_by_limit)
{
    struct qf_label labels[] = { L("__name__", "x"), L("abcdefghijk", "a") };
    struct in_series series;
    struct in_sample sample;
    struct in_request request = check(labels, QF_COUNT_OF(labels), &series, &sample);

    CHECK_EQ(request.limited_by[QF_LIMIT_NAME_BYTES - QF_LIMIT_WRITE_FIRST], 1);
    CHECK_EQ(request.limited_by[QF_LIMIT_LABELS - QF_LIMIT_WRITE_FIRST], 0);
}

TEST(labels_are_sorted_and_empty_ones_dropped)
{
    struct qf_label labels[] = { L("b", "2"), L("__name__", "x"), L("a", "1"), L("c", "") };
    struct in_series series;
    struct in_sample sample;
    struct in_request request = check(labels, QF_COUNT_OF(labels), &series, &sample);

    CHECK(request.series_count == 1 && series.label_count == 3 && !request.first[0]);
    CHECK(qf_str_is(labels[0].name, "__name__") && qf_str_is(labels[1].name, "a") &&
          qf_str_is(labels[2].name, "b"));
}

TEST(samples_out_of_bounds_are_refused_alone)
{
    struct qf_label labels[] = { L("__name__", "x") };
    struct in_sample samples[] = { { .ts = -1 }, { .ts = 1000 }, { .ts = 1001 }, { .ts = 0 } };
    struct in_series series = {
        .labels = labels, .label_count = 1, .samples = samples, .sample_count = 4
    };
    struct in_request request = { .series = &series, .series_count = 1 };

    in_request_check(&request, &limits);
    CHECK(request.accepted.samples == 2 && request.refused.samples == 2);
    CHECK(series.sample_count == 2 && samples[0].ts == 1000 && samples[1].ts == 0);
    CHECK_STR(request.first, "out of bounds: a sample is too old (time -1): series "
                             "{__name__=\"x\"}");
}

TEST(the_first_thing_refused_is_told_without_bytes_that_are_no_text)
{
    struct qf_label labels[] = { L("__name__", "x\n\x01\xff") };
    struct in_series series;
    struct in_sample sample;
    struct in_request request = check(labels, 1, &series, &sample);

    CHECK_STR(request.first, "a label is not UTF-8: series {__name__=\"x???\"}");
}

TEST(exemplars_are_as_long_as_openmetrics_allows)
{
    static char text[2][129];
    struct qf_label name[] = { L("__name__", "x") };
    struct qf_label fits[] = { { QF_STR_INIT("a"), { text[0], 127 } } };
    struct qf_label too_long[] = { { QF_STR_INIT("a"), { text[1], 128 } } };
    struct in_exemplar exemplars[] = { { .labels = fits, .label_count = 1 },
                                       { .labels = too_long, .label_count = 1 },
                                       { .bad = true } };
    struct in_series series = {
        .labels = name, .label_count = 1, .exemplars = exemplars, .exemplar_count = 3
    };
    struct in_request request = { .series = &series, .series_count = 1 };
    struct in_check_limits wide = limits;

    memset(text, 'x', sizeof(text));
    wide.value_bytes_max = 1000;
    in_request_check(&request, &wide);
    CHECK(request.accepted.exemplars == 1 && request.refused.exemplars == 2);
    CHECK(request.series_count == 1 && exemplars[0].labels == fits);
}

TEST(metadata_that_cannot_be_kept_are_left_out)
{
    struct in_metadata metadata[] = { { .name = QF_STR_INIT("") },
                                      { .name = QF_STR_INIT("a"), .help = QF_STR_INIT("\xff") },
                                      { .name = QF_STR_INIT("b"), .help = QF_STR_INIT("fine") } };
    struct in_request request = { .metadata = metadata, .metadata_count = 3 };

    in_request_check(&request, &limits);
    CHECK(request.metadata_count == 1 && qf_str_is(metadata[0].name, "b"));
    CHECK(request.first[0]);
}
