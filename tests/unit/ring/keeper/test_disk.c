/* test_disk.c - a keeper's disk: what it takes, holds, says and drops, also over a restart and when bytes rot. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ring/keeper/keeper.h"
#include "tests/lib/test.h"

#define NAME "tenant=a/date=2026-01-31/1_2_s3of8_g1_9f.parquet"

struct fixture {
    char dir[64];
    struct kp_keeper *keeper;
    struct kp_said said;
    uint64_t uploads;
};

static void remove_all(const char *dir)
{
    char command[128];

    (void)snprintf(command, sizeof(command), "rm -rf %s", dir);
    CHECK(system(command) == 0);
}

static void open_again(struct fixture *f, uint64_t reserve)
{
    struct qf_err err = { 0 };

    f->keeper = kp_free(f->keeper);
    CHECK_OK(
        kp_open(&(struct kp_options){ .dir = f->dir, .reserve_bytes = reserve }, &f->keeper, &err),
        &err);
}

/* A keeper that was told that every slot is in epoch @epoch; 0: a new disk. */
static void begin(struct fixture *f, uint64_t epoch)
{
    uint64_t epochs[RG_SLOTS];

    *f = (struct fixture){ .dir = "/tmp/keeper-test-XXXXXX" };
    CHECK(mkdtemp(f->dir));
    open_again(f, 0);
    for (size_t i = 0; i < RG_SLOTS; i++)
        epochs[i] = epoch;
    if (epoch)
        kp_tell(f->keeper, epochs, RG_SLOTS, &f->said);
}

static void end(struct fixture *f)
{
    f->keeper = kp_free(f->keeper);
    remove_all(f->dir);
}

static struct rg_keep_query query_of(const char *name, const char *content, uint64_t epoch)
{
    struct rg_keep_query query = { .name = qf_str_from(name),
                                   .slot = 5,
                                   .epoch = epoch,
                                   .upload = true,
                                   .size = strlen(content) };
    struct qf_err err = { 0 };

    CHECK_OK(sg_keep_sum(&(struct sg_store_bytes){ .data = content, .size = strlen(content) },
                         &query.sum, &err),
             &err);
    return query;
}

static int put(struct fixture *f, const char *name, const char *content, uint64_t epoch)
{
    struct rg_keep_query query = query_of(name, content, epoch);

    query.upload_id = ++f->uploads;
    kp_put(f->keeper, &query, qf_str_from(content), &f->said);
    return f->said.status;
}

/* What is held under @name; "": nothing. */
static const char *content(struct fixture *f, const char *name)
{
    static char text[64];
    struct kp_file file;
    ssize_t got;

    kp_get(f->keeper, qf_str_from(name), &file, &f->said);
    if (f->said.status != 200)
        return "";
    got = pread(file.fd, text, sizeof(text) - 1, 0);
    CHECK(got >= 0 && (uint64_t)got == file.size);
    text[got] = '\0';
    (void)close(file.fd);
    return text;
}

static size_t missing(struct fixture *f, const char *name, uint64_t epoch)
{
    struct qf_str names[] = { qf_str_from(name) };
    struct rg_keep_query query = { .slot = 5, .epoch = epoch };
    struct rg_held held;
    size_t count;

    kp_hold(f->keeper, &query, &(struct rg_names){ .names = names, .count = 1 }, &held, &f->said);
    count = held.missing_count;
    rg_held_done(&held);
    return count;
}

TEST(a_blob_is_held_with_its_content_also_after_a_restart)
{
    struct fixture f;
    uint64_t incarnation;

    begin(&f, 1);
    CHECK_EQ(put(&f, NAME, "hello", 1), 201);
    CHECK_EQ(put(&f, NAME, "hello", 1), 200);
    CHECK_STR(content(&f, NAME), "hello");
    CHECK_EQ(missing(&f, NAME, 1), 0);
    CHECK_EQ(missing(&f, "other", 1), 1);
    incarnation = kp_life(f.keeper).incarnation;
    open_again(&f, 0);
    CHECK(kp_life(f.keeper).told);
    CHECK(kp_life(f.keeper).incarnation == incarnation);
    CHECK_STR(content(&f, NAME), "hello");
    CHECK_EQ(kp_figures(f.keeper).blobs, 1);
    CHECK_EQ(kp_figures(f.keeper).bytes, 5);
    end(&f);
}

