/* test_crc32c.c - the check value of the polynomial, and the vectors of RFC 3720. */
#include "base/pure/crc32c.h"
#include "tests/lib/test.h"

TEST(crc32c_of_known_bytes)
{
    char bytes[32] = { 0 };

    CHECK_EQ(qf_crc32c(QF_STR("")), 0);
    CHECK_EQ(qf_crc32c(QF_STR("123456789")), 0xe3069283);
    CHECK_EQ(qf_crc32c((struct qf_str){ bytes, sizeof(bytes) }), 0x8a9136aa);
    memset(bytes, 0xff, sizeof(bytes));
    CHECK_EQ(qf_crc32c((struct qf_str){ bytes, sizeof(bytes) }), 0x62a8ab43);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)i;
    CHECK_EQ(qf_crc32c((struct qf_str){ bytes, sizeof(bytes) }), 0x46dd794e);
}
