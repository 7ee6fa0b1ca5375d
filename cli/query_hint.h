/* query_hint.h - why an answer has no series, and what to try. */
#ifndef CLI_QUERY_HINT_H
#define CLI_QUERY_HINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/strbuf.h"
#include "cli/web.h"

/* What is known of the store. */
struct cli_stored {
    bool at_that_time; /* some series has samples around the time asked for */
    bool any;          /* segments are there at all */
    int64_t newest_ms; /* of segments; only with @any */
    int64_t asked_ms;  /* the end of what was asked for */
};

/* Lines for people. */
void cli_hint_text(struct qf_strbuf *text, const struct cli_stored *stored);

/* Ask the API, and print the lines to stdout. @start NULL: an instant. Without an answer none. */
void cli_hint(const struct cli_web *web, const char *start, const char *end);

#endif
