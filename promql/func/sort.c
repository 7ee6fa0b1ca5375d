/* sort.c - pieces that qsort sorts at once, merged in pairs. */
#include "promql/func/sort.h"

#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"

/* Sorting a piece takes a dozen comparisons per item: that many fewer items between two looks. */
#define PIECE ((size_t)2048)
#define PIECE_WORK 12

struct sort {
    size_t size;
    int (*compare)(const void *, const void *);
    struct pq_poll *poll;
};

/* The sorted [begin, middle) and [middle, end) of @from as [begin, end) of @to. */
static bool merge(const struct sort *sort, const char *from, char *to, size_t begin, size_t middle,
                  size_t end)
{
    size_t left = begin, right = middle;

    for (size_t at = begin; at < end; at++) {
        bool take_right =
            left == middle ||
            (right < end && sort->compare(from + left * sort->size, from + right * sort->size) > 0);

        if (pq_poll_work(sort->poll, 1))
            return false;
        memcpy(to + at * sort->size, from + (take_right ? right++ : left++) * sort->size,
               sort->size);
    }
    return true;
}

/* One round: pairs of runs of @width become runs of twice that. */
static bool merge_runs(const struct sort *sort, const char *from, char *to, size_t count,
                       size_t width)
{
    for (size_t begin = 0; begin < count; begin += 2 * width) {
        size_t middle = QF_MIN(begin + width, count), end = QF_MIN(begin + 2 * width, count);

        if (!merge(sort, from, to, begin, middle, end))
            return false;
    }
    return true;
}

void pq_sort(void *items, size_t count, size_t size, int (*compare)(const void *, const void *),
             struct pq_poll *poll)
{
    const struct sort sort = { size, compare, poll };
    char *from = items, *other, *to;

    for (size_t begin = 0; begin < count; begin += PIECE) {
        size_t piece = QF_MIN(PIECE, count - begin);

        if (pq_poll_work(poll, piece * PIECE_WORK))
            return;
        qsort(from + begin * size, piece, size, compare);
    }
    if (count <= PIECE)
        return;
    other = to = qf_xcalloc(count, size);
    for (size_t width = PIECE; width < count; width *= 2) {
        char *merged = to;

        if (!merge_runs(&sort, from, to, count, width))
            break;
        to = from;
        from = merged;
    }
    if (from != items)
        memcpy(items, from, count * size);
    free(other);
}
