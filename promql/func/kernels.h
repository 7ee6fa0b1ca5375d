/* kernels.h - what computes each PromQL function: the words of functions.def's last column.
 *
 *     LIBM(f), VALUE1(f), VALUE2(f), VALUE3(f)   one value and 0, 1 or 2 scalars; LIBM is the C
 *                                                library's own
 *     LEFT_OUT(number)                           what a scalar that was left out stands for
 *     EMPTY(f)                                   these scalars give no values at all
 *     WINDOW(f), ANCHORED(f), SMOOTHED(f)        a window, by mode; a mode without kernel is
 *                                                refused
 *     SLIDE(f)                                   all plain windows of a series in one pass
 *     MIXED(f)                                   a window with native histograms, of all modes
 *     VALID(f)                                   what the scalars of a window must fulfil
 *     CONSTANT(f)                                a scalar of the query's parameters
 *     NATIVE(f)                                  a float out of a native histogram
 *     LABEL(object), SORT(f)                     of labels, and of their order
 *     NODE(x)                                    nothing of these: see eval/node_x.c or the like
 *
 * The kernels are declared here, out of the table, under the names the table uses. */
#ifndef PROMQL_FUNC_KERNELS_H
#define PROMQL_FUNC_KERNELS_H

#include "base/pure/err.h"
#include "promql/func/label.h"
#include "promql/func/order.h"
#include "promql/func/window.h"
#include "promql/histogram/window.h"
#include "promql/functions.h"

struct pq_fn_grid;
struct pq_fn_range_call;
struct pq_fn_samples;
struct pq_histogram;
struct pq_query_params;

typedef double pq_value1_fn(double value);
typedef double pq_value2_fn(double value, double scalar);
typedef double pq_value3_fn(double value, double first, double second);
/* True if a call with these scalars answers nothing, whatever the values are. */
typedef bool pq_empty_fn(double first, double second);
/* As pq_fn_range_steps in range.h, for plain windows. */
typedef size_t pq_slide_fn(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                           const struct pq_fn_grid *grid, double *out, uint8_t *present);
/* QF_EEXEC, with Prometheus's text, if the scalars of a window are out of their range. */
typedef qf_rc pq_valid_fn(double first, double second, struct qf_err *err);
typedef double pq_constant_fn(const struct pq_query_params *params);
typedef double pq_native_fn(const struct pq_histogram *histogram);

struct pq_kernels {
    enum pq_function_id id;
    pq_value1_fn *value1;
    pq_value2_fn *value2;
    pq_value3_fn *value3;
    double left_out;
    pq_empty_fn *empty;                    /* or NULL: never */
    pq_window_fn *window[PQ_WINDOW_MODES]; /* by mode */
    pq_slide_fn *slide;                    /* or NULL: there is no shortcut */
    pq_native_window_fn *mixed;            /* or NULL: histograms are left out */
    pq_valid_fn *valid;                    /* or NULL: any scalars do */
    pq_constant_fn *constant;
    pq_native_fn *native;
    const struct pq_label_function *label;
    pq_order_fn *order;
};

/* The kernels of @id; all are NULL for PQ_FN__COUNT. */
const struct pq_kernels *pq_kernels_of(enum pq_function_id id);

#define LIBM(fn)
#define VALUE1(fn) pq_value1_fn fn;
#define VALUE2(fn) pq_value2_fn fn;
#define VALUE3(fn) pq_value3_fn fn;
#define LEFT_OUT(number)
#define EMPTY(fn) pq_empty_fn fn;
#define WINDOW(fn) pq_window_fn fn;
#define ANCHORED(fn) pq_window_fn fn;
#define SMOOTHED(fn) pq_window_fn fn;
#define SLIDE(fn) pq_slide_fn fn;
#define MIXED(fn) pq_native_window_fn fn;
#define VALID(fn) pq_valid_fn fn;
#define CONSTANT(fn) pq_constant_fn fn;
#define NATIVE(fn) pq_native_fn fn;
#define LABEL(object) extern const struct pq_label_function object;
#define SORT(fn) pq_order_fn fn;
#define NODE(node)
#define PQ_FUNCTION(id, name, returns, args, optional, class, histograms, traits, ...) __VA_ARGS__
#include "promql/functions.def"
#undef PQ_FUNCTION
#undef LIBM
#undef VALUE1
#undef VALUE2
#undef VALUE3
#undef LEFT_OUT
#undef EMPTY
#undef WINDOW
#undef ANCHORED
#undef SMOOTHED
#undef SLIDE
#undef MIXED
#undef VALID
#undef CONSTANT
#undef NATIVE
#undef LABEL
#undef SORT
#undef NODE

#endif
