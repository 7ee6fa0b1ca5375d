/* fuzz_series.c - any bytes become a series description or an error with a place. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "promql/parse.h"
#include "promql/testing/series.h"
#include "promql/value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_histogram(const struct pq_histogram *histogram)
{
    size_t positive = 0, negative = 0;

    for (size_t i = 0; i < histogram->positive_span_count; i++)
        positive += histogram->positive_spans[i].length;
    for (size_t i = 0; i < histogram->negative_span_count; i++)
        negative += histogram->negative_spans[i].length;
    assert(positive == histogram->positive_bucket_count);
    assert(negative == histogram->negative_bucket_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qf_arena *arena = qf_arena_new((size_t)4 << 20);
    struct qf_str text = { (const char *)data, size };
    struct pq_sequence_value *values = NULL;
    struct qf_labels labels;
    struct qf_err err = { 0 };
    size_t count = 0;
    qf_rc rc = pq_parse_series(arena, text, &labels, &values, &count, &err);

    if (rc == QF_OK) {
        for (size_t i = 0; i + 1 < labels.count; i++)
            assert(qf_str_cmp(labels.items[i].name, labels.items[i + 1].name) < 0);
        for (size_t i = 0; i < count; i++)
            if (values[i].histogram)
                check_histogram(values[i].histogram);
    } else {
        assert(rc == QF_EPARSE || rc == QF_ELIMIT);
        assert(err.msg[0]);
        assert(err.pos_start <= err.pos_end && err.pos_end <= size);
    }
    (void)qf_arena_free(arena);
    return 0;
}
