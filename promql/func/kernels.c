/* kernels.c - the table of kernels, out of functions.def. */
#include "promql/func/kernels.h"

#include <assert.h>
#include <math.h>

#define LIBM(fn) .value1 = fn,
#define VALUE1(fn) .value1 = fn,
#define VALUE2(fn) .value2 = fn,
#define VALUE3(fn) .value3 = fn,
#define LEFT_OUT(number) .left_out = number,
#define EMPTY(fn) .empty = fn,
#define WINDOW(fn) .window[PQ_WINDOW_PLAIN] = fn,
#define ANCHORED(fn) .window[PQ_WINDOW_ANCHORED] = fn,
#define SMOOTHED(fn) .window[PQ_WINDOW_SMOOTHED] = fn,
#define SLIDE(fn) .slide = fn,
#define MIXED(fn) .mixed = fn,
#define VALID(fn) .valid = fn,
#define CONSTANT(fn) .constant = fn,
#define NATIVE(fn) .native = fn,
#define LABEL(object) .label = &object,
#define SORT(fn) .order = fn,
#define NODE(node)

static const struct pq_kernels table[PQ_FN__COUNT + 1] = {
#define PQ_FUNCTION(fn, name, returns, args, optional, class, histograms, traits, ...)             \
    { .id = PQ_FN_##fn, __VA_ARGS__ },
#include "promql/functions.def"
#undef PQ_FUNCTION
    { .id = PQ_FN__COUNT },
};

const struct pq_kernels *pq_kernels_of(enum pq_function_id id)
{
    assert(id <= PQ_FN__COUNT);
    return &table[id];
}
