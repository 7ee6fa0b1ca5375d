/* nodes_form.h - one ring out of storage nodes, however far it is already. */
#ifndef CLI_NODES_FORM_H
#define CLI_NODES_FORM_H

#include "cli/web.h"

/* Ask the ingest node at web->url until all of @nodes, texts "NAME=URL", are storage nodes and there is a ring; until then add
 * those that are missing, and found one of @copies. Of a ring that is there an added node begins a migration, its copies stay
 * what they are, and nobody is ever removed. A node that is known under another URL, or is leaving, ends it. The exit code: 0
 * if it is so within @wait_ms, 1 after a line on stderr, 2: not NAME=URL. */
int cli_nodes_form(const struct cli_web *web, const char *const *nodes, size_t count,
                   uint64_t copies, int64_t wait_ms);

#endif
