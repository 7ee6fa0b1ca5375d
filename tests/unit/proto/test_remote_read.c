/* test_remote_read.c - requests of remote read, and what is none. */
#include "proto/codec/remote_read.h"
#include "tests/lib/test.h"

static qf_rc decode(struct qf_arena *arena, const char *bytes, size_t len,
                    struct pb_read_request *ret_request)
{
    struct qf_err err = { 0 };

    return pb_read_decode(arena, (struct qf_str){ bytes, len }, ret_request, &err);
}
#define DECODE(arena, text, ret) decode((arena), (text), sizeof(text) - 1, (ret))

/* From 5 to 9, a="b" and c!~"", in chunks or else as samples. */
TEST(a_request_has_its_queries_and_forms)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pb_read_request got;

    CHECK_EQ(DECODE(arena,
                    "\x0a\x15\x08\x05\x10\x09\x1a\x06\x12\x01\x61\x1a\x01\x62\x1a\x07"
                    "\x08\x03\x12\x01\x63\x1a\x00\x12\x02\x01\x00",
                    &got),
             QF_OK);
    CHECK_EQ(got.query_count, 1);
    CHECK_EQ(got.queries[0].start_ms, 5);
    CHECK_EQ(got.queries[0].end_ms, 9);
    CHECK_EQ(got.queries[0].matcher_count, 2);
    CHECK_EQ(got.queries[0].matchers[0].type, PB_READ_EQUAL);
    CHECK(qf_str_is(got.queries[0].matchers[0].name, "a"));
    CHECK(qf_str_is(got.queries[0].matchers[0].value, "b"));
    CHECK_EQ(got.queries[0].matchers[1].type, PB_READ_NOT_REGEX);
    CHECK(qf_str_is(got.queries[0].matchers[1].name, "c"));
    CHECK(got.takes_chunks);
    CHECK(got.takes_samples);
}

/* Who says nothing takes samples, and the first form that is known counts. */
TEST(the_first_form_counts)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pb_read_request got;

    CHECK_EQ(DECODE(arena, "", &got), QF_OK);
    CHECK(got.takes_samples && !got.takes_chunks);
    CHECK_EQ(DECODE(arena, "\x12\x02\x00\x01", &got), QF_OK);
    CHECK(got.takes_samples && !got.takes_chunks);
    CHECK_EQ(DECODE(arena, "\x12\x01\x01", &got), QF_OK);
    CHECK(!got.takes_samples && got.takes_chunks);
    CHECK_EQ(DECODE(arena, "\x12\x01\x09", &got), QF_OK);
    CHECK(!got.takes_samples && !got.takes_chunks);
}

TEST(what_is_no_request_is_refused)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pb_read_request got;

    CHECK_EQ(DECODE(arena, "\x0a\x05\x08", &got), QF_EPROTO);             /* breaks off */
    CHECK_EQ(DECODE(arena, "\x0a\x04\x1a\x02\x08\x04", &got), QF_EPROTO); /* no such type */
}
