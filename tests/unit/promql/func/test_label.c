/* test_label.c - label_replace, label_join and natural order. */
#include "promql/func/kernels.h"
#include "promql/func/label.h"
#include "tests/lib/test.h"

static struct qf_arena *arena;

static const char *show(struct qf_labels labels)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;

    qf_labels_print(&buf, labels);
    return qf_arena_cstr(arena, qf_strbuf_view(&buf));
}

static struct qf_labels source(void)
{
    static const struct qf_label items[] = { { QF_STR_INIT("dst"), QF_STR_INIT("old") },
                                             { QF_STR_INIT("src"),
                                               QF_STR_INIT("source-value-10") } };

    return (struct qf_labels){ items, 2 };
}

static const char *replaced(const char *dst, const char *replacement, const char *src,
                            const char *regex)
{
    const struct qf_str strings[] = { qf_str_from(dst), qf_str_from(replacement), qf_str_from(src),
                                      qf_str_from(regex) };
    struct pq_label_call call = { .strings = strings, .count = 4 };
    struct qf_labels labels;
    struct qf_err err = { 0 };
    bool given;

    if (pq_label_replace.prepare(&call, arena, &err) != QF_OK)
        return qf_arena_cstr(arena, qf_str_from(err.msg));
    CHECK_OK(pq_label_replace.apply(&call, arena, source(), &labels, &given, &err), &err);
    CHECK_EQ(given, labels.items != source().items);
    return show(labels);
}

TEST(label_replace_expands_groups_of_a_full_match)
{
    arena = qf_arena_new(SIZE_MAX);
    CHECK_STR(replaced("dst", "to-$1", "src", "source-value-(.*)"),
              "{dst=\"to-10\", src=\"source-value-10\"}");
    CHECK_STR(replaced("dst", "to-$1", "src", "value-(.*)"),
              "{dst=\"old\", src=\"source-value-10\"}");
    CHECK_STR(replaced("new", "${2}x$1", "src", "(.*)-value-(.*)"),
              "{dst=\"old\", new=\"10xsource\", src=\"source-value-10\"}");
    CHECK_STR(replaced("dst", "$1x", "src", "(.*)-value-(.*)"), "{src=\"source-value-10\"}");
    CHECK_STR(replaced("dst", "${num}$$$", "src", ".*-(?P<num>\\d+)"),
              "{dst=\"10$$\", src=\"source-value-10\"}");
    CHECK_STR(replaced("dst", "", "dst", ".*"), "{src=\"source-value-10\"}");
    CHECK_STR(replaced("dst", "v-$1", "missing", "(.*)"), "{dst=\"v-\", src=\"source-value-10\"}");
    CHECK_STR(replaced("dst", "v-$1", "missing", "(.+)"), "{dst=\"old\", src=\"source-value-10\"}");
    CHECK_STR(replaced("dst", "${1", "src", "(.*)"), "{dst=\"${1\", src=\"source-value-10\"}");
    CHECK_STR(replaced("~odd", "x", "src", ".*"),
              "{dst=\"old\", src=\"source-value-10\", \"~odd\"=\"x\"}");
    arena = qf_arena_free(arena);
}

TEST(label_replace_rejects_bad_arguments)
{
    arena = qf_arena_new(SIZE_MAX);
    CHECK_STR(replaced("dst", "x", "src", "(.*"),
              "invalid regular expression in label_replace(): (.*");
    CHECK_STR(replaced("", "x", "src", ".*"),
              "invalid destination label name in label_replace(): ");
    CHECK_STR(replaced("\xff", "x", "src", ".*"),
              "invalid destination label name in label_replace(): \xff");
    arena = qf_arena_free(arena);
}

static const char *joined(const struct qf_str *strings, size_t count)
{
    struct pq_label_call call = { .strings = strings, .count = count };
    struct qf_labels labels;
    struct qf_err err = { 0 };
    bool given = false;

    if (pq_label_join.prepare(&call, arena, &err) != QF_OK)
        return qf_arena_cstr(arena, qf_str_from(err.msg));
    CHECK_OK(pq_label_join.apply(&call, arena, source(), &labels, &given, &err), &err);
    CHECK(given);
    return show(labels);
}

