/* test_lease.c - leases: one holder, or several that can be told; only the store's clock counts. */
#include "segments/store/lease.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/pure/strbuf.h"
#include "base/sys/thread.h"
#include "tests/lib/segments/memory_store.h"
#include "tests/lib/test.h"
#include "tests/unit/segments/store/fake_http.h"

#define TTL 60000
/* What the store says at first; no clock of this machine is near it. */
#define NOON INT64_C(1000000000000)

struct fixture {
    struct memory_store *memory;
    struct sg_store *store;
    struct qf_err err;
};

static struct fixture fixture_new(void)
{
    struct fixture f = { .memory = memory_store_new() };

    f.store = memory_store_base(f.memory);
    memory_store_clock(f.memory, NOON);
    return f;
}

static struct sg_lease_options called(const char *name, const char *text)
{
    return (struct sg_lease_options){ .name = name, .text = text, .ttl_ms = TTL };
}

static struct sg_lease *take(struct fixture *f, const char *text)
{
    struct sg_lease_options options = called("retention", text);
    struct sg_lease *lease = NULL;

    CHECK_OK(sg_lease_take(f->store, &options, NULL, &lease, &f->err), &f->err);
    return lease;
}

static qf_rc try(struct fixture *f, const char *text)
{
    struct sg_lease_options options = called("retention", text);
    struct sg_lease *lease = NULL;
    qf_rc rc = sg_lease_take(f->store, &options, NULL, &lease, &f->err);

    (void)sg_lease_drop(lease);
    return rc;
}

static bool print(void *ctx, const struct sg_lease_info *info)
{
    qf_strbuf_printf(ctx, "%.*s|%.*s|%lld%s\n", QF_STR_ARG(info->name), QF_STR_ARG(info->text),
                     (long long)info->age_ms, info->expired ? "|expired" : "");
    return true;
}

static void check_list(struct fixture *f, const char *name, const char *want)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf got = QF_STRBUF_INIT;

    CHECK_OK(sg_lease_list(f->store, name, NULL, print, &got, &f->err), &f->err);
    CHECK_STR(qf_strbuf_cstr(&got), want);
}

TEST(one_holds_a_lease_and_the_next_is_told_who)
{
    struct fixture f = fixture_new();
    struct sg_lease *lease = take(&f, "api-1");

    memory_store_clock(f.memory, NOON + 5000);
    CHECK_EQ(try(&f, "api-2"), QF_EBUSY);
    CHECK_MSG(strstr(f.err.msg, "held by api-1, renewed 5 s ago"), "%s", f.err.msg);
    (void)sg_lease_drop(lease);
    CHECK_EQ(try(&f, "api-2"), QF_OK);
    check_list(&f, "", "");
    (void)sg_store_free(f.store);
}

/* A holder that died is waited for until its time is over by the store's clock, and no longer. */
TEST(an_expired_lease_is_taken_over_and_its_holder_finds_out)
{
    struct fixture f = fixture_new();
    struct sg_lease *lease = take(&f, "api-1"), *next;

    memory_store_clock(f.memory, NOON + TTL + SG_LEASE_GRAIN_MS - 1);
    CHECK_EQ(try(&f, "api-2"), QF_EBUSY);
    memory_store_clock(f.memory, NOON + TTL + SG_LEASE_GRAIN_MS);
    next = take(&f, "api-2");
    check_list(&f, "", "retention|api-2|0\n");
    CHECK_EQ(sg_lease_renew(lease, NULL, &f.err), QF_ENOTFOUND);
    CHECK_OK(sg_lease_renew(next, NULL, &f.err), &f.err);
    (void)sg_lease_drop(lease); /* leaves the other's alone */
    check_list(&f, "", "retention|api-2|0\n");
    (void)sg_lease_drop(next);
    (void)sg_store_free(f.store);
}

