/* The same log over real files. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "queue/log/store.h"
#include "queue/posix/disk_posix.h"
#include "tests/lib/test.h"

struct folder {
    char path[64];
    struct ql_disk *disk;
};

static struct folder folder_new(void)
{
    struct folder folder = { .path = "/tmp/queue-XXXXXX" };
    struct qf_err err = { 0 };

    CHECK(mkdtemp(folder.path));
    CHECK_OK(ql_posix_new(folder.path, &folder.disk, &err), &err);
    return folder;
}

static void folder_done(struct folder *folder)
{
    struct qf_strbuf names = QF_STRBUF_INIT;
    qf_rc rc = folder->disk->ops->list(folder->disk, &names, NULL);

    for (size_t at = 0; at < names.len; at += strlen(names.data + at) + 1)
        rc = folder->disk->ops->remove(folder->disk, names.data + at, NULL);
    qf_strbuf_done(&names);
    (void)rmdir(folder->path);
    (void)rc;
    folder->disk = ql_posix_free(folder->disk);
}

TEST(a_store_works_over_real_files)
{
    QF_CLEANUP(folder_done) struct folder folder = folder_new();
    const struct ql_sequence_state identity = { .cluster = 1, .incarnation = 2, .term = 1 };
    const struct ql_options options = { .file_bytes = 2048 };
    const struct ql_snapshot snapshot = { .index = 30, .term = 1, .change_index = 1 };
    struct ql_store store;
    struct qf_err err = { 0 };

    CHECK_OK(ql_store_create(folder.disk, &identity, &err), &err);
    CHECK_OK(ql_store_open(&store, folder.disk, &options, &err), &err);
    for (uint64_t i = 1; i <= 40; i++) {
        struct ql_entry entry = { i, 1, QL_COMMAND, QF_STR_INIT("a record of some bytes") };

        CHECK_OK(ql_log_append(store.log, &entry, 1, false, &err), &err);
    }
    CHECK_OK(ql_log_sync(store.log, &err), &err);
    CHECK_OK(ql_store_save(&store, &snapshot, &err), &err);
    CHECK_OK(ql_log_drop_before(store.log, 20, &err), &err);
    CHECK_OK(ql_store_vote(&store, 3, 2, &err), &err);
    ql_store_close(&store);
    CHECK_OK(ql_store_open(&store, folder.disk, &options, &err), &err);
    CHECK_EQ(store.sequence.term, 3);
    CHECK_EQ(store.snapshot.index, 30);
    CHECK_EQ(ql_log_last(store.log), 40);
    CHECK(ql_log_first(store.log) > 1);
    ql_store_close(&store);
}

TEST(real_files_say_what_is_wrong)
{
    QF_CLEANUP(folder_done) struct folder folder = folder_new();
    struct ql_disk *disk = NULL;
    struct qf_err err = { 0 };
    uint64_t space;
    char byte;
    int file;

    CHECK_EQ(ql_posix_new("/nowhere/at/all", &disk, &err), QF_ENOTFOUND);
    CHECK(strstr(err.msg, "/nowhere/at/all"));
    CHECK_EQ(folder.disk->ops->open(folder.disk, "x", false, &file, NULL), QF_ENOTFOUND);
    CHECK_EQ(folder.disk->ops->rename(folder.disk, "x", "y", NULL), QF_ENOTFOUND);
    CHECK_OK(folder.disk->ops->open(folder.disk, "x", true, &file, &err), &err);
    CHECK_EQ(folder.disk->ops->read(folder.disk, file, 0, &byte, 1, NULL), QF_EIO);
    folder.disk->ops->close(folder.disk, file);
    CHECK_OK(folder.disk->ops->space(folder.disk, &space, &err), &err);
    CHECK(space > 0);
}
