/* test_histogram_text.c - native histograms as text, both ways. */
#include <math.h>

#include "base/pure/prng.h"
#include "segments/import/histogram_text.h"
#include "promql/histogram/codec.h"
#include "tests/lib/test.h"

static const char *parse(struct qf_arena *arena, const char *text,
                         const struct pq_histogram **ret_histogram)
{
    return sg_histogram_text_parse(qf_str_from(text), arena, ret_histogram);
}

TEST(every_key_of_a_histogram_is_read)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    const struct pq_histogram *h;

    CHECK(!parse(arena,
                 "{count:59,sum:-1.2e2,schema:7,zero_threshold:1e-4,zero_count:2.5,"
                 "negative_spans:[1:2],negative_buckets:[5,7],positive_spans:[-1:2,3:4],"
                 "positive_buckets:[5,7,10,9,8,8.5],counter_reset_hint:not_reset}",
                 &h));
    CHECK(h->count == 59);
    CHECK(h->sum == -120);
    CHECK_EQ(h->schema, 7);
    CHECK(h->zero_threshold == 1e-4);
    CHECK(h->zero_count == 2.5);
    CHECK_EQ(h->negative_span_count, 1);
    CHECK_EQ(h->negative_bucket_count, 2);
    CHECK(h->negative_buckets[1] == 7);
    CHECK_EQ(h->positive_span_count, 2);
    CHECK_EQ(h->positive_spans[0].offset, -1);
    CHECK_EQ(h->positive_spans[1].length, 4);
    CHECK(h->positive_buckets[5] == 8.5);
    CHECK_EQ(h->reset_hint, PQ_RESET_NO);
    CHECK(h->reset_hint_given);

    CHECK(!parse(arena,
                 "{schema:-53,custom_values:[0.5,2],sum:NaN,positive_spans:[0:1,1:1],"
                 "positive_buckets:[3,4],count:7}",
                 &h));
    CHECK_EQ(h->custom_value_count, 2);
    CHECK(isnan(h->sum));
    CHECK(!h->reset_hint_given);

    CHECK(!parse(arena, "{gcount:0,gsum:0,schema:0}", &h));
    CHECK_EQ(h->reset_hint, PQ_RESET_GAUGE);
    CHECK_EQ(h->positive_bucket_count, 0);
}

TEST(a_malformed_histogram_is_refused_with_a_reason)
{
    static const struct {
        const char *text, *what;
    } examples[] = {
        { "", "a histogram without braces" },
        { "{", "a histogram without braces" },
        { "{}", "a histogram lacks its count, sum or schema" },
        { "{count:1,sum:2}", "a histogram lacks its count, sum or schema" },
        { "{count:1,sum:2,bucket:[1:2]}", "a histogram has a key that is not known" },
        { "{count:1,sum:2,schema:0,[0,1):3}", "a histogram has a key that is not known" },
        { "{count:1,count:1,sum:2,schema:0}", "a key of a histogram occurs twice" },
        { "{gcount:1,count:1,sum:2,schema:0}", "a key of a histogram occurs twice" },
        { "{count:,sum:2,schema:0}", "a value in a histogram is malformed" },
        { "{count:0x1,sum:2,schema:0}", "a value in a histogram is malformed" },
        { "{count:1,sum:2,schema:9}", "a value in a histogram is malformed" },
        { "{count:1,sum:2,schema:-5}", "a value in a histogram is malformed" },
        { "{count:1,sum:2,schema:0.5}", "a value in a histogram is malformed" },
        { "{count:1,sum:2,schema:0,counter_reset_hint:x}", "a value in a histogram is malformed" },
        { "{count:1,sum:2,schema:0,positive_spans:0:1}", "a list in a histogram is malformed" },
        { "{count:1,sum:2,schema:0,positive_spans:[0:1}", "a list in a histogram is malformed" },
        { "{count:1,sum:2,schema:0,positive_spans:[0:1]x}", "a list in a histogram is malformed" },
        { "{count:1,sum:2,schema:0,positive_spans:[0]}", "a value in a histogram is malformed" },
        { "{count:1,sum:2,schema:0,positive_spans:[0:-1]}", "a value in a histogram is malformed" },
        { "{count:1,sum:2,schema:0,positive_spans:[0:1,-1:1]}",
          "a value in a histogram is malformed" },
        { "{count:1,sum:2,schema:0,positive_spans:[2147483647:2147483647]}",
          "a value in a histogram is malformed" },
        { "{count:1,sum:2,schema:0,positive_buckets:[1,]}", "a value in a histogram is malformed" },
        { "{count:1,sum:2,schema:0,positive_buckets:[1]}",
          "the spans of a histogram do not fit its buckets" },
        { "{count:1,sum:2,schema:0,negative_spans:[0:2],negative_buckets:[1]}",
          "the spans of a histogram do not fit its buckets" },
        { "{count:1,sum:2,schema:0,custom_values:[1]}",
          "the custom bounds of a histogram do not fit" },
        { "{count:1,sum:2,schema:-53,custom_values:[2,1]}",
          "the custom bounds of a histogram do not fit" },
        { "{count:1,sum:2,schema:-53,custom_values:[1,+Inf]}",
          "the custom bounds of a histogram do not fit" },
        { "{count:1,sum:2,schema:-53,custom_values:[1],positive_spans:[0:3],"
          "positive_buckets:[1,2,3]}",
          "the custom bounds of a histogram do not fit" },
        { "{count:1,sum:2,schema:-53,zero_count:1}",
          "the custom bounds of a histogram do not fit" },
    };

    for (size_t i = 0; i < QF_COUNT_OF(examples); i++) {
        QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
        const struct pq_histogram *h;
        const char *what = parse(arena, examples[i].text, &h);

        CHECK_MSG(what && strcmp(what, examples[i].what) == 0, "%s: %s", examples[i].text,
                  what ? what : "was read");
    }
}

