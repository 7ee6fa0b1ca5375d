/* test_parse_cases.c - Prometheus's own parser cases, when they lie beside the source tree.
 *
 * The cases are reference data that is not part of the repository; without them every test here is
 * skipped and tests/unit/promql/parse stands alone. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "promql/parse.h"
#include "promql/parse/lex.h"
#include "promql/testing/selectors.h"
#include "promql/testing/series.h"
#include "tests/conformance/parse/compare.h"
#include "tests/lib/test.h"

/* The cases of one group; the whole file stays loaded until the program ends. */
static const json_t *load_group(const char *name)
{
    static json_t *all;
    json_error_t error;

    if (!all)
        all = json_load_file(PARSE_CASES, 0, &error);
    if (!all)
        test_skip("no ../shared/promql/parse_cases.json beside the source tree");
    CHECK_MSG(json_object_get(all, name), "no group %s in %s", name, PARSE_CASES);
    return json_object_get(all, name);
}

static int failures;

static void fail_case(const char *group, struct qf_str input, const char *what)
{
    failures++;
    printf("  %s: %.*s\n      %s\n", group, (int)QF_MIN(input.len, (size_t)150), input.data, what);
}

static void close_group(const char *group, const json_t *cases)
{
    int failed = failures;

    failures = 0;
    printf("  %s: %zu cases, %d failed\n", group, json_array_size(cases), failed);
    CHECK_EQ(failed, 0);
}

static const struct pq_parse_options expr_options = {
    .experimental_functions = true,
    .extended_range_selectors = true,
};
static const struct pq_parse_options printer_options = {
    .extended_range_selectors = true,
    .fill_modifiers = true,
};

static void check_expr_error(struct qf_str input, const json_t *test, qf_rc rc,
                             const struct qf_err *err)
{
    const json_t *first = json_array_get(json_object_get(test, "errors"), 0);
    const char *msg = json_string_value(json_object_get(first, "msg"));
    json_int_t start = json_integer_value(json_object_get(first, "start"));
    json_int_t end = json_integer_value(json_object_get(first, "end"));
    struct qf_strbuf full = QF_STRBUF_INIT;
    char what[3000];

    pq_parse_error_print(&full, input, err);
    if (rc != QF_EPARSE || strcmp(err->msg, msg) != 0 || (json_int_t)err->pos_start != start ||
        (json_int_t)err->pos_end != end ||
        strcmp(qf_strbuf_cstr(&full), json_string_value(json_object_get(test, "errMsg"))) != 0) {
        (void)snprintf(what, sizeof(what), "got  %d [%zu,%zu) %s\n      want [%lld,%lld) %s", rc,
                       err->pos_start, err->pos_end, err->msg, start, end, msg);
        fail_case("expr", input, what);
    }
    qf_strbuf_done(&full);
}

TEST(expressions_parse_into_the_same_trees_and_errors)
{
    const json_t *cases = load_group("expr"), *test;
    size_t i;

    json_array_foreach(cases, i, test)
    {
        struct qf_arena *arena = qf_arena_new(SIZE_MAX);
        struct qf_str input = json_bytes(arena, json_object_get(test, "input"));
        struct qf_err err = { 0 };
        struct pq_expr *node = NULL;
        struct mismatch mismatch;
        qf_rc rc = pq_parse(arena, input, &expr_options, &node, &err);

        if (json_is_true(json_object_get(test, "fail")))
            check_expr_error(input, test, rc, &err);
        else if (rc != QF_OK)
            fail_case("expr", input, err.msg);
        else if (!compare_node(node, json_object_get(test, "ast"), &mismatch))
            fail_case("expr", input, mismatch.text);
        (void)qf_arena_free(arena);
    }
    close_group("expr", cases);
}

static bool same_token(struct pq_token token, struct qf_str input, const json_t *want)
{
    const char *text = json_string_value(json_array_get(want, 2));

    return strcmp(pq_token_name(token.type), json_string_value(json_array_get(want, 0))) == 0 &&
           token.pos.start == json_integer_value(json_array_get(want, 1)) &&
           qf_str_is(qf_str_sub(input, token.pos.start, token.pos.end), text);
}

