/* test_s3.c - the S3 store against a server that verifies signatures; started by `run`.
 *
 * Each test uses a prefix of its own in one bucket. PF_S3_FAULTY is a proxy in front of the same
 * server that fails on demand. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/prng.h"
#include "base/sys/clock.h"
#include "base/sys/thread.h"
#include "segments/store/http.h"
#include "segments/store/lease.h"
#include "segments/store/store.h"
#include "tests/lib/test.h"

#define BUCKET "segments"

static const char *need(const char *name)
{
    const char *value = getenv(name);

    if (!value)
        test_skip("no S3 server: this program is started by tests/integration/s3/run");
    return value;
}

/* Make the bucket, once: creating buckets is not the store's business. */
static void make_bucket(void)
{
    static bool made;
    struct http_client *client;
    struct http_response response = { 0 };
    struct sg_store_limit limit = { .deadline_ms = QF_TIME_NEVER };
    struct qf_err err = { 0 };
    char url[200], sign[100];
    struct http_request request = {
        .method = "PUT",
        .url = url,
        .headers = { "x-amz-content-sha256: "
                     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        .header_count = 1,
        .sign = sign,
        .access_key = need("PF_S3_ACCESS_KEY"),
        .secret_key = need("PF_S3_SECRET_KEY"),
        .body = &(struct sg_store_bytes){ .data = "", .fd = -1 },
    };

    if (made)
        return;
    client = http_client_new(
        &(struct http_options){ .connect_timeout_ms = 5000, .stall_timeout_ms = 20000 });
    (void)snprintf(url, sizeof(url), "%s/" BUCKET, need("PF_S3_ENDPOINT"));
    (void)snprintf(sign, sizeof(sign), "aws:amz:%s:s3", need("PF_S3_REGION"));
    /* Just after its start the server may not know its own parts yet. */
    for (int i = 0; i < 50 && response.status != 200; i++) {
        CHECK_OK(http_perform(client, &request, &limit, &response, &err), &err);
        if (response.status >= 500)
            (void)usleep(200000);
    }
    CHECK_MSG(response.status == 200, "%ld %s", response.status, qf_strbuf_cstr(&response.body));
    http_response_done(&response);
    (void)http_client_free(client);
    made = true;
}

struct place {
    const char *endpoint, *bucket, *prefix, *region, *access_key, *secret_key;
    unsigned attempts;
    int64_t stall_timeout_ms;
    uint64_t part_bytes;
};

static struct sg_store *open_place(struct place p)
{
    char url[300];
    struct sg_store *store = NULL;
    struct qf_err err = { 0 };

    make_bucket();
    (void)snprintf(url, sizeof(url), "s3://%s/%s?endpoint=%s&region=%s",
                   p.bucket ? p.bucket : BUCKET, p.prefix ? p.prefix : "",
                   p.endpoint ? p.endpoint : need("PF_S3_ENDPOINT"),
                   p.region ? p.region : need("PF_S3_REGION"));
    CHECK_OK(sg_store_open(
                 &(struct sg_store_options){
                     .url = url,
                     .access_key = p.access_key ? p.access_key : need("PF_S3_ACCESS_KEY"),
                     .secret_key = p.secret_key ? p.secret_key : need("PF_S3_SECRET_KEY"),
                     .attempts_max = p.attempts,
                     .backoff_min_ms = 10,
                     .backoff_max_ms = 100,
                     .stall_timeout_ms = p.stall_timeout_ms,
                     .part_bytes = p.part_bytes,
                 },
                 &store, &err),
             &err);
    return store;
}

static void put_text(struct sg_store *store, const char *name, const char *text)
{
    struct qf_err err = { 0 };

    CHECK_OK(sg_store_put(store, qf_str_from(name), text, strlen(text), NULL, &err), &err);
}

static char *random_bytes(size_t size, uint64_t seed)
{
    char *data = qf_xmalloc(size);
    struct qf_prng prng = { seed };

    for (size_t i = 0; i < size; i++)
        data[i] = (char)qf_prng_next(&prng);
    return data;
}

/* Tell the faulty proxy what to do; answers how many requests it saw since the last order. */
static int64_t order(const char *what)
{
    struct http_client *client = http_client_new(
        &(struct http_options){ .connect_timeout_ms = 5000, .stall_timeout_ms = 20000 });
    struct http_response response = { 0 };
    struct sg_store_limit limit = { .deadline_ms = QF_TIME_NEVER };
    struct qf_err err = { 0 };
    char url[200];
    int64_t seen = -1;

    (void)snprintf(url, sizeof(url), "%s/-/%s", need("PF_S3_FAULTY"), what);
    CHECK_OK(http_perform(client, &(struct http_request){ .method = "GET", .url = url }, &limit,
                          &response, &err),
             &err);
    CHECK(qf_parse_i64(qf_strbuf_view(&response.body), &seen));
    http_response_done(&response);
    (void)http_client_free(client);
    return seen;
}

TEST(objects_survive_the_way_there_and_back)
{
    QF_CLEANUP(sg_store_freep)
    struct sg_store *store = open_place((struct place){ .prefix = "basic/x" });
    struct qf_str name = QF_STR("tenant=t!*'()/date=2026-01-31/a b+c&d=\xc3\xa9%41~.parquet");
    const size_t size = 300001;
    QF_CLEANUP(qf_freep) char *data = random_bytes(size, 1);
    QF_CLEANUP(qf_freep) char *back = NULL;
    struct sg_store_info info;
    struct qf_err err = { 0 };
    size_t len;

    CHECK_OK(sg_store_put(store, name, data, size, NULL, &err), &err);
    CHECK_OK(sg_store_read_all(store, name, size, NULL, &back, &len, &err), &err);
    CHECK_EQ(len, size);
    CHECK(memcmp(data, back, size) == 0);
    CHECK_OK(sg_store_stat(store, name, NULL, &info, &err), &err);
    CHECK_EQ(info.size, size);
    CHECK_EQ(strlen(info.etag), 32);
    CHECK(llabs(info.mtime_ms - qf_clock_wall_ms()) < 60000);
    CHECK_EQ(sg_store_read_all(store, name, size - 1, NULL, &back, &len, NULL), QF_ELIMIT);
    CHECK_OK(sg_store_delete(store, name, NULL, &err), &err);
    CHECK_OK(sg_store_delete(store, name, NULL, &err), &err);
    CHECK_EQ(sg_store_stat(store, name, NULL, &info, &err), QF_ENOTFOUND);
    CHECK_MSG(strstr(err.msg, "date=2026-01-31"), "%s", err.msg);
}

TEST(ranges_are_the_bytes_asked_for)
{
    QF_CLEANUP(sg_store_freep)
    struct sg_store *store = open_place((struct place){ .prefix = "range" });
    struct qf_err err = { 0 };
    char buf[32];
    size_t len;
    uint64_t size;

    put_text(store, "x", "0123456789");
    put_text(store, "empty", "");
    CHECK_OK(sg_store_read(store, QF_STR("x"), 3, buf, 4, NULL, &len, &err), &err);
    CHECK(len == 4 && memcmp(buf, "3456", 4) == 0);
    CHECK_OK(sg_store_read(store, QF_STR("x"), 0, buf, 10, NULL, &len, &err), &err);
    CHECK(len == 10 && memcmp(buf, "0123456789", 10) == 0);
    CHECK_OK(sg_store_read(store, QF_STR("x"), 8, buf, 32, NULL, &len, &err), &err);
    CHECK(len == 2 && memcmp(buf, "89", 2) == 0);
    CHECK_OK(sg_store_read(store, QF_STR("x"), 10, buf, 32, NULL, &len, &err), &err);
    CHECK_EQ(len, 0);
    CHECK_OK(sg_store_read_tail(store, QF_STR("x"), buf, 3, NULL, &len, &size, &err), &err);
    CHECK(len == 3 && size == 10 && memcmp(buf, "789", 3) == 0);
    CHECK_OK(sg_store_read_tail(store, QF_STR("x"), buf, 32, NULL, &len, &size, &err), &err);
    CHECK(len == 10 && size == 10);
    CHECK_OK(sg_store_read(store, QF_STR("empty"), 0, buf, 5, NULL, &len, &err), &err);
    CHECK_EQ(len, 0);
    CHECK_OK(sg_store_read_tail(store, QF_STR("empty"), buf, 5, NULL, &len, &size, &err), &err);
    CHECK(len == 0 && size == 0);
    CHECK_EQ(sg_store_read(store, QF_STR("none"), 0, buf, 5, NULL, &len, NULL), QF_ENOTFOUND);
    CHECK_EQ(sg_store_read_tail(store, QF_STR("none"), buf, 5, NULL, &len, &size, NULL),
             QF_ENOTFOUND);
}

/* A part of an object lands at its place of a file, and nowhere else; an object of another size or ETag
 * is not the one that was meant. */
TEST(parts_land_at_their_place_of_a_copy)
{
    QF_CLEANUP(sg_store_freep)
    struct sg_store *store = open_place((struct place){ .prefix = "part" });
    struct sg_store_part part = { 3, 4, 10 };
    struct sg_store_info info;
    struct qf_err err = { 0 };
    char buf[10] = { 0 };
    FILE *file = tmpfile();
    int fd = file ? fileno(file) : -1;

    CHECK(fd >= 0);
    put_text(store, "x", "0123456789");
    CHECK_OK(sg_store_stat(store, QF_STR("x"), NULL, &info, &err), &err);
    CHECK_OK(sg_store_read_part_fd(store, QF_STR("x"), &part, fd,
                                   &(struct sg_store_call){ .etag = info.etag }, &err),
             &err);
    CHECK_EQ(pread(fd, buf, sizeof(buf), 0), 7);
    CHECK(memcmp(buf,
                 "\0\0\0"
                 "3456",
                 7) == 0);
    CHECK_EQ(sg_store_read_part_fd(store, QF_STR("x"), &part, fd,
                                   &(struct sg_store_call){ .etag = "other" }, &err),
             QF_ENOTFOUND);
    CHECK_MSG(strstr(err.msg, "another object now"), "%s", err.msg);
    for (uint64_t size = 7; size < 12; size++) {
        part.object_size = size;
        CHECK_EQ(sg_store_read_part_fd(store, QF_STR("x"), &part, fd, NULL, &err),
                 size == 10 ? QF_OK : QF_ENOTFOUND);
    }
    part = (struct sg_store_part){ 12, 4, 16 };
    CHECK_EQ(sg_store_read_part_fd(store, QF_STR("x"), &part, fd, NULL, &err), QF_ENOTFOUND);
    part = (struct sg_store_part){ 8, 3, 10 };
    CHECK_EQ(sg_store_read_part_fd(store, QF_STR("x"), &part, fd, NULL, &err), QF_EINVAL);
    CHECK_EQ(fclose(file), 0);
}

/* Wrong secret, unknown user, wrong region: refused, at once, with what the server says. */
TEST(wrong_credentials_are_refused_and_not_retried)
{
    const struct place wrong[] = {
        { .prefix = "p", .secret_key = "wrong" },
        { .prefix = "p", .access_key = "test:nobody" },
        { .prefix = "p", .region = "other-region" },
    };
    static const char *const says[] = { "SignatureDoesNotMatch", "SignatureDoesNotMatch",
                                        "AuthorizationHeaderMalformed" };

    for (size_t i = 0; i < QF_COUNT_OF(wrong); i++) {
        QF_CLEANUP(sg_store_freep) struct sg_store *store = open_place(wrong[i]);
        struct qf_err err = { 0 };
        struct sg_store_info info;
        char buf[8];
        size_t len;
        qf_rc want = i == 2 ? QF_EINVAL : QF_EDENIED;

        CHECK_EQ(sg_store_read(store, QF_STR("x"), 0, buf, 8, NULL, &len, &err), want);
        CHECK_MSG(strstr(err.msg, says[i]), "%s", err.msg);
        CHECK_EQ(sg_store_put(store, QF_STR("x"), "x", 1, NULL, NULL), want);
        CHECK_EQ(sg_store_delete(store, QF_STR("x"), NULL, NULL), want);
        if (i != 2) {
            CHECK_EQ(sg_store_stat(store, QF_STR("x"), NULL, &info, NULL), QF_EDENIED);
        }
        CHECK_EQ(sg_store_counters(store).retries, 0);
    }
}

/* A user without rights on the bucket, and a bucket that is not there. */
TEST(missing_rights_and_missing_buckets_are_told_apart)
{
    QF_CLEANUP(sg_store_freep)
    struct sg_store *reader = open_place(
        (struct place){ .prefix = "p", .access_key = "test:reader", .secret_key = "reading" });
    QF_CLEANUP(sg_store_freep)
    struct sg_store *nowhere = open_place((struct place){ .bucket = "no-such-bucket" });
    struct qf_err err = { 0 };
    char buf[8];
    size_t len;

    CHECK_EQ(sg_store_put(reader, QF_STR("x"), "x", 1, NULL, &err), QF_EDENIED);
    CHECK_MSG(strstr(err.msg, "AccessDenied"), "%s", err.msg);
    err = (struct qf_err){ 0 };
    CHECK_EQ(sg_store_read(nowhere, QF_STR("x"), 0, buf, 8, NULL, &len, &err), QF_ENOTFOUND);
    CHECK_MSG(strstr(err.msg, "NoSuchBucket"), "%s", err.msg);
    CHECK_EQ(sg_store_delete(nowhere, QF_STR("x"), NULL, NULL), QF_ENOTFOUND);
}

/* --- listings --- */

struct names {
    struct qf_strbuf text;
    size_t count, stop_at;
};

static bool collect(void *ctx, const struct sg_store_object *object)
{
    struct names *names = ctx;

    qf_strbuf_str(&names->text, object->name);
    qf_strbuf_printf(&names->text, ":%llu%s ", (unsigned long long)object->size,
                     object->etag.len && object->mtime_ms ? "" : "?");
    return ++names->count != names->stop_at;
}

static bool collect_folder(void *ctx, const struct sg_store_folder *folder)
{
    struct names *names = ctx;

    qf_strbuf_str(&names->text, folder->name);
    qf_strbuf_putc(&names->text, ' ');
    return true;
}

TEST(listings_have_prefixes_order_and_folders)
{
    QF_CLEANUP(sg_store_freep)
    struct sg_store *store = open_place((struct place){ .prefix = "list/1" });
    QF_CLEANUP(sg_store_freep)
    struct sg_store *beside = open_place((struct place){ .prefix = "list" });
    struct qf_err err = { 0 };
    static const char *const names[] = { "a/c", "a-b", "a/b/d", "a0", "b +&<\xc3\xa9" };

    for (size_t i = 0; i < QF_COUNT_OF(names); i++)
        put_text(store, names[i], "12");
    put_text(beside, "1x", "");
    {
        struct names got = { 0 };

        CHECK_OK(sg_store_list(store, QF_STR(""), QF_STR(""), NULL, collect, &got, &err), &err);
        CHECK_STR(qf_strbuf_cstr(&got.text), "a-b:2 a/b/d:2 a/c:2 a0:2 b +&<\xc3\xa9:2 ");
        qf_strbuf_done(&got.text);
    }
    {
        struct names got = { 0 };

        CHECK_OK(sg_store_list(store, QF_STR("a"), QF_STR("a/b"), NULL, collect, &got, &err), &err);
        CHECK_STR(qf_strbuf_cstr(&got.text), "a/b/d:2 a/c:2 a0:2 ");
        qf_strbuf_done(&got.text);
    }
    {
        struct names got = { 0 };

        CHECK_OK(sg_store_folders(store, QF_STR(""), NULL, collect_folder, &got, &err), &err);
        CHECK_STR(qf_strbuf_cstr(&got.text), "a/ ");
        qf_strbuf_reset(&got.text);
        CHECK_OK(sg_store_folders(store, QF_STR("a/"), NULL, collect_folder, &got, &err), &err);
        CHECK_STR(qf_strbuf_cstr(&got.text), "a/b/ ");
        qf_strbuf_reset(&got.text);
        CHECK_OK(sg_store_folders(store, QF_STR("z/"), NULL, collect_folder, &got, &err), &err);
        CHECK_STR(qf_strbuf_cstr(&got.text), "");
        qf_strbuf_done(&got.text);
    }
    CHECK(!sg_store_has_tokens(store));
}

struct putter {
    struct sg_store *store;
    int first, last, failed;
};

static void put_many(void *arg)
{
    struct putter *putter = arg;

    for (int i = putter->first; i < putter->last; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "d%d/k%05d", i % 7, i);
        if (sg_store_put(putter->store, qf_str_from(name), name, strlen(name), NULL, NULL))
            putter->failed++;
    }
}

