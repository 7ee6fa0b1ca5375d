/* script_eval.c - eval blocks: the query, what to expect of it. */
#include <stdlib.h>
#include <string.h>

#include "base/pure/number.h"
#include "base/regex/regex.h"
#include "tests/promqltest/script_int.h"

static void free_regex(void *regex)
{
    (void)qf_regex_free(regex);
}

static const struct qf_regex *compile(struct qf_arena *arena, struct qf_str pattern,
                                      struct qf_err *err)
{
    char reason[200];
    struct qf_regex *regex =
        qf_regex_new_unanchored(pattern.data, pattern.len, reason, sizeof(reason));

    if (!regex) {
        qf_err_set(err, QF_EINVAL, "bad regular expression \"%.*s\": %s", QF_STR_ARG(pattern),
                   reason);
        return NULL;
    }
    if (!qf_arena_defer(arena, free_regex, regex)) {
        (void)qf_regex_free(regex);
        qf_err_set(err, QF_ELIMIT, "the script is too large");
        return NULL;
    }
    return regex;
}

/* "", "msg: text" or "regex: pattern". */
static qf_rc read_matcher(struct qf_arena *arena, struct qf_str rest, struct script_expect *ret,
                          struct qf_err *err)
{
    *ret = (struct script_expect){ 0 };
    if (rest.len == 0)
        return QF_OK;
    if (qf_str_starts(rest, QF_STR("msg:"))) {
        ret->text = qf_str_trim(qf_str_sub(rest, 4, rest.len));
        ret->has_text = true;
        return QF_OK;
    }
    if (qf_str_starts(rest, QF_STR("regex:"))) {
        ret->regex = compile(arena, qf_str_trim(qf_str_sub(rest, 6, rest.len)), err);
        return ret->regex ? QF_OK : err->rc;
    }
    return qf_err_set(err, QF_EINVAL, "bad matcher \"%.*s\"", QF_STR_ARG(rest));
}

static qf_rc push_expect(struct qf_arena *arena, struct qf_str rest, struct script_expects *ret,
                         struct qf_err *err)
{
    if (ret->count == SCRIPT_EXPECTS_MAX)
        return qf_err_set(err, QF_EINVAL, "too many expect lines");
    return read_matcher(arena, rest, &ret->items[ret->count++], err);
}

/* `expect range vector from <a> to <b> step <s>` */
static qf_rc read_range_vector(struct qf_str rest, struct script_eval *eval, struct qf_err *err)
{
    static const char *const words[] = { "from", "to", "step" };
    int64_t *const targets[] = { &eval->vector_start_ms, &eval->vector_end_ms,
                                 &eval->vector_step_ms };

    for (size_t i = 0; i < 3; i++) {
        struct qf_str word = next_word(&rest);
        qf_rc rc;

        if (!qf_str_is(word, words[i]))
            return qf_err_set(err, QF_EINVAL, "expected \"%s\" in a range vector line", words[i]);
        rc = read_duration(next_word(&rest), targets[i], err);
        if (rc != QF_OK)
            return rc;
    }
    eval->range_vector = true;
    /* The last point decides when the query is run. */
    eval->start_ms = eval->end_ms = eval->vector_end_ms;
    return QF_OK;
}

static qf_rc read_string(struct qf_arena *arena, struct qf_str rest, struct script_eval *eval,
                         struct qf_err *err)
{
    struct pq_expr *expr;
    qf_rc rc = pq_parse(arena, rest, &script_parse_options, &expr, err);

    if (rc != QF_OK)
        return rc;
    if (expr->kind != PQ_STRING)
        return qf_err_set(err, QF_EINVAL, "expected a string");
    eval->has_string = true;
    eval->string = expr->string.value;
    return QF_OK;
}

