/* query_explain.h - the plan of a query in a terminal, while it runs and after. */
#ifndef CLI_QUERY_EXPLAIN_H
#define CLI_QUERY_EXPLAIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct cli_explain;

/* @live: draw on stderr, a terminal, whenever something has changed. */
struct cli_explain *cli_explain_new(bool live);
struct cli_explain *cli_explain_free(struct cli_explain *explain); /* Accepts NULL, returns NULL. */

/* One event of the stream; those that are not about the query's work are ignored. */
void cli_explain_hear(struct cli_explain *explain, const char *type, json_t *data);
/* Take back what was drawn on stderr. */
void cli_explain_clear(struct cli_explain *explain);
/* The tree with every work item, the stages and what the answer stands on. */
void cli_explain_print(const struct cli_explain *explain, FILE *out);

#endif