TEST(a_renewed_lease_does_not_expire)
{
    struct fixture f = fixture_new();
    struct sg_lease *lease = take(&f, "api-1");

    for (int i = 1; i <= 5; i++) {
        memory_store_clock(f.memory, NOON + i * (TTL - 1));
        CHECK_OK(sg_lease_renew(lease, NULL, &f.err), &f.err);
        CHECK_EQ(try(&f, "api-2"), QF_EBUSY);
    }
    CHECK(sg_lease_left_ms(lease) > 0 && sg_lease_left_ms(lease) <= TTL);
    CHECK(!sg_lease_due(lease));
    (void)sg_lease_drop(lease);
    (void)sg_store_free(f.store);
}

TEST(a_clock_that_was_set_back_blocks_nobody_for_long)
{
    struct fixture f = fixture_new();
    struct sg_lease *lease = take(&f, "api-1");

    memory_store_clock(f.memory, NOON - INT64_C(5) * 3600000);
    CHECK_EQ(try(&f, "api-2"), QF_OK);
    (void)sg_lease_drop(lease);
    (void)sg_store_free(f.store);
}

TEST(a_lease_that_was_not_renewed_in_time_is_over_for_its_holder)
{
    struct fixture f = fixture_new();
    struct sg_lease_options options = called("retention", "short");
    struct timespec pause = { .tv_nsec = 30000000 };
    struct sg_lease *lease = NULL;

    options.ttl_ms = 20;
    CHECK_OK(sg_lease_take(f.store, &options, NULL, &lease, &f.err), &f.err);
    (void)nanosleep(&pause, NULL);
    CHECK_EQ(sg_lease_left_ms(lease), 0);
    CHECK(sg_lease_due(lease));
    CHECK_EQ(sg_lease_renew(lease, NULL, &f.err), QF_ETIMEOUT);
    (void)sg_lease_drop(lease);
    (void)sg_store_free(f.store);
}

TEST(several_may_add_theirs_and_each_can_be_broken)
{
    struct fixture f = fixture_new();
    struct sg_lease_options options = called("import/t", "generation 7");
    struct sg_lease *a = NULL, *b = NULL;

    CHECK_OK(sg_lease_add(f.store, &options, NULL, &a, &f.err), &f.err);
    memory_store_clock(f.memory, NOON + TTL + SG_LEASE_GRAIN_MS);
    CHECK_OK(sg_lease_add(f.store, &options, NULL, &b, &f.err), &f.err);
    {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf got = QF_STRBUF_INIT;

        CHECK_OK(sg_lease_list(f.store, "import", NULL, print, &got, &f.err), &f.err);
        CHECK(strstr(qf_strbuf_cstr(&got), "import/t|generation 7|62000|expired\n"));
        CHECK(strstr(qf_strbuf_cstr(&got), "import/t|generation 7|0\n"));
    }
    check_list(&f, "impor", "");
    check_list(&f, "import/other", "");
    CHECK_OK(sg_lease_renew(a, NULL, &f.err), &f.err); /* late, and nobody minded yet */
    {
        struct sg_lease_options other = called("import/u", "generation 8");
        struct sg_lease *c = NULL;

        CHECK_OK(sg_lease_add(f.store, &other, NULL, &c, &f.err), &f.err);
        check_list(&f, "import/u", "import/u|generation 8|0\n");
        (void)sg_lease_drop(c);
    }
    CHECK_EQ(sg_lease_break(f.store, QF_STR("tenant=t/x"), NULL, &f.err), QF_EINVAL);
    (void)sg_lease_drop(a);
    check_list(&f, "import", "import/t|generation 7|0\n");
    (void)sg_lease_drop(b);
    (void)sg_store_free(f.store);
}

static bool break_it(void *ctx, const struct sg_lease_info *info)
{
    struct fixture *f = ctx;

    CHECK_OK(sg_lease_break(f->store, info->object, NULL, &f->err), &f->err);
    return true;
}

TEST(a_broken_lease_is_gone_for_its_holder_and_does_not_come_back)
{
    struct fixture f = fixture_new();
    struct sg_lease_options options = called("import/t", "generation 7");
    struct sg_lease *lease = NULL;

    CHECK_OK(sg_lease_add(f.store, &options, NULL, &lease, &f.err), &f.err);
    CHECK_OK(sg_lease_list(f.store, "import", NULL, break_it, &f, &f.err), &f.err);
    CHECK_EQ(sg_lease_renew(lease, NULL, &f.err), QF_ENOTFOUND);
    check_list(&f, "", "");
    (void)sg_lease_drop(lease);
    (void)sg_store_free(f.store);
}

