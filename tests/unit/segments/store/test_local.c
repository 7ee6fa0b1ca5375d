/* test_local.c - the store in a folder, and what holds for every store. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/prng.h"
#include "base/pure/vec.h"
#include "base/sys/clock.h"
#include "base/sys/thread.h"
#include "segments/store/store.h"
#include "tests/lib/test.h"

struct fixture {
    char folder[64];
    struct sg_store *store;
    struct qf_err err;
};

static struct fixture fixture_new(void)
{
    struct fixture f = { .folder = "/tmp/pf-store-XXXXXX" };

    CHECK(mkdtemp(f.folder) != NULL);
    CHECK_OK(sg_store_open(&(struct sg_store_options){ .url = f.folder }, &f.store, &f.err),
             &f.err);
    return f;
}

static void fixture_done(struct fixture *f)
{
    char command[128];

    f->store = sg_store_free(f->store);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", f->folder);
    CHECK(system(command) == 0);
}

static void put_text(struct fixture *f, const char *name, const char *text)
{
    CHECK_OK(sg_store_put(f->store, qf_str_from(name), text, strlen(text), NULL, &f->err), &f->err);
}

static bool collect(void *ctx, const struct sg_store_object *object)
{
    struct qf_strbuf *buf = ctx;

    qf_strbuf_str(buf, object->name);
    qf_strbuf_printf(buf, ":%llu ", (unsigned long long)object->size);
    return true;
}

static const char *list(struct fixture *f, struct qf_strbuf *buf, const char *prefix,
                        const char *start_after)
{
    qf_strbuf_reset(buf);
    CHECK_OK(sg_store_list(f->store, qf_str_from(prefix), qf_str_from(start_after), NULL, collect,
                           buf, &f->err),
             &f->err);
    return qf_strbuf_cstr(buf);
}

/* Bytes in are bytes out, for every way to read. */
TEST(an_object_reads_back_as_it_was_put)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new();
    QF_CLEANUP(qf_freep) char *all = NULL;
    struct sg_store_info info;
    char buf[16];
    size_t len;
    uint64_t size;
    struct qf_str name = QF_STR("tenant=t/date=2026-01-31/x.parquet");

    CHECK_OK(sg_store_put(f.store, name, "0123456789", 10, NULL, &f.err), &f.err);
    CHECK_OK(sg_store_read_all(f.store, name, 100, NULL, &all, &len, &f.err), &f.err);
    CHECK_EQ(len, 10);
    CHECK_STR(all, "0123456789");
    CHECK_OK(sg_store_read(f.store, name, 3, buf, 4, NULL, &len, &f.err), &f.err);
    CHECK_EQ(len, 4);
    CHECK(memcmp(buf, "3456", 4) == 0);
    CHECK_OK(sg_store_read(f.store, name, 8, buf, 16, NULL, &len, &f.err), &f.err);
    CHECK_EQ(len, 2);
    CHECK_OK(sg_store_read(f.store, name, 50, buf, 16, NULL, &len, &f.err), &f.err);
    CHECK_EQ(len, 0);
    CHECK_OK(sg_store_read_tail(f.store, name, buf, 3, NULL, &len, &size, &f.err), &f.err);
    CHECK_EQ(len, 3);
    CHECK_EQ(size, 10);
    CHECK(memcmp(buf, "789", 3) == 0);
    CHECK_OK(sg_store_read_tail(f.store, name, buf, 16, NULL, &len, &size, &f.err), &f.err);
    CHECK_EQ(len, 10);
    CHECK_OK(sg_store_stat(f.store, name, NULL, &info, &f.err), &f.err);
    CHECK_EQ(info.size, 10);
    CHECK(info.etag[0] != '\0');
    CHECK(llabs(qf_clock_wall_ms() - info.mtime_ms) < 60000);
}

