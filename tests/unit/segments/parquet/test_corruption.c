/* test_corruption.c - a damaged segment is a clean error that names the file, never other data. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/prng.h"
#include "segments/parquet/segment_reader.h"
#include "segments/parquet/segment_writer.h"
#include "tests/lib/test.h"

struct damaged {
    char dir[64], path[96];
    char *bytes; /* undamaged */
    size_t size;
};

static void damaged_done(struct damaged *d)
{
    (void)unlink(d->path);
    (void)rmdir(d->dir);
    free(d->bytes);
}

/* Of two series one has decimals and the next any doubles, so that a scan reads all columns. */
static struct damaged make_version(uint32_t version, size_t series, size_t samples)
{
    struct damaged d = { .dir = "/tmp/promfabric-test-XXXXXX" };
    struct sg_writer_options options = { .tenant = QF_STR("default"),
                                         .shard_count = 1,
                                         .schema_version = version };
    struct qf_err err = { 0 };
    struct sg_segment_name name;
    struct qf_prng prng = { 7 };
    int fd;

    CHECK(mkdtemp(d.dir));
    (void)snprintf(d.path, sizeof(d.path), "%s/broken.parquet", d.dir);
    options.path = d.path;
    struct sg_writer *writer = sg_writer_new(&options, &err);
    CHECK(writer);
    for (size_t i = 0; i < series; i++) {
        QF_CLEANUP(qf_freep) int64_t *ts = qf_xcalloc(samples, sizeof(*ts));
        QF_CLEANUP(qf_freep) double *values = qf_xcalloc(samples, sizeof(*values));
        char host[16];
        struct qf_label items[] = { { QF_STR("__name__"), QF_STR("m") },
                                    { QF_STR("host"), { host, 6 } } };

        (void)snprintf(host, sizeof(host), "h%05zu", i);
        for (size_t k = 0; k < samples; k++) {
            ts[k] = (int64_t)k * 15000;
            values[k] = (double)qf_prng_below(&prng, 1000000) / (i % 2 ? 1000 : 7);
        }
        CHECK_OK(sg_writer_add(writer, (struct qf_labels){ items, 2 }, ts, values, samples, &err),
                 &err);
    }
    CHECK_OK(sg_writer_finish(writer, &name, &err), &err);
    (void)sg_writer_free(writer);
    fd = open(d.path, O_RDONLY);
    d.size = (size_t)lseek(fd, 0, SEEK_END);
    d.bytes = qf_xmalloc(d.size);
    CHECK_EQ(pread(fd, d.bytes, d.size, 0), (ssize_t)d.size);
    CHECK_EQ(close(fd), 0);
    return d;
}

static struct damaged make_segment(size_t series, size_t samples)
{
    return make_version(SG_SCHEMA_VERSION, series, samples);
}

