/* test_errors.c - what users type wrongly, and what they are told. */
#include <string.h>

#include "promql/parse.h"
#include "tests/lib/test.h"

struct wrong {
    const char *text, *message;
};

static void check(const struct wrong *wrong, size_t count, const struct pq_parse_options *options)
{
    for (size_t i = 0; i < count; i++) {
        QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf got = QF_STRBUF_INIT;
        struct pq_expr *node;
        struct qf_err err = { 0 };

        if (pq_parse(arena, qf_str_from(wrong[i].text), options, &node, &err) != QF_EPARSE)
            test_fail(__FILE__, __LINE__, "%s: no parse error", wrong[i].text);
        pq_parse_error_print(&got, qf_str_from(wrong[i].text), &err);
        if (strcmp(qf_strbuf_cstr(&got), wrong[i].message) != 0)
            test_fail(__FILE__, __LINE__, "%s\n  got  %s\n  want %s", wrong[i].text,
                      qf_strbuf_cstr(&got), wrong[i].message);
        CHECK(err.pos_start <= err.pos_end && err.pos_end <= strlen(wrong[i].text));
    }
}

TEST(syntax_errors_name_the_place_and_what_was_expected)
{
    static const struct wrong wrong[] = {
        { "", "unknown position: parse error: no expression found in input" },
        { " ", "1:1: parse error: no expression found in input" },
        { "# nothing", "1:1: parse error: no expression found in input" },
        { "foo bar", "1:5: parse error: unexpected identifier \"bar\"" },
        { "foo = 1", "1:5: parse error: unexpected \"=\"" },
        { "foo =~ \"x\"", "1:5: parse error: unexpected character after '=': '~'" },
        { "foo ! bar", "1:5: parse error: unexpected character after '!': ' '" },
        { "foo !", "1:5: parse error: unexpected character after '!': '\xef\xbf\xbd'" },
        { "foo &", "1:5: parse error: unexpected character: '&'" },
        { "foo;", "1:4: parse error: unexpected character: ';'" },
        { "\xc3\xa4", "1:1: parse error: unexpected character: '\xc3\xa4'" },
        { "foo)", "1:5: parse error: unexpected right parenthesis ')'" },
        { "(foo", "1:5: parse error: unclosed left parenthesis" },
        { "foo]", "1:4: parse error: unexpected right bracket ']'" },
        { "foo}", "1:4: parse error: unexpected character: '}'" },
        { "foo[5m", "1:7: parse error: unclosed left bracket" },
        { "foo[", "1:5: parse error: unexpected end of input in duration expression" },
        { "foo[5m}", "1:7: parse error: unexpected character: '}'" },
        { "foo[5m)", "1:8: parse error: unexpected right parenthesis ')'" },
        { "foo[[5m]]", "1:5: parse error: unexpected character in duration expression: '['" },
        { "foo[5m[", "1:7: parse error: unexpected left bracket '['" },
        { "foo[x]", "1:5: parse error: unexpected character in duration expression: 'x'" },
        { "foo[5m x]", "1:8: parse error: unexpected character: 'x', expected ':'" },
        { "foo[:5m]", "1:6: parse error: unexpected colon before duration in duration expression" },
        { "foo[5m::]", "1:8: parse error: unexpected colon ':'" },
        { "foo[step()::]", "1:13: parse error: unexpected repeated colon in duration expression" },
        { "foo[5m 6m]", "1:8: parse error: unexpected duration \"6m\" in subquery or range "
                        "selector, expected \":\" or \"]\"" },
        { "foo[5m:6m 7m]",
          "1:11: parse error: unexpected duration \"7m\" in subquery selector, expected \"]\"" },
        { "foo[5m:*]", "1:8: parse error: unexpected <op:*> in subquery selector, expected number, "
                       "duration, step(), range(), or \"]\"" },
        { "foo[]", "1:5: parse error: unexpected \"]\" in subquery or range selector, expected "
                   "number, duration, step(), or range()" },
        { "foo[5m+]", "1:8: parse error: unexpected \"]\" in subquery or range selector, expected "
                      "number, duration, step(), or range()" },
        { "foo[1.5h]", "1:5: parse error: unknown unit \".\" in duration \"1.5h\"" },
        { "foo[5x]", "1:5: parse error: bad number or duration syntax: \"5\"" },
        { "foo[5M]", "1:5: parse error: bad number or duration syntax: \"5\"" },
        { "foo[1m1h]", "1:5: parse error: not a valid duration string: \"1m1h\"" },
        { "foo[9999999y]", "1:5: parse error: duration out of range" },
        { "foo[0s]", "1:5: parse error: duration must be greater than 0" },
        { "foo offset", "1:11: parse error: unexpected end of input in offset, expected number, "
                        "duration, step(), or range()" },
        { "foo offset bar", "1:12: parse error: unexpected identifier \"bar\" in offset, expected "
                            "number, duration, step(), or range()" },
        { "foo @ bar", "1:7: parse error: unexpected identifier \"bar\" in @, expected timestamp" },
        { "foo @ start", "1:12: parse error: unexpected end of input in @, expected timestamp" },
        { "foo{a=b}", "1:7: parse error: unexpected identifier \"b\" in label matching, expected "
                      "string" },
        { "foo{a}", "1:6: parse error: unexpected \"}\" in label matching, expected label matching "
                    "operator" },
        { "foo{a=\"b\" c=\"d\"}",
          "1:11: parse error: unexpected identifier \"c\" in label matching, "
          "expected \",\" or \"}\"" },
        { "foo{a=\"b\"", "1:10: parse error: unexpected end of input inside braces" },
        { "foo{a==\"b\"}",
          "1:7: parse error: unexpected \"=\" in label matching, expected string" },
        { "foo{a!\"b\"}", "1:6: parse error: unexpected character after '!' inside braces: '\"'" },
        { "foo{{a}}", "1:5: parse error: unexpected left brace '{'" },
        { "foo{a-b=\"c\"}", "1:6: parse error: unexpected character inside braces: '-'" },
        { "foo{a=\"b}", "1:7: parse error: unterminated quoted string" },
        { "foo{a=\"\\d\"}", "1:7: parse error: unknown escape sequence U+0064 'd'" },
        { "foo{a=\"\\u12\"}",
          "1:7: parse error: illegal character U+0022 '\"' in escape sequence" },
        { "foo{a=\"\\ud800\"}",
          "1:7: parse error: escape sequence is an invalid Unicode code point" },
        { "foo{a=~\"(\"}", "1:5: parse error: error parsing regexp: missing closing ): `(`" },
        { "foo{a=~\"[b\"}", "1:5: parse error: error parsing regexp: missing closing ]: `[b`" },
        { "foo{a=~\"*\"}",
          "1:5: parse error: error parsing regexp: missing argument to repetition operator: `*`" },
        { "sum by foo (bar)",
          "1:8: parse error: unexpected identifier \"foo\" in grouping opts, expected \"(\"" },
        { "sum by (a b) (c)", "1:11: parse error: unexpected identifier \"b\" in grouping opts, "
                              "expected \",\" or \")\"" },
        { "sum by (1) (c)",
          "1:9: parse error: unexpected number \"1\" in grouping opts, expected label" },
        { "sum by (\"\") (c)", "1:9: parse error: invalid label name for grouping: \"\\\"\\\"\"" },
        { "sum by (a) b", "1:12: parse error: unexpected identifier \"b\" in aggregation" },
        { "sum(a b)", "1:7: parse error: unexpected identifier \"b\" in aggregation" },
        { "sum(rate(a[5m]) b)", "1:17: parse error: unexpected identifier \"b\" in aggregation" },
        { "rate(a[5m] b)", "1:12: parse error: unexpected identifier \"b\"" },
        { "rate(a[5m],)", "1:11: parse error: trailing commas not allowed in function call args" },
        { "sum()", "1:1: parse error: no arguments for aggregate expression provided" },
        { "Rate(foo[5m])", "1:1: parse error: unknown function with name \"Rate\"" },
        { "foo + on(a) on(b) bar", "1:13: parse error: unexpected <on>" },
        { "foo +\n  * bar", "2:3: parse error: unexpected <op:*>" },
        { "foo \"a rather long string\"",
          "1:5: parse error: unexpected string \"\\\"a rather \"..." },
        { "1_ + 2",
          "1:1: parse error: error parsing number: strconv.ParseFloat: parsing \"1_\": invalid "
          "syntax" },
        { "1e999", "1:1: parse error: error parsing number: strconv.ParseFloat: parsing \"1e999\": "
                   "value out of range" },
    };

    check(wrong, QF_COUNT_OF(wrong), NULL);
}