TEST(a_name_never_changes_its_content)
{
    struct fixture f;

    begin(&f, 1);
    CHECK_EQ(put(&f, NAME, "hello", 1), 201);
    CHECK_EQ(put(&f, NAME, "world", 1), 422);
    CHECK_STR(content(&f, NAME), "hello");
    end(&f);
}

TEST(bytes_without_their_checksum_are_refused_and_leave_nothing)
{
    struct fixture f;
    struct rg_keep_query query;

    begin(&f, 1);
    query = query_of(NAME, "hello", 1);
    query.upload_id = 7;
    kp_put(f.keeper, &query, QF_STR("hellO"), &f.said);
    CHECK_EQ(f.said.status, 422);
    CHECK_STR(content(&f, NAME), "");
    CHECK_EQ(kp_figures(f.keeper).uploads, 0);
    CHECK_EQ(put(&f, NAME, "hello", 1), 201);
    end(&f);
}

TEST(a_blob_comes_in_parts_one_behind_the_other)
{
    struct fixture f;
    struct rg_keep_query query;

    begin(&f, 1);
    query = query_of(NAME, "hello world", 1);
    query.upload_id = 7;
    kp_put(f.keeper, &query, QF_STR("hello "), &f.said);
    CHECK_EQ(f.said.status, 202);
    CHECK_STR(content(&f, NAME), ""); /* not before it is whole */
    query.from = 7;
    kp_put(f.keeper, &query, QF_STR("orld"), &f.said);
    CHECK_EQ(f.said.status, 416); /* and has to begin again */
    query.from = 6;
    kp_put(f.keeper, &query, QF_STR("world"), &f.said);
    CHECK_EQ(f.said.status, 416);
    query.from = 0;
    kp_put(f.keeper, &query, QF_STR("hello "), &f.said);
    query.from = 6;
    kp_put(f.keeper, &query, QF_STR("world"), &f.said);
    CHECK_EQ(f.said.status, 201);
    CHECK_STR(content(&f, NAME), "hello world");
    end(&f);
}

TEST(parts_that_cannot_be_are_refused)
{
    struct fixture f;
    struct rg_keep_query query;

    begin(&f, 1);
    query = query_of(NAME, "hello", 1);
    kp_put(f.keeper, &query, QF_STR("hello"), &f.said);
    CHECK_EQ(f.said.status, 400); /* no upload */
    query.upload_id = 7;
    kp_put(f.keeper, &query, QF_STR("hello!"), &f.said);
    CHECK_EQ(f.said.status, 400);
    kp_put(f.keeper, &query, QF_STR(""), &f.said);
    CHECK_EQ(f.said.status, 400);
    query.size = RG_KEEP_BLOB_BYTES_MAX + 1;
    kp_put(f.keeper, &query, QF_STR("hello"), &f.said);
    CHECK_EQ(f.said.status, 413);
    CHECK_EQ(put(&f, NAME, "", 1), 201); /* an empty blob can be */
    end(&f);
}

TEST(uploads_are_bounded_and_a_full_disk_is_507)
{
    struct fixture f;
    struct rg_keep_query query;

    begin(&f, 1);
    query = query_of(NAME, "hello", 1);
    for (query.upload_id = 1; query.upload_id <= 64; query.upload_id++) {
        kp_put(f.keeper, &query, QF_STR("he"), &f.said);
        CHECK_EQ(f.said.status, 202);
    }
    kp_put(f.keeper, &query, QF_STR("he"), &f.said);
    CHECK_EQ(f.said.status, 503);
    open_again(&f, UINT64_MAX / 2);
    CHECK_EQ(put(&f, NAME, "hello", 1), 507);
    CHECK_EQ(kp_figures(f.keeper).full, 1);
    CHECK_EQ(kp_figures(f.keeper).free_bytes, 0);
    end(&f);
}

TEST(what_is_of_an_older_epoch_is_refused_also_after_a_restart)
{
    struct fixture f;

    begin(&f, 1);
    CHECK_EQ(put(&f, NAME, "hello", 4), 201); /* the epoch is heard of by that */
    CHECK_EQ(put(&f, NAME, "hello", 3), 409);
    CHECK_EQ(f.said.epoch, 4);
    open_again(&f, 0);
    CHECK_EQ(put(&f, "b", "x", 3), 409);
    (void)missing(&f, NAME, 3);
    CHECK_EQ(f.said.status, 409);
    CHECK_EQ(put(&f, "b", "x", 4), 201);
    end(&f);
}

