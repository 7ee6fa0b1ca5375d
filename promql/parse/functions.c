/* functions.c - the table of PromQL functions. */
#include "promql/functions.h"

#include "base/pure/macros.h"

/* The words of the table. */
#define NONE PQ_TYPE_NONE
#define SCALAR PQ_TYPE_SCALAR
#define VECTOR PQ_TYPE_VECTOR
#define MATRIX PQ_TYPE_MATRIX
#define STRING PQ_TYPE_STRING

static const struct pq_function table[] = {
#define PQ_FUNCTION(id, name, return_type, arg_count, variadic, experimental, ...)                 \
    { name, { __VA_ARGS__ }, arg_count, variadic, return_type, experimental, PQ_FN_##id },
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
