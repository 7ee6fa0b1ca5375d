/* test_line_log.c - lines in files that are moved away, and on disks that are full. */
#include "base/sys/line_log.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pure/strbuf.h"
#include "base/sys/small_file.h"
#include "tests/lib/test.h"

static void wait_until_handled(struct qf_line_log *log, uint64_t lines)
{
    for (int i = 0; i < 2000; i++) {
        struct qf_line_log_stats stats = qf_line_log_stats(log);

        if (stats.written + stats.lost >= lines)
            return;
        (void)poll(NULL, 0, 5);
    }
    CHECK_MSG(false, "the lines were not written");
}

static void check_file(const char *path, const char *want)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct stat seen;

    CHECK_EQ(qf_small_file_read(path, "lines", 10000, &text, &seen, NULL), QF_OK);
    CHECK_MSG(qf_str_is(qf_strbuf_view(&text), want), "%.*s", (int)text.len, text.data);
}

TEST(lines_go_to_the_file_of_that_name)
{
    char folder[] = "/tmp/pf-lines-XXXXXX", path[100], old[100];
    struct qf_line_log *log;

    CHECK(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/log", folder);
    (void)snprintf(old, sizeof(old), "%s/log.1", folder);
    log = qf_line_log_new(path, 1000, NULL);
    CHECK(log);
    qf_line_log_add(log, QF_STR("one"));
    wait_until_handled(log, 1);
    check_file(path, "one\n");
    CHECK_EQ(rename(path, old), 0);
    qf_line_log_reopen(log);
    qf_line_log_add(log, QF_STR("two"));
    wait_until_handled(log, 2);
    check_file(old, "one\n");
    check_file(path, "two\n");
    /* Moved away and nobody says so: seen with the first line a second later. */
    CHECK_EQ(unlink(path), 0);
    (void)poll(NULL, 0, 1100);
    qf_line_log_add(log, QF_STR("three"));
    CHECK(!qf_line_log_free(log)); /* what waits is written */
    check_file(path, "three\n");
    (void)unlink(path);
    (void)unlink(old);
    (void)rmdir(folder);
}

/* A disk that takes nothing costs lines, and they are counted. */
TEST(a_full_disk_costs_lines_alone)
{
    struct qf_line_log *log = qf_line_log_new("/dev/full", 1000, NULL);

    CHECK(log);
    for (int i = 0; i < 3; i++)
        qf_line_log_add(log, QF_STR("line"));
    wait_until_handled(log, 3);
    CHECK_EQ(qf_line_log_stats(log).lost, 3);
    (void)qf_line_log_free(log);
}

/* More than fits the buffer is not waited for. */
TEST(a_line_beyond_the_bound_is_lost)
{
    struct qf_line_log *log = qf_line_log_new("/dev/null", 10, NULL);
    struct qf_err err = { 0 };

    CHECK(log);
    qf_line_log_add(log, QF_STR("0123456789"));
    CHECK_EQ(qf_line_log_stats(log).lost, 1);
    (void)qf_line_log_free(log);
    CHECK(!qf_line_log_new("/nonexistent/folder/log", 10, &err));
    CHECK_EQ(err.rc, QF_EIO);
}
