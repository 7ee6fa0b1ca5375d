/* threads_reader.c - one open segment, many threads reading it at once. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/thread.h"
#include "segments/demo/demo.h"
#include "segments/parquet/artifact.h"
#include "segments/parquet/hot.h"
#include "segments/parquet/segment_reader.h"
#include "segments/parquet/segment_writer.h"
#include "tests/lib/test.h"

#define THREADS 4

static char dir[64], path[96];

static uint64_t write_segment(void)
{
    struct sg_demo_options options = { .seed = 1, .end = 3600000, .step = 15000, .instances = 8 };
    struct sg_writer_options to = { .path = path, .tenant = QF_STR("t"), .shard_count = 1 };
    struct sg_demo *demo = sg_demo_new(&options);
    int64_t *ts = qf_xcalloc(sg_demo_samples_max(demo), sizeof(*ts));
    double *values = qf_xcalloc(sg_demo_samples_max(demo), sizeof(*values));
    struct qf_err err = { 0 };
    struct sg_segment_name name;
    struct sg_writer *writer;
    uint64_t total = 0;

    (void)snprintf(dir, sizeof(dir), "/tmp/promfabric-test-XXXXXX");
    CHECK(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/a.parquet", dir);
    writer = sg_writer_new(&to, &err);
    CHECK_MSG(writer, "%s", err.msg);
    for (size_t i = 0; i < sg_demo_series_count(demo); i++) {
        size_t count = sg_demo_samples(demo, i, ts, values);

        if (!count)
            continue;
        CHECK_OK(sg_writer_add(writer, sg_demo_labels(demo, i), ts, values, count, &err), &err);
        total += count;
    }
    CHECK_OK(sg_writer_finish(writer, &name, &err), &err);
    (void)sg_writer_free(writer);
    (void)sg_demo_free(demo);
    free(ts);
    free(values);
    return total;
}

static struct sg_reader *shared;
static _Atomic uint64_t samples_seen, artifacts_seen;

static void scan(void)
{
    struct pq_select all = { .min_ts = INT64_MIN, .max_ts = INT64_MAX };
    struct pq_source *source = sg_source_new(&shared, 1, &all, NULL, 0);
    struct pq_series series;
    bool more = true;

    while (source->next(source, &series, &more, NULL) == QF_OK && more)
        atomic_fetch_add(&samples_seen, series.count);
    source->close(source);
}

/* Artifacts are written and read on the same threads as segments are. */
static void pass_artifact(void)
{
    int64_t ts[2] = { 1, 2 };
    uint32_t series[2] = { 0, 0 };
    double values[2] = { 3, 4 };
    struct qf_label item = { QF_STR("a"), QF_STR("b") };
    struct qf_labels labels = { &item, 1 };
    struct pq_leaf_result result = {
        .kind = &pq_leaf_series,
        .series = &labels,
        .series_count = 1,
        .rows = { .count = 2, .ts = ts, .series = series, .columns = { values } },
    };
    struct qf_strbuf buf = QF_STRBUF_INIT;
    struct pq_leaf_reader *reader;
    struct pq_rows rows;

    if (sg_artifact_write_memory(&result, &buf, NULL, NULL) != QF_OK)
        return;
    reader = sg_artifact_open_memory(qf_strbuf_view(&buf), "a", NULL, NULL);
    if (reader && reader->next(reader, &rows, NULL) == QF_OK)
        atomic_fetch_add(&artifacts_seen, rows.count);
    if (reader)
        reader->close(reader);
    qf_strbuf_done(&buf);
}

static void work(void *arg)
{
    (void)arg;
    for (int round = 0; round < 3; round++) {
        scan();
        pass_artifact();
    }
}

/* With @hot_bytes > 0 what is read is kept and shared. */
static void read_at_once(uint64_t hot_bytes)
{
    struct qf_err err = { 0 };
    struct qf_thread *threads[THREADS];
    uint64_t total = write_segment();
    struct sg_hot *hot = hot_bytes ? sg_hot_new(hot_bytes) : NULL;

    samples_seen = artifacts_seen = 0;
    shared = sg_reader_open(path, &err);
    CHECK_MSG(shared, "%s", err.msg);
    sg_hot_join(hot, shared);
    for (size_t i = 0; i < THREADS; i++)
        threads[i] = qf_thread_start("scan", work, NULL);
    for (size_t i = 0; i < THREADS; i++)
        (void)qf_thread_join(threads[i]);
    shared = sg_reader_free(shared);
    (void)sg_hot_free(hot);
    CHECK_EQ(samples_seen, total * 3 * THREADS);
    CHECK_EQ(artifacts_seen, 2 * 3 * THREADS);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(rmdir(dir), 0);
}

TEST(many_threads_read_one_segment_at_once)
{
    read_at_once(0);
}

TEST(many_threads_share_what_is_kept_of_a_segment)
{
    read_at_once(64 << 20);
}

/* Too little for all of it: parts come and go while others read them. */
TEST(many_threads_share_too_little_memory)
{
    read_at_once(150000);
}