TEST(texts_split_into_the_same_tokens)
{
    const json_t *cases = load_group("lexer"), *test;
    size_t i;

    json_array_foreach(cases, i, test)
    {
        struct qf_arena *arena = qf_arena_new(SIZE_MAX);
        struct qf_str input = json_bytes(arena, json_object_get(test, "input"));
        const json_t *tokens = json_object_get(test, "tokens");
        bool fail = json_is_true(json_object_get(test, "fail"));
        struct pq_lexer lexer;
        struct pq_token token;
        size_t count = 0;

        pq_lex_init(&lexer, input,
                    json_is_true(json_object_get(test, "series_desc")) ? pq_lex_series_value
                                                                       : NULL);
        for (token = pq_lex_next(&lexer); token.type != PQ_T_EOF && token.type != PQ_T_ERROR;
             token = pq_lex_next(&lexer), count++)
            if (!fail && !same_token(token, input, json_array_get(tokens, count)))
                fail_case("lexer", input, pq_token_name(token.type));
        if (fail != (token.type == PQ_T_ERROR))
            fail_case("lexer", input, fail ? "no error" : lexer.error);
        if (!fail && count != json_array_size(tokens))
            fail_case("lexer", input, "number of tokens");
        (void)qf_arena_free(arena);
    }
    close_group("lexer", cases);
}

static void check_print(const char *group, struct qf_str input, const char *want, bool pretty)
{
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct qf_strbuf out = QF_STRBUF_INIT;
    struct qf_err err = { 0 };
    struct pq_expr *node = NULL;

    if (pq_parse(arena, input, &printer_options, &node, &err) != QF_OK) {
        fail_case(group, input, err.msg);
    } else {
        if (pretty)
            pq_pretty(&out, node, 10);
        else
            pq_print(&out, node);
        if (strcmp(qf_strbuf_cstr(&out), want) != 0)
            fail_case(group, input, qf_strbuf_cstr(&out));
    }
    qf_strbuf_done(&out);
    (void)qf_arena_free(arena);
}

TEST(trees_print_as_the_same_text)
{
    const json_t *cases = load_group("printer"), *test;
    size_t i;

    json_array_foreach(cases, i, test)
        check_print("printer", qf_str_from(json_string_value(json_object_get(test, "in"))),
                    json_string_value(json_object_get(test, "out")), false);
    close_group("printer", cases);
    cases = load_group("printer_utf8");
    json_array_foreach(cases, i, test)
        check_print("printer_utf8", qf_str_from(json_string_value(json_object_get(test, "input"))),
                    json_string_value(json_object_get(test, "expected")), false);
    close_group("printer_utf8", cases);
}

TEST(selectors_built_by_hand_print_as_the_same_text)
{
    const json_t *cases = load_group("printer_vector_selector"), *test, *want;
    size_t i, j;

    json_array_foreach(cases, i, test)
    {
        const json_t *vs = json_object_get(test, "vs");
        const json_t *matchers = json_object_get(vs, "LabelMatchers");
        const char *name = json_string_value(json_object_get(vs, "Name"));
        struct pq_matcher built[4] = { 0 };
        struct pq_expr node = { .kind = PQ_VECTOR_SELECTOR };
        struct qf_strbuf out = QF_STRBUF_INIT;

        json_array_foreach(matchers, j, want)
        {
            built[j].name = qf_str_from(json_string_value(json_object_get(want, "name")));
            built[j].value = qf_str_from(json_string_value(json_object_get(want, "value")));
        }
        node.vector.name = qf_str_from(name ? name : "");
        node.vector.matchers = built;
        node.vector.matcher_count = json_array_size(matchers);
        pq_print(&out, &node);
        if (strcmp(qf_strbuf_cstr(&out), json_string_value(json_object_get(test, "expected"))) != 0)
            fail_case("printer_vector_selector", node.vector.name, qf_strbuf_cstr(&out));
        qf_strbuf_done(&out);
    }
    close_group("printer_vector_selector", cases);
}

TEST(trees_break_into_the_same_lines)
{
    const json_t *cases = load_group("prettier"), *test;
    size_t i;

    json_array_foreach(cases, i, test)
        check_print("prettier", qf_str_from(json_string_value(json_object_get(test, "in"))),
                    json_string_value(json_object_get(test, "out")), true);
    close_group("prettier", cases);
}

static bool compare_values(const struct pq_sequence_value *values, size_t count, const json_t *want,
                           struct mismatch *mismatch)
{
    (void)snprintf(mismatch->text, sizeof(mismatch->text), "%zu values, want %zu", count,
                   json_array_size(want));
    if (count != json_array_size(want))
        return false;
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(want, i);
        bool omitted = json_is_true(json_object_get(value, "_omitted"));

        if (json_object_get(value, "Value"))
            value = json_object_get(value, "Value");
        (void)snprintf(mismatch->text, sizeof(mismatch->text), "value %zu is %g", i,
                       values[i].value);
        if (values[i].omitted != omitted || (!omitted && values[i].value != json_double(value)))
            return false;
    }
    return true;
}

