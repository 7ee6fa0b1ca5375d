#include <inttypes.h>

#include "queue/log/log.h"
#include "tests/lib/queue/sim_disk.h"
#include "tests/lib/test.h"

static const struct ql_options options = { .generation = 1, .salt = 99, .file_bytes = 4096 };

struct world {
    struct sim_disk *disk;
    struct ql_log *log;
    struct ql_recovery recovery;
    struct qf_err err;
};

static void world_done(struct world *world)
{
    (void)ql_log_free(world->log);
    (void)sim_disk_free(world->disk);
}

/* Open (again); the log is NULL if that fails. */
static qf_rc reopen(struct world *world, const struct ql_options *how)
{
    world->log = ql_log_free(world->log);
    world->err = (struct qf_err){ 0 };
    return ql_log_open(sim_disk_of(world->disk), how, 1, &world->log, &world->recovery,
                       &world->err);
}

static struct world begin(void)
{
    struct world world = { .disk = sim_disk_new("folder") };

    CHECK_OK(reopen(&world, &options), &world.err);
    return world;
}

static qf_rc append_text(struct world *world, uint64_t index, uint64_t term, const char *text)
{
    struct ql_entry entry = { index, term, QL_COMMAND, qf_str_from(text) };

    return ql_log_append(world->log, &entry, 1, false, &world->err);
}

/* Append entries from the end to @last, each with @bytes of text, in batches of one. */
static void grow(struct world *world, uint64_t last, size_t bytes)
{
    char text[2048];

    for (uint64_t i = ql_log_last(world->log) + 1; i <= last; i++) {
        memset(text, 'a' + (int)(i % 26), bytes);
        text[bytes] = 0;
        CHECK_OK(append_text(world, i, 1, text), &world->err);
    }
}

static void sync_log(struct world *world)
{
    CHECK_OK(ql_log_sync(world->log, &world->err), &world->err);
}

static void check_text(struct world *world, uint64_t index, const char *text)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct ql_entry entry;

    CHECK_OK(ql_log_read(world->log, index, &buf, &entry, &world->err), &world->err);
    CHECK(qf_str_is(entry.data, text));
}

TEST(entries_come_back_after_a_restart)
{
    QF_CLEANUP(world_done) struct world world = begin();
    struct ql_entry batch[] = { { 1, 1, QL_CHANGE, QF_STR_INIT("members") },
                                { 2, 1, QL_COMMAND, QF_STR_INIT("") },
                                { 3, 2, QL_NOOP, QF_STR_INIT("") } };

    CHECK_EQ(ql_log_last(world.log), 0);
    CHECK_OK(ql_log_append(world.log, batch, 3, false, &world.err), &world.err);
    CHECK(ql_log_dirty(world.log));
    sync_log(&world);
    CHECK(!ql_log_dirty(world.log));
    CHECK_OK(reopen(&world, &options), &world.err);
    CHECK_EQ(world.recovery.entries, 3);
    CHECK_EQ(ql_log_first(world.log), 1);
    CHECK_EQ(ql_log_last(world.log), 3);
    CHECK_EQ(ql_log_term(world.log, 3), 2);
    CHECK_EQ(ql_log_term(world.log, 4), 0);
    CHECK_EQ(ql_log_type(world.log, 1), QL_CHANGE);
    check_text(&world, 1, "members");
    check_text(&world, 2, "");
}

/* Consensus takes back what was never committed: one more frame, and it holds after a restart. */
TEST(a_batch_replaces_what_it_overlaps)
{
    QF_CLEANUP(world_done) struct world world = begin();

    grow(&world, 5, 10);
    CHECK_OK(append_text(&world, 3, 2, "new"), &world.err);
    CHECK_EQ(ql_log_last(world.log), 3);
    sync_log(&world);
    CHECK_OK(reopen(&world, &options), &world.err);
    CHECK_EQ(ql_log_last(world.log), 3);
    CHECK_EQ(ql_log_term(world.log, 3), 2);
    check_text(&world, 3, "new");
}

/* What was just appended is there without the disk, also where it replaced something; and no more once
 * the log is idle, in a new file, or too far back. */
