/* range.h - which of several ranges answers. Pure.
 *
 * Ranges may overlap. Of those that hold a number the narrowest one answers; of equally wide ones that with the later effective time,
 * then that of the later load, then the one that begins later.
 *
 * So that it is found without walking over all ranges, they are stored by level: a range of w + 1 numbers is in level
 * bits(w), 0 to 64. All ranges of a level are narrower than those of the next, and one of level L that holds k begins at most
 * 2^L - 1 below it. A look-up goes through the levels that have rows, and in each through a window of beginnings. */
#ifndef STATEMAP_CORE_RANGE_H
#define STATEMAP_CORE_RANGE_H

#include "statemap/core/bytes.h"
#include "statemap/core/row.h"

enum { SM_LEVELS = 65 };

static inline uint64_t sm_range_width(int64_t from, int64_t to)
{
    return sm_ordered(to) - sm_ordered(from);
}

static inline unsigned sm_range_level(int64_t from, int64_t to)
{
    uint64_t width = sm_range_width(from, to);

    return width ? 64 - (unsigned)__builtin_clzll(width) : 0;
}

/* The lowest beginning of a range of @level that holds @number. */
static inline int64_t sm_level_begin(unsigned level, int64_t number)
{
    return sm_minus(number, level >= 64 ? UINT64_MAX : (UINT64_C(1) << level) - 1);
}

/* Whether @row answers rather than @other; both hold the number. */
bool sm_range_better(const struct sm_row *row, const struct sm_row *other);

/* Whether two ranges are equally wide, not the same, and share a number: then effective times decide between them. */
bool sm_range_contends(const struct sm_row *a, const struct sm_row *b);

#endif
