/* test_store.c - folders of a store: loads, parts, merging, crashes between any two steps, snapshots. */
#include "statemap/store/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys/thread.h"
#include "statemap/store/definition_text.h"
#include "statemap/store/store_int.h"
#include "tests/unit/statemap/statemap_help.h"

struct bench {
    char *folder;
    struct sm_store *store;
    struct qf_err err;
};

static void open_store(struct bench *b)
{
    struct sm_store_options options = { .root = b->folder, .write = true };

    CHECK_OK(sm_store_open(&options, &b->store, &b->err), &b->err);
}

static void define(struct bench *b, const char *name, enum sm_kind kind)
{
    struct sm_definition definition = { .layout.kind = kind };

    (void)snprintf(definition.name, sizeof(definition.name), "%s", name);
    CHECK_OK(sm_store_define(b->store, &definition, &b->err), &b->err);
}

static struct bench bench_open(void)
{
    struct bench b = { .folder = help_folder() };

    open_store(&b);
    define(&b, "team", SM_STATE);
    define(&b, "version", SM_TEMPORAL);
    return b;
}

static void bench_done(struct bench *b)
{
    b->store = sm_store_close(b->store);
    help_folder_gone(&b->folder);
}

static void put(struct bench *b, struct sm_writer *writer, const char *map, struct sm_row row)
{
    struct sm_definition definition;

    CHECK_OK(sm_store_definition(b->store, qf_str_from(map), &definition, &b->err), &b->err);
    CHECK_OK(sm_writer_put(writer, &definition, &row, &b->err), &b->err);
}

/* A load of a row in each of two maps. */
static void stage(struct bench *b, const char *key, int64_t time, const char *value)
{
    struct sm_writer *writer = NULL;
    uint64_t position = 0;

    CHECK_OK(sm_writer_begin(b->store, &writer, &b->err), &b->err);
    put(b, writer, "team", help_row(key, 0, value));
    put(b, writer, "version", help_row(key, time, value));
    CHECK_OK(sm_writer_finish(writer, &position, &b->err), &b->err);
    CHECK(position > 0);
}

static void merge(struct bench *b)
{
    uint64_t left = 1;

    CHECK_OK(sm_store_merge(b->store, &left, &b->err), &b->err);
    CHECK_EQ(left, 0);
}

static const char *get(struct bench *b, const char *map, const char *key, int64_t time)
{
    static char text[64];
    struct sm_reading reading;
    struct sm_row row;
    bool found = false;

    CHECK_OK(sm_reading_begin(b->store, qf_str_from(map), &reading, &b->err), &b->err);
    CHECK_OK(sm_find(reading.txn, qf_str_from(key), time, &found, &row, &b->err), &b->err);
    (void)snprintf(text, sizeof(text), "%.*s", found ? (int)row.value.bytes.len : 1,
                   found ? row.value.bytes.data : "-");
    sm_reading_end(b->store, &reading);
    return text;
}

static size_t count_in(struct bench *b, const char *name)
{
    QF_CLEANUP(qf_freep) char *path = sm_path(b->folder, name, NULL);
    struct sm_names names = { 0 };
    size_t count;

    CHECK_OK(sm_folder_list(path, &names, &b->err), &b->err);
    count = names.names.count;
    sm_names_done(&names);
    return count;
}

TEST(the_first_part_becomes_the_map_and_others_are_merged_into_it)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();

    stage(&b, "checkout", 10, "blue");
    merge(&b);
    CHECK_STR(get(&b, "TEAM", "checkout", 0), "blue");
    stage(&b, "checkout", 20, "green");
    stage(&b, "basket", 5, "red");
    merge(&b);
    CHECK_STR(get(&b, "team", "checkout", 0), "green");
    CHECK_STR(get(&b, "team", "basket", 0), "red");
    CHECK_STR(get(&b, "version", "checkout", 15), "blue");
    CHECK_STR(get(&b, "version", "checkout", 20), "green");
    CHECK_EQ(count_in(&b, "staging"), 0);
    CHECK_EQ(count_in(&b, "writer"), 0);
    CHECK_EQ(count_in(&b, "receive"), 0);
    CHECK_EQ(count_in(&b, "merging"), 0);
}

