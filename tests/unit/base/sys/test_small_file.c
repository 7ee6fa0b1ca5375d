/* test_small_file.c - small files are read whole, or not at all. */
#include "base/sys/small_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/test.h"

static void write_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "we");

    CHECK(file);
    for (size_t i = 0; i < size; i++)
        CHECK(fputc('x', file) == 'x');
    CHECK_EQ(fclose(file), 0);
}

/* Also one that is shorter than a page and may be no longer than one: a key. */
TEST(a_file_may_be_as_long_as_its_bound)
{
    static const size_t bounds[] = { 1, 10, 4095, 4096, 4097, 20000 };
    char path[] = "/tmp/test_small_file.XXXXXX";
    struct stat seen;

    CHECK_EQ(close(mkstemp(path)), 0);
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        for (size_t size = bounds[i] - 1; size <= bounds[i] + 1; size++) {
            QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

            write_file(path, size);
            CHECK_EQ(qf_small_file_read(path, "a key", bounds[i], &text, &seen, NULL),
                     size <= bounds[i] ? QF_OK : QF_EINVAL);
            CHECK(size > bounds[i] || text.len == size);
        }
    }
    CHECK_EQ(unlink(path), 0);
}

TEST(what_is_no_file_is_not_read)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct qf_err err = { 0 };
    struct stat seen;

    CHECK_EQ(qf_small_file_read("/nowhere", "a key", 10, &text, &seen, &err), QF_EIO);
    CHECK_EQ(qf_small_file_read("/tmp", "a key", 10, &text, &seen, &err), QF_EIO);
}
