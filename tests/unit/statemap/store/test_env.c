/* test_env.c - environments: clashes of hashes, full maps, readers beside a writer, damaged files. */
#include "statemap/store/env.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "statemap/store/upkeep.h"
#include "tests/unit/statemap/statemap_help.h"

static uint64_t one_hash(struct qf_str key)
{
    (void)key;
    return 7;
}

static const struct sm_layout state = { SM_STATE, false };
static const struct sm_layout temporal = { SM_TEMPORAL, false };

TEST(keys_of_one_hash_are_told_apart)
{
    QF_CLEANUP(help_folder_gone) char *folder = help_folder();
    struct sm_env *env = help_env(folder, state, one_hash);

    for (int round = 0; round < 2; round++) {
        struct sm_row a = help_row("a", 0, round ? "A2" : "A"), b = help_row("b", 0, "B"),
                      c = help_row("ca", 0, round ? "C2" : "C");

        help_put(env, &a);
        help_put(env, &b);
        help_put(env, &c);
        CHECK_EQ(help_rows(env), 3);
        CHECK_STR(help_find(env, "a", 0), round ? "A2" : "A");
        CHECK_STR(help_find(env, "b", 0), "B");
        CHECK_STR(help_find(env, "ca", 0), round ? "C2" : "C");
        CHECK_STR(help_find(env, "c", 0), "-");
    }
    (void)sm_env_close(env);
}

TEST(more_keys_of_one_hash_than_there_may_be_are_refused)
{
    QF_CLEANUP(help_folder_gone) char *folder = help_folder();
    struct sm_env *env = help_env(folder, state, one_hash);
    struct sm_txn *txn = NULL;
    struct qf_err err = { 0 };
    char key[32];

    CHECK_OK(sm_write_begin(env, &txn, &err), &err);
    for (int i = 0; i < SM_CLASHES_MAX; i++) {
        struct sm_row row;

        (void)snprintf(key, sizeof(key), "%d", i);
        row = help_row(key, 0, key);
        CHECK_OK(sm_put(txn, &row, &err), &err);
    }
    CHECK_EQ(sm_put(txn,
                    &(struct sm_row){ .key = QF_STR("more"), .value = { SM_STRING, QF_STR("v") } },
                    &err),
             QF_ELIMIT);
    CHECK_STR(err.msg, "map m: more than 1024 keys have the same hash");
    CHECK_OK(sm_commit(txn, &err), &err);
    CHECK_STR(help_find(env, "1023", 0), "1023");
    CHECK_STR(help_find(env, "more", 0), "-");
    (void)sm_env_close(env);
}

/* Retention takes all rows of a key: its clash number is free, and those behind it are found still. */
TEST(a_key_whose_rows_went_leaves_no_gap_that_hides_others)
{
    QF_CLEANUP(help_folder_gone) char *folder = help_folder();
    struct sm_env *env = help_env(folder, (struct sm_layout){ SM_SESSION, false }, one_hash);
    struct sm_row first = { .key = QF_STR_INIT("first"), .time = 0, .end = 5 };
    struct sm_row second = { .key = QF_STR_INIT("second"), .time = 100, .end = 105 };
    struct sm_row third = { .key = QF_STR_INIT("third"), .time = 100, .end = 105 };
    struct sm_upkeep upkeep;
    struct qf_err err = { 0 };

    help_put(env, &first);
    help_put(env, &second);
    CHECK_OK(sm_upkeep(env, (struct sm_cutoffs){ INT64_MIN, 50 }, &upkeep, &err), &err);
    CHECK_EQ(upkeep.dropped, 1);
    CHECK_STR(help_find(env, "first", 1), "-");
    CHECK_STR(help_find(env, "second", 102), "100..105");
    help_put(env, &second);
    help_put(env, &third);
    help_put(env, &first);
    CHECK_EQ(help_rows(env), 3);
    CHECK_STR(help_find(env, "first", 1), "0..5");
    CHECK_STR(help_find(env, "third", 104), "100..105");
    (void)sm_env_close(env);
}

TEST(a_key_that_begins_another_is_another_key)
{
    for (int direct = 0; direct < 2; direct++) {
        QF_CLEANUP(help_folder_gone) char *folder = help_folder();
        struct sm_env *env = help_env(folder, (struct sm_layout){ SM_TEMPORAL, direct }, NULL);
        struct sm_row longer = help_row("ab", 5, "longer"), shorter = help_row("a", 7, "shorter");

        help_put(env, &longer);
        help_put(env, &shorter);
        CHECK_STR(help_find(env, "a", 6), "-");
        CHECK_STR(help_find(env, "a", 7), "shorter");
        CHECK_STR(help_find(env, "ab", INT64_MAX), "longer");
        CHECK_STR(help_find(env, "abc", INT64_MAX), "-");
        CHECK_STR(help_find(env, "", INT64_MAX), "-");
        (void)sm_env_close(env);
    }
}