TEST(what_was_just_appended_is_in_memory)
{
    QF_CLEANUP(world_done) struct world world = begin();
    struct ql_options large = options;
    struct ql_entry entry;

    grow(&world, 5, 10);
    CHECK_OK(append_text(&world, 3, 2, "new"), &world.err);
    CHECK(ql_log_recent(world.log, 3, &entry));
    CHECK(qf_str_is(entry.data, "new"));
    CHECK_EQ(entry.term, 2);
    CHECK_EQ(entry.index, 3);
    CHECK(ql_log_recent(world.log, 2, &entry));
    CHECK(qf_str_is(entry.data, "cccccccccc"));
    CHECK(!ql_log_recent(world.log, 4, &entry));
    sync_log(&world);
    CHECK_OK(ql_log_mark(world.log, &world.err), &world.err);
    CHECK(!ql_log_recent(world.log, 3, &entry));
    CHECK_OK(append_text(&world, 4, 2, "next"), &world.err);
    CHECK(ql_log_recent(world.log, 4, &entry));
    CHECK(qf_str_is(entry.data, "next"));
    check_text(&world, 3, "new");

    large.file_bytes = 64 << 20;
    CHECK_OK(reopen(&world, &large), &world.err);
    CHECK(!ql_log_recent(world.log, 4, &entry));
    grow(&world, 4000, 2000); /* 8 MB: more than is kept */
    for (uint64_t i = 5; i <= 4000; i++) {
        char first = (char)('a' + (int)(i % 26));

        if (ql_log_recent(world.log, i, &entry)) {
            CHECK_EQ(entry.data.len, 2000);
            CHECK_EQ(entry.data.data[0], first);
            CHECK_EQ(entry.data.data[1999], first);
        }
    }
    CHECK(!ql_log_recent(world.log, 5, &entry));
    CHECK(ql_log_recent(world.log, 3300, &entry));
}

TEST(a_batch_that_does_not_continue_the_log_is_refused)
{
    QF_CLEANUP(world_done) struct world world = begin();
    struct ql_entry gap[] = { { 1, 1, QL_NOOP, QF_STR_INIT("") },
                              { 3, 1, QL_NOOP, QF_STR_INIT("") } };

    CHECK_EQ(append_text(&world, 2, 1, "x"), QF_EINVAL);
    CHECK_EQ(append_text(&world, 0, 1, "x"), QF_EINVAL);
    CHECK_EQ(append_text(&world, 1, 0, "x"), QF_EINVAL);
    CHECK_EQ(ql_log_append(world.log, gap, 2, false, NULL), QF_EINVAL);
    CHECK_EQ(ql_log_append(world.log, gap, 0, false, NULL), QF_EINVAL);
    CHECK_EQ(ql_log_last(world.log), 0);
}

TEST(the_log_holds_no_more_entries_than_its_bound)
{
    QF_CLEANUP(world_done) struct world world = begin();
    struct ql_options small = options;

    small.entries_max = 3;
    CHECK_OK(reopen(&world, &small), &world.err);
    grow(&world, 3, 1);
    CHECK_EQ(append_text(&world, 4, 1, "x"), QF_ELIMIT);
    CHECK_OK(append_text(&world, 3, 2, "instead"), &world.err);
}

/* Bad bytes in the newest batch were promised to nobody: they go, the rest stays. */
TEST(damage_above_the_last_sync_mark_is_cut)
{
    QF_CLEANUP(world_done) struct world world = begin();
    char name[QL_NAME_SIZE];

    ql_log_file_name(name, 1, 1);
    grow(&world, 3, 100);
    sync_log(&world);
    grow(&world, 4, 100);
    sync_log(&world);
    sim_disk_flip(world.disk, name, sim_disk_size(world.disk, name) - 20, 4);
    CHECK_OK(reopen(&world, &options), &world.err);
    CHECK_EQ(ql_log_last(world.log), 3);
    CHECK(world.recovery.cut_bytes > 100);
    grow(&world, 6, 50);
    sync_log(&world);
    CHECK_OK(reopen(&world, &options), &world.err);
    CHECK_EQ(ql_log_last(world.log), 6);
    CHECK_EQ(world.recovery.cut_bytes, 0);
}

