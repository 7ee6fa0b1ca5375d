#include "queue/peer/bundle.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/test.h"
#include "tests/unit/queue/peer/filled_store.h"

struct bench {
    struct filled_store filled;
    char dir[32], path[64];
};

static void bench_start(struct bench *bench)
{
    (void)snprintf(bench->dir, sizeof(bench->dir), "/tmp/test_bundle_XXXXXX");
    CHECK(mkdtemp(bench->dir));
    (void)snprintf(bench->path, sizeof(bench->path), "%s/bundle", bench->dir);
    filled_store_start(&bench->filled, 20, 16);
}

static void bench_stop(struct bench *bench)
{
    filled_store_stop(&bench->filled);
    (void)unlink(bench->path);
    CHECK_EQ(rmdir(bench->dir), 0);
}

TEST(a_bundle_holds_the_snapshot_and_its_entries)
{
    struct bench bench = { 0 };
    struct qp_bundle bundle;
    struct qf_err err = { 0 };

    bench_start(&bench);
    CHECK_OK(qp_bundle_write(&bench.filled.store, 5, bench.path, &err), &err);
    CHECK_OK(qp_bundle_open(bench.path, &bundle, &err), &err);
    CHECK_EQ(bundle.snapshot.index, 16);
    CHECK_EQ(bundle.snapshot.term, 1);
    CHECK(qf_str_is(bundle.snapshot.state, "state"));
    CHECK(qf_str_is(bundle.snapshot.members, "members"));
    CHECK_EQ(bundle.count, 12);
    CHECK_EQ(bundle.entries[0].index, 5);
    CHECK_EQ(bundle.entries[11].index, 16);
    CHECK(qf_str_is(bundle.entries[11].data, "record 16"));
    qp_bundle_close(&bundle);
    bench_stop(&bench);
}

TEST(a_bundle_may_be_without_entries)
{
    struct bench bench = { 0 };
    struct qp_bundle bundle;
    struct qf_err err = { 0 };

    bench_start(&bench);
    CHECK_OK(qp_bundle_write(&bench.filled.store, 100, bench.path, &err), &err);
    CHECK_OK(qp_bundle_open(bench.path, &bundle, &err), &err);
    CHECK_EQ(bundle.count, 0);
    qp_bundle_close(&bundle);
    bench_stop(&bench);
}

static void change_byte(const char *path, off_t at, unsigned char xor_with)
{
    int fd = open(path, O_RDWR);
    unsigned char byte;

    CHECK(fd >= 0);
    CHECK_EQ(pread(fd, &byte, 1, at), 1);
    byte ^= xor_with;
    CHECK_EQ(pwrite(fd, &byte, 1, at), 1);
    (void)close(fd);
}

/* Wherever a bit is flipped or the file ends, it is no bundle. */
TEST(a_damaged_bundle_is_refused)
{
    struct bench bench = { 0 };
    struct qp_bundle bundle;
    struct qf_err err = { 0 };
    struct stat stats;

    bench_start(&bench);
    CHECK_OK(qp_bundle_write(&bench.filled.store, 1, bench.path, &err), &err);
    CHECK_EQ(stat(bench.path, &stats), 0);
    for (off_t at = 0; at < stats.st_size; at++) {
        change_byte(bench.path, at, 4);
        CHECK_MSG(qp_bundle_open(bench.path, &bundle, NULL) != QF_OK, "byte %ld", (long)at);
        change_byte(bench.path, at, 4);
    }
    CHECK_OK(qp_bundle_open(bench.path, &bundle, &err), &err);
    qp_bundle_close(&bundle);
    for (off_t len = stats.st_size - 1; len >= 0; len--) {
        CHECK_EQ(truncate(bench.path, len), 0);
        CHECK_MSG(qp_bundle_open(bench.path, &bundle, NULL) != QF_OK, "%ld bytes", (long)len);
    }
    bench_stop(&bench);
}
