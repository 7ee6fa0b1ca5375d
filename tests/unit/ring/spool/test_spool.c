/* test_spool.c - hand-off's folder: what is written once, found again after a crash at any step, and told to be damaged. */
#include "ring/spool/spool.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "segments/store/keep_client.h"
#include "tests/lib/test.h"

#define A "tenant=a/date=2026-01-31/1_2_s3of8_g1_9f.parquet"
#define B "tenant=b/date=2026-01-31/1_2_s0of8_g1_aa.parquet"

struct fixture {
    char dir[64];
    struct sp_spool *spool;
    char found[4096]; /* of the last start: "NODE NAME BYTES TIME whole\n" each */
    size_t found_count;
    uint64_t damaged;
};

static void found(void *ctx, const char *node, const struct sp_part *part, int64_t time_ms,
                  bool whole)
{
    struct fixture *f = ctx;
    size_t len = strlen(f->found);

    (void)snprintf(f->found + len, sizeof(f->found) - len, "%s %.*s %d %d %s\n", node,
                   QF_STR_ARG(part->name), (int)part->bytes, (int)time_ms,
                   whole ? "whole" : "lost");
    f->found_count++;
}

static void open_again(struct fixture *f)
{
    struct qf_err err = { 0 };

    f->spool = sp_close(f->spool);
    f->found[0] = '\0';
    f->found_count = 0;
    CHECK_OK(sp_open(&(struct sp_options){ .dir = f->dir }, found, f, &f->damaged, &f->spool, &err),
             &err);
}

static void begin(struct fixture *f)
{
    *f = (struct fixture){ .dir = "/tmp/spool-test-XXXXXX" };
    CHECK(mkdtemp(f->dir));
    open_again(f);
}

static int run(const struct fixture *f, const char *command)
{
    char line[512];

    (void)snprintf(line, sizeof(line), "cd %s && %s", f->dir, command);
    return system(line);
}

static void end(struct fixture *f)
{
    f->spool = sp_close(f->spool);
    CHECK_EQ(run(f, "rm -rf store refs tmp lock"), 0);
    CHECK_EQ(rmdir(f->dir), 0);
}

/* How many files are below @what. */
static int files(const struct fixture *f, const char *what)
{
    char line[256];
    FILE *pipe;
    int count = -1;

    (void)snprintf(line, sizeof(line), "find %s/%s -type f | wc -l", f->dir, what);
    pipe = popen(line, "r");
    CHECK(pipe && fscanf(pipe, "%d", &count) == 1);
    (void)pclose(pipe);
    return count;
}

static struct sp_part part_of(const char *name, const char *content)
{
    struct sp_part part = { .name = qf_str_from(name), .slot = 7, .bytes = strlen(content) };
    struct qf_err err = { 0 };

    CHECK_OK(sg_keep_sum(&(struct sg_store_bytes){ .data = content, .size = part.bytes }, &part.sum,
                         &err),
             &err);
    return part;
}

static qf_rc store(struct fixture *f, const char *name, const char *content)
{
    struct sp_part part = part_of(name, content);

    return sp_store(f->spool, &part, &(struct sg_store_bytes){ content, -1, part.bytes }, NULL);
}

static void add(struct fixture *f, const char *node, const char *name, const char *content,
                int64_t time_ms)
{
    struct sp_part part = part_of(name, content);
    struct qf_err err = { 0 };

    CHECK_EQ(store(f, name, content), QF_OK);
    CHECK_OK(sp_refer(f->spool, node, &part, time_ms, &err), &err);
}

/* What sp_take() says; the content is compared if it is there. */
static qf_rc take(struct fixture *f, const char *node, const char *name, const char *content)
{
    struct sp_part part;
    char buf[64] = "";
    int fd = -1;
    qf_rc rc = sp_take(f->spool, node, qf_str_from(name), &part, &fd, NULL);

    if (rc != QF_OK)
        return rc;
    CHECK_EQ(read(fd, buf, sizeof(buf) - 1), (ssize_t)part.bytes);
    (void)close(fd);
    CHECK_EQ(strcmp(buf, content), 0);
    CHECK_EQ(part.slot, 7);
    CHECK(qf_str_is(part.name, name));
    return QF_OK;
}

/* A payload is there once, however many nodes lack it and however often it is stored. */
TEST(a_payload_is_stored_once)
{
    struct fixture f;

    begin(&f);
    add(&f, "n1", A, "abc", 5);
    add(&f, "n2", A, "abc", 6);
    add(&f, "n1", A, "abc", 7);
    CHECK_EQ(files(&f, "store"), 1);
    CHECK_EQ(files(&f, "refs"), 2);
    CHECK_EQ(files(&f, "tmp"), 0);
    CHECK_EQ(take(&f, "n1", A, "abc"), QF_OK);
    CHECK_EQ(take(&f, "n2", A, "abc"), QF_OK);
    CHECK_EQ(take(&f, "n3", A, "abc"), QF_ENOTFOUND);
    CHECK_EQ(take(&f, "n1", B, ""), QF_ENOTFOUND);
    end(&f);
}

