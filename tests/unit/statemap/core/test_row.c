/* test_row.c - rows as bytes: the layouts, their order, their limits. */
#include <stdio.h>
#include <string.h>

#include "statemap/core/row.h"

#include "base/pure/number.h"
#include "base/pure/prng.h"
#include "statemap/core/bytes.h"
#include "statemap/core/range.h"
#include "tests/lib/test.h"

static const struct sm_layout layouts[] = {
    { SM_STATE, false },  { SM_TEMPORAL, false },        { SM_SESSION, false },
    { SM_STATE, true },   { SM_TEMPORAL, true },         { SM_SESSION, true },
    { SM_RANGED, false }, { SM_TEMPORAL_RANGED, false },
};

static const char *hex(struct qf_str bytes, char out[1024])
{
    size_t at = 0;

    out[0] = '\0';
    for (size_t i = 0; i < bytes.len && at + 3 < 1024; i++)
        at += (size_t)snprintf(out + at, 1024 - at, "%02x", (unsigned char)bytes.data[i]);
    return out;
}

static void check_bytes(struct sm_layout layout, struct sm_row row, const char *key,
                        const char *value)
{
    unsigned char stored[SM_STORED_KEY_MAX];
    struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct sm_place place = { 0x1122334455667788, 3 };
    char text[1024];

    CHECK_STR(
        hex((struct qf_str){ (char *)stored, sm_row_key(&layout, &row, place, stored) }, text),
        key);
    sm_row_value(&layout, &row, &bytes);
    CHECK_STR(hex(qf_strbuf_view(&bytes), text), value);
    qf_strbuf_done(&bytes);
}

TEST(rows_are_stored_as_the_header_says)
{
    struct sm_row row = { .key = QF_STR_INIT("ab"),
                          .from = -1,
                          .to = 1,
                          .time = 5,
                          .end = 7,
                          .load = 9,
                          .value = { SM_STRING, QF_STR_INIT("xyz") } };

    check_bytes(layouts[0], row, "112233445566778800000003", "0000000261620178797a");
    check_bytes(layouts[1], row, "1122334455667788000000038000000000000005",
                "0000000261620178797a");
    check_bytes(layouts[2], row, "11223344556677880000000380000000000000058000000000000007",
                "6162");
    check_bytes(layouts[3], row, "6162", "0178797a");
    check_bytes(layouts[4], row, "0000000261628000000000000005", "0178797a");
    check_bytes(layouts[5], row, "00000002616280000000000000058000000000000007", "");
    check_bytes(layouts[6], row, "027fffffffffffffff8000000000000001", "00000000000000090178797a");
    check_bytes(layouts[7], row, "027fffffffffffffff80000000000000018000000000000005",
                "00000000000000090178797a");
}

static int64_t any_number(struct qf_prng *prng)
{
    int64_t number = (int64_t)qf_prng_next(prng);

    return number >> qf_prng_below(prng, 63);
}

static struct sm_row any_row(struct qf_prng *prng, const char letters[16])
{
    struct sm_row row = { .key = { letters, 1 + qf_prng_below(prng, 15) },
                          .from = any_number(prng),
                          .to = any_number(prng),
                          .time = any_number(prng),
                          .end = any_number(prng),
                          .load = qf_prng_next(prng),
                          .value = { SM_STRING, { letters, qf_prng_below(prng, 15) } } };

    if (row.from > row.to) {
        int64_t from = row.to;

        row.to = row.from;
        row.from = from;
    }
    if (row.time >= row.end) {
        row.end = row.time == INT64_MAX ? INT64_MAX : row.time + 1;
        row.time = row.end - 1;
    }
    return row;
}