static qf_rc read_failure(struct qf_arena *arena, struct qf_str rest, struct script_eval *eval,
                          struct qf_err *err)
{
    if (eval->fail && (eval->failure.has_text || eval->failure.regex))
        return qf_err_set(err, QF_EINVAL, "more than one expect fail");
    eval->fail = true;
    return read_matcher(arena, rest, &eval->failure, err);
}

static qf_rc read_expect(struct qf_arena *arena, struct qf_str line, struct script_eval *eval,
                         struct qf_err *err)
{
    struct qf_str rest = line, word;

    (void)next_word(&rest); /* "expect" */
    if (qf_str_starts(rest, QF_STR("range vector")))
        return read_range_vector(qf_str_sub(rest, strlen("range vector"), rest.len), eval, err);
    word = next_word(&rest);
    if (qf_str_is(word, "string"))
        return read_string(arena, rest, eval, err);
    if (qf_str_is(word, "fail"))
        return read_failure(arena, rest, eval, err);
    if (qf_str_is(word, "warn"))
        return push_expect(arena, rest, &eval->warnings, err);
    if (qf_str_is(word, "info"))
        return push_expect(arena, rest, &eval->infos, err);
    if (qf_str_is(word, "ordered"))
        eval->ordered = true;
    else if (qf_str_is(word, "no_warn"))
        eval->warnings.none = true;
    else if (qf_str_is(word, "no_info"))
        eval->infos.none = true;
    else
        return qf_err_set(err, QF_EINVAL, "unknown expectation \"%.*s\"", QF_STR_ARG(word));
    return QF_OK;
}

/* The lines of before `expect`: a message the failure must have. */
static qf_rc read_legacy_failure(struct qf_arena *arena, struct qf_str line,
                                 struct script_eval *eval, struct qf_err *err)
{
    struct qf_str rest = line;
    bool regex = qf_str_is(next_word(&rest), "expected_fail_regexp");

    eval->failure = (struct script_expect){ 0 };
    if (!regex) {
        eval->failure.text = rest;
        eval->failure.has_text = true;
        return QF_OK;
    }
    eval->failure.regex = compile(arena, rest, err);
    return eval->failure.regex ? QF_OK : err->rc;
}

static qf_rc read_expected_series(struct qf_arena *arena, struct qf_str line,
                                  struct script_eval *eval, struct qf_err *err)
{
    struct script_expected series = { 0 };
    size_t at = 0;
    qf_rc rc = pq_parse_series(arena, line, &series.labels, &series.values, &series.count, err);

    if (rc != QF_OK)
        return rc;
    for (size_t i = 0; i < series.count; i++)
        eval->has_histogram |= series.values[i].histogram != NULL;
    while (at < eval->series_count && !qf_labels_eq(eval->series[at].labels, series.labels))
        at++;
    series.order = at;
    eval->series[at] = series;
    if (at == eval->series_count)
        eval->series_count++;
    return QF_OK;
}

/* Numbers as Go reads them with base 0 or as floats. */
static bool read_number(struct qf_str line, double *ret_value)
{
    char buf[64], *end;
    long long whole;

    if (line.len == 0 || line.len >= sizeof(buf) || strchr("{\"", line.data[0]))
        return false;
    if (qf_parse_double(line, ret_value) &&
        !(line.len > 1 && line.data[0] == '0' && strspn(line.data, "01234567") >= line.len))
        return true;
    memcpy(buf, line.data, line.len);
    buf[line.len] = '\0';
    whole = strtoll(buf, &end, 0);
    *ret_value = (double)whole;
    return *end == '\0' && end != buf;
}

static qf_rc take_keyword(struct qf_str *rest, const char *keyword, struct qf_err *err)
{
    if (qf_str_is(next_word(rest), keyword))
        return QF_OK;
    return qf_err_set(err, QF_EINVAL, "expected \"%s\"", keyword);
}

static qf_rc take_time(struct qf_str *rest, const char *keyword, int64_t *ret_ms,
                       struct qf_err *err)
{
    qf_rc rc = take_keyword(rest, keyword, err);

