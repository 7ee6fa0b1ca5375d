/* test_functions.c - the table of PromQL functions. */
#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "base/pure/strbuf.h"
#include "promql/func/kernels.h"
#include "promql/functions.h"
#include "tests/lib/test.h"

/* Lookup is a binary search: the rows must be sorted and the ids their positions. */
TEST(every_function_is_found_under_its_name_and_id)
{
    for (int id = 0; id < PQ_FN__COUNT; id++) {
        const struct pq_function *function = pq_function_get((enum pq_function_id)id);

        CHECK_EQ(function->id, id);
        CHECK(pq_function_find(qf_str_from(function->name)) == function);
        CHECK(function->return_type != PQ_TYPE_NONE);
    }
    CHECK(!pq_function_find(QF_STR("nosuch")));
    CHECK(!pq_function_find(QF_STR("")));
    CHECK(!pq_function_find(QF_STR("RATE")));
}

/* All the conformance scripts of ours, one after the other. */
static struct qf_str read_scripts(struct qf_strbuf *buf)
{
    glob_t found;

    CHECK_EQ(glob(PROMFABRIC_SOURCE_DIR "/tests/conformance/*.test", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        FILE *file = fopen(found.gl_pathv[i], "r");
        char line[4096];

        CHECK(file != NULL);
        while (fgets(line, sizeof(line), file))
            if (line[0] != '#')
                qf_strbuf_puts(buf, line);
        (void)fclose(file);
    }
    globfree(&found);
    return qf_strbuf_view(buf);
}

/* A function nobody calls in a script is not tested, and a call of one is the test to look at. */
TEST(every_function_is_called_by_a_conformance_script)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qf_str scripts = read_scripts(&buf);

    for (enum pq_function_id id = 0; id < PQ_FN__COUNT; id++) {
        const char *name = pq_function_get(id)->name;
        char call[64];
        int len = snprintf(call, sizeof(call), "%s(", name);
        const char *at = scripts.data, *end = scripts.data + scripts.len;

        for (; at; at++) {
            at = memmem(at, (size_t)(end - at), call, (size_t)len);
            if (!at || at == scripts.data || !(isalnum((unsigned char)at[-1]) || at[-1] == '_'))
                break;
        }
        CHECK_MSG(at != NULL, "no script calls %s", name);
    }
}

/* Prometheus 3 has 90 functions, 17 of them experimental. */
TEST(the_table_is_complete)
{
    int experimental = 0;

    for (enum pq_function_id id = 0; id < PQ_FN__COUNT; id++)
        experimental += pq_function_get(id)->experimental;
    CHECK(PQ_FN__COUNT >= 90);
    CHECK(experimental >= 17);
}

/* What a row says of its class has the kernels to go with it. */
TEST(every_row_has_the_kernels_of_its_class)
{
    for (enum pq_function_id id = 0; id < PQ_FN__COUNT; id++) {
        const struct pq_function *function = pq_function_get(id);
        const struct pq_kernels *kernels = pq_kernels_of(id);
        bool matrix = pq_function_arg_type(function, 0) == PQ_TYPE_MATRIX ||
                      pq_function_arg_type(function, 1) == PQ_TYPE_MATRIX;
        bool value = function->kind == PQ_CLASS_VALUE;
        size_t max = pq_function_args_max(function);

        CHECK_EQ(kernels->id, id);
        CHECK_EQ(kernels->window[PQ_WINDOW_PLAIN] != NULL, matrix);
        CHECK_EQ(kernels->value1 != NULL, value && max == 1);
        CHECK_EQ(kernels->value2 != NULL,
                 (value && max == 2) || function->kind == PQ_CLASS_SCALARS);
        CHECK_EQ(kernels->value3 != NULL, value && max == 3);
        CHECK_EQ(kernels->constant != NULL, function->kind == PQ_CLASS_CONSTANT);
        CHECK_EQ(kernels->label != NULL, function->kind == PQ_CLASS_LABEL);
        CHECK_EQ(kernels->order != NULL, function->kind == PQ_CLASS_SORT);
        CHECK_EQ(kernels->native != NULL, function->histograms == PQ_HISTOGRAMS_ONLY);
        CHECK_EQ(function->leaf, matrix || value);
        CHECK(!kernels->slide || matrix);
        CHECK(!kernels->valid || matrix);
        CHECK(!function->counter || matrix);
    }
}

/* What a leaf specification is checked by. */
TEST(scalars_are_counted_beside_the_vector)
{
    CHECK(pq_function_takes_scalars(pq_function_get(PQ_FN_ROUND), 0));
    CHECK(pq_function_takes_scalars(pq_function_get(PQ_FN_ROUND), 1));
    CHECK(!pq_function_takes_scalars(pq_function_get(PQ_FN_ROUND), 2));
    CHECK(pq_function_takes_scalars(pq_function_get(PQ_FN_HOUR), 0));
    CHECK(!pq_function_takes_scalars(pq_function_get(PQ_FN_CLAMP), 1));
    CHECK(pq_function_takes_scalars(pq_function_get(PQ_FN_QUANTILE_OVER_TIME), 1));
    CHECK_EQ(pq_function_arg_of(pq_function_get(PQ_FN_QUANTILE_OVER_TIME), PQ_TYPE_MATRIX), 1);
    CHECK_EQ(pq_function_arg_of(pq_function_get(PQ_FN_RATE), PQ_TYPE_MATRIX), 0);
}

TEST(argument_counts_follow_the_variadic_column)
{
    const struct pq_function *quantiles = pq_function_get(PQ_FN_HISTOGRAM_QUANTILES);
    const struct pq_function *join = pq_function_get(PQ_FN_LABEL_JOIN);

    CHECK_EQ(pq_function_args_min(quantiles), 3);
    CHECK_EQ(pq_function_args_max(quantiles), 12);
    CHECK_EQ(pq_function_args_min(join), 3);
    CHECK(pq_function_args_max(join) == SIZE_MAX);
    CHECK_EQ(pq_function_arg_type(join, 0), PQ_TYPE_VECTOR);
    CHECK_EQ(pq_function_arg_type(join, 70), PQ_TYPE_STRING);
    CHECK_EQ(pq_function_args_min(pq_function_get(PQ_FN_HOUR)), 0);
    CHECK_EQ(pq_function_args_max(pq_function_get(PQ_FN_PI)), 0);
    CHECK_EQ(pq_function_arg_type(pq_function_get(PQ_FN_PI), 0), PQ_TYPE_NONE);
}
