/* test_sha256.c - the examples of FIPS 180-4 and lengths around a block. */
#include <stdio.h>
#include <string.h>

#include "base/pure/sha256.h"
#include "tests/lib/test.h"

static const char *hex(struct qf_str bytes)
{
    static char text[QF_SHA256_BYTES * 2 + 1];
    uint8_t digest[QF_SHA256_BYTES];

    qf_sha256(bytes, digest);
    for (size_t i = 0; i < sizeof(digest); i++)
        (void)snprintf(text + i * 2, 3, "%02x", digest[i]);
    return text;
}

TEST(the_standard_examples_have_their_digests)
{
    CHECK_STR(hex(QF_STR("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK_STR(hex(QF_STR("abc")),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK_STR(hex(QF_STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(padding_is_right_at_each_length_around_a_block)
{
    char bytes[128];
    static const struct {
        size_t len;
        const char *digest;
    } cases[] = {
        { 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318" },
        { 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a" },
        { 57, "f13b2d724659eb3bf47f2dd6af1accc87b81f09f59f2b75e5c0bed6589dfe8c6" },
        { 63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34" },
        { 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb" },
        { 65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0" },
        { 119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb" },
        { 120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c" },
        { 128, "6836cf13bac400e9105071cd6af47084dfacad4e5e302c94bfed24e013afb73e" },
    };

    memset(bytes, 'a', sizeof(bytes));
    for (size_t i = 0; i < QF_COUNT_OF(cases); i++)
        CHECK_STR(hex((struct qf_str){ bytes, cases[i].len }), cases[i].digest);
}