TEST(loads_in_another_order_make_the_same_temporal_map)
{
    static const int order[2][3] = { { 0, 1, 2 }, { 2, 0, 1 } };
    static const char *const values[] = { "a", "b", "c" };

    for (int which = 0; which < 2; which++) {
        QF_CLEANUP(bench_done) struct bench b = bench_open();

        for (int i = 0; i < 3; i++)
            stage(&b, "k", 10 * order[which][i], values[order[which][i]]);
        stage(&b, "k", 10 * order[which][0], values[order[which][0]]); /* again */
        merge(&b);
        CHECK_STR(get(&b, "version", "k", 9), "a");
        CHECK_STR(get(&b, "version", "k", 19), "b");
        CHECK_STR(get(&b, "version", "k", 20), "c");
    }
}

/* Everything that a map has, as text. */
static void dump(struct bench *b, const char *map, char text[1024])
{
    struct sm_reading reading;
    struct sm_rows rows = { 0 };
    struct sm_row row;
    size_t len = 0;
    bool found = true;

    CHECK_OK(sm_reading_begin(b->store, qf_str_from(map), &reading, &b->err), &b->err);
    rows.txn = reading.txn;
    for (;;) {
        CHECK_OK(sm_rows_next(&rows, &found, &row, &b->err), &b->err);
        if (!found)
            break;
        len +=
            (size_t)snprintf(text + len, 1024 - len, "%.*s %lld..%lld %.*s\n", QF_STR_ARG(row.key),
                             (long long)row.time, (long long)row.end, QF_STR_ARG(row.value.bytes));
        CHECK(len < 1024);
    }
    sm_reading_end(b->store, &reading);
}

/* One of the loads that time tells apart: no two say something of the same key and moment. */
static void stage_by_time(struct bench *b, int which)
{
    struct sm_writer *writer = NULL;
    uint64_t position;
    char value[16];

    (void)snprintf(value, sizeof(value), "load %d", which);
    CHECK_OK(sm_writer_begin(b->store, &writer, &b->err), &b->err);
    for (int i = 0; i < 4; i++) {
        struct sm_row session = { .key = QF_STR("alice"), .time = 100 * i + which };
        char key[16];

        (void)snprintf(key, sizeof(key), "k%d", i % 2);
        put(b, writer, "version", help_row(key, 10 * i + which, value));
        session.end = session.time + 40;
        put(b, writer, "on_call", session);
    }
    CHECK_OK(sm_writer_finish(writer, &position, &b->err), &b->err);
}

TEST(the_same_part_twice_or_in_another_order_makes_the_same_map)
{
    static const int orders[][6] = { { 0, 1, 2, -1, -1, -1 },
                                     { 2, 1, 0, -1, -1, -1 },
                                     { 1, 1, 0, 2, 0, -1 },
                                     { 2, 0, 2, 1, 1, 2 },
                                     { 0, 2, 1, 0, 2, 1 } };
    char first[2][1024], again[2][1024];

    for (size_t which = 0; which < QF_COUNT_OF(orders); which++) {
        QF_CLEANUP(bench_done) struct bench b = bench_open();

        define(&b, "on_call", SM_SESSION);
        for (int i = 0; i < 6 && orders[which][i] >= 0; i++) {
            stage_by_time(&b, orders[which][i]);
            if (i % 2)
                merge(&b); /* parts that waited together, and each by itself */
        }
        merge(&b);
        dump(&b, "version", which ? again[0] : first[0]);
        dump(&b, "on_call", which ? again[1] : first[1]);
        if (which) {
            CHECK_STR(again[0], first[0]);
            CHECK_STR(again[1], first[1]);
        }
    }
    CHECK(strstr(first[0], "k1 32..0 load 2\n"));
    CHECK(strstr(first[1], "alice 301..341 \n"));
}

TEST(an_aborted_load_leaves_nothing)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();
    struct sm_writer *writer = NULL;
    struct sm_reading reading;

    CHECK_OK(sm_writer_begin(b.store, &writer, &b.err), &b.err);
    put(&b, writer, "team", help_row("k", 0, "v"));
    (void)sm_writer_abort(writer);
    merge(&b);
    CHECK_EQ(count_in(&b, "writer"), 0);
    CHECK_EQ(sm_reading_begin(b.store, QF_STR("team"), &reading, &b.err), QF_ENOTFOUND);
}