/* Each single byte below the mark: opening stops and names the file. */
TEST(damage_below_the_last_sync_mark_stops_with_the_files_name)
{
    QF_CLEANUP(world_done) struct world world = begin();
    char name[QL_NAME_SIZE];
    uint64_t end;

    grow(&world, 3, 40);
    sync_log(&world);
    grow(&world, 5, 40);
    sync_log(&world);
    CHECK(ql_log_mark_due(world.log));
    CHECK_OK(ql_log_mark(world.log, &world.err), &world.err);
    CHECK(!ql_log_mark_due(world.log));
    CHECK(ql_log_marked(world.log, name, &end));
    CHECK(end > 5 * 40);
    for (uint64_t at = 0; at < end; at++) {
        sim_disk_flip(world.disk, name, at, 0x20);
        CHECK_MSG(reopen(&world, &options) == QF_ECORRUPT, "byte %" PRIu64, at);
        CHECK(strstr(world.err.msg, name));
        CHECK(strstr(world.err.msg, "add it as a new node"));
        sim_disk_flip(world.disk, name, at, 0x20);
    }
    CHECK_OK(reopen(&world, &options), &world.err);
    CHECK_EQ(ql_log_last(world.log), 5);
}

/* The batch before the mark is only known to be durable thanks to it. */
TEST(an_idle_log_gets_its_mark)
{
    QF_CLEANUP(world_done) struct world world = begin();
    char name[QL_NAME_SIZE];
    uint64_t end;

    CHECK(!ql_log_mark_due(world.log));
    grow(&world, 1, 40);
    CHECK(!ql_log_mark_due(world.log));
    sync_log(&world);
    CHECK(ql_log_mark_due(world.log));
    CHECK(!ql_log_marked(world.log, name, &end));
    CHECK_OK(ql_log_mark(world.log, &world.err), &world.err);
    CHECK(!ql_log_mark_due(world.log));
    CHECK(ql_log_marked(world.log, name, &end));
    sim_disk_flip(world.disk, name, end - 8, 1);
    CHECK_EQ(reopen(&world, &options), QF_ECORRUPT);
}

TEST(damage_in_an_older_file_stops)
{
    QF_CLEANUP(world_done) struct world world = begin();
    char name[QL_NAME_SIZE];

    grow(&world, 20, 500);
    sync_log(&world);
    ql_log_file_name(name, 1, 1);
    sim_disk_flip(world.disk, name, sim_disk_size(world.disk, name) - 9, 1);
    CHECK_EQ(reopen(&world, &options), QF_ECORRUPT);
    CHECK(strstr(world.err.msg, name));
}

TEST(a_missing_file_in_the_middle_stops)
{
    QF_CLEANUP(world_done) struct world world = begin();
    struct ql_disk *disk = sim_disk_of(world.disk);
    char name[QL_NAME_SIZE];

    grow(&world, 30, 500);
    sync_log(&world);
    ql_log_file_name(name, 1, 2);
    CHECK_OK(disk->ops->remove(disk, name, &world.err), &world.err);
    CHECK_EQ(reopen(&world, &options), QF_ECORRUPT);
    ql_log_file_name(name, 1, 3);
    CHECK(strstr(world.err.msg, name));
}

TEST(a_shorter_file_with_a_successor_stops)
{
    QF_CLEANUP(world_done) struct world world = begin();
    struct ql_disk *disk = sim_disk_of(world.disk);
    char name[QL_NAME_SIZE];
    int file;

    grow(&world, 30, 500);
    sync_log(&world);
    ql_log_file_name(name, 1, 1);
    CHECK_OK(disk->ops->open(disk, name, false, &file, &world.err), &world.err);
    /* Cut exactly behind its first frame: all that is left is whole. */
    CHECK_OK(disk->ops->truncate(disk, file, QL_FILE_HEADER + QL_FRAME_HEADER + ql_entry_bytes(500),
                                 &world.err),
             &world.err);
    CHECK_EQ(reopen(&world, &options), QF_ECORRUPT);
}