    return rc == QF_OK ? read_duration(next_word(rest), ret_ms, err) : rc;
}

/* `eval[_ordered|_fail|_warn|_info] instant at T QUERY` or `... range from A to B step S QUERY` */
static qf_rc read_head(struct qf_str line, struct script_eval *eval, struct qf_err *err)
{
    struct qf_str rest = line, word = next_word(&rest), mode = next_word(&rest);
    qf_rc rc;

    *eval = (struct script_eval){ .range = qf_str_is(mode, "range") };
    eval->ordered = qf_str_is(word, "eval_ordered");
    eval->fail = qf_str_is(word, "eval_fail");
    eval->warnings.count = qf_str_is(word, "eval_warn");
    eval->infos.count = qf_str_is(word, "eval_info");
    if (!eval->range && !qf_str_is(mode, "instant"))
        return qf_err_set(err, QF_EINVAL, "expected \"instant\" or \"range\"");
    if (eval->range) {
        rc = take_time(&rest, "from", &eval->start_ms, err);
        if (rc == QF_OK)
            rc = take_time(&rest, "to", &eval->end_ms, err);
        if (rc == QF_OK)
            rc = take_time(&rest, "step", &eval->step_ms, err);
    } else {
        rc = take_time(&rest, "at", &eval->start_ms, err);
        eval->end_ms = eval->start_ms;
    }
    eval->query = rest;
    return rc;
}

static qf_rc check_counts(const struct script_eval *eval, struct qf_err *err)
{
    int64_t start = eval->range ? eval->start_ms : eval->vector_start_ms;
    int64_t end = eval->range ? eval->end_ms : eval->vector_end_ms;
    int64_t step = eval->range ? eval->step_ms : eval->vector_step_ms;

    if (eval->warnings.none && eval->warnings.count)
        return qf_err_set(err, QF_EINVAL, "expects both warnings and none");
    if (eval->infos.none && eval->infos.count)
        return qf_err_set(err, QF_EINVAL, "expects both infos and none");
    for (size_t i = 0; i < eval->series_count; i++) {
        size_t count = eval->series[i].count;

        if (!eval->range && !eval->range_vector && count != 1)
            return qf_err_set(err, QF_EINVAL, "an instant eval expects one value per series");
        if ((eval->range || eval->range_vector) && count > 0 && step > 0 &&
            (int64_t)(count - 1) * step + start > end)
            return qf_err_set(err, QF_EINVAL, "more values than steps");
    }
    return QF_OK;
}

qf_rc read_eval(struct qf_arena *arena, const struct lines *lines, size_t *at,
                struct script_eval *ret, struct qf_err *err)
{
    size_t end = *at + 1;
    bool done = false;
    qf_rc rc = read_head(lines->items[(*at)++], ret, err);

    while (end < lines->count && lines->items[end].len)
        end++;
    ret->series = QF_ARENA_ARRAY(arena, struct script_expected, end - *at + 1);
    if (rc == QF_OK && !ret->series)
        rc = qf_err_set(err, QF_ELIMIT, "the script is too large");
    for (; rc == QF_OK && !done && *at < end; (*at)++) {
        struct qf_str line = lines->items[*at], rest = line;
        struct qf_str word = next_word(&rest);

        if (qf_str_is(word, "expect")) {
            rc = read_expect(arena, line, ret, err);
        } else if (qf_str_starts(word, QF_STR("expected_fail_"))) {
            rc = read_legacy_failure(arena, line, ret, err);
            done = true;
        } else if (read_number(line, &ret->scalar)) {
            ret->has_scalar = true;
            done = true;
        } else {
            rc = read_expected_series(arena, line, ret, err);
        }
        if (rc != QF_OK)
            return qf_err_prefix(err, rc, "line %zu", *at + 1);
    }
    return rc == QF_OK ? check_counts(ret, err) : rc;
}
