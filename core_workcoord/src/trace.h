/* trace.h - one bounded line of text per step. */
#ifndef CORE_WORKCOORD_TRACE_H
#define CORE_WORKCOORD_TRACE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/pure/macros.h"
#include "workcoord/types.h"

struct wc_line {
    char text[WC_TRACE_MAX + 40]; /* room for the "..(+N)" behind what fits */
    size_t len;
};

/* Append; false if it would pass WC_TRACE_MAX, and then nothing is appended. */
bool wc_line_add(struct wc_line *line, const char *fmt, ...) QF_PRINTF(2, 3);
/* Say how many effects were left out. */
void wc_line_cut(struct wc_line *line, size_t left_out);

#endif