/* Where puts have no condition, what is read back decides. */
TEST(a_store_without_conditional_puts_has_leases_too)
{
    struct fixture f = fixture_new();
    struct sg_lease *lease;

    memory_store_plain(f.memory);
    lease = take(&f, "api-1");
    CHECK_EQ(try(&f, "api-2"), QF_EBUSY);
    CHECK_OK(sg_lease_renew(lease, NULL, &f.err), &f.err);
    (void)sg_lease_drop(lease);
    (void)sg_store_free(f.store);
}

TEST(strange_objects_among_leases_are_passed_over_and_swept_in_time)
{
    struct fixture f = fixture_new();
    size_t removed = 0;

    memory_store_put(f.memory, "_leases/retention/00000000000000000003", QF_STR("what?"));
    memory_store_put(f.memory, "_leases/odd", QF_STR(""));
    check_list(&f, "", "");
    CHECK_EQ(try(&f, "api-1"), QF_EBUSY); /* somebody's, perhaps of a later version */
    memory_store_clock(f.memory, NOON + SG_LEASE_TTL_MAX_MS + SG_LEASE_GRAIN_MS);
    CHECK_OK(sg_lease_expire(f.store, true, NULL, &removed, &f.err), &f.err);
    CHECK_EQ(removed, 2);
    CHECK_OK(sg_lease_expire(f.store, false, NULL, &removed, &f.err), &f.err);
    CHECK_EQ(removed, 2);
    CHECK_OK(sg_lease_expire(f.store, false, NULL, &removed, &f.err), &f.err);
    CHECK_EQ(removed, 0);
    CHECK_EQ(try(&f, "api-1"), QF_OK);
    (void)sg_store_free(f.store);
}

TEST(a_lease_that_lives_is_not_swept)
{
    struct fixture f = fixture_new();
    struct sg_lease *lease = take(&f, "api-1");
    size_t removed = 1;

    memory_store_clock(f.memory, NOON + SG_LEASE_TTL_MAX_MS);
    CHECK_OK(sg_lease_expire(f.store, false, NULL, &removed, &f.err), &f.err);
    CHECK_EQ(removed, 0);
    CHECK_OK(sg_lease_renew(lease, NULL, &f.err), &f.err);
    (void)sg_lease_drop(lease);
    (void)sg_store_free(f.store);
}

TEST(what_cannot_be_a_lease_is_refused)
{
    struct fixture f = fixture_new();
    struct sg_lease *lease = NULL;
    struct sg_lease_options bad[] = { called("../x", "a"), called("", "a"),
                                      called("a", "two\nlines"), called("a", "a") };

    bad[3].ttl_ms = 0;
    for (size_t i = 0; i < QF_COUNT_OF(bad); i++)
        CHECK_EQ(sg_lease_take(f.store, &bad[i], NULL, &lease, &f.err), QF_EINVAL);
    (void)sg_store_free(f.store);
}

TEST(a_store_that_fails_is_no_reason_to_go_on)
{
    struct fixture f = fixture_new();
    struct sg_lease *lease = take(&f, "api-1");

    memory_store_fail_puts(f.memory, 0, QF_EIO);
    CHECK_EQ(sg_lease_renew(lease, NULL, &f.err), QF_EIO);
    memory_store_fail_puts(f.memory, 0, QF_OK);
    CHECK_OK(sg_lease_renew(lease, NULL, &f.err), &f.err); /* there was time left */
    memory_store_fail(f.memory, QF_EIO);
    CHECK_EQ(try(&f, "api-2"), QF_EIO);
    memory_store_fail(f.memory, QF_OK);
    (void)sg_lease_drop(lease);
    (void)sg_store_free(f.store);
}

/* --- a folder, several threads --- */

struct racer {
    struct sg_store *store;
    struct sg_lease *lease; /* kept until all have tried */
    bool busy;
};

