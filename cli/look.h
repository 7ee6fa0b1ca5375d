/* look.h - how answers look: the width at hand, characters that can be shown, numbers as people read
 * them. */
#ifndef CLI_LOOK_H
#define CLI_LOOK_H

#include <stdbool.h>
#include <stddef.h>

struct cli_look {
    int columns;       /* of a line */
    bool utf8;         /* else ASCII alone */
    size_t series_max; /* how many series are drawn */
};

#define CLI_COLUMNS_MIN 20
#define CLI_COLUMNS_MAX 1000

/* How to write to stdout: in a terminal as wide as it is and with some series, else 80 columns and
 * all of them. COLUMNS in the environment says another width. Call setlocale(LC_CTYPE, "") before. */
struct cli_look cli_look_of_stdout(void);

#define CLI_NUMBER_MAX 32
/* Four digits, with k, M, G, T, P from 10,000 on; whole numbers below stay whole. */
const char *cli_number(double value, char out[CLI_NUMBER_MAX]);

#endif
