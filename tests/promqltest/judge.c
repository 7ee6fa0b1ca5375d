/* judge.c - answers against expectations. */
#include "tests/promqltest/judge.h"

#include <float.h>
#include <math.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/regex/regex.h"
#include "promql/func/histogram.h"
#include "tests/promqltest/histogram.h"

#define EPSILON 1e-6

bool judge_float(double got, double want)
{
    double sum = fabs(got) + fabs(want), diff = fabs(got - want);

    if (qf_is_stale(got) || qf_is_stale(want))
        return qf_is_stale(got) && qf_is_stale(want);
    if (isnan(got) && isnan(want))
        return true;
    if (got == want)
        return true;
    if (got == 0 || want == 0 || sum < DBL_MIN)
        return diff < EPSILON * DBL_MIN;
    return diff / fmin(sum, DBL_MAX) < EPSILON;
}

static void add_number(struct qf_strbuf *why, double value)
{
    char text[QF_DOUBLE_TEXT_MAX];

    qf_strbuf_add(why, text, qf_double_g(value, text));
}

static void add_value(struct qf_strbuf *why, double value, const struct pq_histogram *histogram)
{
    if (histogram)
        histogram_print(why, histogram);
    else
        add_number(why, value);
}

static void add_got_vector(struct qf_strbuf *why, const struct pq_result *result)
{
    qf_strbuf_puts(why, "\n    got:");
    for (size_t i = 0; i < result->series_count && i < 20; i++) {
        const struct pq_result_series *series = &result->series[i];

        qf_strbuf_puts(why, "\n      ");
        qf_labels_print(why, series->labels);
        for (size_t p = 0; p < series->count && p < 12; p++) {
            qf_strbuf_putc(why, ' ');
            add_value(why, series->values[p], series->histograms ? series->histograms[p] : NULL);
            qf_strbuf_printf(why, "@%lld", (long long)series->ts[p]);
        }
    }
    if (result->series_count == 0)
        qf_strbuf_puts(why, " nothing");
}

static const struct script_expected *find_expected(const struct script_eval *eval,
                                                   struct qf_labels labels)
{
    for (size_t i = 0; i < eval->series_count; i++)
        if (qf_labels_eq(eval->series[i].labels, labels))
            return &eval->series[i];
    return NULL;
}

/* Every expected series came: @seen has a flag for each. */
static bool all_seen(const struct script_eval *eval, const bool *seen, struct qf_strbuf *why)
{
    for (size_t i = 0; i < eval->series_count; i++) {
        if (seen[i])
            continue;
        qf_strbuf_puts(why, "expected but missing: ");
        qf_labels_print(why, eval->series[i].labels);
        return false;
    }
    return true;
}

static const struct pq_histogram *histogram_of(const struct pq_result_series *series, size_t p)
{
    return series->histograms ? series->histograms[p] : NULL;
}

static bool same_value(const struct pq_result_series *series, size_t p,
                       const struct pq_sequence_value *want, struct qf_strbuf *why)
{
    const struct pq_histogram *histogram = histogram_of(series, p);

    if (histogram && want->histogram && histogram_matches(histogram, want->histogram))
        return true;
    if (!histogram && !want->histogram && judge_float(series->values[p], want->value))
        return true;
    qf_labels_print(why, series->labels);
    qf_strbuf_printf(why, " at %lld: expected ", (long long)series->ts[p]);
    add_value(why, want->value, want->histogram);
    qf_strbuf_puts(why, ", got ");
    add_value(why, series->values[p], histogram);
    return false;
}

static bool judge_vector_point(const struct script_eval *eval,
                               const struct pq_result_series *series, size_t point, size_t position,
                               bool *seen, struct qf_strbuf *why)
{
    const struct script_expected *want = find_expected(eval, series->labels);

    if (!want) {
        qf_strbuf_puts(why, "unexpected series ");
        qf_labels_print(why, series->labels);
        return false;
    }
    if (position != SIZE_MAX && want->order != position) {
        qf_strbuf_puts(why, "wrong order: ");
        qf_labels_print(why, series->labels);
        qf_strbuf_printf(why, " expected at position %zu, got %zu", want->order + 1, position + 1);
        return false;
    }
    if (seen[want->order]) {
        qf_strbuf_puts(why, "series twice: ");
        qf_labels_print(why, series->labels);
        return false;
    }
    seen[want->order] = true;
    return same_value(series, point, &want->values[0], why);
}

static bool judge_vector(const struct script_eval *eval, const struct pq_result *result,
                         struct qf_strbuf *why)
{
    QF_CLEANUP(qf_freep) bool *seen = qf_xcalloc(eval->series_count + 1, sizeof(*seen));

    if (eval->has_scalar || eval->has_string || eval->range_vector) {
        qf_strbuf_puts(why, "got a vector, expected something else");
        return false;
    }
    for (size_t i = 0; i < result->series_count; i++)
        if (!judge_vector_point(eval, &result->series[i], 0, eval->ordered ? i : SIZE_MAX, seen,
                                why))
            return false;
    return all_seen(eval, seen, why);
}

