/* print.h - a row as a line of JSON, in the form in which it can be loaded again. Pure. */
#ifndef STATEMAP_CORE_PRINT_H
#define STATEMAP_CORE_PRINT_H

#include "statemap/core/row.h"

/* {"map":"NAME", then what the kind has: "key" or "from" and "to"; "time"; "start" and "end"; "type" and "value"}, without an
 * end of line. */
void sm_row_print(struct qf_strbuf *buf, const char *map, enum sm_kind kind,
                  const struct sm_row *row);

#endif
