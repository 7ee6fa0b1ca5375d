/* test_explain.c - the events that show a query while it runs, byte for byte. */
#include "queryapi/encode/explain.h"

#include <math.h>

#include "tests/lib/test.h"

TEST(a_stage_has_a_name_and_a_time)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;

    qa_sse_stage(&buf, "queued", 3);
    CHECK_STR(qf_strbuf_cstr(&buf),
              "data: {\"type\":\"stage\",\"data\":{\"name\":\"queued\",\"t_ms\":3}}\n\n");
}

/* What is not known yet is left out: no worker, no reason, no figures. */
TEST(works_tell_what_is_known_of_each_item)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qa_work_view waiting = { .id = 0, .state = "pending", .reason = "" };
    struct qa_work_view over = { .id = 7,
                                 .state = "fetched",
                                 .worker = "w\"1",
                                 .attempt = 2,
                                 .failures = 1,
                                 .reason = "worker w0 was lost",
                                 .hedged = true,
                                 .has_figures = true,
                                 .figures = { .queued_us = 1,
                                              .download_us = 2,
                                              .scan_us = 3,
                                              .write_us = 4,
                                              .fetch_us = 5,
                                              .rows = 6,
                                              .series = 7,
                                              .samples = UINT64_MAX,
                                              .artifact_bytes = 9,
                                              .download_bytes = 10,
                                              .cache_hits = 11,
                                              .cache_misses = 12 } };

    qa_sse_works_open(&buf, 12);
    qa_sse_works_item(&buf, &waiting, true);
    qa_sse_works_item(&buf, &over, false);
    qa_sse_list_close(&buf);
    CHECK_STR(qf_strbuf_cstr(&buf),
              "data: {\"type\":\"works\",\"data\":{\"t_ms\":12,\"changed\":["
              "{\"id\":0,\"state\":\"pending\",\"attempt\":0,\"failures\":0},"
              "{\"id\":7,\"state\":\"fetched\",\"worker\":\"w\\\"1\",\"attempt\":2,\"failures\":1,"
              "\"reason\":\"worker w0 was lost\",\"hedged\":true,\"queued_us\":1,\"download_us\":2,"
              "\"scan_us\":3,\"write_us\":4,\"fetch_us\":5,\"rows\":6,\"series\":7,"
              "\"samples\":18446744073709551615,\"artifact_bytes\":9,\"download_bytes\":10,"
              "\"cache_hits\":11,\"cache_misses\":12}]}}\n\n");
}

TEST(series_are_told_once_with_their_first_id)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qf_label labels[] = { { QF_STR("a"), QF_STR("<img src=x>\"\n") } };

    qa_sse_series_open(&buf, 5);
    qa_sse_series_item(&buf, (struct qf_labels){ 0 }, true);
    qa_sse_series_item(&buf, (struct qf_labels){ labels, 1 }, false);
    qa_sse_list_close(&buf);
    CHECK_STR(qf_strbuf_cstr(&buf), "data: {\"type\":\"series\",\"data\":{\"first\":5,\"list\":["
                                    "{},{\"a\":\"<img src=x>\\\"\\n\"}]}}\n\n");
}

/* JSON has neither NaN nor infinities: they are strings; a histogram is an object; nothing is null. */
TEST(rows_hold_one_value_per_step)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    const struct pq_histogram histogram = { .count = 2, .sum = 3 };
    const struct pq_histogram *histograms[] = { NULL, NULL, NULL, NULL, &histogram };
    const double values[] = { 1.5, 99, NAN, -INFINITY, 0 };

    qa_sse_batch_open(&buf, 1000, 60000, 5);
    qa_sse_batch_row(&buf, 0, values, 0x1d, histograms, 5, true);
    qa_sse_batch_row(&buf, 12, values, 0x03, NULL, 5, false);
    qa_sse_list_close(&buf);
    CHECK_STR(qf_strbuf_cstr(&buf),
              "data: {\"type\":\"batch\",\"data\":{\"start\":1000,\"step\":60000,\"steps\":5,"
              "\"rows\":[[0,1.5,null,\"NaN\",\"-Inf\",{\"count\":\"2\",\"sum\":\"3\"}],"
              "[12,1.5,99,null,null,null]]}}\n\n");
}

TEST(the_end_says_what_it_took_and_what_it_stands_on)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    const struct pq_node_figures nodes[] = { { 12345, 2, 1 }, { 999, 7, 3 } };
    struct qa_receipt receipt = { .stats = { .total_seconds = 0.25, .samples = 10, .retries = 1 },
                                  .nodes = nodes,
                                  .node_count = 2,
                                  .coverage = { .segments = 3, .works = 2, .checksum = 0xabc } };

    qa_sse_done_explained(&buf, NULL, QF_STR("up"), &receipt);
    CHECK_STR(qf_strbuf_cstr(&buf),
              "data: {\"type\":\"done\",\"data\":{\"status\":\"ok\",\"stats\":{"
              "\"queued_seconds\":0.000000,\"planning_seconds\":0.000000,"
              "\"working_seconds\":0.000000,\"answering_seconds\":0.000000,"
              "\"total_seconds\":0.250000,\"samples\":10,\"series\":0,\"points\":0,"
              "\"artifact_bytes\":0,\"download_bytes\":0,\"retries\":1,\"hedges\":0,\"replans\":0,"
              "\"peak_memory_bytes\":0},\"nodes\":[{\"self_us\":12,\"series\":2,\"blocks\":1},"
              "{\"self_us\":0,\"series\":7,\"blocks\":3}],\"coverage\":{\"segments\":3,\"works\":2,"
              "\"heads\":0,"
              "\"checksum\":\"0000000000000abc\"}}}\n\n");
}