TEST(label_join_treats_missing_labels_as_empty)
{
    const struct qf_str strings[] = { QF_STR("dst"), QF_STR("-"), QF_STR("src"), QF_STR("nope"),
                                      QF_STR("dst") };
    const struct qf_str bad[] = { QF_STR("dst"), QF_STR("-"), QF_STR("\xff") };

    arena = qf_arena_new(SIZE_MAX);
    CHECK_STR(joined(strings, 5), "{dst=\"source-value-10--old\", src=\"source-value-10\"}");
    CHECK_STR(joined(strings, 2), "{src=\"source-value-10\"}");
    CHECK_STR(joined(bad, 3), "invalid source label name in label_join(): \xff");
    CHECK_STR(joined(bad + 2, 1), "invalid destination label name in label_join(): \xff");
    arena = qf_arena_free(arena);
}

static int natural(const char *a, const char *b)
{
    int order = pq_label_natural_cmp(qf_str_from(a), qf_str_from(b));

    CHECK_EQ(pq_label_natural_cmp(qf_str_from(b), qf_str_from(a)), -order);
    return order;
}

TEST(digits_sort_by_their_number)
{
    CHECK_EQ(natural("2", "10"), -1);
    CHECK_EQ(natural("4m5", "4m600"), -1);
    CHECK_EQ(natural("1.2.3", "1.11.3"), -1);
    CHECK_EQ(natural("a", "a1"), -1);
    CHECK_EQ(natural("", "a"), -1);
    CHECK_EQ(natural("b2", "a10"), 1);
    CHECK_EQ(natural("x", "x"), 0);
    CHECK_EQ(natural("99999999999999999999999", "100000000000000000000000"), -1);
}

/* Each label_join doubles the value: what does not fit is refused before it is built. */
TEST(values_are_paid_for_before_they_are_built)
{
    enum { BUDGET = 1 << 20 };
    const struct qf_str strings[] = { QF_STR("src"), QF_STR(""), QF_STR("src"), QF_STR("src") };
    const struct pq_label_call call = { .strings = strings, .count = 4 };
    struct qf_labels labels = source();
    struct qf_err err = { 0 };
    qf_rc rc = QF_OK;
    size_t doublings = 0;
    bool given;

    arena = qf_arena_new(BUDGET);
    for (; rc == QF_OK && doublings < 64; doublings++)
        rc = pq_label_join.apply(&call, arena, labels, &labels, &given, &err);
    CHECK_EQ(rc, QF_ELIMIT);
    CHECK_STR(err.msg, "query memory limit exceeded");
    CHECK(doublings > 10 && doublings < 20);
    CHECK(qf_arena_used(arena) <= BUDGET);
    arena = qf_arena_free(arena);
}

TEST(replacements_are_paid_for_before_they_are_built)
{
    enum { BUDGET = 1 << 20 };
    const struct qf_str strings[] = { QF_STR("src"), QF_STR("$1$1$1$1"), QF_STR("src"),
                                      QF_STR("(.*)") };
    struct pq_label_call call = { .strings = strings, .count = 4 };
    struct qf_labels labels = source();
    struct qf_err err = { 0 };
    qf_rc rc = QF_OK;
    bool given;

    arena = qf_arena_new(BUDGET);
    CHECK_OK(pq_label_replace.prepare(&call, arena, &err), &err);
    for (size_t i = 0; rc == QF_OK && i < 64; i++)
        rc = pq_label_replace.apply(&call, arena, labels, &labels, &given, &err);
    CHECK_EQ(rc, QF_ELIMIT);
    CHECK(qf_arena_used(arena) <= BUDGET);
    arena = qf_arena_free(arena);
}

/* Every expression is charged with all that it may ever take, 1,400 of them as well as one. */
TEST(expressions_of_label_replace_are_charged)
{
    const struct qf_str strings[] = { QF_STR("dst"), QF_STR(""), QF_STR("src"),
                                      QF_STR("[a-z]{1000}") };
    struct pq_label_call call = { .strings = strings, .count = 4 };
    struct qf_err err = { 0 };
    qf_rc rc = QF_OK;
    size_t fitted = 0;

    arena = qf_arena_new((size_t)32 << 20);
    for (; rc == QF_OK && fitted < 1400; fitted++)
        rc = pq_label_replace.prepare(&call, arena, &err);
    CHECK_EQ(rc, QF_ELIMIT);
    CHECK_STR(err.msg, "query memory limit exceeded");
    CHECK(fitted > 4 && fitted < 40);
    arena = qf_arena_free(arena);
}
