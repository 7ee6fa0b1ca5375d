/* nearest.c - words by the number of letters in which they differ. */
#include "cli/nearest.h"

#include <string.h>

#include "base/pure/macros.h"

/* Longer words are nobody's flags. */
#define LETTERS_MAX 40

/* Letters to add, take away, change or exchange with their neighbour, to make one of the other. */
static size_t distance(struct qf_str a, struct qf_str b)
{
    size_t rows[3][LETTERS_MAX + 1];

    for (size_t j = 0; j <= b.len; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t *row = rows[i % 3], *above = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t change = above[j - 1] + (a.data[i - 1] != b.data[j - 1]);
            size_t shift = QF_MIN(above[j], row[j - 1]) + 1;

            row[j] = QF_MIN(shift, change);
            if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] && a.data[i - 2] == b.data[j - 1])
                row[j] = QF_MIN(row[j], before[j - 2] + 1);
        }
    }
    return rows[a.len % 3][b.len];
}

const char *cli_nearest(struct qf_str typed, const char *(*word_at)(const void *ctx, size_t i),
                        const void *ctx, size_t count)
{
    size_t best = QF_MAX(typed.len / 3, (size_t)1) + 1; /* a third of the letters at most */
    const char *found = NULL, *begins = NULL;

    if (typed.len == 0 || typed.len > LETTERS_MAX)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        struct qf_str word = qf_str_from(word_at(ctx, i));
        size_t apart = word.len <= LETTERS_MAX ? distance(typed, word) : LETTERS_MAX;

        if (apart < best) {
            best = apart;
            found = word.data;
        }
        if (!begins && typed.len >= 3 && qf_str_starts(word, typed))
            begins = word.data;
    }
    return found ? found : begins;
}