/* Files larger than the copy buffer, both ways, and an old longer file is cut. */
TEST(files_are_copied_in_and_out_whole)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new();
    const size_t size = (3u << 20) + 17;
    QF_CLEANUP(qf_freep) char *data = qf_xmalloc(size);
    QF_CLEANUP(qf_freep) char *back = qf_xmalloc(size);
    struct qf_prng prng = { 7 };
    FILE *in = tmpfile(), *out = tmpfile();
    uint64_t got = 0;

    for (size_t i = 0; i < size; i++)
        data[i] = (char)qf_prng_next(&prng);
    CHECK(in && out);
    CHECK(pwrite(fileno(in), data, size, 0) == (ssize_t)size);
    CHECK(ftruncate(fileno(out), (off_t)size + 4096) == 0);
    CHECK_OK(sg_store_put_fd(f.store, QF_STR("a/b"), fileno(in), size, NULL, &f.err), &f.err);
    CHECK_OK(sg_store_read_fd(f.store, QF_STR("a/b"), fileno(out), NULL, &got, &f.err), &f.err);
    CHECK_EQ(sg_store_read_fd(f.store, QF_STR("a/b"), fileno(out),
                              &(struct sg_store_call){ .bytes_max = got - 1 }, &got, NULL),
             QF_ELIMIT);
    CHECK_EQ(sg_store_read_fd(f.store, QF_STR("a/b"), fileno(out),
                              &(struct sg_store_call){ .bytes_max = got }, &got, NULL),
             QF_OK);
    CHECK_EQ(got, size);
    CHECK_EQ(lseek(fileno(out), 0, SEEK_END), size);
    CHECK(pread(fileno(out), back, size, 0) == (ssize_t)size);
    CHECK(memcmp(data, back, size) == 0);
    /* A file shorter than promised is an error and leaves the old object alone. */
    CHECK_EQ(sg_store_put_fd(f.store, QF_STR("a/b"), fileno(in), size + 1, NULL, NULL), QF_EIO);
    CHECK_OK(sg_store_read_fd(f.store, QF_STR("a/b"), fileno(out), NULL, &got, &f.err), &f.err);
    CHECK_EQ(got, size);
    (void)fclose(in);
    (void)fclose(out);
}

/* Nothing may lead out of the root, whoever asks. */
TEST(names_that_lead_elsewhere_are_refused)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new();
    static const char *const bad[] = {
        "",    "/",    "/etc/passwd", "..",        "../x", "a/../x", "a//b",     "a/",
        "./a", "a/./", ".tmp-1",      "a/.hidden", "a\\b", "a\nb",   "\xff\xfe", "a/\x7f",
    };
    char buf[8], *all;
    size_t len;
    char long_part[300] = { 0 };
    struct sg_store_info info;

    for (size_t i = 0; i < QF_COUNT_OF(bad); i++) {
        struct qf_str name = qf_str_from(bad[i]);

        CHECK_MSG(!sg_store_name_valid(name), "%s", bad[i]);
        CHECK_EQ(sg_store_put(f.store, name, "x", 1, NULL, NULL), QF_EINVAL);
        CHECK_EQ(sg_store_read(f.store, name, 0, buf, 8, NULL, &len, NULL), QF_EINVAL);
        CHECK_EQ(sg_store_read_all(f.store, name, 8, NULL, &all, &len, NULL), QF_EINVAL);
        CHECK_EQ(sg_store_stat(f.store, name, NULL, &info, NULL), QF_EINVAL);
        CHECK_EQ(sg_store_delete(f.store, name, NULL, NULL), QF_EINVAL);
    }
    CHECK(!sg_store_name_valid((struct qf_str){ "a\0b", 3 }));
    memset(long_part, 'a', 256);
    CHECK(!sg_store_name_valid(qf_str_from(long_part)));
    long_part[255] = '\0';
    CHECK(sg_store_name_valid(qf_str_from(long_part)));
    CHECK(sg_store_name_valid(QF_STR("tenant=t%20x/date=2026-01-31/1-2-0of1-\xc3\xa9.parquet")));
}

/* The catalogue merges listings, which needs one order everywhere: that of whole names. */
TEST(listings_are_sorted_as_s3_sorts_them)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new();
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;

    put_text(&f, "a/c", "1");
    put_text(&f, "a-b", "22");
    put_text(&f, "a/b/d", "333");
    put_text(&f, "a0", "4444");
    put_text(&f, "b", "");
    CHECK_STR(list(&f, &buf, "", ""), "a-b:2 a/b/d:3 a/c:1 a0:4 b:0 ");
    CHECK_STR(list(&f, &buf, "a", ""), "a-b:2 a/b/d:3 a/c:1 a0:4 ");
    CHECK_STR(list(&f, &buf, "a/", ""), "a/b/d:3 a/c:1 ");
    CHECK_STR(list(&f, &buf, "a/b", ""), "a/b/d:3 ");
    CHECK_STR(list(&f, &buf, "nothing/here", ""), "");
    CHECK_STR(list(&f, &buf, "../", ""), "");
    CHECK_STR(list(&f, &buf, "", "a/b/d"), "a/c:1 a0:4 b:0 ");
    CHECK_STR(list(&f, &buf, "", "a/b"), "a/b/d:3 a/c:1 a0:4 b:0 ");
    CHECK_STR(list(&f, &buf, "", "a/z"), "a0:4 b:0 ");
    CHECK_STR(list(&f, &buf, "a/", "a-z"), "a/b/d:3 a/c:1 ");
    CHECK_STR(list(&f, &buf, "", "z"), "");
}

