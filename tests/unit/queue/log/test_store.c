#include <inttypes.h>

#include "queue/log/store.h"
#include "tests/lib/queue/sim_disk.h"
#include "tests/lib/test.h"

static const struct ql_options options = { .file_bytes = 2048 };
static const struct ql_sequence_state identity = { .cluster = 5, .incarnation = 6, .term = 1 };

struct world {
    struct sim_disk *disk;
    struct ql_store store;
    struct qf_err err;
};

static void world_done(struct world *world)
{
    ql_store_close(&world->store);
    (void)sim_disk_free(world->disk);
}

static qf_rc reopen(struct world *world)
{
    ql_store_close(&world->store);
    world->err = (struct qf_err){ 0 };
    return ql_store_open(&world->store, sim_disk_of(world->disk), &options, &world->err);
}

static struct world begin(void)
{
    struct world world = { .disk = sim_disk_new("folder") };

    CHECK_OK(ql_store_create(sim_disk_of(world.disk), &identity, &world.err), &world.err);
    CHECK_OK(reopen(&world), &world.err);
    return world;
}

static qf_rc grow(struct world *world, uint64_t last)
{
    qf_rc rc = QF_OK;

    for (uint64_t i = ql_log_last(world->store.log) + 1; rc == QF_OK && i <= last; i++) {
        struct ql_entry entry = { i, 1, QL_COMMAND, QF_STR_INIT("some bytes of a record") };

        rc = ql_log_append(world->store.log, &entry, 1, false, &world->err);
    }
    return rc == QF_OK ? ql_log_sync(world->store.log, &world->err) : rc;
}

static const struct ql_snapshot own = { .index = 10,
                                        .term = 1,
                                        .change_index = 1,
                                        .members = QF_STR_INIT("members"),
                                        .state = QF_STR_INIT("state") };

TEST(a_folder_without_a_node_is_not_opened_and_with_one_not_made)
{
    struct world world = { .disk = sim_disk_new("folder") };

    CHECK_EQ(reopen(&world), QF_ENOTFOUND);
    CHECK_OK(ql_store_create(sim_disk_of(world.disk), &identity, NULL), &world.err);
    CHECK_EQ(ql_store_create(sim_disk_of(world.disk), &identity, NULL), QF_EEXIST);
    world_done(&world);
}

TEST(a_vote_is_there_after_a_restart)
{
    QF_CLEANUP(world_done) struct world world = begin();

    CHECK_OK(ql_store_vote(&world.store, 4, 17, &world.err), &world.err);
    CHECK_OK(reopen(&world), &world.err);
    CHECK_EQ(world.store.sequence.term, 4);
    CHECK_EQ(world.store.sequence.vote, 17);
    CHECK_EQ(world.store.sequence.cluster, 5);
}

TEST(a_snapshot_is_there_after_a_restart)
{
    QF_CLEANUP(world_done) struct world world = begin();

    CHECK_EQ(world.store.snapshot.index, 0);
    CHECK_OK(grow(&world, 12), &world.err);
    CHECK_OK(ql_store_save(&world.store, &own, &world.err), &world.err);
    CHECK_OK(reopen(&world), &world.err);
    CHECK_EQ(world.store.snapshot.index, 10);
    CHECK(qf_str_is(world.store.snapshot.members, "members"));
    CHECK(qf_str_is(world.store.snapshot.state, "state"));
    CHECK_EQ(world.store.snapshot.application.len, 0);
    CHECK_EQ(ql_log_last(world.store.log), 12);
}