TEST(two_processes_do_not_write_at_a_time)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();
    struct sm_store_options options = { .root = b.folder, .write = true };
    struct sm_store *other = NULL;

    CHECK_EQ(sm_store_open(&options, &other, &b.err), QF_EBUSY);
    CHECK(strstr(b.err.msg, "another process writes to these maps"));
}

/* A crash at the step whose turn it is. */
static void crash_at(void *ctx, const char *what)
{
    int *left = ctx;

    (void)what;
    if ((*left)-- == 0)
        _exit(7);
}

/* In a process of its own: open, one more load, merge; it dies at step @at. Returns whether it did. */
static bool load_and_crash(struct bench *b, int at)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        struct sm_store_options options = {
            .root = b->folder, .write = true, .step = crash_at, .step_ctx = &at
        };
        struct sm_writer *writer = NULL;
        struct sm_definition team, version;
        struct sm_row row = help_row("k", 0, "new"), later = help_row("k", 100, "new");
        uint64_t position, left;
        bool fine = sm_store_open(&options, &b->store, NULL) == QF_OK &&
                    sm_store_definition(b->store, QF_STR("team"), &team, NULL) == QF_OK &&
                    sm_store_definition(b->store, QF_STR("version"), &version, NULL) == QF_OK &&
                    sm_writer_begin(b->store, &writer, NULL) == QF_OK &&
                    sm_writer_put(writer, &team, &row, NULL) == QF_OK &&
                    sm_writer_put(writer, &version, &later, NULL) == QF_OK &&
                    sm_writer_finish(writer, &position, NULL) == QF_OK &&
                    sm_store_merge(b->store, &left, NULL) == QF_OK;

        _exit(fine ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 7));
    return WEXITSTATUS(status) == 7;
}

/* With (a shard is there) and without (it is the first part) an earlier load. */
static void crash_everywhere(bool earlier, int *ret_steps)
{
    bool crashed = true, was_staged = false;

    for (*ret_steps = 0; crashed; (*ret_steps)++) {
        QF_CLEANUP(bench_done) struct bench b = bench_open();
        bool staged;

        if (earlier) {
            stage(&b, "k", 1, "old");
            merge(&b);
        }
        b.store = sm_store_close(b.store);
        crashed = load_and_crash(&b, *ret_steps);
        open_store(&b);
        CHECK_EQ(count_in(&b, "writer") + count_in(&b, "receive") + count_in(&b, "merging"), 0);
        staged = count_in(&b, "staging") > 0 || !crashed;
        merge(&b);
        if (!crashed || staged || was_staged) {
            CHECK_STR(get(&b, "team", "k", 0), "new");
            CHECK_STR(get(&b, "version", "k", 100), "new");
            was_staged = true; /* from here on it counts, wherever the crash is */
        } else if (earlier) {
            CHECK_STR(get(&b, "team", "k", 0), "old");
            CHECK_STR(get(&b, "version", "k", 100), "old");
        }
        if (earlier)
            CHECK_STR(get(&b, "version", "k", 99), "old");
        stage(&b, "k", 200, "newest");
        merge(&b);
        CHECK_STR(get(&b, "team", "k", 0), "newest");
    }
    CHECK(was_staged);
}

TEST(a_crash_between_any_two_steps_of_a_first_load_loses_nothing_that_was_staged)
{
    int steps;

    crash_everywhere(false, &steps);
    CHECK(steps >= 10);
}

TEST(a_crash_between_any_two_steps_of_a_later_load_loses_nothing_that_was_staged)
{
    int steps;

    crash_everywhere(true, &steps);
    CHECK(steps >= 9);
}

static void alter(const char *path, off_t at, bool cut)
{
    int file = open(path, O_RDWR);
    char byte;

    CHECK(file >= 0);
    CHECK(pread(file, &byte, 1, at) == 1);
    byte ^= 0x40;
    CHECK(pwrite(file, &byte, 1, at) == 1);
    if (cut)
        CHECK_EQ(ftruncate(file, at), 0);
    (void)close(file);
}