static int str_cmp(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The same against a plain sort, for random trees and random places to start. */
TEST(random_trees_list_as_their_sorted_names)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new();
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qf_prng prng = { 99 };
    QF_VEC(char *) names = { 0 };
    static const char alphabet[] = "ab-0/";

    for (int i = 0; i < 120; i++) {
        char name[12] = { 0 };
        size_t len = 1 + qf_prng_below(&prng, 7);

        for (size_t j = 0; j < len; j++)
            name[j] = alphabet[qf_prng_below(&prng, 5)];
        if (!sg_store_name_valid(qf_str_from(name)) ||
            sg_store_put(f.store, qf_str_from(name), "", 0, NULL, NULL))
            continue; /* Not a name, or a file where a folder would have to be. */
        for (size_t j = 0; j < names.count; j++) {
            if (strcmp(names.items[j], name) == 0)
                goto known;
        }
        QF_VEC_PUSH(&names, qf_xstrdup(name));
    known:;
    }
    CHECK(names.count > 30);
    qsort(names.items, names.count, sizeof(char *), str_cmp);
    for (int i = 0; i < 100; i++) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf want = QF_STRBUF_INIT;
        const char *from = names.items[qf_prng_below(&prng, names.count)];
        char start[16], prefix[16];

        (void)snprintf(start, sizeof(start), "%.*s", (int)qf_prng_below(&prng, 8), from);
        from = names.items[qf_prng_below(&prng, names.count)];
        (void)snprintf(prefix, sizeof(prefix), "%.*s", (int)qf_prng_below(&prng, 4), from);
        for (size_t j = 0; j < names.count; j++) {
            if (strcmp(names.items[j], start) > 0 &&
                strncmp(names.items[j], prefix, strlen(prefix)) == 0)
                qf_strbuf_printf(&want, "%s:0 ", names.items[j]);
        }
        CHECK_STR(list(&f, &buf, prefix, start), qf_strbuf_cstr(&want));
    }
    for (size_t i = 0; i < names.count; i++)
        free(names.items[i]);
    QF_VEC_DONE(&names);
}

static bool collect_folder(void *ctx, const struct sg_store_folder *folder)
{
    struct qf_strbuf *buf = ctx;

    qf_strbuf_str(buf, folder->name);
    qf_strbuf_printf(buf, "%s ", folder->token ? "!" : "");
    return true;
}

static void age_folder(const struct fixture *f, const char *name, int64_t seconds)
{
    char path[128];
    struct timespec times[2] = { 0 };

    times[0].tv_sec = times[1].tv_sec = qf_clock_wall_ms() / 1000 - seconds;
    (void)snprintf(path, sizeof(path), "%s/%s", f->folder, name);
    CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
}

/* A folder that changed a moment ago may change again unseen: it has no token yet. */
TEST(folders_carry_a_token_once_they_have_settled)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new();
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;

    CHECK(sg_store_has_tokens(f.store));
    put_text(&f, "t/a/1", "");
    put_text(&f, "t/b/1", "");
    put_text(&f, "t/file", "");
    age_folder(&f, "t/a", 60);
    age_folder(&f, "t/b", -1); /* changed just now, however long the disk took */
    age_folder(&f, "t", -1);
    CHECK_OK(sg_store_folders(f.store, QF_STR("t/"), NULL, collect_folder, &buf, &f.err), &f.err);
    CHECK_STR(qf_strbuf_cstr(&buf), "t/a/! t/b/ ");
    qf_strbuf_reset(&buf);
    CHECK_OK(sg_store_folders(f.store, QF_STR(""), NULL, collect_folder, &buf, &f.err), &f.err);
    CHECK_STR(qf_strbuf_cstr(&buf), "t/ ");
    qf_strbuf_reset(&buf);
    put_text(&f, "t/a/2", "");
    age_folder(&f, "t/b", -1);
    CHECK_OK(sg_store_folders(f.store, QF_STR("t/"), NULL, collect_folder, &buf, &f.err), &f.err);
    CHECK_STR(qf_strbuf_cstr(&buf), "t/a/ t/b/ ");
    CHECK_EQ(sg_store_folders(f.store, QF_STR("t"), NULL, collect_folder, &buf, NULL), QF_EINVAL);
    CHECK_EQ(sg_store_folders(f.store, QF_STR("../"), NULL, collect_folder, &buf, NULL), QF_EINVAL);
}

