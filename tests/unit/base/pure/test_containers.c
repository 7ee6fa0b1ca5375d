/* test_containers.c - map, heap, vec, strbuf, varint, errors. */
#include <stdlib.h>
#include <string.h>

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/heap.h"
#include "base/pure/map.h"
#include "base/pure/prng.h"
#include "base/pure/strbuf.h"
#include "base/pure/utf8.h"
#include "base/pure/varint.h"
#include "base/pure/vec.h"
#include "base/regex/regex.h"
#include "tests/lib/test.h"

/* A map finds what was put, counts once, and iterates in insertion order. */
TEST(map_keeps_values_and_insertion_order)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct qf_map map = { 0 };
    bool is_new;

    CHECK(qf_map_get(&map, QF_STR("none")) == NULL);
    for (uint64_t i = 0; i < 5000; i++) {
        struct qf_str key = qf_str_from(qf_arena_printf(arena, "key-%u", (unsigned)(i * 7919)));

        CHECK_EQ(*qf_map_put(&map, key, i, &is_new), i);
        CHECK(is_new);
        CHECK_EQ(*qf_map_put(&map, key, 99, &is_new), i);
        CHECK(!is_new);
    }
    CHECK_EQ(map.count, 5000);
    for (uint64_t i = 0; i < map.count; i++) {
        CHECK_EQ(map.entries[i].value, i);
        CHECK_EQ(*qf_map_get(&map, map.entries[i].key), i);
    }
    qf_map_clear(&map);
    CHECK(qf_map_get(&map, QF_STR("key-0")) == NULL);
    qf_map_done(&map);
}

static bool less(const void *a, const void *b, void *ctx)
{
    (void)ctx;
    return *(const int *)a < *(const int *)b;
}

/* A heap gives its elements back in order, also when the top is changed in place. */
TEST(heap_sorts)
{
    struct qf_prng prng = { 1 };
    int slots[500], last = -1;
    struct qf_heap heap = {
        .items = slots, .item_size = sizeof(int), .capacity = 500, .before = less
    };
    int value = 0;

    for (int i = 0; i < 500; i++) {
        value = (int)qf_prng_below(&prng, 1000);
        CHECK(qf_heap_push(&heap, &value));
    }
    CHECK(!qf_heap_push(&heap, &value));
    *(int *)heap.items = 2000; /* what was smallest is now largest */
    qf_heap_top_changed(&heap);
    while (heap.count) {
        int top = *(const int *)qf_heap_top(&heap);

        CHECK(top >= last);
        last = top;
        qf_heap_pop(&heap);
    }
    CHECK_EQ(last, 2000);
    CHECK(qf_heap_top(&heap) == NULL);
}

/* Vectors grow and keep their contents. */
TEST(vec_grows)
{
    QF_VEC(int) numbers = { 0 };

    for (int i = 0; i < 1000; i++)
        QF_VEC_PUSH(&numbers, i);
    CHECK_EQ(numbers.count, 1000);
    CHECK_EQ(numbers.items[999], 999);
    QF_VEC_DONE(&numbers);
    CHECK(numbers.items == NULL);
}

/* Past its limit a buffer keeps what fitted and says so. */
TEST(strbuf_limit_is_sticky)
{
    struct qf_strbuf buf = { .limit = 5 };

    qf_strbuf_puts(&buf, "abc");
    CHECK(!buf.overflowed);
    qf_strbuf_puts(&buf, "def");
    CHECK(buf.overflowed);
    CHECK_STR(qf_strbuf_cstr(&buf), "abc");
    qf_strbuf_done(&buf);
    CHECK_STR(qf_strbuf_cstr(&buf), "");
}

/* JSON strings are valid JSON whatever the bytes. */
/* A slice without data is an empty string. */
TEST(an_empty_slice_is_an_empty_json_string)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;

    qf_strbuf_json(&buf, (struct qf_str){ NULL, 0 });
    CHECK_STR(qf_strbuf_cstr(&buf), "\"\"");
    qf_strbuf_done(&buf);
}

TEST(strbuf_json_escapes)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;
    const char raw[] = "a\"b\\c\n\x01\xc3\xa9\xff\xe2\x82z";

    qf_strbuf_json(&buf, (struct qf_str){ raw, sizeof(raw) - 1 });
    CHECK_STR(qf_strbuf_cstr(&buf), "\"a\\\"b\\\\c\\n\\u0001\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd"
                                    "\xef\xbf\xbdz\"");
    qf_strbuf_done(&buf);
}

/* Long formatted text does not fit the small buffer and is formatted in place. */
TEST(strbuf_formats_long_text)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;
    char *text;

    qf_strbuf_printf(&buf, "%0500d", 7);
    qf_strbuf_i64(&buf, INT64_MIN);
    qf_strbuf_u64(&buf, UINT64_MAX);
    CHECK_EQ(buf.len, 500 + 20 + 20);
    text = qf_strbuf_take(&buf);
    CHECK_STR(text + 500, "-922337203685477580818446744073709551615");
    free(text);
    text = qf_strbuf_take(&buf);
    CHECK_STR(text, "");
    free(text);
}

