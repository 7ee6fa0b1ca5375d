/* test_store_name.c - workers of another store are told from those of this one. */
#include "queryapi/query/store_name.h"

#include "tests/lib/segments/memory_store.h"
#include "tests/lib/test.h"

TEST(only_a_worker_that_says_another_store_is_refused)
{
    struct sg_store *store = memory_store_base(memory_store_new());
    struct qa_store_name name = { 0 };
    struct qf_str other = QF_STR("0123456789abcdef0123456789abcdef");

    CHECK(!qa_store_name_refuses(NULL, other, 0));
    CHECK(!qa_store_name_refuses(&name, other, 0)); /* nobody knows yet */
    qa_store_name_learn(&name, store, NULL);
    CHECK(!qa_store_name_refuses(&name, qf_str_from(name.id), 0));
    CHECK(!qa_store_name_refuses(&name, QF_STR(""), 0));
    CHECK(qa_store_name_refuses(&name, other, 0) != NULL);
    (void)sg_store_free(store);
}

/* A worker that was started first may have looked before this API named the store. */
TEST(a_store_without_a_name_is_another_one_after_a_moment)
{
    struct sg_store *store = memory_store_base(memory_store_new());
    struct qa_store_name first = { 0 }, second = { 0 };

    qa_store_name_learn(&first, store, NULL);
    CHECK(!qa_store_name_refuses(&first, QF_STR("none"), first.named_ms + 1000));
    CHECK(qa_store_name_refuses(&first, QF_STR("none"), first.named_ms + 60000) != NULL);
    qa_store_name_learn(&second, store, NULL);
    CHECK_STR(second.id, first.id);
    CHECK(qa_store_name_refuses(&second, QF_STR("none"), first.named_ms + 1000) != NULL);
    (void)sg_store_free(store);
}