struct order_check {
    char last[64];
    size_t count, stop_at;
    bool ordered;
};

static bool check_order(void *ctx, const struct sg_store_object *object)
{
    struct order_check *check = ctx;

    if (qf_str_cmp(qf_str_from(check->last), object->name) >= 0)
        check->ordered = false;
    (void)snprintf(check->last, sizeof(check->last), "%.*s", QF_STR_ARG(object->name));
    return ++check->count != check->stop_at;
}

/* Three pages, put by four threads through one store. */
TEST(listings_of_thousands_are_complete)
{
    QF_CLEANUP(sg_store_freep)
    struct sg_store *store = open_place((struct place){ .prefix = "many" });
    enum { COUNT = 2100, THREADS = 4 };
    struct putter putters[THREADS];
    struct qf_thread *threads[THREADS];
    struct order_check check = { .ordered = true }, early = { .ordered = true, .stop_at = 1500 };
    struct qf_err err = { 0 };

    for (int i = 0; i < THREADS; i++) {
        putters[i] = (struct putter){ .store = store,
                                      .first = i * COUNT / THREADS,
                                      .last = (i + 1) * COUNT / THREADS };
        threads[i] = qf_thread_start("put", put_many, &putters[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        (void)qf_thread_join(threads[i]);
        CHECK_EQ(putters[i].failed, 0);
    }
    CHECK_OK(sg_store_list(store, QF_STR(""), QF_STR(""), NULL, check_order, &check, &err), &err);
    CHECK_EQ(check.count, COUNT);
    CHECK(check.ordered);
    CHECK_OK(sg_store_list(store, QF_STR(""), QF_STR(""), NULL, check_order, &early, &err), &err);
    CHECK_EQ(early.count, 1500);
    check = (struct order_check){ .ordered = true };
    CHECK_OK(sg_store_list(store, QF_STR("d3/"), QF_STR("d3/k01"), NULL, check_order, &check, &err),
             &err);
    CHECK_EQ(check.count, 157); /* 1003, 1010, ... 2095 */
}

/* --- uploads in parts --- */

TEST(large_objects_go_up_in_parts)
{
    const uint64_t part = 5u << 20;
    const size_t size = (size_t)(4 * part + 12345);
    QF_CLEANUP(sg_store_freep)
    struct sg_store *store = open_place((struct place){ .prefix = "parts", .part_bytes = part });
    QF_CLEANUP(qf_freep) char *data = random_bytes(size, 2);
    QF_CLEANUP(qf_freep) char *back = qf_xmalloc(size);
    struct qf_err err = { 0 };
    struct sg_store_info info;
    FILE *in = tmpfile(), *out = tmpfile();
    uint64_t got;
    size_t len, removed;

    CHECK(in && out && pwrite(fileno(in), data, size, 0) == (ssize_t)size);
    CHECK_OK(sg_store_put_fd(store, QF_STR("big"), fileno(in), size, NULL, &err), &err);
    CHECK_OK(sg_store_stat(store, QF_STR("big"), NULL, &info, &err), &err);
    CHECK_EQ(info.size, size);
    CHECK_MSG(strstr(info.etag, "-5"), "etag %s", info.etag);
    CHECK_OK(sg_store_read_fd(store, QF_STR("big"), fileno(out), NULL, &got, &err), &err);
    CHECK_EQ(got, size);
    CHECK(pread(fileno(out), back, size, 0) == (ssize_t)size);
    CHECK(memcmp(data, back, size) == 0);
    CHECK_OK(sg_store_read(store, QF_STR("big"), part - 5, back, 10, NULL, &len, &err), &err);
    CHECK(len == 10 && memcmp(back, data + part - 5, 10) == 0);
    /* Nothing was left unfinished. */
    CHECK_OK(sg_store_sweep(store, -1000, false, NULL, &removed, &err), &err);
    CHECK_EQ(removed, 0);
    (void)fclose(in);
    (void)fclose(out);
}

TEST(an_upload_that_fails_leaves_nothing_behind)
{
    const uint64_t part = 1u << 20;
    const size_t size = (size_t)(4 * part + 1);
    QF_CLEANUP(sg_store_freep)
    struct sg_store *store = open_place((struct place){ .endpoint = need("PF_S3_FAULTY"),
                                                        .prefix = "parts-failed",
                                                        .attempts = 2,
                                                        .part_bytes = part });
    QF_CLEANUP(qf_freep) char *data = random_bytes(size, 3);
    struct qf_err err = { 0 };
    struct sg_store_info info;
    size_t removed;

    (void)order("fault?mode=status503&count=2&method=PUT");
    CHECK_EQ(sg_store_put(store, QF_STR("big"), data, size, NULL, &err), QF_EIO);
    CHECK_MSG(strstr(err.msg, "big") && strstr(err.msg, "SlowDown"), "%s", err.msg);
    CHECK_EQ(sg_store_stat(store, QF_STR("big"), NULL, &info, NULL), QF_ENOTFOUND);
    CHECK_OK(sg_store_sweep(store, -1000, false, NULL, &removed, &err), &err);
    CHECK_EQ(removed, 0);
}

/* --- leases, which use the server's clock, and its conditional puts where it has them --- */

TEST(a_lease_is_held_renewed_and_given_back)
{
    QF_CLEANUP(sg_store_freep)
    struct sg_store *store = open_place((struct place){ .prefix = "leases" });
    struct sg_lease_options options = { .name = "retention", .text = "me", .ttl_ms = 60000 };
    struct sg_lease *lease = NULL, *second = NULL;
    struct qf_err err = { 0 };
    struct sg_store_info info;
    int64_t now, wall = (int64_t)time(NULL) * 1000;

    CHECK_OK(sg_store_clock(store, NULL, &now, &err), &err);
    CHECK_MSG(now > wall - 10000 && now < wall + 60000, "%lld", (long long)(now - wall));
    CHECK_OK(sg_lease_take(store, &options, NULL, &lease, &err), &err);
    CHECK_EQ(sg_lease_take(store, &options, NULL, &second, &err), QF_EBUSY);
    CHECK_MSG(strstr(err.msg, "held by me"), "%s", err.msg);
    CHECK_OK(sg_lease_renew(lease, NULL, &err), &err);
    (void)sg_lease_drop(lease);
    CHECK_EQ(
        sg_store_stat(store, QF_STR("_leases/retention/00000000000000000001"), NULL, &info, NULL),
        QF_ENOTFOUND);
}

/* --- faults --- */

static struct sg_store *open_faulty(const char *prefix, unsigned attempts)
{
    return open_place((struct place){ .endpoint = need("PF_S3_FAULTY"),
                                      .prefix = prefix,
                                      .attempts = attempts,
                                      .stall_timeout_ms = 1000 });
}

TEST(what_passes_is_retried)
{
    QF_CLEANUP(sg_store_freep) struct sg_store *store = open_faulty("retry", 6);
    const size_t size = 100000;
    QF_CLEANUP(qf_freep) char *data = random_bytes(size, 4);
    static const char *const faults[] = {
        "fault?mode=status503&count=3",       "fault?mode=reset&count=2", "fault?mode=cut&count=2",
        "fault?mode=flip&count=3&method=GET", "fault?mode=stall&count=1", "fault?mode=lost&count=2"
    };

    for (size_t i = 0; i < QF_COUNT_OF(faults); i++) {
        QF_CLEANUP(qf_freep) char *back = NULL;
        struct qf_err err = { 0 };
        size_t len;
        uint64_t before = sg_store_counters(store).retries;

        (void)order(faults[i]);
        CHECK_OK(sg_store_put(store, QF_STR("x"), data, size, NULL, &err), &err);
        (void)order(faults[i]);
        CHECK_OK(sg_store_read_all(store, QF_STR("x"), size, NULL, &back, &len, &err), &err);
        CHECK_EQ(len, size);
        CHECK(memcmp(data, back, size) == 0);
        CHECK_MSG(sg_store_counters(store).retries > before, "%s", faults[i]);
    }
    (void)order("fault?mode=none&count=0");
}

TEST(what_does_not_pass_is_an_error_that_names_the_object)
{
    QF_CLEANUP(sg_store_freep) struct sg_store *store = open_faulty("fail", 3);
    struct qf_err err = { 0 };
    char buf[8], *all;
    size_t len;

    put_text(store, "x", "0123456789");
    (void)order("fault?mode=status503&count=100");
    CHECK_EQ(sg_store_read(store, QF_STR("x"), 0, buf, 8, NULL, &len, &err), QF_EIO);
    CHECK_MSG(strstr(err.msg, "x after 3 tries: 503 SlowDown"), "%s", err.msg);
    CHECK_EQ(order("count"), 3);
    err = (struct qf_err){ 0 };
    (void)order("fault?mode=reset&count=100");
    CHECK_EQ(sg_store_read(store, QF_STR("x"), 0, buf, 8, NULL, &len, &err), QF_EIO);
    CHECK_MSG(strstr(err.msg, "x after 3 tries"), "%s", err.msg);
    err = (struct qf_err){ 0 };
    (void)order("fault?mode=flip&count=100&method=GET");
    CHECK_EQ(sg_store_read_all(store, QF_STR("x"), 100, NULL, &all, &len, &err), QF_ECORRUPT);
    CHECK_MSG(strstr(err.msg, "x: wrong checksum"), "%s", err.msg);
    (void)order("fault?mode=none&count=0");
}

/* A server that says nothing: the timeout of the call, and the cancel flag, end it. */
TEST(timeouts_and_cancel_flags_end_a_call)
{
    QF_CLEANUP(sg_store_freep) struct sg_store *store = open_faulty("stall", 3);
    atomic_bool cancel = false;
    struct sg_store_call call = { .cancel = &cancel, .timeout_ms = 300 };
    char buf[8];
    size_t len;
    int64_t start;

    (void)order("fault?mode=stall&count=100");
    start = qf_clock_mono_ms();
    CHECK_EQ(sg_store_read(store, QF_STR("x"), 0, buf, 8, &call, &len, NULL), QF_ETIMEOUT);
    CHECK(qf_clock_mono_ms() - start < 5000); /* the stall is four times as long */
    atomic_store(&cancel, true);
    CHECK_EQ(sg_store_read(store, QF_STR("x"), 0, buf, 8, &call, &len, NULL), QF_ECANCELED);
    (void)order("fault?mode=none&count=0");
}

struct canceler {
    atomic_bool *cancel;
    int64_t set_ms;
};

static void cancel_soon(void *arg)
{
    struct canceler *canceler = arg;
    struct timespec pause = { .tv_nsec = 300000000 };

    (void)nanosleep(&pause, NULL);
    canceler->set_ms = qf_clock_mono_ms();
    atomic_store(canceler->cancel, true);
}

TEST(a_cancel_flag_set_meanwhile_is_seen_within_100_ms)
{
    QF_CLEANUP(sg_store_freep) struct sg_store *store = open_faulty("cancel", 3);
    int64_t took = INT64_MAX;

    (void)order("fault?mode=stall&count=100");
    for (int tries = 0; tries < 5 && took >= 100; tries++) { /* the machine may be busy */
        atomic_bool cancel = false;
        struct canceler canceler = { .cancel = &cancel };
        struct sg_store_call call = { .cancel = &cancel };
        struct qf_thread *thread = qf_thread_start("cancel", cancel_soon, &canceler);
        char buf[8];
        size_t len;

        CHECK_EQ(sg_store_read(store, QF_STR("x"), 0, buf, 8, &call, &len, NULL), QF_ECANCELED);
        took = qf_clock_mono_ms();
        (void)qf_thread_join(thread);
        took -= canceler.set_ms;
    }
    CHECK(took < 100);
    (void)order("fault?mode=none&count=0");
}

/* A canonical URL opens the same place again, with keys from the environment. */
TEST(the_environment_gives_keys_region_and_endpoint)
{
    QF_CLEANUP(sg_store_freep)
    struct sg_store *store = open_place((struct place){ .prefix = "env" });
    QF_CLEANUP(sg_store_freep) struct sg_store *again = NULL, *bare = NULL;
    struct qf_err err = { 0 };
    struct sg_store_info info;

    put_text(store, "x", "1");
    CHECK(setenv("AWS_ACCESS_KEY_ID", need("PF_S3_ACCESS_KEY"), 1) == 0);
    CHECK(setenv("AWS_SECRET_ACCESS_KEY", need("PF_S3_SECRET_KEY"), 1) == 0);
    CHECK_OK(sg_store_open(&(struct sg_store_options){ .url = sg_store_url(store) }, &again, &err),
             &err);
    CHECK_STR(sg_store_url(again), sg_store_url(store));
    CHECK_OK(sg_store_stat(again, QF_STR("x"), NULL, &info, &err), &err);
    CHECK(setenv("AWS_REGION", need("PF_S3_REGION"), 1) == 0);
    CHECK(setenv("AWS_ENDPOINT_URL", need("PF_S3_ENDPOINT"), 1) == 0);
    CHECK_OK(
        sg_store_open(&(struct sg_store_options){ .url = "s3://" BUCKET "/env/" }, &bare, &err),
        &err);
    CHECK_OK(sg_store_stat(bare, QF_STR("x"), NULL, &info, &err), &err);
    CHECK(unsetenv("AWS_ACCESS_KEY_ID") == 0 && unsetenv("AWS_SECRET_ACCESS_KEY") == 0);
    CHECK(unsetenv("AWS_REGION") == 0 && unsetenv("AWS_ENDPOINT_URL") == 0);
}
