/* test_times.c - times of samples, from files whose seal is right and whose words are lies. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "segments/parquet/segment_reader.h"
#include "segments/parquet/segment_writer.h"
#include "tests/fuzz/segments/sealed.h"
#include "tests/lib/test.h"

#define SAMPLES 40

static struct sg_writer *writer_new(const char *path)
{
    struct sg_writer_options options = {
        .path = path, .tenant = QF_STR("t"), .shard_count = 1, .generation = 1
    };
    struct qf_err err = { 0 };
    struct sg_writer *writer = sg_writer_new(&options, &err);

    CHECK_MSG(writer, "%s", err.msg);
    return writer;
}

static const char *new_path(void)
{
    static char path[64];

    (void)snprintf(path, sizeof(path), "/tmp/pf-times-%d", (int)getpid());
    (void)unlink(path);
    return path;
}

static void write_good(const char *path)
{
    struct qf_label label = { QF_STR("__name__"), QF_STR("m") };
    struct sg_writer *writer = writer_new(path);
    struct sg_segment_name name;
    double values[SAMPLES] = { 0 };
    int64_t ts[SAMPLES];

    for (int i = 0; i < SAMPLES; i++)
        ts[i] = 1700000000000 + i * 15000 + i % 7;
    CHECK_EQ(sg_writer_add(writer, (struct qf_labels){ &label, 1 }, ts, values, SAMPLES, NULL),
             QF_OK);
    CHECK_EQ(sg_writer_finish(writer, &name, NULL), QF_OK);
    (void)sg_writer_free(writer);
}

static void learn(struct sealed *sealed)
{
    const char *path = new_path();
    char *bytes = qf_xmalloc((size_t)1 << 16);
    FILE *file;
    size_t len;

    write_good(path);
    file = fopen(path, "re");
    CHECK(file);
    len = fread(bytes, 1, (size_t)1 << 16, file);
    (void)fclose(file);
    (void)unlink(path);
    sealed_learn(sealed, (struct qf_str){ bytes, len });
    free(bytes);
}

/* True if it could be read: then everything is in order and near the epoch. */
static bool read_in_order(struct qf_str bytes)
{
    struct pq_select select = { .min_ts = INT64_MIN, .max_ts = INT64_MAX };
    int fd = memfd_create("segment", MFD_CLOEXEC);
    struct sg_reader *reader;
    struct pq_source *source;
    struct pq_series series;
    struct qf_err err = { 0 };
    bool more = true;
    qf_rc rc;

    CHECK(fd >= 0 && write(fd, bytes.data, bytes.len) == (ssize_t)bytes.len);
    reader = sg_reader_open_fd(fd, "times", &err);
    if (!reader)
        return false;
    source = sg_source_new(&reader, 1, &select, NULL, (uint64_t)16 << 20);
    while ((rc = source->next(source, &series, &more, &err)) == QF_OK && more) {
        CHECK(sg_times_fit(series.ts[0], series.ts[series.count - 1]));
        for (size_t i = 1; i < series.count; i++)
            CHECK(series.ts[i - 1] < series.ts[i]);
    }
    source->close(source);
    (void)sg_reader_free(reader);
    return rc == QF_OK;
}

TEST(whatever_is_written_under_a_right_seal_times_are_in_order_or_an_error)
{
    struct sealed sealed = { 0 };
    size_t good = 0, bad = 0;

    learn(&sealed);
    for (size_t back = 0; back + 12 < sealed.file.len; back++) {
        static const uint8_t changes[] = { 0x01, 0x80, 0xff };

        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
        uint8_t edit[3] = { (uint8_t)(back >> 8), (uint8_t)back, changes[back % 3] };

        sealed_edit(&sealed, edit, sizeof(edit), &bytes);
        if (read_in_order(qf_strbuf_view(&bytes)))
            good++;
        else
            bad++;
    }
    CHECK(good > 0);
    CHECK(bad > 0);
    qf_strbuf_done(&sealed.file);
    QF_VEC_DONE(&sealed.chunks);
}

TEST(a_sample_beyond_all_times_is_not_written)
{
    struct qf_label label = { QF_STR("__name__"), QF_STR("m") };
    struct sg_writer *writer = writer_new(new_path());
    int64_t ts[] = { 0, SG_TIME_MAX + 1 };
    double values[2] = { 0 };

    CHECK_EQ(sg_writer_add(writer, (struct qf_labels){ &label, 1 }, ts, values, 2, NULL),
             QF_EINVAL);
    (void)sg_writer_free(writer);
}
