/* test_params.c - decoding of request parameters. */
#include "base/http/params.h"

#include "base/pure/strbuf.h"
#include "tests/lib/test.h"

static const char *cstr(struct qf_arena *arena, struct qf_str s)
{
    return qf_arena_cstr(arena, s);
}

TEST(a_form_is_decoded_and_keeps_repeated_names)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(1 << 20);
    struct qh_params params = { 0 };
    struct qf_err err = { 0 };

    CHECK_OK(qh_params_add_form(arena, &params,
                                QF_STR("query=a%2Bb+c&match[]=x&match%5B%5D=y&&empty="), &err),
             &err);
    CHECK_EQ(params.count, 4);
    CHECK_STR(cstr(arena, qh_params_get(&params, "query")), "a+b c");
    CHECK_STR(cstr(arena, params.items[2].name), "match[]");
    CHECK_STR(cstr(arena, params.items[2].value), "y");
    CHECK_EQ(qh_params_get(&params, "empty").len, 0);
    CHECK_EQ(qh_params_get(&params, "absent").len, 0);
}

/* A client cannot make us keep any number of parameters. */
TEST(too_many_parameters_are_an_error)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(1 << 20);
    struct qh_params params = { 0 };
    struct qf_strbuf form = QF_STRBUF_INIT;

    for (int i = 0; i <= QH_PARAMS_MAX; i++)
        qf_strbuf_puts(&form, "a=1&");
    CHECK_EQ(qh_params_add_form(arena, &params, qf_strbuf_view(&form), NULL), QF_ELIMIT);
    qf_strbuf_done(&form);
}

TEST(a_json_body_gives_the_same_parameters_as_a_form)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(1 << 20);
    struct qh_params params = { 0 };
    struct qf_err err = { 0 };

    CHECK_OK(qh_params_add_json(arena, &params,
                                QF_STR("{\"q\":\"up\",\"s\":1700000000,\"step\":0.5,"
                                       "\"progress\":true,\"e\":null}"),
                                &err),
             &err);
    CHECK_STR(cstr(arena, qh_params_get(&params, "q")), "up");
    CHECK_STR(cstr(arena, qh_params_get(&params, "s")), "1700000000");
    CHECK_STR(cstr(arena, qh_params_get(&params, "step")), "0.5");
    CHECK_STR(cstr(arena, qh_params_get(&params, "progress")), "true");
    CHECK_EQ(qh_params_get(&params, "e").len, 0);
    CHECK_EQ(qh_params_add_json(arena, &params, QF_STR("[1]"), NULL), QF_EINVAL);
    CHECK_EQ(qh_params_add_json(arena, &params, QF_STR("{\"q\":{}}"), NULL), QF_EINVAL);
    CHECK_EQ(qh_params_add_json(arena, &params, QF_STR("{\"q\":\"\xff\"}"), NULL), QF_EINVAL);
    CHECK_EQ(qh_params_add_json(arena, &params, QF_STR(""), NULL), QF_EINVAL);
}
