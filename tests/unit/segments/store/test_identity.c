/* test_identity.c - a store carries a name, the same for everybody. */
#include "segments/store/identity.h"

#include <string.h>

#include "tests/lib/segments/memory_store.h"
#include "tests/lib/test.h"

TEST(a_store_is_named_once_and_keeps_its_name)
{
    struct memory_store *memory = memory_store_new();
    struct sg_store *store = memory_store_base(memory);
    char first[SG_STORE_ID_LEN + 1], second[SG_STORE_ID_LEN + 1];
    struct qf_err err = { 0 };
    bool created;

    CHECK_EQ(sg_store_identity(store, false, NULL, first, &created, &err), QF_ENOTFOUND);
    CHECK_OK(sg_store_identity(store, true, NULL, first, &created, &err), &err);
    CHECK(created);
    CHECK_EQ(strlen(first), SG_STORE_ID_LEN);
    CHECK_OK(sg_store_identity(store, true, NULL, second, &created, &err), &err);
    CHECK(!created);
    CHECK_STR(second, first);
    CHECK_OK(sg_store_identity(store, false, NULL, second, &created, &err), &err);
    CHECK_STR(second, first);
    (void)sg_store_free(store);
}

TEST(two_stores_have_two_names)
{
    char ids[2][SG_STORE_ID_LEN + 1];
    struct qf_err err = { 0 };
    bool created;

    for (size_t i = 0; i < 2; i++) {
        struct sg_store *store = memory_store_base(memory_store_new());

        CHECK_OK(sg_store_identity(store, true, NULL, ids[i], &created, &err), &err);
        (void)sg_store_free(store);
    }
    CHECK(strcmp(ids[0], ids[1]) != 0);
}

TEST(what_is_no_name_is_not_taken_for_one)
{
    static const char *const texts[] = { "", "0123", "0123456789abcdef0123456789abcdeF",
                                         "0123456789abcdef0123456789abcdef0" };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct sg_store *store = memory_store_base(memory_store_new());
        char id[SG_STORE_ID_LEN + 1];
        struct qf_err err = { 0 };
        bool created;

        CHECK_OK(
            sg_store_put(store, QF_STR(SG_STORE_ID_NAME), texts[i], strlen(texts[i]), NULL, &err),
            &err);
        CHECK_EQ(sg_store_identity(store, true, NULL, id, &created, &err), QF_ECORRUPT);
        (void)sg_store_free(store);
    }
}