TEST(a_damaged_part_is_named_and_nothing_of_it_is_merged)
{
    for (off_t at = 0; at < 600; at += 37) {
        QF_CLEANUP(bench_done) struct bench b = bench_open();
        QF_CLEANUP(qf_freep) char *path = NULL;
        uint64_t left = 0;
        struct sm_reading reading;

        stage(&b, "k", 1, "v");
        path = sm_path(b.folder, "staging", "0000000000000001.part");
        alter(path, at, at % 2);
        CHECK_EQ(sm_store_merge(b.store, &left, &b.err), QF_ECORRUPT);
        CHECK(strstr(b.err.msg, "staging/0000000000000001.part is damaged"));
        CHECK_EQ(left, 1);
        /* Of the map that stands first in it there may be all, of the damaged one nothing. */
        b.err = (struct qf_err){ 0 };
        CHECK_EQ(sm_reading_begin(b.store, QF_STR("version"), &reading, &b.err), QF_ENOTFOUND);
        /* Without it the others go on. */
        CHECK_EQ(unlink(path), 0);
        stage(&b, "k", 1, "next");
        b.err = (struct qf_err){ 0 };
        merge(&b);
        CHECK_STR(get(&b, "version", "k", 1), "next");
    }
}

static void put_much(struct bench *b, const char *map, uint64_t *ret_position)
{
    struct sm_writer *writer = NULL;
    static char value[5000];

    memset(value, 'v', sizeof(value) - 1);
    CHECK_OK(sm_writer_begin(b->store, &writer, &b->err), &b->err);
    for (int i = 0; i < 150; i++) {
        char key[32];

        (void)snprintf(key, sizeof(key), "%s %llu %d", map, (unsigned long long)*ret_position, i);
        put(b, writer, map, help_row(key, 0, value));
    }
    CHECK_OK(sm_writer_finish(writer, ret_position, &b->err), &b->err);
}

TEST(a_full_map_keeps_its_parts_waiting_and_others_go_on)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();
    struct sm_definition small = { .name = "small", .map_bytes = 1500000 };
    uint64_t position = 0, left = 0;

    CHECK_OK(sm_store_define(b.store, &small, &b.err), &b.err);
    put_much(&b, "small", &position);
    merge(&b);
    put_much(&b, "small", &position);
    stage(&b, "k", 1, "v");
    CHECK_EQ(sm_store_merge(b.store, &left, &b.err), QF_ENOSPC);
    CHECK_STR(b.err.msg, "map small is full: it may have 1500000 bytes");
    CHECK_EQ(left, 1);
    CHECK_STR(get(&b, "team", "k", 0), "v");
    CHECK_STR(get(&b, "small", "small 1 0", 0), "-");
    b.err = (struct qf_err){ 0 };
    small.map_bytes = 4000000;
    CHECK_OK(sm_store_define(b.store, &small, &b.err), &b.err);
    merge(&b);
    CHECK(get(&b, "small", "small 1 0", 0)[0] == 'v');
    CHECK(get(&b, "small", "small 0 0", 0)[0] == 'v');
}

TEST(kind_and_short_keys_of_a_map_stay)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();
    struct sm_definition other = { .name = "TEAM", .layout.kind = SM_SESSION };

    CHECK_EQ(sm_store_define(b.store, &other, &b.err), QF_EEXIST);
    CHECK_STR(b.err.msg, "map team is a state map: kind and short keys stay");
}

TEST(a_map_without_a_definition_goes_with_its_rows)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();
    struct sm_reading reading;

    stage(&b, "k", 1, "v");
    merge(&b);
    CHECK_OK(sm_store_undefine(b.store, QF_STR("Team"), &b.err), &b.err);
    CHECK_EQ(count_in(&b, "shards"), 2);
    CHECK_EQ(sm_store_define(b.store,
                             &(struct sm_definition){ .name = "team", .layout.kind = SM_SESSION },
                             NULL),
             QF_EEXIST);
    CHECK_OK(sm_store_clean(b.store, &b.err), &b.err);
    CHECK_EQ(count_in(&b, "shards"), 1);
    CHECK_EQ(sm_reading_begin(b.store, QF_STR("team"), &reading, &b.err), QF_ENOTFOUND);
    CHECK_STR(get(&b, "version", "k", 1), "v");
}

/* Undefined, then defined anew as another kind, while a part of the former one waits. */
TEST(a_part_of_a_map_that_went_is_not_merged_into_its_namesake)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();
    struct sm_reading reading;

    stage(&b, "k", 1, "v");
    CHECK_OK(sm_store_undefine(b.store, QF_STR("team"), &b.err), &b.err);
    define(&b, "team", SM_TEMPORAL);
    merge(&b);
    CHECK_EQ(sm_reading_begin(b.store, QF_STR("team"), &reading, &b.err), QF_ENOTFOUND);
}