static bool is_sorted(const struct pq_result *result, struct qf_strbuf *why)
{
    for (size_t i = 1; i < result->series_count; i++) {
        if (qf_labels_cmp(result->series[i - 1].labels, result->series[i].labels) < 0)
            continue;
        qf_strbuf_puts(why, "the matrix is not sorted by labels at ");
        qf_labels_print(why, result->series[i].labels);
        return false;
    }
    return true;
}

/* One series of a matrix, point by point. */
static bool judge_matrix_series(const struct pq_result_series *series,
                                const struct script_expected *want, int64_t start, int64_t step,
                                struct qf_strbuf *why)
{
    size_t p = 0;

    for (size_t i = 0; i < want->count; i++) {
        int64_t ts = start + (int64_t)i * step;

        if (want->values[i].omitted)
            continue;
        if (p == series->count || series->ts[p] != ts) {
            qf_labels_print(why, series->labels);
            qf_strbuf_printf(why, ": expected a point at %lld, got ", (long long)ts);
            if (p == series->count)
                qf_strbuf_puts(why, "none");
            else
                qf_strbuf_printf(why, "one at %lld", (long long)series->ts[p]);
            return false;
        }
        if (!same_value(series, p, &want->values[i], why))
            return false;
        p++;
    }
    if (p < series->count) {
        qf_labels_print(why, series->labels);
        qf_strbuf_printf(why, ": unexpected point at %lld", (long long)series->ts[p]);
        return false;
    }
    return true;
}

static bool judge_matrix(const struct script_eval *eval, const struct pq_result *result,
                         struct qf_strbuf *why)
{
    QF_CLEANUP(qf_freep) bool *seen = qf_xcalloc(eval->series_count + 1, sizeof(*seen));
    int64_t start = eval->range ? eval->start_ms : eval->vector_start_ms;
    int64_t step = eval->range ? eval->step_ms : eval->vector_step_ms;

    if (!eval->range && !eval->range_vector) {
        qf_strbuf_puts(why, "got a matrix, expected something else");
        return false;
    }
    if (!is_sorted(result, why))
        return false;
    for (size_t i = 0; i < result->series_count; i++) {
        const struct script_expected *want = find_expected(eval, result->series[i].labels);

        if (!want) {
            qf_strbuf_puts(why, "unexpected series ");
            qf_labels_print(why, result->series[i].labels);
            return false;
        }
        seen[want->order] = true;
        if (!judge_matrix_series(&result->series[i], want, start, step, why))
            return false;
    }
    return all_seen(eval, seen, why);
}

static bool judge_scalar(const struct script_eval *eval, double got, struct qf_strbuf *why)
{
    if (!eval->has_scalar) {
        qf_strbuf_puts(why, "got a scalar, expected something else");
        return false;
    }
    if (judge_float(got, eval->scalar))
        return true;
    qf_strbuf_puts(why, "expected scalar ");
    add_number(why, eval->scalar);
    qf_strbuf_puts(why, ", got ");
    add_number(why, got);
    return false;
}

static bool judge_string(const struct script_eval *eval, struct qf_str got, struct qf_strbuf *why)
{
    if (eval->has_string && qf_str_eq(got, eval->string))
        return true;
    qf_strbuf_puts(why, "got string ");
    qf_strbuf_quote(why, got);
    qf_strbuf_puts(why, ", expected ");
    if (eval->has_string)
        qf_strbuf_quote(why, eval->string);
    else
        qf_strbuf_puts(why, "something else");
    return false;
}

bool judge_result(const struct script_eval *eval, const struct pq_result *result,
                  struct qf_strbuf *why)
{
    bool good = false;

    switch (result->type) {
    case PQ_TYPE_SCALAR:
        return judge_scalar(eval, result->scalar, why);
    case PQ_TYPE_STRING:
        return judge_string(eval, result->string, why);
    case PQ_TYPE_VECTOR:
        good = judge_vector(eval, result, why);
        break;
    case PQ_TYPE_MATRIX:
        good = judge_matrix(eval, result, why);
        break;
    case PQ_TYPE_NONE:
        qf_strbuf_puts(why, "an answer of no type");
        break;
    }
    if (!good)
        add_got_vector(why, result);
    return good;
}

/* The point of @series at @at_ms, or SIZE_MAX. */
static size_t point_at(const struct pq_result_series *series, int64_t at_ms)
{
    for (size_t p = 0; p < series->count; p++)
        if (series->ts[p] == at_ms)
            return p;
    return SIZE_MAX;
}

