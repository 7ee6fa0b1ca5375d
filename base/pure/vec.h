/* vec.h - growable arrays of any type.
 *
 *     QF_VEC(int) numbers = { 0 };
 *     QF_VEC_PUSH(&numbers, 7);
 *     for (size_t i = 0; i < numbers.count; i++) use(numbers.items[i]);
 *     QF_VEC_DONE(&numbers);
 *
 * Growth cannot fail (see alloc.h): use an arena where the size depends on a client. */
#ifndef BASE_PURE_VEC_H
#define BASE_PURE_VEC_H

#include <stddef.h>
#include <stdlib.h>

#include "base/pure/alloc.h"

#define QF_VEC(type)                                                                               \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t count;                                                                              \
        size_t capacity;                                                                           \
    }

#define QF_VEC_RESERVE(vec, want)                                                                  \
    do {                                                                                           \
        size_t qf_want_ = (want);                                                                  \
        if (qf_want_ > (vec)->capacity) {                                                          \
            size_t qf_cap_ = (vec)->capacity ? (vec)->capacity * 2 : 8;                            \
            if (qf_cap_ < qf_want_)                                                                \
                qf_cap_ = qf_want_;                                                                \
            (vec)->items = qf_xrealloc((vec)->items, qf_cap_ * sizeof(*(vec)->items));             \
            (vec)->capacity = qf_cap_;                                                             \
        }                                                                                          \
    } while (0)

#define QF_VEC_PUSH(vec, ...)                                                                      \
    do {                                                                                           \
        QF_VEC_RESERVE(vec, (vec)->count + 1);                                                     \
        (vec)->items[(vec)->count++] = __VA_ARGS__;                                                \
    } while (0)

#define QF_VEC_DONE(vec)                                                                           \
    do {                                                                                           \
        free((vec)->items);                                                                        \
        (vec)->items = NULL;                                                                       \
        (vec)->count = (vec)->capacity = 0;                                                        \
    } while (0)

#endif
