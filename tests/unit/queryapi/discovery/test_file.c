/* test_file.c - workers from the lines of a file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "queryapi/discovery/discovery_int.h"
#include "tests/lib/test.h"

/* Addresses of a file with @text, each followed by a space. */
static const char *workers(const char *text, qf_rc want, struct qf_err *err)
{
    static char addresses[1000];
    char name[] = "/tmp/promfabric-workers-XXXXXX";
    struct endpoints *list = qf_xcalloc(1, sizeof(*list));
    int file = mkstemp(name);

    addresses[0] = '\0';
    CHECK(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    (void)close(file);
    CHECK_EQ(qa_file_look(name, list, err), want);
    for (size_t i = 0; i < list->count; i++)
        (void)snprintf(addresses + strlen(addresses), sizeof(addresses) - strlen(addresses), "%s ",
                       list->items[i]);
    qa_endpoints_clear(list);
    free(list);
    (void)unlink(name);
    return addresses;
}

TEST(lines_are_workers_and_comments_are_none)
{
    CHECK_STR(workers("", QF_OK, NULL), "");
    CHECK_STR(workers("\n# nobody yet\n", QF_OK, NULL), "");
    CHECK_STR(workers("w1:8082\n [::1]:8082 # here\r\n\nw1:8082\n10.0.0.1:1", QF_OK, NULL),
              "w1:8082 [::1]:8082 10.0.0.1:1 ");
}

TEST(a_line_that_is_no_address_is_named)
{
    static const char *const bad[] = { "w1:8082\nw2", "w1:8082\n:8082", "w1:8082\nw2:0",
                                       "w1:8082\nw2:http\nw3:1" };

    for (size_t i = 0; i < QF_COUNT_OF(bad); i++) {
        struct qf_err err = { 0 };

        (void)workers(bad[i], QF_EINVAL, &err);
        CHECK(strstr(err.msg, "line 2 is not HOST:PORT") != NULL);
    }
}

TEST(a_file_that_is_not_there_or_too_long_is_an_error)
{
    struct endpoints *list = qf_xcalloc(1, sizeof(*list));
    struct qf_strbuf text = QF_STRBUF_INIT;

    CHECK_EQ(qa_file_look("/nonexistent/workers", list, NULL), QF_EIO);
    free(list);
    for (int i = 0; i < 20000; i++)
        qf_strbuf_puts(&text, "# very long indeed\n");
    (void)workers(qf_strbuf_cstr(&text), QF_EINVAL, NULL);
    qf_strbuf_done(&text);
}
