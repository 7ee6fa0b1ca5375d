/* test_labels.c - label sets: order, equality, hashes, encodings. */
#include "base/pure/labels.h"

#include <string.h>

#include "base/pure/prng.h"
#include "tests/lib/test.h"

#define LABEL(n, v)                                                                                \
    {                                                                                              \
        QF_STR_INIT(n), QF_STR_INIT(v)                                                             \
    }

/* Sorting, dropping of empty values, last of equal names wins. */
TEST(labels_normalize_sorts_and_drops)
{
    struct qf_label items[] = { LABEL("job", "a"), LABEL("__name__", "up"), LABEL("env", ""),
                                LABEL("job", "b"), LABEL("az", "1") };
    struct qf_labels labels = qf_labels_normalize(items, QF_COUNT_OF(items));
    struct qf_strbuf buf = QF_STRBUF_INIT;

    qf_labels_print(&buf, labels);
    CHECK_STR(qf_strbuf_cstr(&buf), "{__name__=\"up\", az=\"1\", job=\"b\"}");
    qf_strbuf_reset(&buf);
    qf_labels_print_series(&buf, labels);
    CHECK_STR(qf_strbuf_cstr(&buf), "up{az=\"1\", job=\"b\"}");
    qf_strbuf_reset(&buf);
    qf_labels_json(&buf, labels);
    CHECK_STR(qf_strbuf_cstr(&buf), "{\"__name__\":\"up\",\"az\":\"1\",\"job\":\"b\"}");
    qf_strbuf_done(&buf);
}

/* A later empty value removes an earlier one of the same name. */
TEST(labels_normalize_lets_an_empty_value_win)
{
    struct qf_label items[] = { LABEL("a", "1"), LABEL("a", "") };

    CHECK_EQ(qf_labels_normalize(items, 2).count, 0);
}

/* Names that are no identifiers are quoted, inside the braces if it is the metric's. */
TEST(labels_print_quotes_what_needs_it)
{
    struct qf_label items[] = { LABEL("__name__", "http.requests"), LABEL("a.b", "x\"\n") };
    struct qf_labels labels = { items, 2 };
    struct qf_strbuf buf = QF_STRBUF_INIT;

    qf_labels_print_series(&buf, labels);
    CHECK_STR(qf_strbuf_cstr(&buf), "{\"http.requests\", \"a.b\"=\"x\\\"\\n\"}");
    qf_strbuf_done(&buf);
}

/* Pairwise by name then value; a prefix first. */
TEST(labels_order_is_prometheus_order)
{
    struct qf_label a[] = { LABEL("a", "1") }, ab[] = { LABEL("a", "1"), LABEL("b", "1") },
                    a2[] = { LABEL("a", "2") }, b[] = { LABEL("b", "0") };
    struct qf_labels sorted[] = { { NULL, 0 }, { a, 1 }, { ab, 2 }, { a2, 1 }, { b, 1 } };

    for (size_t i = 0; i < QF_COUNT_OF(sorted); i++)
        for (size_t j = 0; j < QF_COUNT_OF(sorted); j++)
            CHECK_EQ(qf_labels_cmp(sorted[i], sorted[j]), (i > j) - (i < j));
}

/* The shard of a series does not depend on its metric name; its hash does. */
TEST(labels_shard_hash_leaves_out_the_name)
{
    struct qf_label x[] = { LABEL("__name__", "x"), LABEL("a", "1") },
                    y[] = { LABEL("__name__", "y"), LABEL("a", "1") };
    struct qf_labels lx = { x, 2 }, ly = { y, 2 };

    CHECK(qf_labels_shard_hash(lx) == qf_labels_shard_hash(ly));
    CHECK(qf_labels_hash(lx) != qf_labels_hash(ly));
}

/* Hashes decide where data lives: they never change between versions or machines. The figures are
 * xxhsum's for the encoded bytes. */