static void check_round(const struct sm_layout *layout, const struct sm_row *row)
{
    unsigned char key[SM_STORED_KEY_MAX], again[SM_STORED_KEY_MAX];
    struct qf_strbuf value = QF_STRBUF_INIT, value_again = QF_STRBUF_INIT;
    struct sm_place place = { 42, 1 }, place_read;
    struct qf_err err = { 0 };
    struct sm_row read = { 0 };
    size_t len = sm_row_key(layout, row, place, key);

    sm_row_value(layout, row, &value);
    CHECK_OK(sm_row_decode(layout, (struct qf_str){ (char *)key, len }, qf_strbuf_view(&value),
                           &read, &place_read, &err),
             &err);
    CHECK_EQ(sm_row_key(layout, &read, place_read, again), len);
    CHECK(memcmp(key, again, len) == 0);
    sm_row_value(layout, &read, &value_again);
    CHECK(qf_str_eq(qf_strbuf_view(&value), qf_strbuf_view(&value_again)));
    if (sm_kind_keyed(layout->kind))
        CHECK(qf_str_eq(read.key, row->key));
    if (sm_kind_timed(layout->kind))
        CHECK_EQ(read.time, row->time);
    if (sm_kind_ranged(layout->kind))
        CHECK(read.from == row->from && read.to == row->to && read.load == row->load);
    qf_strbuf_done(&value);
    qf_strbuf_done(&value_again);
}

TEST(a_row_is_read_as_it_was_stored)
{
    struct qf_prng prng = { 1 };

    for (int i = 0; i < 20000; i++)
        for (size_t l = 0; l < QF_COUNT_OF(layouts); l++) {
            struct sm_row row = any_row(&prng, "abcdefghijklmnop");

            if (sm_row_check(&layouts[l], &row, NULL) == QF_OK)
                check_round(&layouts[l], &row);
        }
}

TEST(stored_keys_are_in_the_order_of_what_they_say)
{
    struct sm_layout temporal = { SM_TEMPORAL, false };
    struct qf_prng prng = { 2 };

    for (int i = 0; i < 20000; i++) {
        struct sm_row a = { .key = QF_STR_INIT("k"), .time = any_number(&prng) }, b = a;
        unsigned char a_key[SM_STORED_KEY_MAX], b_key[SM_STORED_KEY_MAX];
        struct sm_place place = { 5, 0 };
        size_t len;

        b.time = any_number(&prng);
        len = sm_row_key(&temporal, &a, place, a_key);
        CHECK_EQ(sm_row_key(&temporal, &b, place, b_key), len);
        CHECK_EQ(memcmp(a_key, b_key, len) < 0, a.time < b.time);
    }
}

TEST(what_no_row_is_stored_as_is_refused)
{
    struct sm_layout state = { SM_STATE, false }, ranged = { SM_RANGED, false };
    struct sm_row row;
    struct sm_place place;
    struct qf_err err = { 0 };
    char range[17];

    CHECK_EQ(
        sm_row_decode(&state, QF_STR("12345678000"), QF_STR("\0\0\0\1k\1v"), &row, &place, &err),
        QF_ECORRUPT);
    CHECK_STR(err.msg, "a row of a state map is damaged");
    /* A key longer than its row, no type, a type that is none, a boolean of 2. */
    CHECK_EQ(
        sm_row_decode(&state, QF_STR("123456780000"), QF_STR("\0\0\0\11k\1v"), &row, &place, NULL),
        QF_ECORRUPT);
    CHECK_EQ(sm_row_decode(&state, QF_STR("123456780000"), QF_STR("\0\0\0\1k"), &row, &place, NULL),
             QF_ECORRUPT);
    CHECK_EQ(
        sm_row_decode(&state, QF_STR("123456780000"), QF_STR("\0\0\0\1k\11v"), &row, &place, NULL),
        QF_ECORRUPT);
    CHECK_EQ(
        sm_row_decode(&state, QF_STR("123456780000"), QF_STR("\0\0\0\1k\4\2"), &row, &place, NULL),
        QF_ECORRUPT);
    CHECK_EQ(
        sm_row_decode(&state, QF_STR("123456780000"), QF_STR("\0\0\0\1k\1v"), &row, &place, NULL),
        QF_OK);
    /* A range in another level. */
    range[0] = 3;
    sm_write_be((unsigned char *)range + 1, sm_ordered(0), 8);
    sm_write_be((unsigned char *)range + 9, sm_ordered(1), 8);
    CHECK_EQ(sm_row_decode(&ranged, (struct qf_str){ range, 17 }, QF_STR("\0\0\0\0\0\0\0\0\1v"),
                           &row, &place, NULL),
             QF_ECORRUPT);
    range[0] = 1;
    CHECK_EQ(sm_row_decode(&ranged, (struct qf_str){ range, 17 }, QF_STR("\0\0\0\0\0\0\0\0\1v"),
                           &row, &place, NULL),
             QF_OK);
}