TEST(definitions_are_read_as_they_were_written)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();
    struct sm_definition on_call = { .name = "on_call",
                                     .layout = { SM_SESSION, true },
                                     .condense_ms = 3600000,
                                     .retention_ms = 86400000,
                                     .timeout_ms = 900000,
                                     .map_bytes = 1 << 24,
                                     .readers = 5 };
    struct sm_definition read;
    sm_definitions all = { 0 };

    CHECK_OK(sm_store_define(b.store, &on_call, &b.err), &b.err);
    CHECK_OK(sm_store_definition(b.store, QF_STR("ON_CALL"), &read, &b.err), &b.err);
    CHECK(read.layout.kind == SM_SESSION && read.layout.direct && read.condense_ms == 3600000 &&
          read.retention_ms == 86400000 && read.timeout_ms == 900000 && read.map_bytes == 1 << 24 &&
          read.readers == 5);
    CHECK_OK(sm_store_definitions(b.store, &all, &b.err), &b.err);
    CHECK_EQ(all.count, 3);
    CHECK_STR(all.items[0].name, "on_call");
    QF_VEC_DONE(&all);
}

static const char *refused(const char *json)
{
    static struct qf_err err;
    struct sm_definition definition;

    err = (struct qf_err){ 0 };
    return sm_definition_read(qf_str_from(json), &definition, &err) == QF_OK ? "" : err.msg;
}

TEST(definitions_that_say_something_else_are_refused)
{
    CHECK_STR(refused("{\"name\":\"a\",\"kind\":\"state\"}"), "");
    CHECK(strstr(refused("[]"), "a definition is a JSON object"));
    CHECK(strstr(refused("{\"name\":\"a\""), "a definition is a JSON object"));
    CHECK_STR(refused("{\"name\":\"a\"}"), "a definition has at least name and kind");
    CHECK_STR(refused("{\"name\":\"a b\",\"kind\":\"state\"}"), "a b is no name of a map");
    CHECK_STR(refused("{\"name\":\"a\",\"kind\":\"what\"}"), "there is no kind what");
    CHECK_STR(refused("{\"name\":\"a\",\"kind\":\"state\",\"type\":\"x\"}"), "there is no type x");
    CHECK_STR(refused("{\"name\":\"a\",\"kind\":\"temporal\",\"retention\":\"x\"}"),
              "retention: x is no duration");
    CHECK_STR(refused("{\"name\":\"a\",\"kind\":\"state\",\"map_bytes\":-1}"),
              "map_bytes is no whole number");
    CHECK_STR(refused("{\"name\":\"a\",\"kind\":\"state\",\"colour\":1}"),
              "a definition has no member colour like this");
    CHECK_STR(refused("{\"name\":1,\"kind\":\"state\"}"), "name is no text");
}

TEST(idle_environments_are_closed)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();
    struct sm_reading reading;

    stage(&b, "k", 1, "v");
    merge(&b);
    CHECK_STR(get(&b, "team", "k", 0), "v");
    CHECK_OK(sm_reading_begin(b.store, QF_STR("version"), &reading, &b.err), &b.err);
    CHECK_EQ(sm_store_open_count(b.store), 2);
    sm_shards_idle(b.store, b.store->shards.items[0]->used_ms + SM_ENV_IDLE_MS - 1);
    CHECK_EQ(sm_store_open_count(b.store), 2);
    sm_shards_idle(b.store, INT64_MAX); /* one is in use */
    CHECK_EQ(sm_store_open_count(b.store), 1);
    sm_reading_end(b.store, &reading);
    sm_shards_idle(b.store, INT64_MAX);
    CHECK_EQ(sm_store_open_count(b.store), 0);
    CHECK_STR(get(&b, "team", "k", 0), "v");
}

static const char *get_at(struct bench *b, uint64_t version, const char *key)
{
    static char text[64];
    struct sm_reading reading;
    struct sm_row row;
    bool found = false;

    b->err = (struct qf_err){ 0 };
    if (sm_snapshot_begin(b->store, QF_STR("team"), version, &reading, &b->err) != QF_OK)
        return b->err.msg;
    CHECK_OK(sm_find(reading.txn, qf_str_from(key), 0, &found, &row, &b->err), &b->err);
    (void)snprintf(text, sizeof(text), "%.*s", found ? (int)row.value.bytes.len : 1,
                   found ? row.value.bytes.data : "-");
    sm_reading_end(b->store, &reading);
    return text;
}

