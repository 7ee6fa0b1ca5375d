/* test_ring_mirror.c - what a process remembers of lists: names in several partitions, and names that went. */
#include <stdio.h>

#include "ring/wire/listing.h"
#include "segments/store/ring_int.h"
#include "tests/lib/test.h"

static void take(struct ring_store *store, uint32_t partition, bool whole,
                 const struct rg_blob *items, size_t count)
{
    const struct rg_page page = {
        .cluster = 1, .partitions = 4, .whole = whole, .items = items, .count = count
    };

    ring_mirror_take(&store->mirror, partition, &page, true);
    ring_mirror_prune(&store->mirror);
}

static void name(struct ring_store *store, uint32_t partition, const char *text, bool removed)
{
    struct rg_blob blob = { .name = qf_str_from(text), .bytes = 7, .index = 1 };

    blob.removed = removed ? 2 : 0;
    take(store, partition, false, &blob, 1);
}

static bool lists(struct ring_store *store, const char *text, uint32_t partition)
{
    uint64_t bytes;
    uint32_t found;

    return ring_find(store, qf_str_from(text), &bytes, &found) && found == partition && bytes == 7;
}

static bool remembers(struct ring_store *store, const char *text)
{
    uint64_t bytes;

    return ring_remembers(store, qf_str_from(text), &bytes) && bytes == 7;
}

TEST(a_name_in_two_partitions_is_there_until_both_have_removed_it)
{
    struct ring_store store = { 0 };

    ring_mirror_init(&store.mirror);
    name(&store, 1, "a", false);
    name(&store, 3, "a", false);
    name(&store, 2, "a", false);
    CHECK(lists(&store, "a", 1));
    name(&store, 1, "a", true);
    CHECK(lists(&store, "a", 3));
    take(&store, 3, true, NULL, 0); /* it has nothing, says a page from the beginning */
    CHECK(lists(&store, "a", 2));
    name(&store, 0, "a", true); /* which never named it */
    CHECK(lists(&store, "a", 2));
    name(&store, 2, "a", true);
    CHECK(!lists(&store, "a", 2));
    ring_mirror_done(&store.mirror);
}

TEST(what_was_removed_is_remembered_for_a_while_and_then_forgotten)
{
    struct ring_store store = { 0 };
    char text[24];

    ring_mirror_init(&store.mirror);
    for (int i = 0; i < 2 * RING_REMOVED_MIN; i++) {
        (void)snprintf(text, sizeof(text), "n%d", i);
        name(&store, i % 3, text, false);
    }
    for (int i = 0; i < RING_REMOVED_MIN; i++) {
        (void)snprintf(text, sizeof(text), "n%d", i);
        name(&store, i % 3, text, true);
    }
    CHECK_EQ(store.mirror.removed, RING_REMOVED_MIN);
    CHECK(remembers(&store, "n0"));
    CHECK(!lists(&store, "n0", 0));
    /* Half of them went long ago. */
    for (int i = 0; i < RING_REMOVED_MIN / 2; i++)
        store.mirror.items.items[i].removed_ms -= RING_REMEMBER_MS;
    store.mirror.pruned_ms -= RING_REMEMBER_MS;
    name(&store, 0, "last", false);
    CHECK(!remembers(&store, "n0"));
    CHECK(remembers(&store, "n4000"));
    CHECK_EQ(store.mirror.removed, RING_REMOVED_MIN / 2);
    (void)snprintf(text, sizeof(text), "n%d", RING_REMOVED_MIN + 3);
    CHECK(lists(&store, text, (RING_REMOVED_MIN + 3) % 3));
    CHECK(lists(&store, "last", 0));
    name(&store, 0, "n0", false); /* as if it had never been */
    CHECK(lists(&store, "n0", 0));
    ring_mirror_done(&store.mirror);
}