static const double *numbers(struct qf_arena *arena, struct qf_prng *prng, size_t count)
{
    double *values = QF_ARENA_ARRAY(arena, double, count + 1);

    for (size_t i = 0; i < count; i++)
        values[i] = (double)qf_prng_next(prng) / 1e13 - (double)(i % 3);
    return values;
}

static const struct pq_span *spans(struct qf_arena *arena, struct qf_prng *prng, size_t *ret_count,
                                   size_t *ret_buckets)
{
    struct pq_span *items = QF_ARENA_ARRAY(arena, struct pq_span, 5);

    *ret_buckets = 0;
    *ret_count = qf_prng_below(prng, 5);
    for (size_t i = 0; i < *ret_count; i++) {
        items[i].offset = (int32_t)qf_prng_below(prng, 100) - (i ? 0 : 50);
        items[i].length = (uint32_t)qf_prng_below(prng, 9);
        *ret_buckets += items[i].length;
    }
    return items;
}

TEST(any_histogram_reads_back_from_its_text_bit_for_bit)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf want = QF_STRBUF_INIT;
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf got = QF_STRBUF_INIT;
        struct qf_prng prng = { seed };
        const double *plain = numbers(arena, &prng, 4);
        struct pq_histogram h = { .schema = (int32_t)qf_prng_below(&prng, 13) - 4,
                                  .count = plain[0],
                                  .sum = seed % 7 ? plain[1] : -INFINITY,
                                  .zero_threshold = plain[2],
                                  .zero_count = plain[3],
                                  .reset_hint = (enum pq_reset_hint)(seed % 4),
                                  .reset_hint_given = seed % 4 || seed % 8 };
        const struct pq_histogram *again = NULL;
        const char *what;

        h.positive_spans = spans(arena, &prng, &h.positive_span_count, &h.positive_bucket_count);
        h.negative_spans = spans(arena, &prng, &h.negative_span_count, &h.negative_bucket_count);
        h.positive_buckets = numbers(arena, &prng, h.positive_bucket_count);
        h.negative_buckets = numbers(arena, &prng, h.negative_bucket_count);
        sg_histogram_text_print(&text, &h);
        what = sg_histogram_text_parse(qf_strbuf_view(&text), arena, &again);
        CHECK_MSG(!what, "%s: %s", qf_strbuf_cstr(&text), what);
        pq_histogram_encode(&want, &h);
        pq_histogram_encode(&got, again);
        CHECK_MSG(qf_str_eq(qf_strbuf_view(&want), qf_strbuf_view(&got)), "%s",
                  qf_strbuf_cstr(&text));
    }
}