TEST(a_snapshot_stays_as_it_is)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();
    uint64_t first = 0, second = 0, again = 0;

    stage(&b, "k", 1, "old");
    merge(&b);
    CHECK_OK(sm_snapshot_make(b.store, QF_STR("team"), &first, &b.err), &b.err);
    CHECK_EQ(first, 1);
    stage(&b, "k", 1, "new");
    merge(&b);
    CHECK_OK(sm_snapshot_make(b.store, QF_STR("team"), &second, &b.err), &b.err);
    CHECK_OK(sm_snapshot_make(b.store, QF_STR("team"), &again, &b.err), &b.err);
    CHECK_EQ(second, 2);
    CHECK_EQ(again, 2);
    CHECK_STR(get_at(&b, first, "k"), "old");
    CHECK_STR(get_at(&b, second, "k"), "new");
    CHECK(strstr(get_at(&b, 3, "k"), "No such file"));
    CHECK_EQ(count_in(&b, "merging"), 0);
}

TEST(old_snapshots_go_but_the_newest_stays)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();
    struct timespec long_ago[2] = { { 1000, 0 }, { 1000, 0 } };
    uint64_t versions[2];

    for (int i = 0; i < 2; i++) {
        stage(&b, "k", 1, "v");
        merge(&b);
        CHECK_OK(sm_snapshot_make(b.store, QF_STR("team"), &versions[i], &b.err), &b.err);
    }
    CHECK_OK(sm_store_clean(b.store, &b.err), &b.err);
    CHECK_STR(get_at(&b, versions[0], "k"), "v");
    for (int i = 0; i < 2; i++) {
        QF_CLEANUP(qf_freep) char *path = sm_snapshot_path(b.store, "team", versions[i]);

        CHECK_EQ(utimensat(AT_FDCWD, path, long_ago, 0), 0);
    }
    sm_shards_idle(b.store, INT64_MAX);
    CHECK_OK(sm_store_clean(b.store, &b.err), &b.err);
    CHECK(strstr(get_at(&b, versions[0], "k"), "No such file"));
    CHECK_STR(get_at(&b, versions[1], "k"), "v");
}

TEST(a_damaged_snapshot_is_not_read)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();
    QF_CLEANUP(qf_freep) char *file = NULL;
    uint64_t version;

    stage(&b, "k", 1, "v");
    merge(&b);
    CHECK_OK(sm_snapshot_make(b.store, QF_STR("team"), &version, &b.err), &b.err);
    file = sm_path(b.folder, "snapshots/team/0000000000000001", SM_DATA_FILE);
    CHECK_EQ(chmod(file, 0600), 0);
    alter(file, 5000, false);
    CHECK(strstr(get_at(&b, version, "k"), "of map team is damaged"));
}

/* Readers while parts are merged: what they see is one load or another, never half of one. */
struct watch {
    struct bench *b;
    atomic_bool stop;
    atomic_int torn, seen;
};

static void watch_rows(void *ctx)
{
    struct watch *w = ctx;

    while (!atomic_load(&w->stop)) {
        struct sm_reading reading;
        struct sm_row row[2];
        bool found[2];

        if (sm_reading_begin(w->b->store, QF_STR("team"), &reading, NULL) != QF_OK)
            continue;
        if (sm_find(reading.txn, QF_STR("one"), 0, &found[0], &row[0], NULL) != QF_OK ||
            sm_find(reading.txn, QF_STR("two"), 0, &found[1], &row[1], NULL) != QF_OK ||
            !found[0] || !found[1] || !qf_str_eq(row[0].value.bytes, row[1].value.bytes))
            atomic_fetch_add(&w->torn, 1);
        atomic_fetch_add(&w->seen, 1);
        sm_reading_end(w->b->store, &reading);
    }
}

