/* functions.h - the PromQL functions: their numbers PQ_FN_RATE, PQ_FN_ABS, ... and their rows.
 *
 * The table itself is functions.def, beside this header. What computes a function is named in its
 * row too, and found through func/kernels.h. */
#ifndef PROMQL_FUNCTIONS_H
#define PROMQL_FUNCTIONS_H

#include "promql/ast.h"

enum pq_function_id {
#define PQ_FUNCTION(id, ...) PQ_FN_##id,
#include "promql/functions.def"
#undef PQ_FUNCTION
    PQ_FN__COUNT, /* also: no function */
};

/* What kind of thing a function is: the planner goes by this alone. */
enum pq_function_class {
    PQ_CLASS_VALUE,     /* one value becomes another, with up to two scalars */
    PQ_CLASS_RANGE,     /* a window of samples becomes a value, with up to two scalars */
    PQ_CLASS_ABSENT,    /* 1 where there is no series */
    PQ_CLASS_LABEL,     /* changes labels, with any number of strings */
    PQ_CLASS_SORT,      /* the order of an instant query, with any number of strings */
    PQ_CLASS_HISTOGRAM, /* a native histogram becomes a value */
    PQ_CLASS_BUCKETS,   /* the buckets of a histogram become values, with scalars */
    PQ_CLASS_CONSTANT,  /* a scalar that is known before any data is read */
    PQ_CLASS_SCALARS,   /* two scalars become one */
    PQ_CLASS_TIME,      /* time() */
    PQ_CLASS_TIMESTAMP, /* the times of samples instead of their values */
    PQ_CLASS_TO_SCALAR, /* scalar() */
    PQ_CLASS_TO_VECTOR, /* vector() */
    PQ_CLASS_INFO,      /* info() */
};

/* What becomes of native histograms among the samples or values that a function gets. */
enum pq_histogram_rule {
    PQ_HISTOGRAMS_NONE,  /* it gets no samples */
    PQ_HISTOGRAMS_ALIKE, /* they count as floats do: are picked, counted or passed on as they are */
    PQ_HISTOGRAMS_DROP,  /* they are left out in silence */
    PQ_HISTOGRAMS_IGNORE, /* they are left out, with an info where there are floats too */
    PQ_HISTOGRAMS_EITHER, /* a window of one kind only, else nothing and a warning */
    PQ_HISTOGRAMS_PAIR,   /* the same of the last two samples alone */
    PQ_HISTOGRAMS_ONLY,   /* it is of them alone: floats are left out in silence */
};

/* One row of functions.def. */
struct pq_function {
    enum pq_function_id id;
    const char *name;
    const enum pq_type *arg_types; /* arg_count of them */
    size_t arg_count;
    int variadic; /* 0: exactly arg_count; n > 0: the last n are optional; -1: the last is optional
                   * and may repeat */
    enum pq_type return_type;
    enum pq_function_class kind;
    enum pq_histogram_rule histograms;

    bool experimental; /* needs pq_parse_options.experimental_functions */
    bool leaf;         /* a leaf may run it as one of its stages; VALUE, RANGE, ABSENT only */
    bool keeps_name;   /* series keep the metric name, or never had it */
    bool counter;      /* wants a counter, and notes names that do not look like one */
    bool eval_time;    /* answers by the time of evaluation, whatever its arguments are */
    bool quantile;     /* its scalar is a quantile, noted where it is none */
    bool stats;        /* reads the count and the sum of histograms, not their buckets */
};

/* The row of @id, which is less than PQ_FN__COUNT. */
const struct pq_function *pq_function_get(enum pq_function_id id);

/* The fewest and the most arguments a call may have; SIZE_MAX: any number. */
size_t pq_function_args_min(const struct pq_function *function);
size_t pq_function_args_max(const struct pq_function *function);
/* The type of argument number @index, counted from 0; the last type repeats. */
enum pq_type pq_function_arg_type(const struct pq_function *function, size_t index);
/* The position of the first argument of @type, which the function has. */
size_t pq_function_arg_of(const struct pq_function *function, enum pq_type type);
/* VALUE, RANGE: a call may have @count scalars beside its vector. */
bool pq_function_takes_scalars(const struct pq_function *function, size_t count);

#endif