TEST(labels_hashes_are_fixed)
{
    struct qf_label items[] = { LABEL("__name__", "up"), LABEL("job", "api") };
    struct qf_labels labels = { items, 2 };

    CHECK(qf_labels_hash(labels) == qf_labels_hash((struct qf_labels){ items, 2 }));
    CHECK_MSG(qf_labels_hash(labels) == UINT64_C(0x455e9d47d8480df4), "hash is %#llx",
              (unsigned long long)qf_labels_hash(labels));
    CHECK_MSG(qf_labels_shard_hash(labels) == UINT64_C(0x222e556502375d49), "shard hash is %#llx",
              (unsigned long long)qf_labels_shard_hash(labels));
    CHECK_MSG(qf_labels_prom_hash(labels) == UINT64_C(0xea454d0393654eec), "prom hash is %#llx",
              (unsigned long long)qf_labels_prom_hash(labels));
}

static struct qf_labels random_labels(struct qf_arena *arena, struct qf_prng *prng)
{
    struct qf_label items[8];
    size_t count = qf_prng_below(prng, QF_COUNT_OF(items));

    for (size_t i = 0; i < count; i++) {
        char *name = qf_arena_printf(arena, "n%u", (unsigned)qf_prng_below(prng, 12));
        size_t len = qf_prng_below(prng, 400);
        char *value = qf_arena_alloc(arena, len + 1);

        for (size_t j = 0; j < len; j++)
            value[j] = (char)qf_prng_next(prng);
        items[i] = (struct qf_label){ qf_str_from(name), { value, len } };
    }
    struct qf_labels labels, view = qf_labels_normalize(items, count);

    CHECK(qf_labels_copy(arena, view, &labels));
    return labels;
}

/* What was encoded decodes to the same set; every shorter or damaged form is refused or different.
 */
TEST(labels_encoding_round_trips_and_refuses_damage)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct qf_prng prng = { 42 };
    struct qf_strbuf buf = QF_STRBUF_INIT;

    for (int round = 0; round < 300; round++) {
        struct qf_labels labels = random_labels(arena, &prng), back;
        struct qf_err err = { 0 };

        qf_strbuf_reset(&buf);
        qf_labels_encode(&buf, labels);
        CHECK_OK(qf_labels_decode(arena, qf_strbuf_view(&buf), &back, &err), &err);
        CHECK(qf_labels_eq(labels, back));
        if (buf.len) {
            size_t cut = qf_prng_below(&prng, buf.len);
            struct qf_str shorter = { buf.data, cut };

            err = (struct qf_err){ 0 };
            if (qf_labels_decode(arena, shorter, &back, &err) == QF_OK)
                CHECK(back.count < labels.count);
            else
                CHECK_EQ(err.rc, QF_ECORRUPT);
        }
    }
    qf_strbuf_done(&buf);
}

/* keep and drop split a set; set adds, replaces and removes. */
TEST(labels_keep_drop_and_set)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct qf_label items[] = { LABEL("a", "1"), LABEL("b", "2"), LABEL("c", "3") };
    struct qf_labels labels = { items, 3 }, out;
    const struct qf_str names[] = { QF_STR_INIT("a"), QF_STR_INIT("c"), QF_STR_INIT("x") };

    CHECK(qf_labels_keep(arena, labels, names, 3, &out));
    CHECK_EQ(out.count, 2);
    CHECK(qf_labels_has(out, QF_STR("a")) && qf_labels_has(out, QF_STR("c")));
    CHECK(qf_labels_drop(arena, labels, names, 3, &out));
    CHECK_EQ(out.count, 1);
    CHECK(qf_str_is(qf_labels_get(out, QF_STR("b")), "2"));
    CHECK(qf_labels_set(arena, labels, QF_STR("b"), QF_STR("9"), &out));
    CHECK(qf_str_is(qf_labels_get(out, QF_STR("b")), "9"));
    CHECK(qf_labels_set(arena, labels, QF_STR("b"), QF_STR(""), &out));
    CHECK(!qf_labels_has(out, QF_STR("b")));
    CHECK(qf_labels_set(arena, labels, QF_STR("aa"), QF_STR("z"), &out));
    CHECK(qf_str_is(out.items[1].name, "aa"));
}