/* Moves a folder below the keeper's: what a full disk does to files that are replaced. */
static void move(const struct fixture *f, const char *from, const char *to)
{
    char old[128], new[128];

    (void)snprintf(old, sizeof(old), "%s/%s", f->dir, from);
    (void)snprintf(new, sizeof(new), "%s/%s", f->dir, to);
    CHECK(rename(old, new) == 0);
}

TEST(epochs_that_cannot_be_written_silence_it_until_they_can)
{
    struct fixture f;
    uint64_t epochs[RG_SLOTS] = { 0 };

    begin(&f, 3);
    CHECK_EQ(put(&f, NAME, "content", 3), 201);
    move(&f, "tmp", "away");
    CHECK_EQ(put(&f, NAME, "content", 4), 500);
    CHECK_EQ(put(&f, NAME, "content", 3), 500);
    kp_tell(f.keeper, epochs, RG_SLOTS, &f.said);
    CHECK_EQ(f.said.status, 500);
    move(&f, "away", "tmp");
    CHECK_EQ(put(&f, NAME, "content", 4), 200);
    CHECK_EQ(put(&f, NAME, "content", 3), 409);
    open_again(&f, 0);
    CHECK_EQ(put(&f, NAME, "content", 3), 409);
    end(&f);
}

TEST(a_new_disk_takes_nothing_before_it_was_told)
{
    struct fixture f;
    uint64_t epochs[RG_SLOTS] = { 0 };
    char path[128];

    begin(&f, 0);
    CHECK_EQ(put(&f, NAME, "hello", 1), 412);
    kp_tell(f.keeper, epochs, RG_SLOTS, &f.said);
    CHECK_EQ(f.said.status, 200);
    CHECK_EQ(put(&f, NAME, "hello", 1), 201);
    (void)snprintf(path, sizeof(path), "%s/epochs", f.dir);
    CHECK(truncate(path, 3) == 0); /* what was heard is lost: another life */
    epochs[0] = kp_life(f.keeper).incarnation;
    open_again(&f, 0);
    CHECK(!kp_life(f.keeper).told);
    CHECK(kp_life(f.keeper).incarnation != epochs[0]);
    CHECK_EQ(put(&f, NAME, "hello", 1), 412);
    CHECK_STR(content(&f, NAME), "hello"); /* it can be read all the same */
    kp_tell(f.keeper, epochs, 8, &f.said);
    CHECK_EQ(f.said.status, 400);
    end(&f);
}

TEST(a_slot_is_cleaned_with_its_documents_but_not_by_an_order_that_comes_late)
{
    struct fixture f;
    struct rg_keep_query query = { .name = QF_STR("doc"), .slot = 5, .epoch = 2 };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct rg_held held;

    begin(&f, 1);
    CHECK_EQ(put(&f, NAME, "hello", 2), 201);
    kp_doc_put(f.keeper, &query, QF_STR("words"), NULL, &f.said);
    CHECK_EQ(f.said.status, 200);
    query.epoch = 1;
    kp_clean(f.keeper, &query, &held, &f.said);
    CHECK_EQ(f.said.status, 409);
    CHECK_STR(content(&f, NAME), "hello");
    query.epoch = 2;
    kp_clean(f.keeper, &query, &held, &f.said);
    CHECK_EQ(f.said.status, 200);
    CHECK_EQ(held.blobs, 1);
    CHECK_EQ(held.bytes, 5);
    CHECK_STR(content(&f, NAME), "");
    kp_doc_get(f.keeper, &query, &bytes, &f.said);
    CHECK_EQ(f.said.status, 404);
    CHECK_EQ(put(&f, NAME, "hello", 2), 201); /* it may come back */
    CHECK_STR(content(&f, NAME), "hello");
    end(&f);
}