/* Without an application the file is the one that earlier versions wrote and read. */
TEST(a_snapshot_carries_the_bytes_of_an_application)
{
    QF_CLEANUP(world_done) struct world world = begin();
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct ql_snapshot with = own, decoded;

    with.application = QF_STR("what it means");
    CHECK_OK(grow(&world, 12), &world.err);
    CHECK_OK(ql_store_save(&world.store, &with, &world.err), &world.err);
    CHECK_OK(reopen(&world), &world.err);
    CHECK(qf_str_is(world.store.snapshot.state, "state"));
    CHECK(qf_str_is(world.store.snapshot.application, "what it means"));
    ql_snapshot_encode(&bytes, &world.store.snapshot);
    CHECK_EQ((unsigned char)bytes.data[8], 2);
    for (size_t at = 0; at < bytes.len; at++) {
        bytes.data[at] ^= 1;
        CHECK_EQ(ql_snapshot_decode(qf_strbuf_view(&bytes), &decoded), QF_ECORRUPT);
        bytes.data[at] ^= 1;
    }
    with.application.len = 0;
    with.generation = with.generation_first = 1;
    qf_strbuf_reset(&bytes);
    ql_snapshot_encode(&bytes, &with);
    CHECK_EQ((unsigned char)bytes.data[8], 1);
    CHECK_EQ(ql_snapshot_decode(qf_strbuf_view(&bytes), &decoded), QF_OK);
}

/* Releases that read versions 1 and 2 refuse it, rather than forget the application. */
TEST(an_application_that_is_needed_makes_another_version)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct ql_snapshot with = own, decoded;

    with.application = QF_STR("what it means");
    with.needed = true;
    with.generation = with.generation_first = 1;
    ql_snapshot_encode(&bytes, &with);
    CHECK_EQ((unsigned char)bytes.data[8], 3);
    CHECK_EQ(ql_snapshot_decode(qf_strbuf_view(&bytes), &decoded), QF_OK);
    CHECK(decoded.needed);
    with.application.len = 0;
    qf_strbuf_reset(&bytes);
    ql_snapshot_encode(&bytes, &with);
    CHECK_EQ((unsigned char)bytes.data[8], 1);
}

TEST(a_snapshot_beyond_the_log_stops_the_node)
{
    QF_CLEANUP(world_done) struct world world = begin();

    CHECK_OK(grow(&world, 9), &world.err);
    CHECK_OK(ql_store_save(&world.store, &own, &world.err), &world.err);
    CHECK_EQ(reopen(&world), QF_ECORRUPT);
    CHECK(strstr(world.err.msg, "does not reach its snapshot"));
}

TEST(a_damaged_snapshot_stops_the_node_and_is_named)
{
    QF_CLEANUP(world_done) struct world world = begin();
    uint64_t size;

    CHECK_OK(grow(&world, 12), &world.err);
    CHECK_OK(ql_store_save(&world.store, &own, &world.err), &world.err);
    size = sim_disk_size(world.disk, QL_SNAPSHOT_FILE);
    for (uint64_t at = 0; at < size; at++) {
        sim_disk_flip(world.disk, QL_SNAPSHOT_FILE, at, 1);
        CHECK_EQ(reopen(&world), QF_ECORRUPT);
        CHECK(strstr(world.err.msg, "folder/snapshot.dat is damaged"));
        sim_disk_flip(world.disk, QL_SNAPSHOT_FILE, at, 1);
    }
}

static const struct ql_snapshot foreign = { .index = 50,
                                            .term = 3,
                                            .change_index = 40,
                                            .members = QF_STR_INIT("others"),
                                            .state = QF_STR_INIT("later") };
static const struct ql_entry foreign_entries[] = { { 49, 2, QL_COMMAND, QF_STR_INIT("a") },
                                                   { 50, 3, QL_COMMAND, QF_STR_INIT("b") } };

