/* fuzz_ingest_body.c - any bytes as the body of a request, in each coding and protocol: refused, or a
 * request whose valid part can be written and read back. The first byte chooses. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "ingest/accept/body.h"
#include "ingest/accept/text.h"
#include "ingest/core/influx.h"
#include "ingest/core/record.h"
#include "ingest/core/remote_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES_MAX = 1 << 16 };

static bool decode(unsigned protocol, struct qf_str bytes, struct qf_arena *arena,
                   struct in_request *request)
{
    bool timeless;

    if (protocol == 4)
        return in_influx_decode(bytes, IN_INFLUX_NS, 1767225600000, arena, request, &timeless,
                                NULL) == QF_OK;
    if (protocol < 2)
        return in_remote_write_decode(protocol ? IN_REMOTE_WRITE_2 : IN_REMOTE_WRITE_1, bytes,
                                      arena, request, NULL) == QF_OK;
    return in_text_decode(bytes, protocol == 3, 1767225600000, arena, request, &timeless, NULL) ==
           QF_OK;
}

/* What passed the check is a record. */
static void write_back(const struct in_request *request)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;
    const struct in_record head = { .tenant = QF_STR("t") };
    struct in_record_series *series =
        qf_xcalloc(request->series_count + 1, sizeof(struct in_record_series));
    struct in_record record;
    qf_rc rc;

    for (size_t i = 0; i < request->series_count; i++)
        series[i] = (struct in_record_series){ .number = (uint32_t)i,
                                               .fresh = true,
                                               .labels = in_series_labels(&request->series[i]),
                                               .samples = request->series[i].samples,
                                               .sample_count = request->series[i].sample_count };
    in_record_put_samples(&buf, &head, series, request->series_count);
    rc = in_record_decode(qf_strbuf_view(&buf), &record, NULL);
    assert(rc == QF_OK);
    assert(record.sample_count == request->accepted.samples + request->accepted.histograms);
    qf_strbuf_done(&buf);
    free(series);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct in_check_limits limits = { .labels_max = 64,
                                            .name_bytes_max = 1024,
                                            .value_bytes_max = 8192,
                                            .ts_min = INT64_MIN,
                                            .ts_max = INT64_MAX };
    struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct qf_arena *arena;
    struct in_request request;

    if (!size)
        return 0;
    if (in_body_decode((enum in_body_coding)(data[0] % 4),
                       (struct qf_str){ (const char *)data + 1, size - 1 }, BYTES_MAX, &bytes,
                       NULL) == QF_OK) {
        assert(bytes.len <= BYTES_MAX);
        arena = qf_arena_new(((size_t)1 << 20) + 48 * bytes.len);
        if (decode(data[0] / 4 % 5, qf_strbuf_view(&bytes), arena, &request)) {
            in_request_check(&request, &limits);
            write_back(&request);
        }
        (void)qf_arena_free(arena);
    }
    qf_strbuf_done(&bytes);
    return 0;
}