TEST(a_log_of_a_newer_version_is_not_read)
{
    QF_CLEANUP(world_done) struct world world = begin();
    char name[QL_NAME_SIZE];
    unsigned char *header;

    grow(&world, 1, 10);
    sync_log(&world);
    ql_log_file_name(name, 1, 1);
    header = sim_disk_byte(world.disk, name, 0);
    ql_put(header + 8, QL_LOG_VERSION + 1, 8);
    ql_put(header + 56, ql_check(header, 56, options.salt), 8);
    CHECK_EQ(reopen(&world, &options), QF_EUNSUPPORTED);
    CHECK(strstr(world.err.msg, "newer version"));
}

/* A client may store a log file's bytes in a record; they are never taken for frames. */
TEST(a_record_that_looks_like_a_frame_is_data)
{
    QF_CLEANUP(world_done) struct world world = begin();
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf forged = QF_STRBUF_INIT;
    struct ql_entry entry = { 1, 1, QL_COMMAND, QF_STR_INIT("") };
    char name[QL_NAME_SIZE];

    (void)ql_frame_put(&forged, 1000, 999, &entry, 1, (struct ql_chain){ 0, 0 }, 12345);
    entry.data = qf_strbuf_view(&forged);
    CHECK_OK(ql_log_append(world.log, &entry, 1, false, &world.err), &world.err);
    sync_log(&world);
    ql_log_file_name(name, 1, 1);
    sim_disk_flip(world.disk, name, QL_FILE_HEADER + 2, 1);
    CHECK_OK(reopen(&world, &options), &world.err);
    CHECK_EQ(ql_log_last(world.log), 0);
}

TEST(whole_files_before_an_index_go)
{
    QF_CLEANUP(world_done) struct world world = begin();
    uint64_t before, first;

    grow(&world, 40, 500);
    sync_log(&world);
    before = ql_log_bytes(world.log);
    CHECK_OK(ql_log_drop_before(world.log, 20, &world.err), &world.err);
    first = ql_log_first(world.log);
    CHECK(first > 10 && first <= 20);
    CHECK(ql_log_bytes(world.log) < before);
    CHECK_EQ(ql_log_term(world.log, first - 1), 0);
    CHECK_OK(reopen(&world, &options), &world.err);
    CHECK_EQ(ql_log_first(world.log), first);
    CHECK_EQ(ql_log_last(world.log), 40);
    CHECK_OK(ql_log_drop_before(world.log, 1000, &world.err), &world.err);
    CHECK_EQ(ql_log_last(world.log), 40);
    grow(&world, 41, 10);
    sync_log(&world);
    CHECK_OK(reopen(&world, &options), &world.err);
    CHECK_EQ(ql_log_last(world.log), 41);
}

TEST(files_of_other_generations_are_removed)
{
    QF_CLEANUP(world_done) struct world world = begin();
    struct ql_options next = options;
    char name[QL_NAME_SIZE];

    grow(&world, 3, 10);
    sync_log(&world);
    next.generation = 2;
    CHECK_OK(reopen(&world, &next), &world.err);
    CHECK_EQ(ql_log_last(world.log), 0);
    ql_log_file_name(name, 1, 1);
    CHECK(sim_disk_size(world.disk, name) == UINT64_MAX);
}

/* A full disk still takes what frees it; records wait, and go on when there is room. */
TEST(the_reserve_is_for_urgent_entries)
{
    QF_CLEANUP(world_done) struct world world = begin();
    struct ql_options careful = options;
    struct ql_entry noop = { 2, 1, QL_NOOP, QF_STR_INIT("") };

    careful.reserve_bytes = 600;
    CHECK_OK(reopen(&world, &careful), &world.err);
    grow(&world, 1, 10);
    sim_disk_set_capacity(world.disk, 1000);
    CHECK_EQ(append_text(&world, 2, 1,
                         "a text that would need some of what is reserved for those "
                         "who free the disk. It is made longer than what is left "
                         "beyond that; two hundred bytes or so are enough for it."),
             QF_ENOSPC);
    CHECK_EQ(ql_log_last(world.log), 1);
    CHECK_OK(ql_log_append(world.log, &noop, 1, true, &world.err), &world.err);
    sim_disk_set_capacity(world.disk, 0);
    grow(&world, 5, 100);
    sync_log(&world);
    CHECK_OK(reopen(&world, &careful), &world.err);
    CHECK_EQ(ql_log_last(world.log), 5);
}

