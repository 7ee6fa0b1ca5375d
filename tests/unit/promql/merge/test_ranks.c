/* test_ranks.c - groups of several shards in the order of their first series. */
#include "promql/merge/ranks.h"

#include "promql/partial/rank.h"
#include "tests/lib/test.h"

static struct qf_labels one(struct qf_arena *arena, const char *name, const char *value)
{
    struct qf_label *item = QF_ARENA_NEW(arena, struct qf_label);

    *item = (struct qf_label){ qf_str_from(name), qf_str_from(value) };
    return (struct qf_labels){ .items = item, .count = 1 };
}

static struct qf_labels marked(struct qf_arena *arena, const char *group, const char *first)
{
    struct qf_labels labels;

    CHECK(pq_rank_mark(arena, one(arena, "b", group), one(arena, "a", first), &labels));
    return labels;
}

TEST(groups_stand_in_the_order_of_the_least_rank_of_each)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(1 << 16);
    struct qf_labels left[] = { marked(arena, "z", "2"), marked(arena, "c", "3") },
                     right[] = { marked(arena, "c", "1"), marked(arena, "m", "4") }, all[4];
    uint32_t ids[4];
    struct pq_ranked_table tables[] = { { left, 2, ids },
                                        { NULL, 0, NULL },
                                        { right, 2, ids + 2 } };
    struct qf_err err = { 0 };
    size_t count;

    CHECK_OK(pq_ranks_merge(tables, 3, all, &count, &err), &err);
    CHECK_EQ(count, 3);
    CHECK_EQ(ids[0], 1); /* z: after c, whose first series is on the other shard */
    CHECK_EQ(ids[1], 0);
    CHECK_EQ(ids[2], 0);
    CHECK_EQ(ids[3], 2);
    CHECK_EQ(all[0].count, 1);
    CHECK(qf_str_is(all[0].items[0].value, "c"));
}

TEST(a_group_without_rank_is_corrupt)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(1 << 16);
    struct qf_labels plain[] = { one(arena, "b", "z") }, all[1];
    uint32_t id;
    size_t count;

    CHECK_EQ(pq_ranks_merge(&(struct pq_ranked_table){ plain, 1, &id }, 1, all, &count, NULL),
             QF_ECORRUPT);
}

/* "a" before "ab", as labels compare, whatever follows. */
TEST(ranks_compare_as_labels_do)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(1 << 16);
    struct qf_label items[] = { { QF_STR("a"), QF_STR("x") }, { QF_STR("b"), QF_STR("y") } },
                    more[] = { { QF_STR("a"), QF_STR("x!") } };
    struct qf_labels sets[] = { { .items = items, .count = 1 },
                                { .items = items, .count = 2 },
                                { .items = more, .count = 1 } };
    struct qf_str ranks[3];

    for (size_t i = 0; i < 3; i++) {
        struct qf_labels labels, group;

        CHECK(pq_rank_mark(arena, (struct qf_labels){ 0 }, sets[i], &labels));
        CHECK(pq_rank_split(labels, &group, &ranks[i]));
    }
    for (size_t i = 1; i < 3; i++) {
        CHECK(qf_labels_cmp(sets[i - 1], sets[i]) < 0);
        CHECK(qf_str_cmp(ranks[i - 1], ranks[i]) < 0);
    }
}
