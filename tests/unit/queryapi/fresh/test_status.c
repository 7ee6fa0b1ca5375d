/* test_status.c - what ingest nodes say of their heads is read whole, or not at all. */
#include "queryapi/fresh/status.h"
#include "tests/lib/test.h"

#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"

#define NAME                                                                                       \
    "tenant=a/date=2026-01-31/"                                                                    \
    "1769817600000_1769824799999_s3of8_g1769900000000000_9f3a000000000001.parquet"

static const char one[] = "{\"cluster\":\"c1\",\"epoch\":1,\"partitions\":[{\"partition\":0,"
                          "\"queue\":\"aa\",\"applied\":77,"
                          "\"sealed_index\":70,\"list\":false,\"files\":[{\"name\":\"" NAME
                          "\",\"size\":12,\"etag\":\"t\",\"index\":70}],\"floor\":-5,\"shards\":8,"
                          "\"ranges\":[{\"generation\":"
                          "1769900000000000,\"from\":71,\"to\":0,\"min_ts\":10,\"max_ts\":20,"
                          "\"samples\":3}],\"replicas\":["
                          "\"http://a:1\",\"https://b:2\"]}]}";

/* @text with the first @old replaced by @fresh. */
static char *with(const char *text, const char *old, const char *fresh)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;
    const char *at = strstr(text, old);

    CHECK_MSG(at, "%s is not in the text", old);
    qf_strbuf_add(&buf, text, (size_t)(at - text));
    qf_strbuf_puts(&buf, fresh);
    qf_strbuf_puts(&buf, at + strlen(old));
    return qf_strbuf_take(&buf);
}

TEST(every_field_of_a_status_is_read)
{
    struct qf_err err = { 0 };
    struct qa_status *status = qa_status_parse(qf_str_from(one), &err);
    const struct qa_fresh_partition *p;

    CHECK_MSG(status, "%s", err.msg);
    p = status->partitions;
    CHECK(qf_str_is(status->cluster, "c1"));
    CHECK_EQ(status->count, 1);
    CHECK(!status->list);
    CHECK(qf_str_is(p->queue, "aa"));
    CHECK_EQ(p->applied, 77);
    CHECK_EQ(p->sealed_index, 70);
    CHECK_EQ(p->floor, -5);
    CHECK_EQ(p->shards, 8);
    CHECK_EQ(p->file_count, 1);
    CHECK(qf_str_is(p->files[0].name, NAME));
    CHECK_EQ(p->files[0].size, 12);
    CHECK(qf_str_is(p->files[0].etag, "t"));
    CHECK_EQ(p->range_count, 1);
    CHECK(p->ranges[0].generation == UINT64_C(1769900000000000));
    CHECK_EQ(p->ranges[0].min_ts, 10);
    CHECK_EQ(p->ranges[0].max_ts, 20);
    CHECK_EQ(p->ranges[0].samples, 3);
    CHECK_EQ(p->replica_count, 2);
    CHECK(qf_str_is(p->replicas[1], "https://b:2"));
    CHECK(qa_range_overlaps(&p->ranges[0], 20, 30));
    CHECK(!qa_range_overlaps(&p->ranges[0], 21, 30));
    CHECK(!qa_range_overlaps(&p->ranges[0], 0, 9));
    (void)qa_status_drop(status);
}

/* A partition that is missing, or a field that is not as documented, would be samples that are missing. */
TEST(a_status_that_is_not_whole_is_refused)
{
    static const char *const changes[][2] = {
        { "\"partition\":0", "\"partition\":1" },
        { "\"partition\":0", "\"partition\":-1" },
        { "\"queue\":\"aa\"", "\"queue\":\"\"" },
        { "\"queue\":\"aa\"", "\"queue\":7" },
        { "\"applied\":77", "\"applied\":-1" },
        { "\"applied\":77", "\"applied\":7.5" },
        { "\"shards\":8", "\"shards\":0" },
        { "\"shards\":8", "\"shards\":6" },
        { "\"shards\":8", "\"shards\":131072" },
        { "1769817600000_", "x_" },
        { "\"ranges\":[", "\"strange\":[" },
        { "\"min_ts\":10", "\"min_ts\":30" },
        { "\"generation\":", "\"generations\":" },
        { "http://a:1", "file:///etc" },
        { "[\"http://a:1\",\"https://b:2\"]", "[]" },
        { "\"cluster\":\"c1\"", "\"cluster\":null" },
        { "\"partitions\":[{", "\"partitions\":[{}, {}, {" },
        { "{\"cluster\"", "[\"cluster\"" },
    };

    for (size_t i = 0; i < QF_COUNT_OF(changes); i++) {
        QF_CLEANUP(qf_freep) char *text = with(one, changes[i][0], changes[i][1]);
        struct qf_err err = { 0 };
        struct qa_status *status = qa_status_parse(qf_str_from(text), &err);

        CHECK_MSG(!status, "%s was taken", changes[i][1]);
        CHECK_EQ(err.rc, QF_EPROTO);
    }
}

/* Partitions may come in any order, each once, as many as a power of two. */
TEST(partitions_come_in_any_order)
{
    static const char part[] =
        "{\"partition\":%d,\"queue\":\"q%d\",\"applied\":1,\"sealed_index\":0,"
        "\"list\":%s,\"files\":[],\"floor\":null,\"shards\":4,\"ranges\":[],"
        "\"replicas\":[]}";
    static const int orders[][4] = { { 2, 0, 3, 1 }, { 0, 0, 1, 2 } };

    for (size_t i = 0; i < QF_COUNT_OF(orders); i++) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
        struct qf_err err = { 0 };
        struct qa_status *status;

        qf_strbuf_puts(&text, "{\"cluster\":\"c\",\"partitions\":[");
        for (int k = 0; k < 4; k++) {
            qf_strbuf_puts(&text, k ? "," : "");
            qf_strbuf_printf(&text, part, orders[i][k], orders[i][k], k == 1 ? "true" : "false");
        }
        qf_strbuf_puts(&text, "]}");
        status = qa_status_parse(qf_strbuf_view(&text), &err);
        CHECK_EQ(status != NULL, i == 0);
        if (!status)
            continue;
        CHECK_EQ(status->partitions[3].number, 3);
        CHECK(qf_str_is(status->partitions[3].queue, "q3"));
        CHECK(status->partitions[3].floor == INT64_MIN);
        CHECK(status->list);
        (void)qa_status_drop(status);
    }
}