/* A write that found no space half-way is written again over what it left. */
TEST(no_space_changes_nothing)
{
    QF_CLEANUP(world_done) struct world world = begin();
    struct ql_entry entry = { 4, 1, QL_COMMAND, QF_STR_INIT("some bytes") };

    grow(&world, 3, 10);
    sync_log(&world);
    sim_disk_set_capacity(world.disk, 1);
    CHECK_EQ(ql_log_append(world.log, &entry, 1, true, NULL), QF_ENOSPC);
    CHECK_EQ(ql_log_last(world.log), 3);
    sim_disk_set_capacity(world.disk, 0);
    CHECK_OK(ql_log_append(world.log, &entry, 1, true, &world.err), &world.err);
    sync_log(&world);
    CHECK_OK(reopen(&world, &options), &world.err);
    CHECK_EQ(ql_log_last(world.log), 4);
}

/* Linux forgets a failed sync: the second would succeed and the bytes be gone. */
TEST(a_failed_sync_is_never_tried_again)
{
    QF_CLEANUP(world_done) struct world world = begin();
    struct qf_prng prng = { 1 };

    grow(&world, 3, 10);
    sync_log(&world);
    grow(&world, 4, 10);
    sim_disk_fail_next_sync(world.disk);
    CHECK_EQ(ql_log_sync(world.log, &world.err), QF_EIO);
    world.err = (struct qf_err){ 0 };
    CHECK_EQ(ql_log_sync(world.log, &world.err), QF_EIO);
    CHECK(strstr(world.err.msg, "restart this node"));
    CHECK_EQ(append_text(&world, 5, 1, "x"), QF_EIO);
    CHECK_EQ(ql_log_mark(world.log, NULL), QF_EIO);
    CHECK_EQ(ql_log_drop_before(world.log, 2, NULL), QF_EIO);
    sim_disk_power_loss(world.disk, &prng);
    CHECK_OK(reopen(&world, &options), &world.err);
    CHECK_EQ(ql_log_last(world.log), 3);
}

/* What is appended while another thread waits for the disk is not covered by that sync. */
TEST(a_sync_in_two_halves_covers_what_was_there_when_it_began)
{
    QF_CLEANUP(world_done) struct world world = begin();
    struct ql_disk *disk = sim_disk_of(world.disk);
    struct ql_sync sync;

    CHECK(!ql_log_sync_begin(world.log, &sync));
    grow(&world, 3, 10);
    CHECK(ql_log_sync_begin(world.log, &sync));
    CHECK_EQ(sync.index, 3);
    CHECK_EQ(sync.term, 1);
    CHECK_EQ(disk->ops->sync(disk, sync.file, NULL), QF_OK);
    grow(&world, 4, 10);
    CHECK_EQ(ql_log_sync_end(world.log, &sync, QF_OK), QF_OK);
    CHECK(ql_log_dirty(world.log));
    sync_log(&world);
    CHECK(!ql_log_dirty(world.log));
}

/* A new file is begun between the halves: that made the old one durable already. */
TEST(a_sync_in_two_halves_may_be_overtaken_by_a_new_file)
{
    QF_CLEANUP(world_done) struct world world = begin();
    struct ql_disk *disk = sim_disk_of(world.disk);
    struct ql_sync sync;

    grow(&world, 3, 1000);
    CHECK(ql_log_sync_begin(world.log, &sync));
    CHECK_EQ(disk->ops->sync(disk, sync.file, NULL), QF_OK);
    grow(&world, 5, 1000); /* files of 4096 bytes */
    CHECK_EQ(ql_log_sync_end(world.log, &sync, QF_OK), QF_OK);
    CHECK(ql_log_dirty(world.log));
    sync_log(&world);
    CHECK_OK(reopen(&world, &options), &world.err);
    CHECK_EQ(ql_log_last(world.log), 5);
}