TEST(documents_are_replaced_only_as_they_were)
{
    struct fixture f;
    struct rg_keep_query query = { .name = QF_STR("t/doc"), .slot = 5, .epoch = 1 };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct rg_sum none = { { 0 } }, was = query_of("x", "one", 1).sum;

    begin(&f, 1);
    kp_doc_put(f.keeper, &query, QF_STR("one"), &was, &f.said);
    CHECK_EQ(f.said.status, 428);
    kp_doc_put(f.keeper, &query, QF_STR("one"), &none, &f.said);
    CHECK_EQ(f.said.status, 200);
    kp_doc_put(f.keeper, &query, QF_STR("two"), &none, &f.said);
    CHECK_EQ(f.said.status, 428);
    kp_doc_put(f.keeper, &query, QF_STR("two"), &was, &f.said);
    CHECK_EQ(f.said.status, 200);
    kp_doc_get(f.keeper, &query, &bytes, &f.said);
    CHECK_STR(qf_strbuf_cstr(&bytes), "two");
    query.epoch = 0;
    kp_doc_get(f.keeper, &query, &bytes, &f.said);
    CHECK_EQ(f.said.status, 409);
    end(&f);
}

TEST(documents_of_a_slot_come_in_pages)
{
    struct fixture f;
    struct rg_keep_query query = { .slot = 5, .epoch = 1 };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf page = QF_STRBUF_INIT;
    struct rg_docs docs;
    char name[16];

    begin(&f, 1);
    for (int i = 0; i < RG_KEEP_DOCS_MAX + 3; i++) {
        (void)snprintf(name, sizeof(name), "d%04d", i);
        query.name = qf_str_from(name);
        kp_doc_put(f.keeper, &query, qf_str_from(name), NULL, &f.said);
    }
    kp_docs(f.keeper, &query, QF_STR(""), &page, &f.said);
    CHECK_EQ(rg_docs_decode(qf_strbuf_view(&page), &docs), QF_OK);
    CHECK_EQ(docs.count, RG_KEEP_DOCS_MAX);
    CHECK(docs.more);
    CHECK(qf_str_is(docs.items[1].name, "d0001"));
    rg_docs_done(&docs);
    qf_strbuf_reset(&page);
    kp_docs(f.keeper, &query, QF_STR("d0063"), &page, &f.said);
    CHECK_EQ(rg_docs_decode(qf_strbuf_view(&page), &docs), QF_OK);
    CHECK_EQ(docs.count, 3);
    CHECK(!docs.more);
    rg_docs_done(&docs);
    end(&f);
}

/* The digest of @slot as the keeper says it; NULL: it has no documents. */
static const struct rg_digest *digest_of(struct fixture *f, uint32_t slot,
                                         struct rg_digests *digests)
{
    rg_digests_done(digests);
    kp_doc_digests(f->keeper, digests);
    return rg_digests_of(digests, slot);
}

TEST(equal_documents_have_equal_digests_which_go_with_a_change)
{
    struct fixture f, g;
    struct rg_keep_query a = { .name = QF_STR("a"), .slot = 5, .epoch = 1 }, b = a;
    struct rg_digests of_f = { 0 }, of_g = { 0 };
    struct rg_held held;

    b.name = QF_STR("b");
    begin(&f, 1);
    begin(&g, 1);
    CHECK(!digest_of(&f, 5, &of_f)->known); /* nobody has looked yet */
    CHECK(kp_digest_docs(f.keeper, UINT64_MAX) > 0);
    CHECK_EQ(kp_digest_docs(f.keeper, UINT64_MAX), 0);
    CHECK_EQ(digest_of(&f, 5, &of_f) == NULL, 1);
    kp_doc_put(f.keeper, &a, QF_STR("one"), NULL, &f.said);
    kp_doc_put(f.keeper, &b, QF_STR("two"), NULL, &f.said);
    kp_doc_put(g.keeper, &b, QF_STR("two"), NULL, &g.said);
    kp_doc_put(g.keeper, &a, QF_STR("one"), NULL, &g.said);
    CHECK(!digest_of(&f, 5, &of_f)->known);
    CHECK(digest_of(&f, 6, &of_f) == NULL);
    (void)kp_digest_docs(f.keeper, UINT64_MAX);
    (void)kp_digest_docs(g.keeper, UINT64_MAX);
    CHECK_EQ(kp_figures(f.keeper).documents, 2);
    CHECK(digest_of(&f, 5, &of_f)->known);
    CHECK(memcmp(&digest_of(&f, 5, &of_f)->sum, &digest_of(&g, 5, &of_g)->sum,
                 sizeof(struct rg_sum)) == 0);
    kp_doc_put(g.keeper, &a, QF_STR("two"), NULL, &g.said);
    CHECK(!digest_of(&g, 5, &of_g)->known);
    (void)kp_digest_docs(g.keeper, UINT64_MAX);
    CHECK(memcmp(&digest_of(&f, 5, &of_f)->sum, &digest_of(&g, 5, &of_g)->sum,
                 sizeof(struct rg_sum)) != 0);
    kp_clean(g.keeper, &a, &held, &g.said);
    rg_held_done(&held);
    (void)kp_digest_docs(g.keeper, UINT64_MAX);
    CHECK(digest_of(&g, 5, &of_g) == NULL);
    rg_digests_done(&of_f);
    rg_digests_done(&of_g);
    end(&f);
    end(&g);
}

