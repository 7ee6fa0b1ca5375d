/* memory_series.c - series written down in a test. */
#include "tests/lib/promql/memory_series.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/vec.h"
#include "promql/parse.h"
#include "promql/testing/series.h"
#include "tests/lib/test.h"

struct line {
    struct qf_labels labels;
    int64_t *ts;
    double *values;
    const struct pq_histogram **histograms; /* NULL if there is none */
    size_t count;
};

struct memory_series {
    struct qf_arena *arena;
    int64_t gap_ms;
    size_t shards;
    QF_VEC(struct line) lines;
    struct qf_strbuf answer;
};

struct memory_source {
    struct pq_source source;
    const struct memory_series *series;
    struct pq_select select;
    size_t shard, next;
};

struct memory_series *memory_series_new(int64_t gap_ms)
{
    struct memory_series *series = qf_xcalloc(1, sizeof(*series));

    series->arena = qf_arena_new(SIZE_MAX);
    series->gap_ms = gap_ms;
    return series;
}

void memory_series_freep(struct memory_series **series)
{
    if (!*series)
        return;
    QF_VEC_DONE(&(*series)->lines);
    qf_strbuf_done(&(*series)->answer);
    (void)qf_arena_free((*series)->arena);
    free(*series);
    *series = NULL;
}

static int by_labels(const void *a, const void *b)
{
    return qf_labels_cmp(((const struct line *)a)->labels, ((const struct line *)b)->labels);
}

void memory_series_add(struct memory_series *series, const char *text)
{
    struct pq_sequence_value *values;
    struct line line = { 0 };
    struct qf_err err = { 0 };
    size_t count;

    CHECK_OK(pq_parse_series(series->arena, qf_str_from(text), &line.labels, &values, &count, &err),
             &err);
    line.ts = QF_ARENA_ARRAY(series->arena, int64_t, count);
    line.values = QF_ARENA_ARRAY(series->arena, double, count);
    for (size_t i = 0; i < count; i++) {
        if (values[i].omitted)
            continue;
        line.ts[line.count] = (int64_t)i * series->gap_ms;
        CHECK(pq_value_put(series->arena, line.values, &line.histograms, count, line.count,
                           (struct pq_value){ values[i].value, values[i].histogram }));
        line.count++;
    }
    QF_VEC_PUSH(&series->lines, line);
    qsort(series->lines.items, series->lines.count, sizeof(line), by_labels);
}

static qf_rc memory_next(struct pq_source *source, struct pq_series *ret_series, bool *ret_more,
                         struct qf_err *err)
{
    struct memory_source *self = (struct memory_source *)source;

    (void)err;
    *ret_more = false;
    while (self->next < self->series->lines.count) {
        const struct line *line = &self->series->lines.items[self->next++];
        size_t first = 0, count = line->count;

        if (qf_labels_shard_hash(line->labels) % self->series->shards != self->shard ||
            !pq_matchers_match(self->select.matchers, self->select.matcher_count, line->labels))
            continue;
        while (first < count && line->ts[first] < self->select.min_ts)
            first++;
        while (count > first && line->ts[count - 1] > self->select.max_ts)
            count--;
        *ret_series = (struct pq_series){ .labels = line->labels,
                                          .ts = line->ts + first,
                                          .values = line->values + first,
                                          .count = count - first };
        if (line->histograms)
            ret_series->histograms = line->histograms + first;
        *ret_more = true;
        return QF_OK;
    }
    return QF_OK;
}

static void memory_close(struct pq_source *source)
{
    free(source);
}

static qf_rc memory_open(void *ctx, size_t shard, const struct pq_select *select,
                         struct pq_source **ret_source, struct qf_err *err)
{
    struct memory_source *self = qf_xcalloc(1, sizeof(*self));

    (void)err;
    *self = (struct memory_source){
        .source = { memory_next, memory_close }, .series = ctx, .select = *select, .shard = shard
    };
    *ret_source = &self->source;
    return QF_OK;
}

struct pq_engine memory_series_engine(struct memory_series *series, size_t shards)
{
    series->shards = shards;
    return (struct pq_engine){ .shard_count = shards, .open = memory_open, .ctx = series };
}

static void print_number(struct qf_strbuf *buf, double value)
{
    char text[QF_DOUBLE_TEXT_MAX];

    (void)qf_double_g(value, text);
    qf_strbuf_puts(buf, text);
}

static void print_value(struct qf_strbuf *buf, struct pq_value value)
{
    if (!value.histogram) {
        print_number(buf, value.number);
        return;
    }
    qf_strbuf_puts(buf, "{count ");
    print_number(buf, value.histogram->count);
    qf_strbuf_puts(buf, " sum ");
    print_number(buf, value.histogram->sum);
    qf_strbuf_putc(buf, '}');
}

static void print_result(struct qf_strbuf *buf, const struct pq_result *result, const char *query)
{
    if (result->type == PQ_TYPE_STRING)
        qf_strbuf_printf(buf, "string %.*s\n", QF_STR_ARG(result->string));
    if (result->type == PQ_TYPE_SCALAR) {
        qf_strbuf_puts(buf, "scalar ");
        print_number(buf, result->scalar);
        qf_strbuf_putc(buf, '\n');
    }
    for (size_t i = 0; i < result->series_count; i++) {
        const struct pq_result_series *series = &result->series[i];

        qf_labels_print_series(buf, series->labels);
        for (size_t j = 0; j < series->count; j++) {
            qf_strbuf_putc(buf, ' ');
            print_value(buf, pq_value_at(series->values, series->histograms, j));
            if (result->type == PQ_TYPE_MATRIX)
                qf_strbuf_printf(buf, "@%lld", (long long)series->ts[j]);
        }
        qf_strbuf_putc(buf, '\n');
    }
    for (size_t i = 0; i < result->notes.count; i++) {
        pq_note_print(buf, &result->notes.items[i], qf_str_from(query));
        qf_strbuf_putc(buf, '\n');
    }
}

const char *memory_series_query(struct memory_series *series, size_t shards, const char *query,
                                const struct pq_query_params *params)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pq_engine engine = memory_series_engine(series, shards);
    struct pq_parse_options options = { .experimental_functions = true,
                                        .extended_range_selectors = true,
                                        .fill_modifiers = true };
    struct pq_query_params defaults = { 0 };
    struct pq_result result;
    struct pq_expr *expr;
    struct qf_err err = { 0 };

    qf_strbuf_reset(&series->answer);
    if (pq_parse(arena, qf_str_from(query), &options, &expr, &err) != QF_OK ||
        pq_engine_run(&engine, arena, expr, qf_str_from(query), params ? params : &defaults,
                      &result, &err) != QF_OK)
        qf_strbuf_printf(&series->answer, "error: %s\n", err.msg);
    else
        print_result(&series->answer, &result, query);
    return qf_strbuf_cstr(&series->answer);
}