/* Varints round-trip; truncated and oversized ones are refused. */
TEST(varint_round_trips)
{
    struct qf_prng prng = { 11 };
    unsigned char bytes[QF_VARINT_MAX];
    uint64_t back;

    for (int i = 0; i < 1000; i++) {
        uint64_t value = qf_prng_next(&prng) >> qf_prng_below(&prng, 64);
        size_t len = qf_varint_put(bytes, value);

        CHECK_EQ(qf_varint_get((struct qf_str){ (char *)bytes, len }, &back), len);
        CHECK(back == value);
        CHECK_EQ(qf_varint_get((struct qf_str){ (char *)bytes, len - 1 }, &back), 0);
        CHECK(qf_unzigzag(qf_zigzag((int64_t)value)) == (int64_t)value);
    }
    memset(bytes, 0xff, sizeof(bytes));
    CHECK_EQ(qf_varint_get((struct qf_str){ (char *)bytes, sizeof(bytes) }, &back), 0);
}

/* Numbers one behind the other, and nothing is taken of what is cut short. */
TEST(varints_are_taken_from_the_front)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qf_str rest;
    uint64_t value;

    qf_strbuf_varint(&buf, 5);
    qf_strbuf_varint(&buf, UINT64_MAX);
    qf_strbuf_varint(&buf, 300);
    rest = qf_str_sub(qf_strbuf_view(&buf), 0, buf.len - 1);
    CHECK(qf_varint_take(&rest, &value) && value == 5);
    CHECK(qf_varint_take(&rest, &value) && value == UINT64_MAX);
    CHECK(!qf_varint_take(&rest, &value));
    CHECK_EQ(rest.len, 1);
    rest = QF_STR("");
    CHECK(!qf_varint_take(&rest, &value));
}

/* Overlong forms, surrogates and cut characters are not UTF-8. */
TEST(utf8_is_strict)
{
    static const char *const bad[] = { "\x80",         "\xc0\x80",         "\xe0\x80\x80",
                                       "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc3",
                                       "\xff" };
    char out[4];
    uint32_t rune;

    for (size_t i = 0; i < QF_COUNT_OF(bad); i++)
        CHECK(!qf_utf8_valid(qf_str_from(bad[i])));
    for (uint32_t r = 1; r <= 0x10ffff; r += 97) {
        size_t len = qf_utf8_encode(r, out);

        if (r >= 0xd800 && r <= 0xdfff)
            continue;
        CHECK_EQ(qf_utf8_decode((struct qf_str){ out, len }, &rune), len);
        CHECK_EQ(rune, r);
    }
}

/* An error is filled once; context goes in front. */
TEST(errors_keep_the_first_cause)
{
    struct qf_err err = { 0 };

    CHECK_EQ(qf_err_set(&err, QF_EIO, "disk %d", 3), QF_EIO);
    CHECK_EQ(qf_err_set(&err, QF_EPARSE, "other"), QF_EPARSE);
    CHECK_STR(err.msg, "disk 3");
    CHECK_EQ(qf_err_prefix(&err, err.rc, "reading %s", "x"), QF_EIO);
    CHECK_STR(err.msg, "reading x: disk 3");
    CHECK_EQ(qf_err_set(NULL, QF_EIO, "unheard"), QF_EIO);
    CHECK_STR(qf_rc_name(QF_ETIMEOUT), "timeout");
    CHECK_EQ(qf_rc_http_status(QF_EBUSY), 429);
    CHECK_EQ(qf_rc_from_name("corrupt"), QF_ECORRUPT);
    CHECK_EQ(qf_rc_from_name("no such name"), QF_EINTERNAL);
    CHECK_STR(qf_rc_name(-12345), "internal");
}

/* An error is its number: two of one number would be told as one of them. */
TEST(every_error_has_a_number_and_a_name_of_its_own)
{
#define QF_ERROR(code, number, name, text, http, grpc, prom_type, retryable)                       \
    CHECK_STR(qf_rc_name(code), name);                                                             \
    CHECK_EQ(qf_rc_from_name(name), code);
#include "base/pure/errors.def"
#undef QF_ERROR
}

/* Anchored, dot matches newline, groups by number and name. */
TEST(regex_matches_as_prometheus_does)
{
    char msg[100];
    struct qf_regex *re = qf_regex_new("(?P<a>x+).*", 11, msg, sizeof(msg));
    long groups[2][2];

    CHECK(re != NULL);
    CHECK(qf_regex_match(re, "xx\ny", 4));
    CHECK(!qf_regex_match(re, "axx", 3));
    CHECK_EQ(qf_regex_groups(re, "xxy", 3, groups, 2), 2);
    CHECK_EQ(groups[1][1], 2);
    CHECK_EQ(qf_regex_group_named(re, "a", 1), 1);
    CHECK_EQ(qf_regex_group_named(re, "b", 1), -1);
    re = qf_regex_free(re);
    CHECK(qf_regex_new("(", 1, msg, sizeof(msg)) == NULL);
    CHECK(msg[0] != '\0');
}
