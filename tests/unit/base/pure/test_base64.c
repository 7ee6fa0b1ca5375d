/* test_base64.c - the vectors of RFC 4648 and what is not base64. */
#include "base/pure/base64.h"
#include "base/pure/prng.h"
#include "tests/lib/test.h"

TEST(base64_of_the_rfc_vectors)
{
    static const char *const pairs[][2] = {
        { "", "" },
        { "f", "Zg==" },
        { "fo", "Zm8=" },
        { "foo", "Zm9v" },
        { "foob", "Zm9vYg==" },
        { "fooba", "Zm9vYmE=" },
        { "foobar", "Zm9vYmFy" },
    };

    for (size_t i = 0; i < QF_COUNT_OF(pairs); i++) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT, back = QF_STRBUF_INIT;

        qf_base64_encode(&text, qf_str_from(pairs[i][0]));
        CHECK_STR(qf_strbuf_cstr(&text), pairs[i][1]);
        CHECK(qf_base64_decode(&back, qf_strbuf_view(&text)));
        CHECK_STR(qf_strbuf_cstr(&back), pairs[i][0]);
    }
}

TEST(base64_refuses_what_it_did_not_write)
{
    static const char *const bad[] = { "Z",    "Zg",   "Zg=",  "Zh==", "Zm9=",
                                       "====", "Z===", "Zm=v", "Zm 9", "Zg==Zg==" };

    for (size_t i = 0; i < QF_COUNT_OF(bad); i++) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf back = QF_STRBUF_INIT;

        CHECK_MSG(!qf_base64_decode(&back, qf_str_from(bad[i])), "%s", bad[i]);
    }
}

TEST(base64_of_random_bytes_reads_back)
{
    struct qf_prng prng = { 3 };

    for (int i = 0; i < 500; i++) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT, back = QF_STRBUF_INIT;
        char bytes[64];
        struct qf_str in = { bytes, qf_prng_below(&prng, sizeof(bytes)) };

        for (size_t j = 0; j < in.len; j++)
            bytes[j] = (char)qf_prng_next(&prng);
        qf_base64_encode(&text, in);
        CHECK(qf_base64_decode(&back, qf_strbuf_view(&text)));
        CHECK(qf_str_eq(qf_strbuf_view(&back), in));
    }
}
