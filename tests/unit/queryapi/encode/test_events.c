/* test_events.c - the event stream's encoder. */
#include "queryapi/encode/events.h"

#include <math.h>

#include "tests/lib/test.h"

/* A histogram has the form that it has in Prometheus's JSON, in the place of the number. */
TEST(histograms_are_values_of_events)
{
    const struct pq_histogram histogram = { .count = 2, .sum = 0.5, .zero_count = 2 };
    struct qf_strbuf buf = QF_STRBUF_INIT;

    qa_sse_result(&buf, QF_STR("\"tags\":{}"), 1500, 0, &histogram);
    CHECK_STR(qf_strbuf_cstr(&buf),
              "data: {\"type\":\"result\",\"data\":{\"timestamp\":1500,\"value\":{\"count\":\"2\","
              "\"sum\":\"0.5\",\"buckets\":[[3,\"-0\",\"0\",\"2\"]]},\"tags\":{}}}\n\n");
    qf_strbuf_done(&buf);
}

TEST(events_are_one_data_line_and_a_blank_one)
{
    struct qf_label labels[] = { { QF_STR("__name__"), QF_STR("up") },
                                 { QF_STR("job"), QF_STR("a\"b\n") } };
    struct qf_strbuf series = QF_STRBUF_INIT, buf = QF_STRBUF_INIT;

    qa_sse_series(&series, (struct qf_labels){ labels, 2 });
    qa_sse_result(&buf, qf_strbuf_view(&series), 1500, 1.5, NULL);
    CHECK_STR(qf_strbuf_cstr(&buf),
              "data: {\"type\":\"result\",\"data\":{\"timestamp\":1500,\"value\":1.5,"
              "\"tags\":{\"__name__\":\"up\",\"job\":\"a\\\"b\\n\"},"
              "\"label\":\"up{job=\\\"a\\\\\\\"b\\\\n\\\"}\"}}\n\n");
    qf_strbuf_reset(&buf);
    qa_sse_result(&buf, QF_STR("\"tags\":{}"), 0, INFINITY, NULL);
    CHECK(strstr(buf.data, "\"value\":\"+Inf\","));
    qf_strbuf_reset(&buf);
    qa_sse_error(&buf, "timeout", QF_STR("too late"));
    CHECK_STR(qf_strbuf_cstr(&buf),
              "data: {\"type\":\"error\",\"data\":{\"code\":\"timeout\",\"message\":\"too late\"}}"
              "\n\ndata: {\"type\":\"done\",\"data\":{\"status\":\"error\"}}\n\n");
    qf_strbuf_done(&series);
    qf_strbuf_done(&buf);
}