static const char *why_not(struct sm_layout layout, struct sm_row row)
{
    static struct qf_err err;

    err = (struct qf_err){ 0 };
    return sm_row_check(&layout, &row, &err) == QF_OK ? "" : err.msg;
}

TEST(a_row_that_cannot_be_put_is_refused_with_its_reason)
{
    static char long_key[SM_TEXT_KEY_MAX + 1];
    struct sm_row row = {
        .key = { long_key, 1 }, .time = 5, .end = 6, .value = { SM_STRING, QF_STR_INIT("v") }
    };

    memset(long_key, 'k', sizeof(long_key));
    for (size_t l = 0; l < QF_COUNT_OF(layouts); l++) {
        CHECK_STR(why_not(layouts[l], row), "");
        row.key.len = sm_key_max(&layouts[l]);
        CHECK_STR(why_not(layouts[l], row), "");
        row.key.len++;
        if (sm_kind_keyed(layouts[l].kind))
            CHECK(strstr(why_not(layouts[l], row), "bytes, of this map at most"));
        row.key.len = 0;
        CHECK_STR(why_not(layouts[l], row),
                  sm_kind_keyed(layouts[l].kind) ? "the key is empty" : "");
        row.key.len = 1;
    }
    row.from = 2, row.to = 1;
    CHECK_STR(why_not(layouts[6], row), "the range ends before it begins");
    row.end = 5;
    CHECK_STR(why_not(layouts[2], row), "the session does not end after its start");
    row.time = INT64_MAX;
    CHECK_STR(why_not(layouts[1], row), "the time is too late");
    row.value.type = SM_ANY;
    CHECK(strstr(why_not(layouts[0], row), "the value is none"));
}

TEST(short_keys_have_room_for_all_that_stands_behind_them)
{
    CHECK_EQ(sm_key_max(&(struct sm_layout){ SM_STATE, true }), 511);
    CHECK_EQ(sm_key_max(&(struct sm_layout){ SM_TEMPORAL, true }), 499);
    CHECK_EQ(sm_key_max(&(struct sm_layout){ SM_SESSION, true }), 491);
    CHECK_EQ(sm_key_max(&(struct sm_layout){ SM_STATE, false }), SM_TEXT_KEY_MAX);
}

TEST(levels_put_narrow_ranges_in_front)
{
    CHECK_EQ(sm_range_level(7, 7), 0);
    CHECK_EQ(sm_range_level(7, 8), 1);
    CHECK_EQ(sm_range_level(7, 9), 2);
    CHECK_EQ(sm_range_level(-1, 254), 8);
    CHECK_EQ(sm_range_level(-1, 255), 9);
    CHECK_EQ(sm_range_level(INT64_MIN, INT64_MAX), 64);
    CHECK_EQ(sm_level_begin(0, 5), 5);
    CHECK_EQ(sm_level_begin(3, 5), -2);
    CHECK_EQ(sm_level_begin(64, 5), INT64_MIN);
    CHECK_EQ(sm_level_begin(10, INT64_MIN + 3), INT64_MIN);
}
