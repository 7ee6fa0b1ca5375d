#include "ingest/core/wire.h"
#include "tests/lib/test.h"
#include "tests/unit/ingest/core/build.h"

TEST(fields_of_each_type_are_read_in_order)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;
    struct in_field field;
    struct in_wire wire;

    put_number(&buf, 1, UINT64_MAX);
    put_double(&buf, 2, -0.5);
    put_text(&buf, 500, "abc");
    qf_strbuf_str(&buf, QF_STR("\x1d\x01\x02\x03\x04"));
    wire = in_wire_of(qf_strbuf_view(&buf));
    CHECK(in_wire_next(&wire, &field) && field.number == 1 && field.type == IN_WIRE_VARINT);
    CHECK(field.value == UINT64_MAX && field.bytes.len == 0);
    CHECK(in_wire_next(&wire, &field) && field.number == 2 && field.type == IN_WIRE_FIXED64);
    CHECK(in_wire_double(field.value) == -0.5);
    CHECK(in_wire_next(&wire, &field) && field.number == 500 && field.type == IN_WIRE_BYTES);
    CHECK(qf_str_is(field.bytes, "abc"));
    CHECK(in_wire_next(&wire, &field) && field.number == 3 && field.type == IN_WIRE_FIXED32);
    CHECK(field.value == 0x04030201);
    CHECK(!in_wire_next(&wire, &field) && !wire.bad);
    qf_strbuf_done(&buf);
}

TEST(what_is_no_message_is_bad)
{
    static const struct qf_str bad[] = {
        QF_STR_INIT("\x08"),                             /* no value */
        QF_STR_INIT("\x08\x80"),                         /* half a value */
        QF_STR_INIT("\x80"),                             /* half a key */
        QF_STR_INIT("\x00\x01"),                         /* field 0 */
        QF_STR_INIT("\x09\x01\x02\x03\x04\x05\x06\x07"), /* seven bytes of eight */
        QF_STR_INIT("\x0d\x01\x02\x03"),                 /* three of four */
        QF_STR_INIT("\x0a\x05"
                    "abcd"),                                         /* four of five */
        QF_STR_INIT("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), /* a length of 2^64 - 1 */
        QF_STR_INIT("\x0b\x0c"),                                     /* a group */
        QF_STR_INIT("\x0e"),
        QF_STR_INIT("\x0f"),                                             /* no such types */
        QF_STR_INIT("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"),     /* 65 bits */
        QF_STR_INIT("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), /* eleven bytes */
    };

    for (size_t i = 0; i < QF_COUNT_OF(bad); i++) {
        struct in_wire wire = in_wire_of(bad[i]);
        struct in_field field;

        CHECK_MSG(!in_wire_next(&wire, &field) && wire.bad, "%zu was taken", i);
        CHECK_MSG(!in_wire_next(&wire, &field) && wire.bad, "%zu went on", i);
    }
}

TEST(nothing_is_an_empty_message)
{
    struct in_wire wire = in_wire_of((struct qf_str){ NULL, 0 });
    struct in_field field;

    CHECK(!in_wire_next(&wire, &field) && !wire.bad);
}
