/* query_ask.h - `promfabric query` asks the API: an instant query for one document, a range, or one
 * whose plan is to be seen, for events. */
#ifndef CLI_QUERY_ASK_H
#define CLI_QUERY_ASK_H

#include "cli/query_answer.h"
#include "cli/query_explain.h"
#include "cli/web.h"

struct cli_question {
    const struct cli_web *web;
    const char *expr;
    const char *start, *end, *step; /* as the event stream takes them; NULL start: an instant */
    bool json;                      /* print what comes, read only how it ends */
    bool terminal;                  /* show on stderr how far it is */
    struct cli_explain *explain;    /* NULL: not asked for, or with --json */
    bool events;                    /* an instant as events, too: the plan is in them */
};

struct cli_reply {
    struct cli_answer answer;
    bool failed;
    char message[1024];
};

/* Fills @reply, which the caller has zeroed but for answer.all_histograms and ends with
 * cli_answer_done(). Notes of the answer go to stderr. While it shows how far it is, Ctrl-C leaves
 * a clean line. */
void cli_ask(const struct cli_question *question, struct cli_reply *reply);

#endif