TEST(of_overlapping_ranges_the_narrowest_answers)
{
    QF_CLEANUP(help_folder_gone) char *folder = help_folder();
    struct sm_env *env = help_env(folder, (struct sm_layout){ SM_RANGED, false }, NULL);
    struct sm_row all = help_range(INT64_MIN, INT64_MAX, 0, "all"),
                  site = help_range(1000, 1255, 0, "site"),
                  rack = help_range(1000, 1015, 0, "rack"), one = help_range(1003, 1003, 0, "one");

    help_put(env, &one);
    help_put(env, &all);
    help_put(env, &rack);
    help_put(env, &site);
    CHECK_STR(help_find_number(env, 1003, 0), "one");
    CHECK_STR(help_find_number(env, 1004, 0), "rack");
    CHECK_STR(help_find_number(env, 1016, 0), "site");
    CHECK_STR(help_find_number(env, 999, 0), "all");
    CHECK_STR(help_find_number(env, INT64_MAX, 0), "all");
    (void)sm_env_close(env);
}

TEST(of_equally_wide_ranges_the_later_load_answers)
{
    for (uint64_t later = 0; later < 2; later++) {
        QF_CLEANUP(help_folder_gone) char *folder = help_folder();
        struct sm_env *env = help_env(folder, (struct sm_layout){ SM_RANGED, false }, NULL);
        struct sm_row low = help_range(1, 3, 0, "low"), high = help_range(2, 4, 0, "high");

        low.load = 1 + later;
        high.load = 2 - later;
        help_put(env, &low);
        help_put(env, &high);
        CHECK_STR(help_find_number(env, 2, 0), later ? "low" : "high");
        (void)sm_env_close(env);
    }
}

TEST(a_map_is_asked_for_what_it_has)
{
    QF_CLEANUP(help_folder_gone) char *folder = help_folder();
    struct sm_env *env = help_env(folder, state, NULL);
    struct sm_txn *txn = NULL;
    struct sm_row row;
    struct qf_err err = { 0 };
    bool found;

    CHECK_OK(sm_read_begin(env, &txn, &err), &err);
    CHECK_EQ(sm_find_number(txn, 1, 0, &found, &row, &err), QF_EINVAL);
    CHECK_STR(err.msg, "map m is asked for keys, not for numbers");
    (void)sm_end(txn);
    (void)sm_env_close(env);
}

TEST(a_reader_sees_the_rows_it_began_with)
{
    QF_CLEANUP(help_folder_gone) char *folder = help_folder();
    struct sm_env_options options = {
        .folder = folder, .name = "m", .layout = state, .create = true
    };
    struct sm_row before = help_row("k", 0, "before"), after = help_row("k", 0, "after");
    struct sm_txn *reader = NULL;
    struct sm_env *env = NULL;
    struct sm_row row;
    struct qf_err err = { 0 };
    bool found;

    CHECK_OK(sm_env_open(&options, &env, &err), &err);
    help_put(env, &before);
    CHECK_OK(sm_read_begin(env, &reader, &err), &err);
    help_put(env, &after);
    CHECK_OK(sm_find(reader, QF_STR("k"), 0, &found, &row, &err), &err);
    CHECK(found && qf_str_is(row.value.bytes, "before"));
    (void)sm_end(reader);
    CHECK_STR(help_find(env, "k", 0), "after");
    (void)sm_env_close(env);
}

TEST(a_full_map_says_so_and_keeps_what_it_has)
{
    QF_CLEANUP(help_folder_gone) char *folder = help_folder();
    struct sm_env_options options = {
        .folder = folder, .name = "m", .layout = state, .create = true, .map_bytes = 1 << 20
    };
    struct sm_row kept = help_row("kept", 0, "v");
    struct sm_env *env = NULL;
    struct sm_txn *txn = NULL;
    struct qf_err err = { 0 };
    char value[2000];
    qf_rc rc = QF_OK;

    memset(value, 'v', sizeof(value));
    CHECK_OK(sm_env_open(&options, &env, &err), &err);
    help_put(env, &kept);
    CHECK_OK(sm_write_begin(env, &txn, &err), &err);
    for (int i = 0; i < 10000 && rc == QF_OK; i++) {
        char key[32];
        struct sm_row row;

        (void)snprintf(key, sizeof(key), "%d", i);
        row = help_row(key, 0, "");
        row.value.bytes = (struct qf_str){ value, sizeof(value) };
        rc = sm_put(txn, &row, &err);
    }
    CHECK_EQ(rc, QF_ENOSPC);
    CHECK_STR(err.msg, "map m is full: it may have 1048576 bytes");
    (void)sm_end(txn);
    CHECK_STR(help_find(env, "kept", 0), "v");
    CHECK_EQ(help_rows(env), 1);
    (void)sm_env_close(env);
}

