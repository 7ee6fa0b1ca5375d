/* test_compact.c - files that are given back to the disk: what is read meanwhile, and crashes between any two steps. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "statemap/store/store_int.h"
#include "tests/unit/statemap/statemap_help.h"

#define MAP QF_STR("version")
enum { KEYS = 40, TIMES = 400 };

struct bench {
    char *folder;
    struct sm_store *store;
    struct qf_err err;
};

static void open_store(struct bench *b, void (*step)(void *, const char *), void *ctx)
{
    struct sm_store_options options = {
        .root = b->folder, .write = true, .step = step, .step_ctx = ctx
    };

    CHECK_OK(sm_store_open(&options, &b->store, &b->err), &b->err);
}

static void define(struct bench *b, int64_t retention_ms)
{
    struct sm_definition definition = { .name = "version",
                                        .layout.kind = SM_TEMPORAL,
                                        .retention_ms = retention_ms };

    CHECK_OK(sm_store_define(b->store, &definition, &b->err), &b->err);
}

static void load(struct bench *b, int keys, int64_t from, int64_t to)
{
    struct sm_definition definition;
    struct sm_writer *writer = NULL;
    uint64_t position, left = 1;
    char key[16], value[256];

    CHECK_OK(sm_store_definition(b->store, MAP, &definition, &b->err), &b->err);
    CHECK_OK(sm_writer_begin(b->store, &writer, &b->err), &b->err);
    for (int k = 0; k < keys; k++)
        for (int64_t time = from; time < to; time++) {
            struct sm_row row;

            (void)snprintf(key, sizeof(key), "k%d", k);
            (void)snprintf(value, sizeof(value), "%0200d of %lld", k, (long long)time);
            row = help_row(key, time, value);
            CHECK_OK(sm_writer_put(writer, &definition, &row, &b->err), &b->err);
        }
    CHECK_OK(sm_writer_finish(writer, &position, &b->err), &b->err);
    CHECK_OK(sm_store_merge(b->store, &left, &b->err), &b->err);
    CHECK_EQ(left, 0);
}

/* A map most of whose rows went: each key has its last one. */
static void let_go(struct bench *b)
{
    struct sm_upkeep upkeep;

    CHECK_OK(sm_store_upkeep(b->store, MAP, 1000000, &upkeep, &b->err), &b->err);
    CHECK_EQ(upkeep.dropped, KEYS * (TIMES - 1));
}

static struct bench bench_open(void)
{
    struct bench b = { .folder = help_folder() };

    open_store(&b, NULL, NULL);
    define(&b, 1000);
    load(&b, KEYS, 0, TIMES);
    return b;
}

static void bench_done(struct bench *b)
{
    b->store = sm_store_close(b->store);
    help_folder_gone(&b->folder);
}

static uint64_t file_size(const struct bench *b)
{
    char path[256];
    struct stat seen;

    (void)snprintf(path, sizeof(path), "%s/shards/version/" SM_DATA_FILE, b->folder);
    CHECK_EQ(stat(path, &seen), 0);
    return (uint64_t)seen.st_size;
}

static uint64_t compact(struct bench *b)
{
    uint64_t freed = 0;

    CHECK_OK(sm_store_compact(b->store, MAP, &freed, &b->err), &b->err);
    return freed;
}

static size_t in_merging(const struct bench *b)
{
    QF_CLEANUP(qf_freep) char *path = sm_path(b->folder, "merging", NULL);
    QF_CLEANUP(sm_names_done) struct sm_names names = { 0 };
    struct qf_err err = { 0 };

    CHECK_OK(sm_folder_list(path, &names, &err), &err);
    return names.names.count;
}

/* Rows of all keys at @time, as @reading has them. */
static size_t count_at(struct bench *b, struct sm_reading *reading, int64_t time)
{
    size_t count = 0;
    char key[16];

    for (int k = 0; k < KEYS; k++) {
        struct sm_row row;
        bool found = false;

        (void)snprintf(key, sizeof(key), "k%d", k);
        CHECK_OK(sm_find(reading->txn, qf_str_from(key), time, &found, &row, &b->err), &b->err);
        count += found;
    }
    return count;
}

static size_t count_now(struct bench *b, int64_t time)
{
    struct sm_reading reading;
    size_t count;

    CHECK_OK(sm_reading_begin(b->store, MAP, &reading, &b->err), &b->err);
    count = count_at(b, &reading, time);
    sm_reading_end(b->store, &reading);
    return count;
}