bool judge_point(const struct script_eval *eval, const struct pq_result *result, int64_t at_ms,
                 bool scalar, struct qf_strbuf *why)
{
    QF_CLEANUP(qf_freep) bool *seen = qf_xcalloc(eval->series_count + 1, sizeof(*seen));
    bool good = is_sorted(result, why);

    if (result->type != PQ_TYPE_MATRIX) {
        qf_strbuf_puts(why, "a range query that answers no matrix");
        return false;
    }
    for (size_t i = 0; good && i < result->series_count; i++) {
        size_t p = point_at(&result->series[i], at_ms);

        if (p == SIZE_MAX)
            continue;
        if (scalar)
            return judge_scalar(eval, result->series[i].values[p], why);
        good = judge_vector_point(eval, &result->series[i], p, SIZE_MAX, seen, why);
    }
    if (good && scalar) {
        qf_strbuf_puts(why, "no point for the scalar");
        good = false;
    }
    good = good && all_seen(eval, seen, why);
    if (!good)
        add_got_vector(why, result);
    return good;
}

static bool matches(const struct script_expect *expect, struct qf_str text)
{
    if (expect->has_text)
        return qf_str_eq(expect->text, text);
    return !expect->regex || qf_regex_match(expect->regex, text.data, text.len);
}

bool judge_failure(const struct script_eval *eval, const char *message, struct qf_strbuf *why)
{
    if (matches(&eval->failure, qf_str_from(message)))
        return true;
    qf_strbuf_printf(why, "failed as expected, but said: %s", message);
    return false;
}

/* Notes of one level: each must be expected, each expectation met. */
static bool judge_level(const struct script_expects *expects, enum pq_note_level level,
                        const struct pq_notes *notes, struct qf_str query, struct qf_strbuf *why)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    const char *name = level == PQ_NOTE_WARNING ? "warning" : "info";
    bool met[SCRIPT_EXPECTS_MAX] = { false };

    for (size_t i = 0; i < notes->count; i++) {
        bool expected = false;

        if (notes->items[i].level != level || !(expects->none || expects->count))
            continue;
        qf_strbuf_reset(&text);
        pq_note_print(&text, &notes->items[i], query);
        for (size_t e = 0; e < expects->count; e++) {
            if (matches(&expects->items[e], qf_strbuf_view(&text)))
                expected = met[e] = true;
        }
        if (!expected) {
            qf_strbuf_printf(why, "unexpected %s: %s", name, qf_strbuf_cstr(&text));
            return false;
        }
    }
    for (size_t e = 0; e < expects->count; e++) {
        if (!met[e]) {
            qf_strbuf_printf(why, "expected %s did not come: %.*s", name,
                             QF_STR_ARG(expects->items[e].text));
            return false;
        }
    }
    return true;
}

bool judge_notes(const struct script_eval *eval, const struct pq_notes *notes, struct qf_str query,
                 struct qf_strbuf *why)
{
    return judge_level(&eval->warnings, PQ_NOTE_WARNING, notes, query, why) &&
           judge_level(&eval->infos, PQ_NOTE_INFO, notes, query, why);
}

/* A NaN is a NaN: its sign depends on the order of operations and is never shown. */
static bool same_bits(double got, double want)
{
    return qf_double_bits(got) == qf_double_bits(want) || (isnan(got) && isnan(want));
}

static bool same_histogram(const struct pq_histogram *got, const struct pq_histogram *want)
{
    if (!got || !want)
        return got == want;
    return got->reset_hint == want->reset_hint && pq_histogram_equal(got, want);
}

static bool same_series(const struct pq_result_series *got, const struct pq_result_series *want,
                        struct qf_strbuf *why)
{
    if (!qf_labels_eq(got->labels, want->labels) || got->count != want->count) {
        qf_labels_print(why, got->labels);
        qf_strbuf_puts(why, " in place of ");
        qf_labels_print(why, want->labels);
        return false;
    }
    for (size_t p = 0; p < got->count; p++) {
        if (got->ts[p] == want->ts[p] &&
            same_histogram(histogram_of(got, p), histogram_of(want, p)) &&
            (histogram_of(got, p) || same_bits(got->values[p], want->values[p])))
            continue;
        qf_labels_print(why, got->labels);
        qf_strbuf_printf(why, " at %lld: %.17g, not %.17g", (long long)got->ts[p], got->values[p],
                         want->values[p]);
        return false;
    }
    return true;
}

static bool same_notes(const struct pq_notes *got, const struct pq_notes *want,
                       struct qf_strbuf *why)
{
    bool same = got->count == want->count;

    for (size_t i = 0; same && i < got->count; i++)
        same = got->items[i].level == want->items[i].level &&
               got->items[i].pos.start == want->items[i].pos.start &&
               qf_str_eq(got->items[i].text, want->items[i].text);
    if (!same)
        qf_strbuf_puts(why, "other notes");
    return same;
}

bool judge_same(const struct pq_result *got, const struct pq_result *want, struct qf_strbuf *why)
{
    if (got->type != want->type || got->series_count != want->series_count ||
        !same_bits(got->scalar, want->scalar)) {
        qf_strbuf_printf(why, "%zu series, not %zu, or another type or scalar", got->series_count,
                         want->series_count);
        return false;
    }
    for (size_t i = 0; i < got->series_count; i++)
        if (!same_series(&got->series[i], &want->series[i], why))
            return false;
    return same_notes(&got->notes, &want->notes, why);
}
