/* literals.c - native histograms for tests. */
#include "tests/unit/promql/histogram/literals.h"

#include <stdio.h>

#include "base/pure/number.h"
#include "promql/histogram/build.h"
#include "promql/parse.h"
#include "promql/testing/series.h"
#include "tests/lib/test.h"

const struct pq_histogram *literal(struct qf_arena *arena, const char *text)
{
    struct pq_sequence_value *values;
    struct qf_labels labels;
    struct qf_err err = { 0 };
    char line[1024];
    size_t count;

    (void)snprintf(line, sizeof(line), "h %s", text);
    if (pq_parse_series(arena, qf_str_from(line), &labels, &values, &count, &err) != QF_OK)
        test_fail(__FILE__, __LINE__, "%s: %s", text, err.msg);
    CHECK_EQ(count, 1);
    return values[0].histogram;
}

static void check_side(const char *file, int line, const struct pq_histogram *got,
                       const struct pq_histogram *want, enum pq_side side)
{
    struct pq_side_walk x = pq_side_begin(got, side), y = pq_side_begin(want, side);
    const char *name = side == PQ_POSITIVE ? "positive" : "negative";
    int64_t x_index = 0, y_index = 0;
    double x_count = 0, y_count = 0;

    for (;;) {
        bool x_more = pq_side_next(&x, &x_index, &x_count);
        bool y_more = pq_side_next(&y, &y_index, &y_count);

        if (x_more != y_more)
            test_fail(file, line, "%s side: %s buckets", name, x_more ? "more" : "fewer");
        if (!x_more)
            return;
        if (x_index != y_index || qf_double_bits(x_count) != qf_double_bits(y_count))
            test_fail(file, line, "%s side: bucket %lld has %.17g, wanted bucket %lld with %.17g",
                      name, (long long)x_index, x_count, (long long)y_index, y_count);
    }
}

void check_same(const char *file, int line, const struct pq_histogram *got,
                const struct pq_histogram *want)
{
    if (!got || !want)
        test_fail(file, line, "no histogram");
    test_check_i64(file, line, "schema", got->schema, want->schema);
    test_check_double(file, line, "count", got->count, want->count);
    test_check_double(file, line, "sum", got->sum, want->sum);
    test_check_double(file, line, "zero count", got->zero_count, want->zero_count);
    test_check_double(file, line, "zero threshold", got->zero_threshold, want->zero_threshold);
    if (pq_histogram_is_custom(want)) {
        test_check_i64(file, line, "bounds", (int64_t)got->custom_value_count,
                       (int64_t)want->custom_value_count);
        for (size_t i = 0; i < want->custom_value_count; i++)
            test_check_double(file, line, "bound", got->custom_values[i], want->custom_values[i]);
    }
    check_side(file, line, got, want, PQ_POSITIVE);
    check_side(file, line, got, want, PQ_NEGATIVE);
}

/* Buckets [from, from + width) of a side, some of them empty; returns what is in them. */
static double any_side(struct qf_arena *arena, struct qf_prng *prng, struct pq_histogram *h,
                       enum pq_side side, int64_t from, size_t width)
{
    struct pq_side_writer writer;
    double total = 0;

    CHECK(pq_side_write(&writer, arena, width));
    for (size_t i = 0; i < width; i++) {
        double count =
            qf_prng_chance(prng, 0.3) ? 0 : (double)(1 + qf_prng_below(prng, (1 << 20) - 1));

        pq_side_put(&writer, from + (int64_t)i, count);
        total += count;
    }
    pq_side_set(h, side, &writer);
    return total;
}

const struct pq_histogram *any_exponential(struct qf_arena *arena, struct qf_prng *prng)
{
    static const double thresholds[] = { 0, 0.001, 0.5, 1, 3 };
    struct pq_histogram *h = QF_ARENA_NEW(arena, struct pq_histogram);

    h->schema = (int32_t)qf_prng_below(prng, 7) - 2;
    h->zero_threshold = thresholds[qf_prng_below(prng, 5)];
    h->zero_count = (double)qf_prng_below(prng, 100);
    h->sum = (double)qf_prng_below(prng, 1 << 20);
    h->count = h->zero_count;
    h->count += any_side(arena, prng, h, PQ_POSITIVE, 20 + (int64_t)qf_prng_below(prng, 5),
                         qf_prng_below(prng, 12));
    h->count += any_side(arena, prng, h, PQ_NEGATIVE, 20, qf_prng_below(prng, 6));
    return h;
}

const struct pq_histogram *any_custom(struct qf_arena *arena, struct qf_prng *prng)
{
    struct pq_histogram *h = QF_ARENA_NEW(arena, struct pq_histogram);
    double *bounds = QF_ARENA_ARRAY(arena, double, 10);
    size_t count = 0;

    for (int i = -2; i < 8; i++)
        if (qf_prng_chance(prng, 0.6))
            bounds[count++] = i;
    h->schema = PQ_SCHEMA_CUSTOM;
    h->custom_values = bounds;
    h->custom_value_count = count;
    h->sum = (double)qf_prng_below(prng, 1 << 20);
    h->count = any_side(arena, prng, h, PQ_POSITIVE, 0, count + 1);
    return h;
}
