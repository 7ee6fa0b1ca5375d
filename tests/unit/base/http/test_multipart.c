/* test_multipart.c - forms in the coding of file uploads. */
#include "base/http/multipart.h"

#include "base/http/params.h"
#include "tests/lib/test.h"

#define PART(name, value)                                                                          \
    "--mark\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n" value "\r\n"

static size_t fields(struct qf_arena *arena, const char *type, const char *body,
                     struct qh_params *params)
{
    struct qf_err err = { 0 };

    CHECK_OK(qh_params_add_multipart(arena, params, qf_str_from(type), qf_str_from(body), &err),
             &err);
    return params->count;
}

TEST(fields_between_boundaries_are_parameters)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(1 << 16);
    struct qh_params params = { 0 };

    CHECK_EQ(fields(arena, "multipart/form-data; boundary=mark",
                    "preamble\r\n" PART("query", "sum(\r\n\r\nup)")
                        PART("time", "17") "--mark--\r\n",
                    &params),
             2);
    CHECK_STR(qf_arena_cstr(arena, qh_params_get(&params, "query")), "sum(\r\n\r\nup)");
    CHECK_STR(qf_arena_cstr(arena, qh_params_get(&params, "time")), "17");
    CHECK_EQ(fields(arena, "multipart/form-data; charset=x; Boundary=\"mark\"",
                    PART("a", "1") "--mark--", &params),
             3);
}

TEST(what_breaks_off_counts_for_nothing)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(1 << 16);
    static const char *const broken[] = {
        "",
        "--mark",
        "--mark--",
        PART("a", "1"),
        PART("a", "1") "--mark\r\n",
        "--mark\r\n\r\n",
        PART("a", "1") "--mark\r\nContent-Disposition: form-data; name=\"b\"\r\n\r\n2",
    };
    struct qh_params params = { 0 };

    for (size_t i = 0; i < QF_COUNT_OF(broken); i++)
        CHECK_EQ(fields(arena, "multipart/form-data; boundary=mark", broken[i], &params), 0);
    CHECK_EQ(fields(arena, "multipart/form-data", PART("a", "1") "--mark--", &params), 0);
    CHECK_EQ(
        fields(arena, "multipart/form-data; boundary=\"mark", PART("a", "1") "--mark--", &params),
        0);
}

TEST(files_are_left_out)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(1 << 16);
    struct qh_params params = { 0 };

    CHECK_EQ(fields(arena, "multipart/form-data; boundary=mark",
                    "--mark\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x\"\r\n"
                    "Content-Type: text/plain\r\n\r\nbytes\r\n" PART("a", "1") "--mark--",
                    &params),
             1);
    CHECK_EQ(qh_params_get(&params, "f").len, 0);
}
