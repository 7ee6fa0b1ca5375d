/* cmd_query.c - promfabric query: a client of the API in a terminal.
 *
 * An instant result is a table; a range is a chart per series. A native histogram is drawn as bars,
 * that of a range as it is at its end. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/flags.h"
#include "cli/query_ask.h"
#include "cli/query_hint.h"
#include "cli/query_print.h"

int cli_query(int argc, char **argv);

static struct cli_web web;
static const char *start, *end, *step;
static bool json_out, csv, explain;

static const struct cli_flag flags[] = {
    CLI_WEB_FLAGS(web, "http://127.0.0.1:8080", "the API"),
    { "start", CLI_FLAG_STR, &start, "TIME", NULL,
      "first time of a range: RFC 3339, Unix seconds, -1h, now-1h, e-1h (before the end)" },
    { "end", CLI_FLAG_STR, &end, "TIME", "now", "last time, or the time of an instant query" },
    { "step", CLI_FLAG_STR, &step, "DURATION", NULL, "distance of a range's points" },
    { "json", CLI_FLAG_BOOL, &json_out, NULL, NULL,
      "print what the API sends: an instant query's document, a range's events, one per line" },
    { "csv", CLI_FLAG_BOOL, &csv, NULL, NULL,
      "print a line per value: time, value with all its digits, a column for each label" },
    { "explain", CLI_FLAG_BOOL, &explain, NULL, NULL,
      "print the plan with its work, before the answer; in a terminal also while it runs" },
};

static const struct cli_spec spec = {
    .usage = "promfabric query [FLAG...] 'EXPR'",
    .summary =
        "Asks the API. Without --start it is an instant query. Tables and charts have four\n"
        "digits, --json and --csv all of them. The exit code is 1 if the answer is an error.",
    .flags = flags,
    .flag_count = sizeof(flags) / sizeof(flags[0]),
};

static void print_answer(struct cli_answer *answer)
{
    struct cli_look look = cli_look_of_stdout();

    if (start || explain) /* events come as their series do */
        cli_answer_sort(answer);
    if (csv)
        cli_print_csv(stdout, answer);
    else if (answer->series.count == 0 && !answer->text)
        cli_hint(&web, start, end);
    else if (start)
        cli_print_range(stdout, answer, &look);
    else
        cli_print_instant(stdout, answer, &look);
}

static bool ask(const char *expr)
{
    bool terminal = isatty(STDERR_FILENO) && !json_out;
    struct cli_reply reply = { .answer.all_histograms = csv, .answer.one_time = true };
    struct cli_explain *plan = explain && !json_out ? cli_explain_new(terminal) : NULL;
    struct cli_question question = { .web = &web,
                                     .expr = expr,
                                     .start = start,
                                     .end = end,
                                     .step = step,
                                     .json = json_out,
                                     .terminal = terminal,
                                     .explain = plan,
                                     .events = explain };

    cli_ask(&question, &reply);
    if (plan) {
        cli_explain_clear(plan);
        cli_explain_print(plan, csv ? stderr : stdout);
        plan = cli_explain_free(plan);
    }
    if (reply.failed)
        (void)fprintf(stderr, "error: %s\n", reply.message);
    else if (!json_out)
        print_answer(&reply.answer);
    cli_answer_done(&reply.answer);
    return !reply.failed;
}

static enum cli_parsed parse(int argc, char **argv)
{
    int positional;
    enum cli_parsed parsed = cli_flags_parse(&spec, argc, argv, &positional);

    if (parsed != CLI_PARSED_OK)
        return parsed;
    if (positional != 1)
        (void)fprintf(stderr, "error: one expression is needed; try promfabric query --help\n");
    else if (json_out && csv)
        (void)fprintf(stderr, "error: --json or --csv, not both\n");
    else if (cli_web_read_key(&web))
        return CLI_PARSED_OK;
    return CLI_PARSED_BAD;
}

int cli_query(int argc, char **argv)
{
    enum cli_parsed parsed = parse(argc, argv);
    bool ok;

    if (parsed != CLI_PARSED_OK)
        return parsed == CLI_PARSED_HELP ? 0 : 2;
    (void)setlocale(LC_CTYPE, "");
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    ok = ask(argv[1]);
    if (fflush(stdout) != 0 && ok) {
        (void)fprintf(stderr, "error: the answer cannot be written\n");
        return 1;
    }
    return ok ? 0 : 1;
}
