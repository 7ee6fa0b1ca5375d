/* test_hex.c - bytes as hexadecimal digits. */
#include "base/pure/hex.h"

#include "tests/lib/test.h"

static const unsigned char bytes[] = { 0x00, 0x0f, 0x9a, 0xff };

TEST(bytes_are_two_digits_each)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    char out[2 * sizeof(bytes) + 1];

    qf_hex_encode(bytes, sizeof(bytes), out);
    CHECK_STR(out, "000f9aff");
    qf_hex_encode(bytes, 0, out);
    CHECK_STR(out, "");
    qf_strbuf_puts(&text, "x");
    qf_strbuf_hex(&text, bytes, sizeof(bytes));
    qf_strbuf_hex(&text, NULL, 0);
    CHECK_STR(qf_strbuf_cstr(&text), "x000f9aff");
}

TEST(digits_are_bytes_in_either_case)
{
    unsigned char out[4] = { 1, 1, 1, 1 };

    CHECK(qf_hex_decode(QF_STR("000F9afF"), out));
    CHECK(memcmp(out, bytes, sizeof(out)) == 0);
    CHECK(qf_hex_decode(QF_STR(""), out));
    CHECK(!qf_hex_decode(QF_STR("0"), out));
    CHECK(!qf_hex_decode(QF_STR("0g"), out));
    CHECK(!qf_hex_decode(QF_STR(" 0"), out));
    CHECK(!qf_hex_decode(QF_STR("0x"), out));
}

TEST(a_number_has_sixteen_digits)
{
    uint64_t value = 7;

    CHECK(!qf_hex_u64(QF_STR(""), &value));
    CHECK(!qf_hex_u64(QF_STR("123456789abcdef"), &value));
    CHECK(!qf_hex_u64(QF_STR("00123456789abcdef"), &value));
    CHECK(!qf_hex_u64(QF_STR("-123456789abcdef"), &value));
    CHECK_EQ(value, 7);
    CHECK(qf_hex_u64(QF_STR("0123456789ABcdef"), &value));
    CHECK_EQ(value, UINT64_C(0x0123456789abcdef));
    CHECK(qf_hex_u64(QF_STR("ffffffffffffffff"), &value));
    CHECK_EQ(value, UINT64_MAX);
}