TEST(a_sync_in_two_halves_that_fails_ends_the_log)
{
    QF_CLEANUP(world_done) struct world world = begin();
    struct ql_sync sync;

    grow(&world, 3, 10);
    CHECK(ql_log_sync_begin(world.log, &sync));
    CHECK_EQ(ql_log_sync_end(world.log, &sync, QF_EIO), QF_EIO);
    CHECK(!ql_log_sync_begin(world.log, &sync));
    CHECK_EQ(append_text(&world, 4, 1, "x"), QF_EIO);
}

/* Retention by size asks how much would be left from an entry on. */
TEST(bytes_from_an_entry_on_grow_towards_the_beginning)
{
    QF_CLEANUP(world_done) struct world world = begin();

    CHECK_EQ(ql_log_bytes_from(world.log, 1), 0);
    grow(&world, 20, 1000);
    for (uint64_t i = 2; i <= 20; i++)
        CHECK(ql_log_bytes_from(world.log, i) < ql_log_bytes_from(world.log, i - 1));
    CHECK(ql_log_bytes_from(world.log, 20) > 1000);
    CHECK(ql_log_bytes_from(world.log, 1) <= ql_log_bytes(world.log));
    CHECK_EQ(ql_log_bytes_from(world.log, 21), 0);
}

/* A peer reads what it misses while the log goes on. */
TEST(a_view_outlives_the_files_it_reads)
{
    QF_CLEANUP(world_done) struct world world = begin();
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct ql_entry entry;
    struct ql_log *view;

    grow(&world, 20, 1000); /* files of 4096 bytes */
    sync_log(&world);
    view = ql_log_view(world.log, 5, 15, &world.err);
    CHECK(view != NULL);
    CHECK_OK(ql_log_drop_before(world.log, 18, &world.err), &world.err);
    CHECK(ql_log_first(world.log) > 15);
    CHECK_EQ(ql_log_first(view), 5);
    CHECK_EQ(ql_log_last(view), 15);
    for (uint64_t i = 5; i <= 15; i++) {
        qf_strbuf_reset(&buf);
        CHECK_OK(ql_log_read(view, i, &buf, &entry, &world.err), &world.err);
        CHECK_EQ(entry.data.data[0], 'a' + (int)(i % 26));
    }
    CHECK_EQ(ql_log_append(view, &entry, 1, false, NULL), QF_EIO);
    (void)ql_log_free(view);
}

TEST(a_failed_write_is_never_tried_again)
{
    QF_CLEANUP(world_done) struct world world = begin();

    grow(&world, 3, 10);
    sim_disk_stop_after(world.disk, 0);
    CHECK_EQ(append_text(&world, 4, 1, "x"), QF_EIO);
    sim_disk_stop_after(world.disk, UINT64_MAX);
    CHECK_EQ(append_text(&world, 4, 1, "x"), QF_EIO);
    CHECK_EQ(ql_log_sync(world.log, NULL), QF_EIO);
}

TEST(an_entry_changed_on_the_disk_is_noticed_when_read)
{
    QF_CLEANUP(world_done) struct world world = begin();
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct ql_entry entry;
    char name[QL_NAME_SIZE];

    grow(&world, 1, 64);
    ql_log_file_name(name, 1, 1);
    sim_disk_flip(world.disk, name, QL_FILE_HEADER + QL_FRAME_HEADER + QL_ENTRY_HEADER + 5, 1);
    CHECK_EQ(ql_log_read(world.log, 1, &buf, &entry, &world.err), QF_ECORRUPT);
    CHECK(strstr(world.err.msg, name));
    CHECK_EQ(ql_log_read(world.log, 2, &buf, &entry, NULL), QF_ENOTFOUND);
}

struct history {
    uint64_t terms[400]; /* by index: as last appended */
    uint64_t safe;       /* synced up to here; what is above may be replaced */
    uint64_t term;
};

static void append_some(struct world *world, struct history *history, struct qf_prng *prng,
                        bool replace)
{
    static const char text[400] = { 'x' };
    size_t count = 1 + (size_t)qf_prng_below(prng, 4);
    uint64_t last = ql_log_last(world->log), from = last + 1;
    struct ql_entry batch[4];

    if (replace) {
        from = history->safe + 1 + qf_prng_below(prng, last - history->safe + 1);
        history->term++;
    }
    for (size_t i = 0; i < count; i++)
        batch[i] = (struct ql_entry){
            from + i, history->term, QL_COMMAND, { text, (size_t)qf_prng_below(prng, sizeof(text)) }
        };
    if (ql_log_append(world->log, batch, count, false, NULL) == QF_OK)
        for (size_t i = 0; i < count; i++)
            history->terms[from + i] = history->term;
}