TEST(type_errors_name_both_types)
{
    static const struct wrong wrong[] = {
        { "rate(foo)", "1:6: parse error: expected type range vector in call to function \"rate\", "
                       "got instant vector" },
        { "sum(foo[5m])", "1:5: parse error: expected type instant vector in aggregation "
                          "expression, got range vector" },
        { "topk(foo, bar)",
          "1:6: parse error: expected type scalar in aggregation parameter, got instant vector" },
        { "topk(foo, bar[1m])", "1:11: parse error: expected type instant vector in aggregation "
                                "expression, got range vector" },
        { "topk(-\"a\", {})",
          "1:12: parse error: vector selector must contain at least one non-empty matcher" },
        { "foo[5m] + 1", "1:1: parse error: binary expression must contain only scalar and instant "
                         "vector types" },
        { "1 + \"a\"", "1:5: parse error: binary expression must contain only scalar and instant "
                       "vector types" },
        { "1 == 1", "1:3: parse error: comparisons between scalars must use BOOL modifier" },
        { "foo + bool bar",
          "1:5: parse error: bool modifier can only be used on comparison operators" },
        { "foo and 1",
          "1:1: parse error: set operator \"and\" not allowed in binary scalar expression" },
        { "1 + on(a) foo",
          "1:1: parse error: vector matching only allowed between instant vectors" },
        { "foo and on(a) group_left bar",
          "1:1: parse error: no grouping allowed for \"and\" operation" },
        { "foo + on(a) group_left(a) bar",
          "1:5: parse error: label \"a\" must not occur in ON and GROUP clause at once" },
        { "-\"a\"", "1:1: parse error: unary expression only allowed on expressions of type scalar "
                    "or instant vector, got \"string\"" },
        { "1[5m:]",
          "1:1: parse error: subquery is only allowed on instant vector, got scalar instead" },
        { "(foo)[5m]", "1:6: parse error: ranges only allowed for vector selectors" },
        { "foo offset 1m[5m]", "1:14: parse error: no offset modifiers allowed before range" },
        { "foo @ 1 [5m]", "1:9: parse error: no @ modifiers allowed before range" },
        { "foo offset 1m offset 2m", "1:1: parse error: offset may not be set multiple times" },
        { "foo @ 1 @ 2", "1:1: parse error: @ <timestamp> may not be set multiple times" },
        { "(foo) offset 1m", "1:1: parse error: offset modifier must be preceded by an instant "
                             "vector selector or range vector selector or a subquery" },
        { "sum(foo) @ 1", "1:1: parse error: @ modifier must be preceded by an instant vector "
                          "selector or range vector selector or a subquery" },
        { "foo @ 1e30", "1:1: parse error: timestamp out of bounds for @ modifier: "
                        "1000000000000000019884624838656.000000" },
        { "{}", "1:1: parse error: vector selector must contain at least one non-empty matcher" },
        { "{a=~\".*\"} offset 5m",
          "1:1: parse error: vector selector must contain at least one non-empty matcher" },
        { "foo{__name__=\"bar\"}",
          "1:1: parse error: metric name must not be set twice: \"foo\" or \"bar\"" },
        { "foo{\"bar\"}",
          "1:1: parse error: metric name must not be set twice: \"foo\" or \"bar\"" },
        { "round()",
          "1:1: parse error: expected at least 1 argument(s) in call to \"round\", got 0" },
        { "round(foo, 1, 2)",
          "1:1: parse error: expected at most 2 argument(s) in call to \"round\", got 3" },
        { "rate({}, {})", "1:1: parse error: expected 1 argument(s) in call to \"rate\", got 2" },
        { "label_join(foo)",
          "1:1: parse error: expected at least 3 argument(s) in call to \"label_join\", got 1" },
        { "label_join(foo, \"a\", \"b\", \"c\", 1)",
          "1:32: parse error: expected type string in call to function \"label_join\", got "
          "scalar" },
        { "topk(1)", "1:1: parse error: wrong number of arguments for aggregate expression "
                     "provided, expected 2, got 1" },
        { "foo[5s/0]", "1:7: parse error: division by zero" },
        { "foo[5s%0]", "1:7: parse error: modulo by zero" },
    };

    check(wrong, QF_COUNT_OF(wrong), NULL);
}