TEST(digests_are_made_a_few_at_a_time)
{
    struct fixture f;
    struct rg_keep_query query = { .name = QF_STR("a"), .epoch = 1 };
    struct rg_digests digests = { 0 };
    char bytes[1000];

    memset(bytes, 'x', sizeof(bytes));
    begin(&f, 1);
    for (query.slot = 0; query.slot < 3; query.slot++)
        kp_doc_put(f.keeper, &query, (struct qf_str){ bytes, sizeof(bytes) }, NULL, &f.said);
    CHECK_EQ(kp_digest_docs(f.keeper, 1), sizeof(bytes) + 1);
    CHECK(digest_of(&f, 0, &digests)->known && !digest_of(&f, 1, &digests)->known);
    CHECK(kp_digest_docs(f.keeper, 1) > 0);
    CHECK(digest_of(&f, 1, &digests)->known && !digest_of(&f, 2, &digests)->known);
    rg_digests_done(&digests);
    end(&f);
}

TEST(checksums_of_documents_come_in_pages)
{
    struct fixture f;
    struct rg_keep_query query = { .slot = 5, .epoch = 1 };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf page = QF_STRBUF_INIT;
    struct rg_sum sum = query_of("x", "d0064", 1).sum;
    struct rg_docs docs;
    char name[16];

    begin(&f, 1);
    for (int i = 0; i < RG_KEEP_DOCS_MAX + 3; i++) {
        (void)snprintf(name, sizeof(name), "d%04d", i);
        query.name = qf_str_from(name);
        kp_doc_put(f.keeper, &query, qf_str_from(name), NULL, &f.said);
    }
    kp_doc_sums(f.keeper, &query, QF_STR(""), &page, &f.said);
    CHECK_EQ(f.said.status, 200);
    CHECK_EQ(rg_docs_decode(qf_strbuf_view(&page), &docs), QF_OK);
    CHECK_EQ(docs.count, RG_KEEP_DOCS_MAX);
    CHECK(docs.more);
    rg_docs_done(&docs);
    qf_strbuf_reset(&page);
    kp_doc_sums(f.keeper, &query, QF_STR("d0063"), &page, &f.said);
    CHECK_EQ(rg_docs_decode(qf_strbuf_view(&page), &docs), QF_OK);
    CHECK_EQ(docs.count, 3);
    CHECK(!docs.more);
    CHECK_EQ(docs.items[0].bytes.len, RG_SUM_BYTES);
    CHECK(memcmp(docs.items[0].bytes.data, sum.bytes, RG_SUM_BYTES) == 0);
    rg_docs_done(&docs);
    query.epoch = 0;
    kp_doc_sums(f.keeper, &query, QF_STR(""), &page, &f.said);
    CHECK_EQ(f.said.status, 409);
    end(&f);
}

TEST(what_is_read_of_a_slot_is_its_heat_which_cools_down)
{
    struct fixture f;
    uint64_t heat[RG_SLOTS];
    uint32_t slot = query_of(NAME, "hello", 1).slot;

    begin(&f, 1);
    CHECK_EQ(put(&f, NAME, "hello", 1), 201);
    for (int i = 0; i < 8; i++)
        CHECK_STR(content(&f, NAME), "hello");
    kp_heat(f.keeper, 1000, heat);
    CHECK_EQ(heat[slot], 8);
    CHECK_EQ(heat[(slot + 1) % RG_SLOTS], 0);
    kp_heat(f.keeper, 1000 + 2 * KP_HEAT_MS, heat);
    CHECK_EQ(heat[slot], 2);
    kp_heat(f.keeper, 1000 + INT64_C(1000) * KP_HEAT_MS, heat);
    CHECK_EQ(heat[slot], 0);
    end(&f);
}

