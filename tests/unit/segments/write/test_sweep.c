/* test_sweep.c - what died is removed, what lives is not. */
#include "segments/write/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "segments/write/batch.h"
#include "tests/lib/test.h"

static void shell(const char *format, const char *path)
{
    char command[512];

    (void)snprintf(command, sizeof(command), format, path, path, path);
    CHECK_EQ(system(command), 0);
}

static bool exists(const char *root, const char *name)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", root, name);
    return access(path, F_OK) == 0;
}

TEST(leftovers_of_dead_batches_go_and_those_of_living_ones_stay)
{
    char root[] = "/tmp/promfabric-test-XXXXXX", temp[64], url[64];
    struct sg_store *store = NULL;
    struct qf_err err = { 0 }, why = { 0 };
    struct sg_batch_options options;
    struct sg_sweep_options sweep;
    struct sg_batch *batch;
    struct sg_sweep swept;

    CHECK(mkdtemp(root));
    (void)snprintf(temp, sizeof(temp), "%s/temp", root);
    (void)snprintf(url, sizeof(url), "%s/store", root);
    CHECK_EQ(mkdir(temp, 0700), 0);
    CHECK_OK(sg_store_open(&(struct sg_store_options){ .url = url, .create = true }, &store, &err),
             &err);
    options = (struct sg_batch_options){ .store = store,
                                         .tenant = QF_STR("t"),
                                         .shard_count = 1,
                                         .window_ms = 1000,
                                         .memory_bytes = SG_BATCH_MEMORY_MIN,
                                         .temp_dir = temp };
    batch = sg_batch_new(&options, &err);
    CHECK_MSG(batch, "%s", err.msg);
    shell(
        "cd %s/temp && find . -mindepth 1 -maxdepth 1 -exec touch -d '1 hour ago' {} + && "
        "mkdir promfabric-import-dead promfabric-import-young other && "
        "echo x >promfabric-import-dead/run-1 && echo x >promfabric-import-dead/segment.parquet && "
        "touch -d '1 hour ago' promfabric-import-dead other",
        root);
    shell(
        "mkdir -p '%s/store/tenant=t/date=2026-01-01' && cd '%s/store/tenant=t/date=2026-01-01' && "
        "touch -d '25 hours ago' .tmp-1-old x.parquet && touch -d '23 hours ago' .tmp-1-young",
        root);
    /* Empty folders: one that is old, one that is young, one that holds only a young one. */
    shell("cd '%s/store' && mkdir -p tenant=gone/date=2026-01-01 tenant=t/date=2026-01-02 && "
          "touch -d '25 hours ago' tenant=gone/date=2026-01-01",
          root);
    shell("cd '%s/store' && mkdir -p _leases/a && cd _leases/a && "
          "printf 'promfabric-lease 1\n0123456789abcdef\n60000\nx\n' | "
          "tee 00000000000000000001 >00000000000000000002 && "
          "touch -d '25 hours ago' 00000000000000000001",
          root);
    sweep = (struct sg_sweep_options){ .store = store, .temp_dir = temp, .dry_run = true };
    CHECK_OK(sg_sweep(&sweep, NULL, &swept, &why, &err), &err);
    CHECK_EQ(swept.folders, 1);
    CHECK_EQ(swept.in_store, 2);
    CHECK_EQ(swept.leases, 1);
    CHECK(exists(temp, "promfabric-import-dead"));
    CHECK(exists(root, "store/tenant=t/date=2026-01-01/.tmp-1-old"));
    CHECK(exists(root, "store/_leases/a/00000000000000000001"));
    sweep.dry_run = false;
    CHECK_OK(sg_sweep(&sweep, NULL, &swept, &why, &err), &err);
    CHECK_EQ(why.rc, QF_OK);
    CHECK_EQ(swept.folders, 1);
    CHECK_EQ(swept.in_store, 2);
    CHECK_EQ(swept.leases, 1);
    CHECK_EQ(swept.notes, 0);
    CHECK(!exists(root, "store/_leases/a/00000000000000000001"));
    CHECK(exists(root, "store/_leases/a/00000000000000000002"));
    CHECK(!exists(root, "store/tenant=gone/date=2026-01-01"));
    CHECK(exists(root, "store/tenant=t/date=2026-01-02"));
    CHECK(!exists(temp, "promfabric-import-dead"));
    CHECK(exists(temp, "promfabric-import-young"));
    CHECK(exists(temp, "other"));
    CHECK(!exists(root, "store/tenant=t/date=2026-01-01/.tmp-1-old"));
    CHECK(exists(root, "store/tenant=t/date=2026-01-01/.tmp-1-young"));
    CHECK(exists(root, "store/tenant=t/date=2026-01-01/x.parquet"));
    /* The living batch still has its folder. */
    {
        struct qf_label item = { QF_STR("a"), QF_STR("b") };
        struct sg_sample sample = { .ts = 5, .value = 1 };

        CHECK_OK(sg_batch_add(batch, (struct qf_labels){ &item, 1 }, &sample, 1, &err), &err);
        CHECK_OK(sg_batch_commit(batch, &err), &err);
    }
    (void)sg_batch_free(batch);
    (void)sg_store_free(store);
    shell("rm -rf '%s'", root);
}