static void write_bytes(const struct damaged *d, const char *bytes, size_t size)
{
    int fd = open(d->path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    CHECK(fd >= 0);
    CHECK_EQ(write(fd, bytes, size), (ssize_t)size);
    CHECK_EQ(close(fd), 0);
}

/* Scan everything; the first error. */
static qf_rc scan(const char *path, struct qf_err *err)
{
    struct sg_reader *reader = sg_reader_open(path, err);
    struct pq_select select = { .min_ts = INT64_MIN, .max_ts = INT64_MAX };
    struct pq_source *source;
    struct pq_series series;
    bool more = true;
    qf_rc rc = QF_OK;

    if (!reader)
        return err->rc;
    source = sg_source_new(&reader, 1, &select, NULL, 0);
    while (rc == QF_OK && more)
        rc = source->next(source, &series, &more, err);
    source->close(source);
    (void)sg_reader_free(reader);
    return rc;
}

static void check_broken(const struct damaged *d, const char *what, size_t at)
{
    struct qf_err err = { 0 };
    qf_rc rc = scan(d->path, &err);

    CHECK_MSG(rc == QF_ECORRUPT, "%s %zu: rc %d %s", what, at, rc, err.msg);
    CHECK_MSG(strstr(err.msg, "broken.parquet"), "%s", err.msg);
}

static void flip_every_byte(struct damaged *d)
{
    struct qf_err err = { 0 };
    int fd = open(d->path, O_WRONLY);

    CHECK_OK(scan(d->path, &err), &err);
    for (size_t i = 0; i < d->size; i++) {
        char flipped = (char)(d->bytes[i] ^ (1 << (i * 5 % 8)));

        CHECK_EQ(pwrite(fd, &flipped, 1, (off_t)i), 1);
        check_broken(d, "byte", i);
        CHECK_EQ(pwrite(fd, &d->bytes[i], 1, (off_t)i), 1);
    }
    CHECK_EQ(close(fd), 0);
    CHECK_OK(scan(d->path, &err), &err);
}

TEST(every_flipped_byte_of_a_small_segment_is_found)
{
    QF_CLEANUP(damaged_done) struct damaged d = make_segment(4, 20);

    flip_every_byte(&d);
}

TEST(every_flipped_byte_of_a_small_segment_of_version_1_is_found)
{
    QF_CLEANUP(damaged_done) struct damaged d = make_version(1, 4, 20);

    flip_every_byte(&d);
}

/* Where all values are of one kind nobody reads the column of the other, but who checks the file. */
TEST(a_flipped_byte_that_no_scan_reads_is_found_by_a_check)
{
    QF_CLEANUP(damaged_done) struct damaged d = make_segment(1, 20);
    struct qf_err err = { 0 };
    struct sg_reader *reader = sg_reader_open(d.path, &err);
    int fd = open(d.path, O_WRONLY);
    size_t silent = 0;

    CHECK_OK(sg_reader_verify(reader, &err), &err);
    (void)sg_reader_free(reader);
    for (size_t i = 0; i < d.size; i++) {
        char flipped = (char)(d.bytes[i] ^ (1 << (i * 5 % 8)));

        CHECK_EQ(pwrite(fd, &flipped, 1, (off_t)i), 1);
        silent += scan(d.path, &err) == QF_OK;
        reader = sg_reader_open(d.path, &err);
        CHECK_EQ(reader ? sg_reader_verify(reader, &err) : err.rc, QF_ECORRUPT);
        (void)sg_reader_free(reader);
        CHECK_EQ(pwrite(fd, &d.bytes[i], 1, (off_t)i), 1);
    }
    CHECK_EQ(close(fd), 0);
    CHECK_MSG(silent > 0 && silent < d.size / 10, "%zu of %zu", silent, d.size);
}

TEST(flipped_bytes_of_a_segment_of_several_row_groups_are_found)
{
    QF_CLEANUP(damaged_done) struct damaged d = make_segment(600, 480);
    struct qf_prng prng = { 3 };
    int fd = open(d.path, O_WRONLY);

    for (int i = 0; i < 60; i++) {
        size_t at = qf_prng_below(&prng, d.size);
        char flipped = (char)(d.bytes[at] ^ (1 << qf_prng_below(&prng, 8)));

        CHECK_EQ(pwrite(fd, &flipped, 1, (off_t)at), 1);
        check_broken(&d, "byte", at);
        CHECK_EQ(pwrite(fd, &d.bytes[at], 1, (off_t)at), 1);
    }
    CHECK_EQ(close(fd), 0);
}

TEST(a_segment_cut_at_any_kilobyte_is_refused)
{
    QF_CLEANUP(damaged_done) struct damaged d = make_segment(200, 480);

    CHECK_EQ(truncate(d.path, (off_t)d.size - 1), 0);
    check_broken(&d, "size", d.size - 1);
    for (size_t kilobytes = d.size / 1024 + 1; kilobytes-- > 0;) {
        CHECK_EQ(truncate(d.path, (off_t)kilobytes * 1024), 0);
        check_broken(&d, "size", kilobytes * 1024);
    }
}

/* Cut while it is open: an error, not a signal. */
TEST(a_segment_cut_under_a_reader_is_an_error)
{
    QF_CLEANUP(damaged_done) struct damaged d = make_segment(50, 480);
    struct pq_select select = { .min_ts = INT64_MIN, .max_ts = INT64_MAX };
    struct qf_err err = { 0 };
    struct sg_reader *reader = sg_reader_open(d.path, &err);
    struct pq_source *source;
    struct pq_series series;
    bool more;

    CHECK(reader);
    CHECK_EQ(truncate(d.path, 1000), 0);
    source = sg_source_new(&reader, 1, &select, NULL, 0);
    CHECK_EQ(source->next(source, &series, &more, &err), QF_ECORRUPT);
    source->close(source);
    (void)sg_reader_free(reader);
}

/* Of several files the error says which one: the caller has its own copy of one and not of others.
 */
TEST(an_error_is_about_the_file_that_is_broken)
{
    QF_CLEANUP(damaged_done)
    struct damaged a = make_segment(3, 20), b = make_segment(50, 480), c = make_segment(3, 20);
    struct pq_select select = { .min_ts = INT64_MIN, .max_ts = INT64_MAX };
    struct sg_reader *readers[] = { sg_reader_open(a.path, NULL), sg_reader_open(b.path, NULL),
                                    sg_reader_open(c.path, NULL) };

    CHECK_EQ(truncate(b.path, 1000), 0);
    for (size_t at = 0; at < 3; at++) { /* wherever it stands */
        struct sg_reader *turned[] = { readers[(1 + 3 - at) % 3], readers[(2 + 3 - at) % 3],
                                       readers[(3 - at) % 3] };
        struct pq_source *source = sg_source_new(turned, 3, &select, NULL, 0);
        struct qf_err err = { 0 };
        struct pq_series series;
        bool more = true;
        qf_rc rc = QF_OK;

        CHECK(turned[at] == readers[1]);
        while (rc == QF_OK && more)
            rc = source->next(source, &series, &more, &err);
        CHECK_EQ(rc, QF_ECORRUPT);
        CHECK_EQ(err.subject, at + 1);
        source->close(source);
    }
    for (size_t i = 0; i < 3; i++)
        (void)sg_reader_free(readers[i]);
}

TEST(files_that_are_something_else_are_refused)
{
    QF_CLEANUP(damaged_done) struct damaged d = make_segment(4, 20);
    char zeros[4096] = { 0 };

    write_bytes(&d, "", 0);
    check_broken(&d, "empty", 0);
    write_bytes(&d, "PAR1PAR1", 8);
    check_broken(&d, "magic only", 0);
    write_bytes(&d, zeros, sizeof(zeros));
    check_broken(&d, "zeros", 0);
    memcpy(zeros, "PAR1", 4);
    memcpy(zeros + 4088, "\xf0\xff\xff\xff", 4);
    memcpy(zeros + 4092, "PAR1", 4);
    write_bytes(&d, zeros, sizeof(zeros));
    check_broken(&d, "huge footer", 0);
}
