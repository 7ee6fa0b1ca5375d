/* macros.h - the few compiler extensions the code relies on, by name. */
#ifndef BASE_PURE_MACROS_H
#define BASE_PURE_MACROS_H

#include <stddef.h>

/* The result must be looked at; ignoring one on purpose is written (void)call(). */
#define QF_MUST_CHECK __attribute__((warn_unused_result))
#define QF_PRINTF(fmt_index, first_arg) __attribute__((format(printf, fmt_index, first_arg)))
#define QF_UNUSED __attribute__((unused))

/* Run fn(&variable) when the variable goes out of scope. */
#define QF_CLEANUP(fn) __attribute__((cleanup(fn)))

/* Hand a pointer over to someone else: its cleanup then sees NULL. */
#define QF_TAKE(ptr)                                                                               \
    __extension__({                                                                                \
        __auto_type qf_taken_ = (ptr);                                                             \
        (ptr) = NULL;                                                                              \
        qf_taken_;                                                                                 \
    })

#define QF_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define QF_LIKELY(x) __builtin_expect(!!(x), 1)
#define QF_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define QF_MIN(a, b)                                                                               \
    __extension__({                                                                                \
        __auto_type qf_a_ = (a);                                                                   \
        __auto_type qf_b_ = (b);                                                                   \
        qf_a_ < qf_b_ ? qf_a_ : qf_b_;                                                             \
    })
#define QF_MAX(a, b)                                                                               \
    __extension__({                                                                                \
        __auto_type qf_a_ = (a);                                                                   \
        __auto_type qf_b_ = (b);                                                                   \
        qf_a_ > qf_b_ ? qf_a_ : qf_b_;                                                             \
    })

#endif
