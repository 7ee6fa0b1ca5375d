/* test_spool.c - artifacts appear whole, are found by token alone and go at once. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queryworker/artifact/spool.h"
#include "tests/lib/test.h"

static char dir[] = "/tmp/pf-spool-XXXXXX";

static struct qw_spool *fresh_spool(void)
{
    struct qf_err err = { 0 };
    struct qw_spool *spool;

    (void)snprintf(dir, sizeof(dir), "/tmp/pf-spool-XXXXXX");
    CHECK(mkdtemp(dir));
    spool = qw_spool_open(dir, 10, &err);
    CHECK_MSG(spool, "%s", err.msg);
    return spool;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    CHECK(file);
    CHECK(fputs(text, file) >= 0);
    CHECK_EQ(fclose(file), 0);
}

static void done(struct qw_spool *spool)
{
    (void)qw_spool_free(spool);
    CHECK_EQ(rmdir(dir), 0); /* nothing is left inside */
}

TEST(an_artifact_is_there_once_it_is_published)
{
    struct qw_spool *spool = fresh_spool();
    struct qw_token token = qw_spool_token();
    char *path = qw_spool_temp_path(spool, &token);
    struct qf_err err = { 0 };
    char byte;
    int fd;

    write_file(path, "x");
    CHECK_EQ(qw_spool_open_artifact(spool, qf_str_from(token.text)), -1);
    CHECK_OK(qw_spool_publish(spool, &token, &err), &err);
    fd = qw_spool_open_artifact(spool, qf_str_from(token.text));
    CHECK(fd >= 0);
    qw_spool_remove(spool, &token);
    CHECK_EQ(qw_spool_open_artifact(spool, qf_str_from(token.text)), -1);
    CHECK_EQ(read(fd, &byte, 1), 1); /* who has it open reads on */
    CHECK_EQ(close(fd), 0);
    free(path);
    done(spool);
}

TEST(tokens_are_long_random_and_well_formed)
{
    struct qw_token a = qw_spool_token(), b = qw_spool_token();

    CHECK_EQ(strlen(a.text), 64);
    CHECK(qw_token_valid(qf_str_from(a.text)));
    CHECK(strcmp(a.text, b.text) != 0);
}

/* Whatever a URL holds, only a file called by a token can be opened. */
TEST(nothing_but_tokens_opens_a_file)
{
    struct qw_spool *spool = fresh_spool();
    struct qw_token token = qw_spool_token();
    char *path = qw_spool_temp_path(spool, &token);
    char upper[QW_TOKEN_LEN + 1], link_path[256];
    static const char *const bad[] = { "", ".", "..", "../lock", "/etc/passwd", "lock" };

    write_file(path, "x");
    CHECK_EQ(qw_spool_open_artifact(spool, qf_str_from(strrchr(path, '/') + 1)), -1);
    for (size_t i = 0; i < QF_COUNT_OF(bad); i++)
        CHECK_EQ(qw_spool_open_artifact(spool, qf_str_from(bad[i])), -1);
    memset(upper, 'A', QW_TOKEN_LEN);
    upper[QW_TOKEN_LEN] = '\0';
    CHECK_EQ(qw_spool_open_artifact(spool, qf_str_from(upper)), -1);
    /* Not even through a link somebody else put there. */
    (void)snprintf(link_path, sizeof(link_path), "%s/%s", dir, token.text);
    CHECK_EQ(symlink("/etc/passwd", link_path), 0);
    CHECK_EQ(qw_spool_open_artifact(spool, qf_str_from(token.text)), -1);
    qw_spool_remove(spool, &token);
    free(path);
    done(spool);
}

TEST(leftovers_of_an_earlier_process_go_at_start)
{
    struct qw_spool *spool = fresh_spool();
    struct qw_token token = qw_spool_token();
    char *path = qw_spool_temp_path(spool, &token);
    struct qf_err err = { 0 };

    write_file(path, "x");
    CHECK_OK(qw_spool_publish(spool, &token, &err), &err);
    write_file(path, "half");
    (void)qw_spool_free(spool);
    spool = qw_spool_open(dir, 0, &err);
    CHECK_MSG(spool, "%s", err.msg);
    CHECK_EQ(access(path, F_OK), -1);
    CHECK_EQ(qw_spool_open_artifact(spool, qf_str_from(token.text)), -1);
    CHECK(qw_spool_disk_free(spool) > 0);
    free(path);
    done(spool);
}

TEST(a_folder_that_cannot_be_made_is_an_error)
{
    struct qf_err err = { 0 };

    CHECK(!qw_spool_open("/proc/no-such-folder", 0, &err));
    CHECK_EQ(err.rc, QF_EIO);
}

static bool keep(struct qw_spool *spool, const struct qw_token *token, const char *text)
{
    struct qf_strbuf bytes = QF_STRBUF_INIT;
    bool kept;

    qf_strbuf_puts(&bytes, text);
    kept = qw_spool_keep(spool, token, &bytes);
    CHECK_EQ(bytes.len, kept ? 0 : strlen(text)); /* taken, or left alone */
    qf_strbuf_done(&bytes);
    return kept;
}

TEST(what_is_small_needs_no_file)
{
    struct qw_spool *spool = fresh_spool();
    struct qw_token a = qw_spool_token(), b = qw_spool_token();
    struct qw_shelf_item *item;

    CHECK(!qw_spool_find(spool, qf_str_from(a.text)));
    CHECK(!keep(spool, &a, "eleven here"));
    CHECK(keep(spool, &a, "six by"));
    CHECK(qw_spool_crowded(spool));
    CHECK(!keep(spool, &b, "and five"));
    item = qw_spool_find(spool, qf_str_from(a.text));
    CHECK(item);
    CHECK_EQ(qw_spool_open_artifact(spool, qf_str_from(a.text)), -1);
    qw_spool_remove(spool, &a);
    CHECK(!qw_spool_find(spool, qf_str_from(a.text)));
    CHECK(!qw_spool_crowded(spool));
    CHECK(qf_str_is(qw_shelf_bytes(item), "six by")); /* who has it reads on */
    qw_shelf_drop(item);
    CHECK(keep(spool, &a, "one")); /* less than half: what was acknowledged goes all the same */
    CHECK(qw_spool_crowded(spool));
    qw_spool_remove(spool, &a);
    CHECK(keep(spool, &b, "and five"));
    done(spool);
}
