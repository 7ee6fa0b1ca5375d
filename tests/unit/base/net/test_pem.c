/* test_pem.c - certificates and keys from files. */
#include "base/net/pem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "tests/lib/test.h"

static qf_rc read_text(const char *text, size_t len, char **ret_text, struct qf_err *err)
{
    char path[] = "/tmp/pf-pem-XXXXXX";
    int fd = mkstemp(path);
    qf_rc rc;

    CHECK(fd >= 0 && write(fd, text, len) == (ssize_t)len);
    (void)close(fd);
    rc = qf_pem_read(path, ret_text, err);
    (void)unlink(path);
    return rc;
}

TEST(a_pem_file_is_read_whole)
{
    const char *text =
        "# of the test\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    QF_CLEANUP(qf_freep) char *got = NULL;
    struct qf_err err = { 0 };

    CHECK_OK(read_text(text, strlen(text), &got, &err), &err);
    CHECK_STR(got, text);
}

/* A key given as a certificate in another form, or a file that is none at all. */
TEST(other_files_are_refused)
{
    struct qf_err err = { 0 };
    size_t large = (size_t)2 << 20;
    char *text = qf_xcalloc(1, large), *got;

    CHECK_EQ(read_text("\x30\x82", 2, &got, NULL), QF_EINVAL);
    CHECK_EQ(read_text("", 0, &got, NULL), QF_EINVAL);
    memset(text, 'A', large);
    memcpy(text, "-----BEGIN ", 11);
    CHECK_EQ(read_text(text, large, &got, NULL), QF_EINVAL);
    free(text);
    CHECK_EQ(qf_pem_read("/no/such/file", &got, &err), QF_EIO);
    CHECK_STR(err.msg, "cannot open /no/such/file: No such file or directory");
}
