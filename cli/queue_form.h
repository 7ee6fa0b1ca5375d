/* queue_form.h - one cluster out of ingest nodes, however far it is already. */
#ifndef CLI_QUEUE_FORM_H
#define CLI_QUEUE_FORM_H

#include "cli/web.h"

/* Wait for the nodes at @urls; if none of them is in a cluster, the first one makes one; then those that
 * do not vote in it are taken in, one after another, and then all queues are waited for. A node that has an empty folder and the name of
 * a member takes that one's place only if @replace (may be NULL) names it: whatever the old folder had
 * and a quorum has not would be lost. @web says as whom to ask; its URL is not used.
 * The exit code: 0 if all of them vote in every queue, 1 after a line on stderr. */
int cli_queue_form(const struct cli_web *web, const char *const *urls, size_t count,
                   const char *replace, int64_t wait_ms);

#endif
