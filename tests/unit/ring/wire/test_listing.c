/* test_listing.c - pages of a manifest: everything once, changes since, nothing forgotten between two pages. */
#include "ring/wire/listing.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/test.h"

static void manifest_freep(struct rg_manifest **manifest)
{
    *manifest = rg_manifest_free(*manifest);
}
#define MANIFEST QF_CLEANUP(manifest_freep) struct rg_manifest *

static void name_some(struct rg_manifest *m, const char *prefix, size_t count)
{
    struct rg_blob *blobs = calloc(count, sizeof(*blobs));
    char(*names)[32] = calloc(count, sizeof(*names));

    for (size_t i = 0; i < count; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "%s%zu", prefix, i);
        blobs[i] = (struct rg_blob){ .name = qf_str_from(names[i]), .slot = 1, .bytes = i };
    }
    CHECK_EQ(rg_manifest_apply(
                 m, rg_manifest_applied(m) + 1,
                 &(struct rg_note){ .kind = RG_NOTE_ADDED, .added = blobs, .added_count = count }),
             RG_NOTED);
    free(blobs);
    free(names);
}

static void remove_it(struct rg_manifest *m, const char *name)
{
    struct qf_str gone = qf_str_from(name);

    (void)rg_manifest_apply(
        m, rg_manifest_applied(m) + 1,
        &(struct rg_note){ .kind = RG_NOTE_REMOVED, .removed = &gone, .removed_count = 1 });
}

/* A page as whoever asked reads it; its items borrow from @buf. */
static struct rg_page page_of(const struct rg_manifest *m, uint64_t since, uint64_t after,
                              struct qf_strbuf *buf)
{
    struct rg_page page = { .applied = m ? rg_manifest_applied(m) : 0, .queue = 7 }, read;
    struct rg_blob *items;

    rg_page_make(m, since, after, &page, &items);
    qf_strbuf_reset(buf);
    rg_page_encode(buf, &page);
    free(items);
    CHECK_EQ(rg_page_decode(qf_strbuf_view(buf), &read), QF_OK);
    return read;
}

#define BUF QF_CLEANUP(qf_strbuf_done) struct qf_strbuf

TEST(all_that_is_named_comes_in_pages_of_whole_records)
{
    MANIFEST m = rg_manifest_new(8, 0, 0);
    BUF buf = QF_STRBUF_INIT;
    struct rg_page page;

    name_some(m, "a", RG_NOTE_BLOBS_MAX - 1);
    name_some(m, "b", 2);
    name_some(m, "c", 3);
    page = page_of(m, 0, 0, &buf);
    CHECK_EQ(page.count, RG_NOTE_BLOBS_MAX + 1);
    CHECK(page.more);
    CHECK_EQ(page.items[page.count - 1].index, 2);
    rg_page_done(&page);
    page = page_of(m, 0, 2, &buf);
    CHECK_EQ(page.count, 3);
    CHECK(!page.more);
    CHECK(qf_str_is(page.items[0].name, "c0"));
    rg_page_done(&page);
}

TEST(changes_since_are_told_removals_too)
{
    MANIFEST m = rg_manifest_new(8, 0, 0);
    BUF buf = QF_STRBUF_INIT;
    struct rg_page page;

    name_some(m, "a", 2);
    remove_it(m, "a0");
    name_some(m, "b", 1);
    page = page_of(m, 1, 0, &buf);
    CHECK_EQ(page.count, 2);
    CHECK(qf_str_is(page.items[0].name, "a0"));
    CHECK_EQ(page.items[0].removed, 2);
    CHECK(qf_str_is(page.items[1].name, "b0"));
    CHECK(!page.whole);
    rg_page_done(&page);
    page = page_of(m, 3, 0, &buf);
    CHECK_EQ(page.count, 0);
    rg_page_done(&page);
    page = page_of(m, 0, 0, &buf); /* who knows nothing hears of no removals */
    CHECK_EQ(page.count, 2);
    rg_page_done(&page);
}

TEST(where_removals_are_forgotten_everything_comes_again)
{
    MANIFEST m = rg_manifest_new(8, 0, 2);
    BUF buf = QF_STRBUF_INIT;
    struct rg_page page;

    name_some(m, "a", 6);
    for (int i = 0; i < 5; i++)
        remove_it(m, (const char *[]){ "a0", "a1", "a2", "a3", "a4" }[i]);
    CHECK(!rg_manifest_reaches(m, 1));
    page = page_of(m, 1, 0, &buf);
    CHECK(page.whole);
    CHECK_EQ(page.count, 1);
    CHECK(qf_str_is(page.items[0].name, "a5"));
    rg_page_done(&page);
}

TEST(a_partition_without_a_manifest_has_an_empty_page)
{
    BUF buf = QF_STRBUF_INIT;
    struct rg_page page = page_of(NULL, 0, 0, &buf);

    CHECK_EQ(page.count, 0);
    CHECK(!page.more);
    rg_page_done(&page);
    CHECK_EQ(rg_page_decode(QF_STR("x"), &page), QF_ECORRUPT);
}