TEST(a_blob_that_rots_is_put_aside_by_the_scrub)
{
    struct fixture f;
    struct kp_blob blob;
    char path[256], sum[RG_SUM_TEXT + 1];
    struct rg_keep_query query = query_of(NAME, "hello", 1);
    int fd;

    begin(&f, 1);
    CHECK_EQ(put(&f, NAME, "hello", 1), 201);
    CHECK_EQ(put(&f, "sound", "world", 1), 201);
    CHECK_EQ(kp_scrub(f.keeper, 100), 10);
    rg_sum_print(&query.sum, sum);
    (void)snprintf(path, sizeof(path), "%s/blobs/0005/%s~%s", f.dir, NAME, sum);
    fd = open(path, O_WRONLY);
    CHECK(fd >= 0 && pwrite(fd, "j", 1, 0) == 1);
    (void)close(fd);
    CHECK_EQ(kp_scrub(f.keeper, 100), 10);
    CHECK_EQ(kp_figures(f.keeper).damaged, 1);
    CHECK_STR(content(&f, NAME), "");
    CHECK_STR(content(&f, "sound"), "world");
    CHECK_EQ(missing(&f, NAME, 1), 1);
    CHECK(kp_blob_at(f.keeper, 0, &blob) && blob.put_ms == 0);
    CHECK(!kp_blob_at(f.keeper, 2, &blob));
    CHECK_EQ(put(&f, NAME, "hello", 1), 201); /* repaired */
    CHECK_STR(content(&f, NAME), "hello");
    end(&f);
}

TEST(a_blob_that_somebody_found_damaged_is_trusted_again_if_it_is_whole)
{
    struct fixture f;
    struct rg_keep_query query = query_of(NAME, "hello", 1);
    char path[256], sum[RG_SUM_TEXT + 1];

    begin(&f, 1);
    CHECK_EQ(put(&f, NAME, "hello", 1), 201);
    CHECK(kp_trusts(f.keeper, QF_STR(NAME)));
    kp_suspect(f.keeper, QF_STR(NAME));
    kp_suspect(f.keeper, QF_STR("other"));
    CHECK(!kp_trusts(f.keeper, QF_STR(NAME)));
    CHECK(kp_has(f.keeper, QF_STR(NAME)));
    kp_check(f.keeper);
    CHECK(kp_trusts(f.keeper, QF_STR(NAME)));
    rg_sum_print(&query.sum, sum);
    (void)snprintf(path, sizeof(path), "%s/blobs/0005/%s~%s", f.dir, NAME, sum);
    CHECK(truncate(path, 3) == 0);
    kp_suspect(f.keeper, QF_STR(NAME));
    kp_check(f.keeper);
    CHECK(!kp_has(f.keeper, QF_STR(NAME)));
    CHECK_EQ(kp_figures(f.keeper).damaged, 1);
    end(&f);
}

TEST(garbage_goes_only_if_it_was_not_put_since)
{
    struct fixture f;
    struct kp_blob blob;

    begin(&f, 1);
    CHECK_EQ(put(&f, NAME, "hello", 1), 201);
    CHECK(kp_blob_at(f.keeper, 0, &blob));
    CHECK(!kp_drop(f.keeper, blob.name, blob.put_ms, 0)); /* put when that was asked */
    CHECK(!kp_drop(f.keeper, blob.name, blob.put_ms + 1, 1000000));
    CHECK(!kp_drop(f.keeper, QF_STR("other"), blob.put_ms + 1, 0));
    CHECK_STR(content(&f, NAME), "hello");
    end(&f);
}

TEST(two_keepers_do_not_share_a_folder_and_uploads_of_a_life_before_go)
{
    struct fixture f;
    struct kp_keeper *other = NULL;
    struct qf_err err = { 0 };
    char path[128];

    begin(&f, 1);
    CHECK_EQ(kp_open(&(struct kp_options){ .dir = f.dir }, &other, &err), QF_EIO);
    (void)snprintf(path, sizeof(path), "%s/tmp/upload-0000000000000001", f.dir);
    CHECK(close(open(path, O_CREAT | O_WRONLY, 0600)) == 0);
    open_again(&f, 0);
    CHECK(access(path, F_OK) != 0);
    end(&f);
}