/* One random call; returns its code, for the log's owner would end at QF_EIO. */
static qf_rc act(struct world *world, struct history *history, struct qf_prng *prng)
{
    uint64_t what = qf_prng_below(prng, 20);
    qf_rc rc = QF_OK;

    if (what < 10 && ql_log_last(world->log) < 390) {
        append_some(world, history, prng, what == 0);
    } else if (what < 16) {
        rc = ql_log_sync(world->log, NULL);
        if (rc == QF_OK)
            history->safe = ql_log_last(world->log);
    } else if (what == 17) {
        rc = ql_log_mark(world->log, NULL);
    } else if (what == 18 && history->safe > 10) {
        rc = ql_log_drop_before(world->log, history->safe - 5, NULL);
    }
    return rc;
}

/* Random appends, replacements, syncs, marks and drops; death at a random write; loss of power.
 * What was synced is there, unless it was dropped since, and a second loss of power changes
 * nothing. */
TEST(a_crash_anywhere_keeps_what_was_synced)
{
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        QF_CLEANUP(world_done) struct world world = begin();
        struct history history = { .term = 1 };
        struct qf_prng prng = { seed };
        uint64_t last;

        sim_disk_stop_after(world.disk, qf_prng_below(&prng, 200));
        while (!sim_disk_stopped(world.disk) && act(&world, &history, &prng) == QF_OK)
            ;
        sim_disk_stop_after(world.disk, UINT64_MAX);
        if (seed % 3)
            sim_disk_power_loss(world.disk, &prng);
        CHECK_MSG(reopen(&world, &options) == QF_OK, "seed %" PRIu64 ": %s", seed, world.err.msg);
        last = ql_log_last(world.log);
        CHECK_MSG(last >= history.safe, "seed %" PRIu64, seed);
        for (uint64_t i = ql_log_first(world.log); i <= history.safe; i++)
            CHECK_MSG(ql_log_term(world.log, i) == history.terms[i], "seed %" PRIu64, seed);
        sim_disk_power_loss(world.disk, &prng);
        CHECK_OK(reopen(&world, &options), &world.err);
        CHECK_MSG(ql_log_last(world.log) == last, "seed %" PRIu64, seed);
    }
}

TEST(names_of_log_files_are_strict)
{
    char name[QL_NAME_SIZE];
    uint64_t generation, number;

    ql_log_file_name(name, 3, 0xabc);
    CHECK(ql_log_file_parse(name, &generation, &number));
    CHECK_EQ(generation, 3);
    CHECK_EQ(number, 0xabc);
    CHECK(!ql_log_file_parse("log-0000000000000003-0000000000000ABC.dat", &generation, &number));
    CHECK(!ql_log_file_parse("log-3-4.dat", &generation, &number));
    CHECK(!ql_log_file_parse("snapshot.dat", &generation, &number));
}

/* What replaces entries 3 to 5 waits for room: the old ones are not shown, and can be replaced. */
TEST(hidden_entries_are_not_shown_but_can_be_replaced)
{
    QF_CLEANUP(world_done) struct world world = begin();
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct ql_entry entry;

    grow(&world, 5, 10);
    ql_log_hide(world.log, 3);
    CHECK_EQ(ql_log_last(world.log), 2);
    CHECK_EQ(ql_log_term(world.log, 2), 1);
    CHECK_EQ(ql_log_term(world.log, 3), 0);
    CHECK_EQ(ql_log_read(world.log, 4, &buf, &entry, NULL), QF_ENOTFOUND);
    CHECK_OK(append_text(&world, 3, 2, "new"), &world.err);
    ql_log_hide(world.log, 0);
    CHECK_EQ(ql_log_last(world.log), 3);
    CHECK_EQ(ql_log_term(world.log, 3), 2);
}