TEST(an_installed_snapshot_replaces_the_log)
{
    QF_CLEANUP(world_done) struct world world = begin();

    CHECK_OK(grow(&world, 12), &world.err);
    CHECK_OK(ql_store_install(&world.store, &foreign, foreign_entries, 2, &world.err), &world.err);
    CHECK_EQ(ql_log_first(world.store.log), 49);
    CHECK_OK(reopen(&world), &world.err);
    CHECK_EQ(world.store.snapshot.index, 50);
    CHECK_EQ(ql_log_first(world.store.log), 49);
    CHECK_EQ(ql_log_last(world.store.log), 50);
    CHECK_OK(grow(&world, 55), &world.err);
    CHECK_OK(ql_store_install(&world.store,
                              &(struct ql_snapshot){ .index = 90, .term = 4, .change_index = 40 },
                              NULL, 0, &world.err),
             &world.err);
    CHECK_OK(reopen(&world), &world.err);
    CHECK_EQ(ql_log_first(world.store.log), 91);
    CHECK_EQ(ql_log_last(world.store.log), 90);
    CHECK_OK(grow(&world, 92), &world.err);
}

/* While the log of a snapshot is written the present one goes on; only the change-over replaces it. */
TEST(a_prepared_snapshot_counts_from_the_change_over_on)
{
    QF_CLEANUP(world_done) struct world world = begin();
    struct ql_log *log;

    CHECK_OK(grow(&world, 12), &world.err);
    CHECK_OK(ql_store_prepare(world.store.disk, &world.store.options, &foreign, foreign_entries, 2,
                              &log, &world.err),
             &world.err);
    CHECK_OK(grow(&world, 20), &world.err);
    log = ql_log_free(log); /* a crash, or nobody wants it any more */
    CHECK_OK(reopen(&world), &world.err);
    CHECK_EQ(ql_log_last(world.store.log), 20);
    for (int i = 0; i < 2; i++) { /* also over what an attempt left */
        CHECK_OK(ql_store_prepare(world.store.disk, &world.store.options, &foreign, foreign_entries,
                                  2, &log, &world.err),
                 &world.err);
        if (!i)
            log = ql_log_free(log);
    }
    CHECK_OK(grow(&world, 30), &world.err);
    CHECK_OK(ql_store_switch(&world.store, &foreign, log, &world.err), &world.err);
    CHECK_EQ(ql_log_last(world.store.log), 50);
    CHECK_OK(grow(&world, 52), &world.err);
    CHECK_OK(reopen(&world), &world.err); /* the old files are still there */
    CHECK_EQ(ql_log_first(world.store.log), 49);
    CHECK_EQ(ql_log_last(world.store.log), 52);
    CHECK_OK(ql_store_clear(world.store.disk, 1, &world.err), &world.err);
    CHECK_OK(reopen(&world), &world.err);
    CHECK_EQ(ql_log_last(world.store.log), 52);
}

/* Death at every write and sync of an installation: the old log and state, or the new ones. */
TEST(a_crash_while_installing_leaves_old_or_new)
{
    uint64_t kept = 0, changed = 0;

    for (uint64_t seed = 1; seed <= 600; seed++) {
        QF_CLEANUP(world_done) struct world world = begin();
        struct qf_prng prng = { seed };
        bool installed;

        CHECK_OK(grow(&world, 12), &world.err);
        CHECK_OK(ql_store_save(&world.store, &own, &world.err), &world.err);
        sim_disk_stop_after(world.disk, seed % 16);
        installed = ql_store_install(&world.store, &foreign, foreign_entries, 2, NULL) == QF_OK;
        sim_disk_stop_after(world.disk, UINT64_MAX);
        if (seed % 3)
            sim_disk_power_loss(world.disk, &prng);
        CHECK_MSG(reopen(&world) == QF_OK, "seed %" PRIu64 ": %s", seed, world.err.msg);
        if (world.store.snapshot.index == 50) {
            CHECK_EQ(ql_log_last(world.store.log), 50);
            changed++;
        } else {
            CHECK(!installed);
            CHECK_EQ(world.store.snapshot.index, 10);
            CHECK_EQ(ql_log_last(world.store.log), 12);
            kept++;
        }
    }
    CHECK(kept > 50);
    CHECK(changed > 50);
}
