/* fixture.c - a store with samples and the leaves to ask of it, for clients in other languages.
 *
 * usage: FIXTURE_DIR=FOLDER worker_fixture. Makes FOLDER/store and prints one line of JSON: a
 * segment as the fields of the protocol's Segment, leaves as base64. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/integration/worker/harness.h"
#include "tests/lib/test.h"

static void print_base64(const char *name, struct qf_str bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    printf(",\"%s\":\"", name);
    for (size_t i = 0; i < bytes.len; i += 3) {
        unsigned word = 0;

        for (size_t j = 0; j < 3; j++)
            word = word << 8 | (i + j < bytes.len ? (unsigned char)bytes.data[i + j] : 0);
        for (size_t j = 0; j < 4; j++)
            (void)putchar(i + j <= bytes.len ? digits[word >> (18 - 6 * j) & 63] : '=');
    }
    (void)putchar('"');
}

TEST(write_store)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pb_segment segment;

    bench_dir_at(getenv("FIXTURE_DIR"));
    segment = make_segment(arena, 100, 60, 1);
    printf("{\"segment\":{\"name\":\"%.*s\",\"size_bytes\":\"%llu\",\"mtime_ms\":\"%lld\","
           "\"shard_count\":1,\"generation\":\"1\"}",
           QF_STR_ARG(segment.name), (unsigned long long)segment.size_bytes,
           (long long)segment.mtime_ms);
    print_base64("instant", make_spec(arena, LEAF_INSTANT, 6));
    print_base64("slow", make_spec(arena, LEAF_SLOW, 400000));
    printf("}\n");
}