/* A start finds everything with its time, the first one; so it keeps its place. */
TEST(what_is_there_is_found_after_a_restart)
{
    struct fixture f;

    begin(&f);
    CHECK_EQ(f.found_count, 0);
    add(&f, "a/b %.", A, "abc", 5);
    add(&f, "a/b %.", A, "abc", 9);
    open_again(&f);
    CHECK_EQ(strcmp(f.found, "a/b %. " A " 3 5 whole\n"), 0);
    CHECK_EQ(take(&f, "a/b %.", A, "abc"), QF_OK);
    sp_unrefer(f.spool, "a/b %.", QF_STR(A));
    sp_drop(f.spool, QF_STR(A));
    sp_drop(f.spool, QF_STR(A));
    open_again(&f);
    CHECK_EQ(f.found_count, 0);
    CHECK_EQ(files(&f, "."), 1); /* lock */
    end(&f);
}

/* A crash behind each step of storing and of removing: a start sweeps what nobody needs, and nothing else. */
TEST(a_crash_between_two_steps_leaves_nothing_and_loses_nothing)
{
    struct fixture f;

    begin(&f);
    add(&f, "n1", A, "abc", 5);
    CHECK_EQ(run(&f, "echo half > tmp/9"), 0); /* while a file was written */
    CHECK_EQ(store(&f, B, "def"), QF_OK);      /* before the reference */
    open_again(&f);
    CHECK_EQ(f.found_count, 1);
    CHECK_EQ(files(&f, "store"), 1);
    CHECK_EQ(files(&f, "tmp"), 0);
    CHECK_EQ(take(&f, "n1", A, "abc"), QF_OK);
    sp_unrefer(f.spool, "n1", QF_STR(A)); /* before the payload went */
    open_again(&f);
    CHECK_EQ(f.found_count, 0);
    CHECK_EQ(files(&f, "store"), 0);
    end(&f);
}

/* A reference without its payload is told as lost, once: the node has to be repaired. */
TEST(a_reference_whose_payload_is_gone_is_told)
{
    struct fixture f;

    begin(&f);
    add(&f, "n1", A, "abc", 5);
    add(&f, "n1", B, "defg", 6);
    sp_drop(f.spool, QF_STR(A));
    CHECK_EQ(run(&f, "truncate -s 1 store/*"), 0);
    open_again(&f);
    CHECK_EQ(f.found_count, 2);
    CHECK(strstr(f.found, "n1 " A " 3 5 lost\n"));
    CHECK(strstr(f.found, "n1 " B " 4 6 lost\n"));
    CHECK_EQ(files(&f, "refs"), 0);
    CHECK_EQ(files(&f, "store"), 0);
    open_again(&f);
    CHECK_EQ(f.found_count, 0);
    end(&f);
}

/* Bytes that rotted are found before they are sent. */
TEST(a_damaged_payload_is_found_by_its_checksum)
{
    struct fixture f;

    begin(&f);
    add(&f, "n1", A, "abc", 5);
    CHECK_EQ(run(&f, "printf abd > store/$(ls store)"), 0);
    open_again(&f);
    CHECK_EQ(f.found_count, 1); /* a start does not read them all */
    CHECK_EQ(take(&f, "n1", A, "abc"), QF_ECORRUPT);
    CHECK_EQ(run(&f, "printf abcd > store/$(ls store)"), 0);
    CHECK_EQ(take(&f, "n1", A, "abc"), QF_ECORRUPT);
    end(&f);
}

/* A reference that rotted is none: it is removed and counted. Other files are not taken for one. */
TEST(a_damaged_reference_is_removed_and_counted)
{
    struct fixture f;

    begin(&f);
    add(&f, "n1", A, "abc", 5);
    add(&f, "n2", A, "abc", 5);
    CHECK_EQ(run(&f, "printf x | dd of=refs/n1/$(ls refs/n1) bs=1 seek=9 conv=notrunc status=none"),
             0);
    CHECK_EQ(run(&f, "echo a > refs/n2/other && head -c 5000 /dev/zero > refs/n2/long"), 0);
    CHECK_EQ(take(&f, "n1", A, "abc"), QF_ECORRUPT);
    open_again(&f);
    CHECK_EQ(f.found_count, 1);
    CHECK_EQ(f.damaged, 3);
    CHECK_EQ(take(&f, "n2", A, "abc"), QF_OK);
    CHECK_EQ(files(&f, "refs"), 1);
    end(&f);
}

/* Bytes that are not what they are said to be, or do not fit, leave nothing. */
TEST(what_cannot_be_stored_leaves_nothing)
{
    struct sp_part part = part_of(A, "abc");
    struct qf_err err = { 0 };
    struct fixture f;
    int fd;

    begin(&f);
    CHECK_EQ(sp_store(f.spool, &part, &(struct sg_store_bytes){ "abd", -1, 3 }, &err), QF_ECORRUPT);
    fd = open("/dev/null", O_RDONLY);
    CHECK_EQ(sp_store(f.spool, &part, &(struct sg_store_bytes){ NULL, fd, 3 }, &err), QF_ECORRUPT);
    (void)close(fd);
    part.bytes = UINT64_C(1) << 60;
    CHECK_EQ(sp_store(f.spool, &part, &(struct sg_store_bytes){ "abc", -1, 3 }, &err), QF_ENOSPC);
    CHECK_EQ(files(&f, "."), 1);
    end(&f);
}

/* Two processes would not know of each other's references. */
TEST(a_folder_is_used_by_one_process)
{
    struct sp_spool *other = NULL;
    struct qf_err err = { 0 };
    uint64_t damaged;
    struct fixture f;

    begin(&f);
    CHECK_EQ(sp_open(&(struct sp_options){ .dir = f.dir }, found, &f, &damaged, &other, &err),
             QF_EIO);
    CHECK(!other && strstr(err.msg, "in use"));
    end(&f);
}
