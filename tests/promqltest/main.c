/* main.c - promqltest: run PromQL conformance scripts through the in-process pipeline.
 *
 * Exit code 0: nothing failed; 1: something did; 2: bad arguments. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/number.h"
#include "tests/promqltest/http.h"
#include "tests/promqltest/run.h"

#define SHARDS_MAX 4096

static void usage(FILE *out)
{
    fputs("usage: promqltest [--shards N] [--only REGEX] [--list] FILE...\n"
          "\n"
          "Run promqltest scripts through planner, leaf executor, artifacts, merge and evaluator.\n"
          "\n"
          "  --shards N      spread the series over N shards (1)\n"
          "  --compare N     and over N shards: the answers must have the same bits\n"
          "  --only REGEX    run the evals whose \"FILE:LINE QUERY\" matches\n"
          "  --list          name the evals, run nothing\n"
          "  --no-codec      pass leaf results on without encoding them as artifacts\n"
          "  --no-pushdown   leaves select and apply range functions, no more\n"
          "  --verdicts      print \"verdict FILE:LINE passed|failed\" for each eval\n"
          "  --through http  ask a running API instead, which --http and --store name; shards must "
          "be\n"
          "                  a power of two\n"
          "  --http URL      that API\n"
          "  --store DIR     its store: every load is imported into a fresh tenant of it\n"
          "  --binary PATH   the promfabric that imports (the one beside this program)\n"
          "\n"
          "No eval is ever skipped; the totals say so, for whoever reads them.\n",
          out);
}

static bool parse_shards(const char *text, size_t *ret_count)
{
    uint64_t count;

    if (!qf_parse_u64(qf_str_from(text), &count) || count == 0 || count > SHARDS_MAX)
        return false;
    *ret_count = (size_t)count;
    return true;
}

/* The path of the promfabric in the folder this program was started from. */
static const char *beside(const char *program)
{
    static char path[4096];
    const char *slash = strrchr(program, '/');

    (void)snprintf(path, sizeof(path), "%.*spromfabric", slash ? (int)(slash - program) + 1 : 0,
                   program);
    return path;
}

static bool parse_only(const char *text, const struct qf_regex **ret_regex)
{
    char reason[200];

    *ret_regex = qf_regex_new_unanchored(text, strlen(text), reason, sizeof(reason));
    if (!*ret_regex)
        fprintf(stderr, "promqltest: --only %s: %s\n", text, reason);
    return *ret_regex != NULL;
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        { "shards", required_argument, NULL, 's' },
        { "only", required_argument, NULL, 'o' },
        { "list", no_argument, NULL, 'l' },
        { "no-codec", no_argument, NULL, 'c' },
        { "no-pushdown", no_argument, NULL, 'p' },
        { "verdicts", no_argument, NULL, 'V' },
        { "through", required_argument, NULL, 't' },
        { "http", required_argument, NULL, 'u' },
        { "binary", required_argument, NULL, 'b' },
        { "store", required_argument, NULL, 'd' },
        { "compare", required_argument, NULL, 'm' },
        { "help", no_argument, NULL, 'h' },
        { 0 },
    };
    struct run_options options = { .shard_count = 1 };
    struct run_counts counts = { 0 };
    const char *url = NULL, *store = NULL, *binary = beside(argv[0]);
    bool good = true, through_http = false;

    for (int opt; good && (opt = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        if (opt == 's')
            good = parse_shards(optarg, &options.shard_count);
        else if (opt == 'm')
            good = parse_shards(optarg, &options.compare_shards);
        else if (opt == 'o')
            good = parse_only(optarg, &options.only);
        else if (opt == 'l')
            options.list = true;
        else if (opt == 'c')
            options.no_codec = true;
        else if (opt == 'p')
            options.no_pushdown = true;
        else if (opt == 'V')
            options.verdicts = true;
        else if (opt == 't')
            good = through_http = strcmp(optarg, "http") == 0;
        else if (opt == 'b')
            binary = optarg;
        else if (opt == 'u')
            url = optarg;
        else if (opt == 'd')
            store = optarg;
        else if (opt == 'h')
            return usage(stdout), 0;
        else
            good = false;
    }
    if (!good || optind >= argc || !url != !store || through_http != (url != NULL))
        return usage(stderr), 2;
    if (through_http)
        options.http = http_engine_new(url, store, binary);
    for (int i = optind; i < argc; i++)
        run_file(argv[i], &options, &counts);
    (void)http_engine_free(options.http);
    (void)qf_regex_free((struct qf_regex *)options.only);
    if (!options.list)
        printf("%zu passed, %zu failed, 0 skipped\n", counts.passed, counts.failed);
    return counts.failed ? 1 : 0;
}
