/* test_sweep.c - what died is removed, what lives is not. */
#include "segments/import/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "segments/import/import.h"
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

TEST(leftovers_of_dead_imports_go_and_those_of_living_ones_stay)
{
    char root[] = "/tmp/promfabric-test-XXXXXX", temp[64], url[64];
    struct store *store = NULL;
    struct qf_err err = { 0 }, why = { 0 };
    struct import_options options;
    struct import *import;
    struct sweep swept;

    CHECK(mkdtemp(root));
    (void)snprintf(temp, sizeof(temp), "%s/temp", root);
    (void)snprintf(url, sizeof(url), "%s/store", root);
    CHECK_EQ(mkdir(temp, 0700), 0);
    CHECK_OK(store_open(&(struct store_options){ .url = url, .create = true }, &store, &err), &err);
    options = (struct import_options){ .store = store,
                                       .tenant = QF_STR("t"),
                                       .shard_count = 1,
                                       .window_ms = 1000,
                                       .memory_bytes = IMPORT_MEMORY_MIN,
                                       .temp_dir = temp };
    import = import_new(&options, &err);
    CHECK_MSG(import, "%s", err.msg);
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
    CHECK_OK(import_sweep(store, temp, NULL, &swept, &why, &err), &err);
    CHECK_EQ(why.rc, QF_OK);
    CHECK_EQ(swept.folders, 1);
    CHECK_EQ(swept.in_store, 1);
    CHECK_EQ(swept.notes, 0);
    CHECK(!exists(temp, "promfabric-import-dead"));
    CHECK(exists(temp, "promfabric-import-young"));
    CHECK(exists(temp, "other"));
    CHECK(!exists(root, "store/tenant=t/date=2026-01-01/.tmp-1-old"));
    CHECK(exists(root, "store/tenant=t/date=2026-01-01/.tmp-1-young"));
    CHECK(exists(root, "store/tenant=t/date=2026-01-01/x.parquet"));
    /* The living import still has its folder. */
    {
        struct qf_label item = { QF_STR("a"), QF_STR("b") };
        int64_t ts = 5;
        double value = 1;

        CHECK_OK(import_add(import, (struct qf_labels){ &item, 1 }, &ts, &value, 1, &err), &err);
        CHECK_OK(import_commit(import, &err), &err);
    }
    (void)import_free(import);
    (void)store_free(store);
    shell("rm -rf '%s'", root);
}