TEST(readers_have_a_limit)
{
    QF_CLEANUP(help_folder_gone) char *folder = help_folder();
    struct sm_env_options options = {
        .folder = folder, .name = "m", .layout = state, .create = true, .readers = 2
    };
    struct sm_txn *readers[3] = { 0 };
    struct sm_env *env = NULL;
    struct qf_err err = { 0 };

    CHECK_OK(sm_env_open(&options, &env, &err), &err);
    CHECK_OK(sm_read_begin(env, &readers[0], &err), &err);
    CHECK_OK(sm_read_begin(env, &readers[1], &err), &err);
    CHECK_EQ(sm_read_begin(env, &readers[2], &err), QF_EBUSY);
    CHECK_STR(err.msg, "map m: it has as many readers as it may have");
    (void)sm_end(readers[0]);
    CHECK_EQ(sm_read_begin(env, &readers[2], NULL), QF_OK);
    (void)sm_end(readers[1]);
    (void)sm_end(readers[2]);
    (void)sm_env_close(env);
}

static qf_rc open_again(const char *folder, struct sm_layout layout, struct qf_err *err)
{
    struct sm_env_options options = { .folder = folder, .name = "m", .layout = layout };
    struct sm_env *env = NULL;
    qf_rc rc;

    *err = (struct qf_err){ 0 };
    rc = sm_env_open(&options, &env, err);
    (void)sm_env_close(env);
    return rc;
}

TEST(what_is_no_map_is_not_opened)
{
    QF_CLEANUP(help_folder_gone) char *folder = help_folder();
    QF_CLEANUP(qf_freep) char *file = sm_path(folder, SM_DATA_FILE, NULL);
    struct sm_row row = help_row("k", 0, "v");
    struct qf_err err;
    int fd;

    CHECK_EQ(open_again(folder, state, &err), QF_ENOTFOUND);
    struct sm_env *env = help_env(folder, temporal, NULL);
    help_put(env, &row);
    (void)sm_env_close(env);
    CHECK_EQ(open_again(folder, temporal, &err), QF_OK);
    CHECK_EQ(open_again(folder, state, &err), QF_EUNSUPPORTED);
    CHECK_STR(err.msg, "map m is stored as a temporal map");
    /* It lost its end. */
    CHECK_EQ(truncate(file, 8192), 0);
    CHECK_EQ(open_again(folder, temporal, &err), QF_ECORRUPT);
    CHECK(strstr(err.msg, "shorter than it was"));
    /* Another file. */
    fd = open(file, O_WRONLY | O_TRUNC);
    CHECK(fd >= 0 && write(fd, "no map at all", 13) == 13);
    (void)close(fd);
    CHECK_EQ(open_again(folder, temporal, &err), QF_ECORRUPT);
}

TEST(rows_go_on_behind_where_a_page_ended)
{
    QF_CLEANUP(help_folder_gone) char *folder = help_folder();
    struct sm_env *env = help_env(folder, temporal, NULL);
    struct sm_rows rows = { 0 };
    struct qf_err err = { 0 };
    uint64_t told = 0;
    bool found = true;

    for (int i = 0; i < 25; i++) {
        char key[32];
        struct sm_row row;

        (void)snprintf(key, sizeof(key), "key %d", i % 5);
        row = help_row(key, i, "v");
        help_put(env, &row);
    }
    while (found) {
        struct sm_txn *txn = NULL;

        CHECK_OK(sm_read_begin(env, &txn, &err), &err);
        rows.txn = txn;
        rows.begun = false;
        for (int i = 0; i < 4 && found; i++) {
            struct sm_row row;

            CHECK_OK(sm_rows_next(&rows, &found, &row, &err), &err);
            told += found;
        }
        (void)sm_end(txn);
    }
    CHECK_EQ(told, 25);
    (void)sm_env_close(env);
}

/* The rows of a part have clash numbers of their own. */
TEST(a_part_is_merged_whatever_its_clash_numbers_are)
{
    QF_CLEANUP(help_folder_gone) char *folder = help_folder();
    QF_CLEANUP(help_folder_gone) char *part_folder = help_folder();
    struct sm_env *env = help_env(folder, state, one_hash);
    struct sm_env *part = help_env(part_folder, state, one_hash);
    struct sm_row a = help_row("a", 0, "old a"), b = help_row("b", 0, "old b"),
                  new_b = help_row("b", 0, "new b"), c = help_row("c", 0, "new c");
    struct qf_err err = { 0 };

    help_put(env, &a);
    help_put(env, &b);
    help_put(part, &new_b);
    help_put(part, &c);
    for (int twice = 0; twice < 2; twice++) {
        CHECK_OK(sm_merge(env, part, 5, 0, &err), &err);
        CHECK_EQ(help_rows(env), 3);
        CHECK_STR(help_find(env, "a", 0), "old a");
        CHECK_STR(help_find(env, "b", 0), "new b");
        CHECK_STR(help_find(env, "c", 0), "new c");
    }
    help_put(env, &b);
    CHECK_OK(sm_merge(env, part, 5, 0, &err), &err);
    CHECK_STR(help_find(env, "b", 0), "old b"); /* it has part 5 */
    CHECK_OK(sm_merge(env, part, 6, 0, &err), &err);
    CHECK_STR(help_find(env, "b", 0), "new b");
    (void)sm_env_close(env);
    (void)sm_env_close(part);
}
