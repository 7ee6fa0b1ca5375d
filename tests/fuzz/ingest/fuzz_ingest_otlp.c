/* fuzz_ingest_otlp.c - any body of an OTLP exporter, protobuf or JSON: it is refused, or becomes a request
 * whose parts are valid, within the memory it may have. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "ingest/otlp/json.h"
#include "ingest/otlp/otlp.h"
#include "promql/histogram/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BUDGET = 1 << 20, MESSAGE_MAX = 1 << 16 };

static void check_series(const struct in_series *series)
{
    assert(series->sample_count || series->exemplar_count);
    assert(qf_labels_get(in_series_labels(series), QF_STR(QF_METRIC_NAME)).len);
    for (size_t i = 0; i < series->label_count; i++) {
        assert(series->labels[i].name.len && series->labels[i].value.len);
        assert(!i || qf_str_cmp(series->labels[i - 1].name, series->labels[i].name) < 0);
    }
    for (size_t i = 0; i < series->sample_count; i++)
        assert(!series->samples[i].histogram || !pq_histogram_check(series->samples[i].histogram));
}

static void decode(struct qf_str message)
{
    static const struct in_check_limits limits = { 30, 256, 4096, INT64_MIN, INT64_MAX };
    struct qf_arena *arena = qf_arena_new(BUDGET);
    struct in_request request;

    if (in_otlp_decode(message, arena, &request, NULL) == QF_OK) {
        in_request_check(&request, &limits);
        for (size_t i = 0; i < request.series_count; i++)
            check_series(&request.series[i]);
    }
    assert(qf_arena_used(arena) <= BUDGET);
    (void)qf_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qf_strbuf message = QF_STRBUF_INIT;
    struct qf_str body = { (const char *)data + 1, size - 1 };

    if (!size)
        return 0;
    if (data[0] & 1)
        decode(body);
    else if (in_otlp_json_decode(body, MESSAGE_MAX, &message, NULL) == QF_OK)
        decode(qf_strbuf_view(&message));
    qf_strbuf_done(&message);
    return 0;
}
