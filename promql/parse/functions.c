/* functions.c - the table of PromQL functions. */
#include "promql/functions.h"

#include <assert.h>

#include "base/pure/macros.h"

/* The words of the table. */
#define SCALAR PQ_TYPE_SCALAR
#define VECTOR PQ_TYPE_VECTOR
#define MATRIX PQ_TYPE_MATRIX
#define STRING PQ_TYPE_STRING

enum trait {
    EXPERIMENTAL = 1,
    LEAF = 2,
    KEEPS_NAME = 4,
    COUNTER = 8,
    EVAL_TIME = 16,
    QUANTILE = 32,
    STATS = 64,
};

/* C has no empty arrays: one type stands in front. */
#define TYPES(...) ((const enum pq_type[]){ PQ_TYPE_NONE, __VA_ARGS__ })

static const struct pq_function table[] = {
#define PQ_FUNCTION(fn, text, returns, args, optional, class, rule, traits, ...)                   \
    { .id = PQ_FN_##fn,                                                                            \
      .name = text,                                                                                \
      .arg_types = TYPES args + 1,                                                                 \
      .arg_count = sizeof(TYPES args) / sizeof(enum pq_type) - 1,                                  \
      .variadic = optional,                                                                        \
      .return_type = PQ_TYPE_##returns,                                                            \
      .kind = PQ_CLASS_##class,                                                                    \
      .histograms = PQ_HISTOGRAMS_##rule,                                                          \
      .experimental = ((traits)&EXPERIMENTAL) != 0,                                                \
      .leaf = ((traits)&LEAF) != 0,                                                                \
      .keeps_name = ((traits)&KEEPS_NAME) != 0,                                                    \
      .counter = ((traits)&COUNTER) != 0,                                                          \
      .eval_time = ((traits)&EVAL_TIME) != 0,                                                      \
      .quantile = ((traits)&QUANTILE) != 0,                                                        \
      .stats = ((traits)&STATS) != 0 },
#include "promql/functions.def"
#undef PQ_FUNCTION
};

const struct pq_function *pq_function_find(struct qf_str name)
{
    size_t low = 0, high = QF_COUNT_OF(table);

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = qf_str_cmp(name, qf_str_from(table[middle].name));

        if (order == 0)
            return &table[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const struct pq_function *pq_function_get(enum pq_function_id id)
{
    return &table[id];
}

size_t pq_function_args_min(const struct pq_function *function)
{
    if (function->variadic == 0)
        return function->arg_count;
    return function->arg_count - (function->variadic < 0 ? 1 : (size_t)function->variadic);
}

size_t pq_function_args_max(const struct pq_function *function)
{
    return function->variadic < 0 ? SIZE_MAX : function->arg_count;
}

enum pq_type pq_function_arg_type(const struct pq_function *function, size_t index)
{
    if (function->arg_count == 0)
        return PQ_TYPE_NONE;
    return function->arg_types[QF_MIN(index, function->arg_count - 1)];
}

size_t pq_function_arg_of(const struct pq_function *function, enum pq_type type)
{
    size_t index = 0;

    while (index < function->arg_count && function->arg_types[index] != type)
        index++;
    assert(index < function->arg_count);
    return index;
}

bool pq_function_takes_scalars(const struct pq_function *function, size_t count)
{
    /* Without its vector a function of dates takes the time. */
    size_t min = QF_MAX(pq_function_args_min(function), (size_t)1);

    return count + 1 >= min && count + 1 <= pq_function_args_max(function);
}
