/* trace.c - lines of bounded length. */
#include "trace.h"

#include <stdarg.h>
#include <stdio.h>

bool wc_line_add(struct wc_line *line, const char *fmt, ...)
{
    size_t room = WC_TRACE_MAX - line->len;
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(line->text + line->len, room, fmt, args);
    va_end(args);
    if ((size_t)len >= room) {
        line->text[line->len] = '\0';
        return false;
    }
    line->len += (size_t)len;
    return true;
}

void wc_line_cut(struct wc_line *line, size_t left_out)
{
    int len =
        snprintf(line->text + line->len, sizeof(line->text) - line->len, " ..(+%zu)", left_out);

    line->len += (size_t)len;
}