/* A syntax error wins over a type error that stands before it. */
TEST(the_first_syntax_error_is_reported_before_any_type_error)
{
    static const struct wrong wrong[] = {
        { "rate(foo) +", "1:12: parse error: unexpected end of input" },
        { "{} + nosuch(1)", "1:6: parse error: unknown function with name \"nosuch\"" },
        { "nosuch(1) &", "1:1: parse error: unknown function with name \"nosuch\"" },
    };

    check(wrong, QF_COUNT_OF(wrong), NULL);
}

TEST(syntax_behind_a_flag_says_so)
{
    static const struct wrong wrong[] = {
        { "mad_over_time(foo[5m])", "1:1: parse error: function \"mad_over_time\" is not enabled" },
        { "1 + start()", "1:5: parse error: function \"start\" is not enabled" },
        { "limitk(1, foo)", "1:1: parse error: limitk() is experimental and must be enabled with "
                            "--enable-feature=promql-experimental-functions" },
        { "foo anchored", "1:1: parse error: anchored modifier is experimental and not enabled" },
        { "rate(foo[5m] smoothed)",
          "1:6: parse error: smoothed modifier is experimental and not enabled" },
        { "1 + (a + on(x) fill_left(1) b)",
          "1:6: parse error: binop fill modifiers are experimental and not enabled" },
    };
    static const struct wrong durations[] = {
        { "foo[5m + 1]", "1:5: parse error: experimental duration expression is not enabled" },
    };
    static const struct wrong enabled[] = {
        { "foo[5m:] anchored",
          "1:1: parse error: anchored modifier is not supported for subqueries" },
        { "(foo) smoothed", "1:1: parse error: smoothed modifier not implemented" },
        { "foo anchored smoothed",
          "1:1: parse error: anchored and smoothed modifiers cannot be used together" },
        { "info(foo, bar{a=\"b\"})",
          "1:11: parse error: expected label selectors only, got vector selector instead" },
        { "info(foo, {a=\"b\"} + 1)", "1:11: parse error: expected label selectors only" },
        { "foo and fill(0) bar",
          "1:1: parse error: filling in missing series not allowed for set operators" },
        { "foo + fill(0) 1",
          "1:1: parse error: filling in missing series only allowed between instant vectors" },
    };

    check(wrong, QF_COUNT_OF(wrong), NULL);
    check(durations, QF_COUNT_OF(durations),
          &(struct pq_parse_options){ .no_duration_expressions = true });
    check(enabled, QF_COUNT_OF(enabled),
          &(struct pq_parse_options){ .experimental_functions = true,
                                      .extended_range_selectors = true,
                                      .fill_modifiers = true });
}

TEST(a_bare_selector_parses_alone)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    const struct pq_matcher *matchers = NULL;
    struct qf_err err = { 0 };
    size_t count = 0;

    CHECK_OK(pq_parse_selector(arena, QF_STR("foo{a=\"b\"}"), NULL, &matchers, &count, &err), &err);
    CHECK_EQ(count, 2);
    CHECK(qf_str_is(matchers[0].name, "a"));
    CHECK(qf_str_is(matchers[1].value, "foo"));
    CHECK_OK(pq_parse_selector(arena, QF_STR("{a=~\".*\"}"), NULL, &matchers, &count, &err), &err);
    CHECK_EQ(count, 1);
    CHECK_EQ(pq_parse_selector(arena, QF_STR("sum(x)"), NULL, &matchers, &count, &err), QF_EPARSE);
    CHECK_STR(err.msg, "unexpected \"(\"");
    CHECK_EQ(err.pos_start, 3);
    err = (struct qf_err){ 0 };
    CHECK_EQ(pq_parse_selector(arena, QF_STR(""), NULL, &matchers, &count, &err), QF_EPARSE);
    CHECK_STR(err.msg, "unexpected end of input");
}