TEST(a_file_of_rows_that_went_is_given_back)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();
    uint64_t before, freed;

    CHECK_EQ(compact(&b), 0); /* all of it is needed */
    let_go(&b);
    before = file_size(&b);
    freed = compact(&b);
    CHECK(freed > before / 2);
    CHECK(file_size(&b) < before / 4);
    CHECK_EQ(compact(&b), 0);
    CHECK_EQ(count_now(&b, TIMES), KEYS);
    CHECK_EQ(count_now(&b, TIMES - 2), 0);
    CHECK_EQ(in_merging(&b), 0);
}

TEST(whoever_reads_goes_on_and_others_read_and_write_the_new_file)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();
    struct sm_reading all, few;

    CHECK_OK(sm_reading_begin(b.store, MAP, &all, &b.err), &b.err);
    let_go(&b);
    CHECK_OK(sm_reading_begin(b.store, MAP, &few, &b.err), &b.err);
    CHECK(compact(&b) > 0);
    load(&b, KEYS / 2, TIMES + 5, TIMES + 6);
    CHECK_EQ(count_at(&b, &all, 0), KEYS);
    CHECK_EQ(count_at(&b, &few, 0), 0);
    CHECK_EQ(count_at(&b, &few, TIMES), KEYS);
    CHECK_EQ(count_now(&b, TIMES + 5), KEYS);
    CHECK_EQ(sm_store_open_count(b.store), 2); /* what the map was, and what it is */
    sm_reading_end(b.store, &all);
    sm_reading_end(b.store, &few);
    CHECK_EQ(sm_store_open_count(b.store), 1);
    b.store = sm_store_close(b.store);
    open_store(&b, NULL, NULL);
    CHECK_EQ(count_now(&b, TIMES + 5), KEYS);
    CHECK_EQ(count_now(&b, 0), 0);
}

TEST(where_folders_cannot_change_places_nothing_is_copied)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();
    uint64_t before;

    let_go(&b);
    before = file_size(&b);
    b.store->cannot_exchange = true; /* as the first try would say */
    CHECK_EQ(compact(&b), 0);
    CHECK_EQ(file_size(&b), before);
}

TEST(small_files_are_left_alone)
{
    QF_CLEANUP(bench_done) struct bench b = { .folder = help_folder() };
    struct sm_upkeep upkeep;
    uint64_t freed = 1;

    open_store(&b, NULL, NULL);
    define(&b, 1000);
    CHECK_EQ(sm_store_compact(b.store, MAP, &freed, &b.err), QF_ENOTFOUND); /* no rows yet */
    CHECK_EQ(freed, 0);
    load(&b, 2, 0, 100);
    CHECK_OK(sm_store_upkeep(b.store, MAP, 1000000, &upkeep, &b.err), &b.err);
    CHECK_EQ(upkeep.dropped, 198);
    CHECK_EQ(compact(&b), 0);
}

static void crash_at(void *ctx, const char *what)
{
    int *left = ctx;

    (void)what;
    if ((*left)-- == 0)
        _exit(7);
}

/* In a process of its own that dies at step @at. Returns whether it did. */
static bool compact_and_crash(struct bench *b, int at)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        uint64_t freed = 0;

        open_store(b, crash_at, &at);
        _exit(sm_store_compact(b->store, MAP, &freed, NULL) == QF_OK && freed ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 7));
    return WEXITSTATUS(status) == 7;
}

TEST(a_crash_between_any_two_steps_leaves_the_map_or_its_copy)
{
    bool crashed = true;
    int steps = 0;

    for (; crashed; steps++) {
        QF_CLEANUP(bench_done) struct bench b = bench_open();
        uint64_t before;

        let_go(&b);
        before = file_size(&b);
        b.store = sm_store_close(b.store);
        crashed = compact_and_crash(&b, steps);
        open_store(&b, NULL, NULL);
        CHECK_EQ(in_merging(&b), 0);
        CHECK_EQ(count_now(&b, TIMES), KEYS);
        CHECK_EQ(count_now(&b, 0), 0);
        load(&b, KEYS, TIMES + 5, TIMES + 6);
        (void)compact(&b);
        CHECK(file_size(&b) < before / 4);
        CHECK_EQ(count_now(&b, TIMES + 5), KEYS);
    }
    CHECK_EQ(steps, 3);
}