/* What a crashed writer leaves is never listed, and goes when it is old. */
TEST(temporary_files_are_invisible_and_swept)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new();
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    char path[128];
    size_t removed = 0;
    int fd;

    put_text(&f, "t/a", "x");
    (void)snprintf(path, sizeof(path), "%s/t/.tmp-1-1-00", f.folder);
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    CHECK(fd >= 0);
    (void)close(fd);
    CHECK_STR(list(&f, &buf, "", ""), "t/a:1 ");
    CHECK_OK(sg_store_sweep(f.store, 3600000, false, NULL, &removed, &f.err), &f.err);
    CHECK_EQ(removed, 0);
    age_folder(&f, "t/.tmp-1-1-00", 7200);
    age_folder(&f, "t/a", 7200);
    CHECK_OK(sg_store_sweep(f.store, 3600000, false, NULL, &removed, &f.err), &f.err);
    CHECK_EQ(removed, 1);
    CHECK_STR(list(&f, &buf, "", ""), "t/a:1 ");
    CHECK(access(path, F_OK) != 0);
}

TEST(deleting_is_idempotent_and_missing_objects_are_named)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new();
    struct sg_store_info info;
    char buf[8];
    size_t len;

    put_text(&f, "t/a", "x");
    CHECK_OK(sg_store_delete(f.store, QF_STR("t/a"), NULL, &f.err), &f.err);
    CHECK_OK(sg_store_delete(f.store, QF_STR("t/a"), NULL, &f.err), &f.err);
    CHECK_OK(sg_store_delete(f.store, QF_STR("no/such/thing"), NULL, &f.err), &f.err);
    CHECK_EQ(sg_store_delete(f.store, QF_STR("t"), NULL, NULL), QF_EINVAL);
    CHECK_EQ(sg_store_read(f.store, QF_STR("t/a"), 0, buf, 8, NULL, &len, &f.err), QF_ENOTFOUND);
    CHECK_MSG(strstr(f.err.msg, "t/a"), "%s", f.err.msg);
    CHECK_EQ(sg_store_stat(f.store, QF_STR("t"), NULL, &info, NULL), QF_ENOTFOUND);
    CHECK_EQ(sg_store_stat(f.store, QF_STR("t/a/b"), NULL, &info, NULL), QF_ENOTFOUND);
    CHECK(sg_store_counters(f.store).failures >= 3);
}

TEST(a_set_cancel_flag_ends_a_call)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new();
    atomic_bool cancel = true;
    struct sg_store_call call = { .cancel = &cancel };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;

    CHECK_EQ(sg_store_put(f.store, QF_STR("a"), "x", 1, &call, NULL), QF_ECANCELED);
    CHECK_EQ(sg_store_list(f.store, QF_STR(""), QF_STR(""), &call, collect, &buf, NULL),
             QF_ECANCELED);
    CHECK_STR(list(&f, &buf, "", ""), "");
}

TEST(bad_urls_and_missing_folders_are_told_apart)
{
    struct sg_store *store = NULL;
    struct qf_err err = { 0 };
    char folder[] = "/tmp/pf-store-XXXXXX";
    char path[64], url[80];

    CHECK(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof(path), "%s/deep/er", folder);
    (void)snprintf(url, sizeof(url), "file://%s", path);
    CHECK_EQ(sg_store_open(&(struct sg_store_options){ .url = "" }, &store, NULL), QF_EINVAL);
    CHECK_EQ(sg_store_open(&(struct sg_store_options){ .url = "gs://x" }, &store, NULL), QF_EINVAL);
    CHECK_EQ(sg_store_open(&(struct sg_store_options){ .url = path }, &store, &err), QF_ENOTFOUND);
    CHECK_MSG(strstr(err.msg, path), "%s", err.msg);
    err = (struct qf_err){ 0 };
    CHECK_OK(sg_store_open(&(struct sg_store_options){ .url = path, .create = true }, &store, &err),
             &err);
    CHECK_STR(sg_store_url(store), url);
    store = sg_store_free(store);
    CHECK_OK(sg_store_open(&(struct sg_store_options){ .url = url }, &store, &err), &err);
    store = sg_store_free(store);
    CHECK(rmdir(path) == 0);
    (void)snprintf(path, sizeof(path), "%s/deep", folder);
    CHECK(rmdir(path) == 0 && rmdir(folder) == 0);
}

