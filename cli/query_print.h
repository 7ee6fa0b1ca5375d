/* query_print.h - answers as tables, charts and CSV. */
#ifndef CLI_QUERY_PRINT_H
#define CLI_QUERY_PRINT_H

#include <stdio.h>

#include "cli/look.h"
#include "cli/query_answer.h"

/* Label and value of each series; of range vectors each point with its time; a string alone. */
void cli_print_instant(FILE *out, const struct cli_answer *answer, const struct cli_look *look);

/* For each series a chart as wide as the line, at the end the times it is over. A histogram is drawn
 * as it is at the end. */
void cli_print_range(FILE *out, const struct cli_answer *answer, const struct cli_look *look);

/* RFC 4180: time, value, then a column for each label that any series has. Numbers with all their
 * digits; a histogram is the JSON that answers have. */
void cli_print_csv(FILE *out, const struct cli_answer *answer);

#endif
