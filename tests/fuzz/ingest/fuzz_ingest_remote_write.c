/* fuzz_ingest_remote_write.c - any body of either version: it is refused, or becomes a request whose
 * parts are valid, within the memory that remote_write.h promises. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "ingest/core/remote_write.h"
#include "promql/histogram/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An arena takes its memory in chunks. */
enum { BYTES_PER_BYTE = 128, CHUNK = 64 << 10 };

static void check_series(const struct in_series *series, const struct in_check_limits *limits)
{
    assert(series->sample_count || series->exemplar_count);
    assert(qf_labels_get(in_series_labels(series), QF_STR(QF_METRIC_NAME)).len);
    for (size_t i = 0; i < series->label_count; i++) {
        assert(series->labels[i].name.len && series->labels[i].value.len);
        assert(!i || qf_str_cmp(series->labels[i - 1].name, series->labels[i].name) < 0);
    }
    for (size_t i = 0; i < series->sample_count; i++) {
        const struct in_sample *sample = &series->samples[i];

        assert(!sample->bad && sample->ts >= limits->ts_min && sample->ts <= limits->ts_max);
        assert(!sample->histogram || !pq_histogram_check(sample->histogram));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct in_check_limits limits = { 30, 256, 4096, -1000000, INT64_C(1) << 45 };
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct in_request request;

    if (size > 0 && in_remote_write_decode(data[0] & 1 ? IN_REMOTE_WRITE_2 : IN_REMOTE_WRITE_1,
                                           (struct qf_str){ (const char *)data + 1, size - 1 },
                                           arena, &request, NULL) == QF_OK) {
        in_request_check(&request, &limits);
        for (size_t i = 0; i < request.series_count; i++)
            check_series(&request.series[i], &limits);
    }
    assert(qf_arena_used(arena) <= BYTES_PER_BYTE * size + CHUNK);
    (void)qf_arena_free(arena);
    return 0;
}