struct writer {
    struct fixture *f;
    int number;
    const atomic_bool *stop;
    int failed;
};

static void write_again_and_again(void *arg)
{
    struct writer *writer = arg;
    char data[4096];

    for (int i = 0; i < 60; i++) {
        memset(data, 'a' + (writer->number + i) % 26, sizeof(data));
        if (sg_store_put(writer->f->store, QF_STR("shared/x"), data, sizeof(data), NULL, NULL))
            writer->failed++;
    }
}

/* A reader among writers sees one of the contents, whole. */
TEST(readers_never_see_a_half_written_object)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new();
    struct writer writers[3];
    struct qf_thread *threads[3];

    put_text(&f, "shared/x", "");
    for (int i = 0; i < 3; i++) {
        writers[i] = (struct writer){ .f = &f, .number = i };
        threads[i] = qf_thread_start("writer", write_again_and_again, &writers[i]);
    }
    for (int i = 0; i < 200; i++) {
        char data[5000];
        size_t len = 0;

        CHECK_OK(
            sg_store_read(f.store, QF_STR("shared/x"), 0, data, sizeof(data), NULL, &len, &f.err),
            &f.err);
        CHECK(len == 4096 || len == 0);
        for (size_t j = 1; j < len; j++)
            CHECK(data[j] == data[0]);
    }
    for (int i = 0; i < 3; i++) {
        (void)qf_thread_join(threads[i]);
        CHECK_EQ(writers[i].failed, 0);
    }
}

/* A link inside of a store may lead to another tenant's files, or out of it: it is no object, and a
 * linked folder is no folder, whatever is asked. */
TEST(symbolic_links_are_not_followed)
{
    struct fixture f = fixture_new();
    char path[200], target[200];
    struct sg_store_info info;
    char *data = NULL;
    size_t len;
    int fd = -1;

    put_text(&f, "tenant=b/date=1/secret", "of b");
    put_text(&f, "tenant=a/date=1/own", "of a");
    (void)snprintf(path, sizeof(path), "%s/tenant=a/date=1/link", f.folder);
    CHECK_EQ(symlink("../../tenant=b/date=1/secret", path), 0);
    (void)snprintf(path, sizeof(path), "%s/tenant=a/date=2", f.folder);
    CHECK_EQ(symlink("../tenant=b/date=1", path), 0);
    (void)snprintf(path, sizeof(path), "%s/tenant=c", f.folder);
    (void)snprintf(target, sizeof(target), "%s/tenant=b", f.folder);
    CHECK_EQ(symlink(target, path), 0);
    CHECK_EQ(
        sg_store_read_all(f.store, QF_STR("tenant=a/date=1/link"), 100, NULL, &data, &len, NULL),
        QF_EDENIED);
    CHECK_EQ(sg_store_stat(f.store, QF_STR("tenant=a/date=2/secret"), NULL, &info, NULL),
             QF_ENOTFOUND);
    CHECK_EQ(sg_store_open_file(f.store, QF_STR("tenant=c/date=1/secret"), &fd, NULL),
             QF_ENOTFOUND);
    CHECK_EQ(sg_store_put(f.store, QF_STR("tenant=c/date=1/new"), "x", 1, NULL, NULL),
             QF_ENOTFOUND);
    CHECK_OK(sg_store_delete(f.store, QF_STR("tenant=a/date=2/secret"), NULL, &f.err), &f.err);
    CHECK_OK(sg_store_open_file(f.store, QF_STR("tenant=b/date=1/secret"), &fd, &f.err), &f.err);
    (void)close(fd);
    {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

        CHECK_STR(list(&f, &text, "", ""), "tenant=a/date=1/own:4 tenant=b/date=1/secret:4 ");
        CHECK_STR(list(&f, &text, "tenant=c/", ""), "");
    }
    fixture_done(&f);
}
