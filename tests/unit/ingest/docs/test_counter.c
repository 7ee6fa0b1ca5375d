/* test_counter.c - numbers of writes: none is given twice, over restarts and failures. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ingest/docs/counter.h"
#include "tests/lib/test.h"

static struct in_counter *reopen(const char *dir, struct in_counter *counter)
{
    struct qf_err err = { 0 };

    (void)in_counter_free(counter);
    CHECK_OK(in_counter_open(dir, &counter, &err), &err);
    return counter;
}

static void write_text(const char *dir, const char *text)
{
    char path[96];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/clock", dir);
    file = fopen(path, "w");
    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK_EQ(fclose(file), 0);
}

static void remove_all(const char *dir)
{
    char path[96];

    (void)snprintf(path, sizeof(path), "%s/clock", dir);
    (void)unlink(path);
    (void)rmdir(dir);
}

TEST(a_restart_goes_on_above_all_that_was_given)
{
    char dir[] = "/tmp/counter-XXXXXX";
    struct in_counter *counter;
    struct qf_err err = { 0 };
    uint64_t number, last = 0, incarnation;

    CHECK(mkdtemp(dir) != NULL);
    counter = reopen(dir, NULL);
    incarnation = in_counter_incarnation(counter);
    CHECK(incarnation != 0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < IN_COUNTER_BLOCK + 5; i++) {
            CHECK_OK(in_counter_next(counter, &number, &err), &err);
            CHECK(number > last);
            last = number;
        }
        CHECK_EQ(in_counter_last(counter), last);
        counter = reopen(dir, counter);
        CHECK_EQ(in_counter_incarnation(counter), incarnation);
        CHECK(in_counter_last(counter) >= last);
    }
    (void)in_counter_free(counter);
    remove_all(dir);
}

TEST(a_folder_that_was_lost_begins_another_life)
{
    char dir[] = "/tmp/counter-XXXXXX";
    struct in_counter *counter;
    uint64_t before;

    CHECK(mkdtemp(dir) != NULL);
    counter = reopen(dir, NULL);
    before = in_counter_incarnation(counter);
    remove_all(dir);
    counter = reopen(dir, counter);
    CHECK(in_counter_incarnation(counter) != before);
    (void)in_counter_free(counter);
    remove_all(dir);
}

TEST(a_damaged_file_is_said_and_not_guessed_at)
{
    const char *const texts[] = { "",
                                  "x",
                                  "0000000000000000 5\n",
                                  "00000000000000ff\n",
                                  "00000000000000ff -1\n",
                                  "00000000000000ff 5 6\n" };
    char dir[] = "/tmp/counter-XXXXXX";
    struct in_counter *counter = NULL;

    CHECK(mkdtemp(dir) != NULL);
    for (size_t i = 0; i < QF_COUNT_OF(texts); i++) {
        struct qf_err err = { 0 };

        write_text(dir, texts[i]);
        CHECK_EQ(in_counter_open(dir, &counter, &err), QF_ECORRUPT);
    }
    remove_all(dir);
}

TEST(what_cannot_be_made_durable_is_not_given)
{
    char dir[] = "/tmp/counter-XXXXXX";
    struct in_counter *counter;
    struct qf_err err = { 0 };
    uint64_t number = 0;

    CHECK(mkdtemp(dir) != NULL);
    counter = reopen(dir, NULL);
    remove_all(dir);
    CHECK(in_counter_next(counter, &number, &err) != QF_OK);
    CHECK_EQ(number, 0);
    (void)in_counter_free(counter);
    remove_all(dir);
}
