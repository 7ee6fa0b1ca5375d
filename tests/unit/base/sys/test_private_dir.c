/* test_private_dir.c - a folder somebody else made first is not ours. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys/private_dir.h"
#include "tests/lib/test.h"

enum { NOBODY = 65534, OTHER = 65533 };

static char root[] = "/tmp/pf-private-XXXXXX";
static char path[100];

static const char *in_root(const char *name)
{
    (void)snprintf(path, sizeof(path), "%s/%s", root, name);
    return path;
}

static qf_rc judge(const char *name, const char *words)
{
    struct qf_err err = { 0 };
    qf_rc rc = qf_private_dir(in_root(name), &err);

    CHECK_MSG(!words || strstr(err.msg, words), "%s", err.msg);
    return rc;
}

/* What root can set up for others; everybody else has only what is their own. */
static void check_foreign(void)
{
    CHECK_EQ(mkdir(in_root("foreign"), 0700), 0);
    CHECK_EQ(chown(path, OTHER, OTHER), 0);
    CHECK_EQ(symlink("mine", in_root("planted")), 0);
    CHECK_EQ(lchown(path, OTHER, OTHER), 0);
    CHECK_EQ(mkdir(in_root("volume"), 0700), 0);
    CHECK_EQ(chmod(path, 0777), 0);
    CHECK_EQ(seteuid(NOBODY), 0);
    CHECK_EQ(judge("foreign", "belongs to another user"), QF_EDENIED);
    CHECK_EQ(judge("planted", "belongs to another user"), QF_EDENIED);
    CHECK_EQ(judge("volume", NULL), QF_OK);
    CHECK_EQ(mkdir(in_root("own"), 0700), 0);
    CHECK_EQ(judge("own", NULL), QF_OK);
    CHECK_EQ(chmod(in_root("own"), 0770), 0);
    CHECK_EQ(judge("own", "writable by others"), QF_EDENIED);
    CHECK_EQ(seteuid(0), 0);
}

/* Made if missing, and only for us; found there, only if it is ours or root's. */
TEST(a_folder_is_ours_or_refused)
{
    char command[100];
    struct stat st;
    FILE *file;

    CHECK(mkdtemp(root));
    CHECK_EQ(chmod(root, 0777), 0);
    CHECK_EQ(judge("mine", NULL), QF_OK);
    CHECK_EQ(stat(in_root("mine"), &st), 0);
    CHECK_EQ(st.st_mode & 0777, 0700);
    CHECK_EQ(judge("mine", NULL), QF_OK);
    CHECK_EQ(symlink("mine", in_root("link")), 0);
    CHECK_EQ(judge("link", NULL), QF_OK);
    CHECK_EQ(symlink("nothing", in_root("dangling")), 0);
    CHECK_EQ(judge("dangling", NULL), QF_EIO);
    file = fopen(in_root("file"), "we");
    CHECK(file && fclose(file) == 0);
    CHECK_EQ(judge("file", "is not a folder"), QF_EDENIED);
    CHECK_EQ(judge("missing/folder", "cannot make"), QF_EIO);
    if (geteuid() == 0)
        check_foreign();
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", root);
    CHECK_EQ(system(command), 0);
}