TEST(readers_beside_a_merge_see_whole_loads)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();
    struct watch w = { .b = &b };
    struct qf_thread *threads[3];

    for (int load = 0; load < 40; load++) {
        struct sm_writer *writer = NULL;
        uint64_t position;
        char value[32];

        (void)snprintf(value, sizeof(value), "load %d", load);
        CHECK_OK(sm_writer_begin(b.store, &writer, &b.err), &b.err);
        put(&b, writer, "team", help_row("one", 0, value));
        for (int i = 0; i < 20; i++) {
            char key[32];

            (void)snprintf(key, sizeof(key), "between %d", i);
            put(&b, writer, "team", help_row(key, 0, value));
        }
        put(&b, writer, "team", help_row("two", 0, value));
        CHECK_OK(sm_writer_finish(writer, &position, &b.err), &b.err);
        merge(&b);
        for (int i = 0; load == 0 && i < 3; i++)
            CHECK((threads[i] = qf_thread_start("watch", watch_rows, &w)));
    }
    for (int tries = 0; tries < 1000 && atomic_load(&w.seen) < 100; tries++)
        (void)usleep(1000);
    atomic_store(&w.stop, true);
    for (int i = 0; i < 3; i++)
        (void)qf_thread_join(threads[i]);
    CHECK(atomic_load(&w.seen) > 0);
    CHECK_EQ(atomic_load(&w.torn), 0);
}

/* Copies are made and read by others while parts are merged: each has the rows of its version, and stays as it is. */
static void watch_snapshots(void *ctx)
{
    struct watch *w = ctx;

    while (!atomic_load(&w->stop)) {
        struct sm_reading reading;
        struct sm_row row[2];
        bool found[2];
        uint64_t version;
        char value[32];

        if (sm_snapshot_make(w->b->store, QF_STR("team"), &version, NULL) != QF_OK ||
            sm_snapshot_begin(w->b->store, QF_STR("team"), version, &reading, NULL) != QF_OK) {
            atomic_fetch_add(&w->torn, 1);
            break;
        }
        (void)snprintf(value, sizeof(value), "load %d", (int)version);
        for (int look = 0; look < 3; look++)
            if (sm_find(reading.txn, QF_STR("k"), 0, &found[0], &row[0], NULL) != QF_OK ||
                sm_find(reading.txn, QF_STR("other"), 0, &found[1], &row[1], NULL) != QF_OK ||
                !found[0] || !found[1] || !qf_str_is(row[0].value.bytes, value) ||
                !qf_str_is(row[1].value.bytes, value))
                atomic_fetch_add(&w->torn, 1);
        atomic_fetch_add(&w->seen, 1);
        sm_reading_end(w->b->store, &reading);
    }
}

static void stage_pair(struct bench *b, int load)
{
    struct sm_writer *writer = NULL;
    uint64_t position;
    char value[32];

    (void)snprintf(value, sizeof(value), "load %d", load);
    CHECK_OK(sm_writer_begin(b->store, &writer, &b->err), &b->err);
    put(b, writer, "team", help_row("k", 0, value));
    put(b, writer, "team", help_row("other", 0, value));
    CHECK_OK(sm_writer_finish(writer, &position, &b->err), &b->err);
    CHECK_EQ(position, load);
}

TEST(snapshots_are_of_one_version_while_parts_are_merged)
{
    QF_CLEANUP(bench_done) struct bench b = bench_open();
    struct watch w = { .b = &b };
    struct qf_thread *thread = NULL;
    struct sm_reading pinned = { 0 };
    struct sm_row row;
    uint64_t version;
    bool found;

    for (int load = 1; load <= 40; load++) {
        stage_pair(&b, load);
        merge(&b);
        if (load > 1)
            continue;
        CHECK_OK(sm_snapshot_make(b.store, QF_STR("team"), &version, &b.err), &b.err);
        CHECK_OK(sm_snapshot_begin(b.store, QF_STR("team"), version, &pinned, &b.err), &b.err);
        CHECK((thread = qf_thread_start("watch", watch_snapshots, &w)));
    }
    for (int tries = 0; tries < 5000 && atomic_load(&w.seen) < 5; tries++)
        (void)usleep(1000);
    atomic_store(&w.stop, true);
    (void)qf_thread_join(thread);
    CHECK_OK(sm_find(pinned.txn, QF_STR("k"), 0, &found, &row, &b.err), &b.err);
    CHECK(found && qf_str_is(row.value.bytes, "load 1"));
    sm_reading_end(b.store, &pinned);
    CHECK(atomic_load(&w.seen) > 0);
    CHECK_EQ(atomic_load(&w.torn), 0);
}