static void check_series(const char *group, const json_t *test)
{
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct qf_str input = json_bytes(arena, json_object_get(test, "input"));
    struct qf_labels labels;
    struct pq_sequence_value *values = NULL;
    struct qf_strbuf full = QF_STRBUF_INIT;
    struct qf_err err = { 0 };
    struct mismatch mismatch;
    size_t count = 0;
    const char *part = json_string_value(json_object_get(test, "errMsg_contains"));
    qf_rc rc = pq_parse_series(arena, input, &labels, &values, &count, &err);

    pq_parse_error_print(&full, input, &err);
    if (json_is_true(json_object_get(test, "fail"))) {
        if (rc == QF_OK)
            fail_case(group, input, "no error");
        else if (part && !strstr(qf_strbuf_cstr(&full), part))
            fail_case(group, input, qf_strbuf_cstr(&full));
    } else if (rc != QF_OK) {
        fail_case(group, input, err.msg);
    } else if (!compare_labels(labels, json_object_get(test, "labels"), &mismatch) ||
               !compare_values(values, count, json_object_get(test, "values"), &mismatch)) {
        fail_case(group, input, mismatch.text);
    }
    qf_strbuf_done(&full);
    (void)qf_arena_free(arena);
}

TEST(series_descriptions_expand_to_the_same_values)
{
    static const char *const groups[] = { "series", "series_desc" };

    for (size_t g = 0; g < QF_COUNT_OF(groups); g++) {
        const json_t *cases = load_group(groups[g]), *test;
        size_t i;

        json_array_foreach(cases, i, test) check_series(groups[g], test);
        close_group(groups[g], cases);
    }
}

static void check_histograms(const json_t *test)
{
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct qf_str input = json_bytes(arena, json_object_get(test, "input"));
    const json_t *want = json_object_get(test, "expected");
    struct qf_labels labels;
    struct pq_sequence_value *values = NULL;
    struct qf_strbuf full = QF_STRBUF_INIT;
    struct qf_err err = { 0 };
    struct mismatch mismatch;
    size_t count = 0;
    qf_rc rc = pq_parse_series(arena, input, &labels, &values, &count, &err);

    pq_parse_error_print(&full, input, &err);
    if (json_is_true(json_object_get(test, "fail"))) {
        if (rc == QF_OK ||
            strcmp(qf_strbuf_cstr(&full), json_string_value(json_object_get(test, "errMsg"))) != 0)
            fail_case("histogram_series", input, qf_strbuf_cstr(&full));
    } else if (rc != QF_OK) {
        fail_case("histogram_series", input, err.msg);
    } else if (count != json_array_size(want)) {
        fail_case("histogram_series", input, "number of values");
    } else {
        for (size_t i = 0; i < count; i++)
            if (!compare_histogram(values[i].histogram, json_array_get(want, i), &mismatch))
                fail_case("histogram_series", input, mismatch.text);
    }
    qf_strbuf_done(&full);
    (void)qf_arena_free(arena);
}

TEST(histogram_literals_expand_to_the_same_histograms)
{
    const json_t *cases = load_group("histogram_series"), *test;
    size_t i;

    json_array_foreach(cases, i, test) check_histograms(test);
    close_group("histogram_series", cases);
}

TEST(selectors_are_found_in_expressions)
{
    const json_t *cases = load_group("extract_selectors"), *test;
    size_t i;

    json_array_foreach(cases, i, test)
    {
        struct qf_arena *arena = qf_arena_new(SIZE_MAX);
        struct qf_str input = json_bytes(arena, json_object_get(test, "input"));
        const json_t *want = json_object_get(test, "expected");
        struct qf_strbuf out = QF_STRBUF_INIT;
        struct qf_err err = { 0 };
        struct pq_expr *node = NULL;
        const struct pq_expr **found;
        size_t count = 0;

        CHECK_OK(pq_parse(arena, input, NULL, &node, &err), &err);
        found = pq_selectors(arena, node, &count);
        if (count != json_array_size(want))
            fail_case("extract_selectors", input, "number of selectors");
        for (size_t s = 0; s < count; s++) {
            qf_strbuf_reset(&out);
            pq_print_matchers(&out, found[s]->vector.matchers, found[s]->vector.matcher_count);
            if (strcmp(qf_strbuf_cstr(&out), json_string_value(json_array_get(want, s))) != 0)
                fail_case("extract_selectors", input, qf_strbuf_cstr(&out));
        }
        qf_strbuf_done(&out);
        (void)qf_arena_free(arena);
    }
    close_group("extract_selectors", cases);
}