static void race(void *arg)
{
    struct racer *racer = arg;
    struct sg_lease_options options = called("retention", "racer");
    struct qf_err err = { 0 };

    racer->busy = sg_lease_take(racer->store, &options, NULL, &racer->lease, &err) == QF_EBUSY;
}

TEST(of_many_at_once_one_becomes_the_holder)
{
    char folder[] = "/tmp/pf-lease-XXXXXX", command[64];
    struct racer racers[8] = { 0 };
    struct qf_thread *threads[8];
    struct sg_store *store = NULL;
    struct qf_err err = { 0 };
    unsigned won = 0, busy = 0;

    CHECK(mkdtemp(folder));
    CHECK_OK(sg_store_open(&(struct sg_store_options){ .url = folder }, &store, &err), &err);
    for (size_t i = 0; i < QF_COUNT_OF(racers); i++) {
        racers[i].store = store;
        threads[i] = qf_thread_start("racer", race, &racers[i]);
        CHECK(threads[i]);
    }
    for (size_t i = 0; i < QF_COUNT_OF(racers); i++) {
        (void)qf_thread_join(threads[i]);
        won += racers[i].lease != NULL;
        busy += racers[i].busy;
    }
    for (size_t i = 0; i < QF_COUNT_OF(racers); i++)
        (void)sg_lease_drop(racers[i].lease);
    CHECK_EQ(won, 1);
    CHECK_EQ(busy, 7);
    (void)sg_store_free(store);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    CHECK_EQ(system(command), 0);
}

/* --- what goes over the wire --- */

TEST(a_bucket_is_asked_for_a_conditional_put_and_for_its_time)
{
    QF_CLEANUP(fake_http_freep) struct fake_http *fake = fake_http_new();
    QF_CLEANUP(sg_store_freep) struct sg_store *store = NULL;
    struct qf_err err = { 0 };
    char url[100];
    int64_t now = 0;

    CHECK(setenv("no_proxy", "*", 1) == 0);
    (void)snprintf(url, sizeof(url), "s3://b?endpoint=http://127.0.0.1:%d&region=r",
                   fake_http_port(fake));
    CHECK_OK(sg_store_open(
                 &(struct sg_store_options){
                     .url = url, .access_key = "k", .secret_key = "s", .attempts_max = 1 },
                 &store, &err),
             &err);
    fake_http_answer(fake, "412 Precondition Failed", "",
                     "<Error><Code>PreconditionFailed</Code></Error>");
    CHECK_EQ(sg_store_put_new(store, QF_STR("x"), "1", 1, NULL, &err), QF_EEXIST);
    CHECK(strstr(fake_http_request(fake, 0), "If-None-Match: *\r\n"));
    fake_http_reset(fake);
    fake_http_answer(fake, "501 Not Implemented", "", "<Error><Code>NotImplemented</Code></Error>");
    CHECK_EQ(sg_store_put_new(store, QF_STR("x"), "1", 1, NULL, &err), QF_EUNSUPPORTED);
    fake_http_reset(fake);
    fake_http_answer(fake, "200 OK", "Date: Wed, 21 Oct 2015 07:28:00 GMT\r\n",
                     "<ListBucketResult></ListBucketResult>");
    CHECK_OK(sg_store_clock(store, NULL, &now, &err), &err);
    CHECK_EQ(now, INT64_C(1445412480000));
}

TEST(a_folder_tells_the_time_and_leaves_nothing_behind)
{
    char folder[] = "/tmp/pf-lease-XXXXXX";
    struct sg_store *store = NULL;
    struct qf_err err = { 0 };
    int64_t now = 0, wall = (int64_t)time(NULL) * 1000;

    CHECK(mkdtemp(folder));
    CHECK_OK(sg_store_open(&(struct sg_store_options){ .url = folder }, &store, &err), &err);
    CHECK_OK(sg_store_clock(store, NULL, &now, &err), &err);
    CHECK(now > wall - 10000 && now < wall + 60000);
    (void)sg_store_free(store);
    CHECK_EQ(rmdir(folder), 0);
}
