/* flags.h - command-line flags, declared once: parsing, environment, defaults and --help.
 *
 *     static struct options { const char *store; uint64_t workers; bool demo; } o;
 *     static const struct cli_flag flags[] = {
 *         { "store", CLI_FLAG_STR, &o.store, "DIR", "./store", "where segments live" },
 *         { "workers", CLI_FLAG_U64, &o.workers, "N", "2", "worker processes to start" },
 *         { "demo", CLI_FLAG_BOOL, &o.demo, NULL, NULL, "load demo data first" },
 *     };
 *
 * A value comes from the command line (--store DIR, --store=DIR, --demo, --no-demo), else from the
 * environment (PROMFABRIC_STORE), else from the default. */
#ifndef CLI_FLAGS_H
#define CLI_FLAGS_H

#include <stddef.h>

#include "base/pure/err.h"
#include "base/pure/strbuf.h"

enum cli_flag_kind {
    CLI_FLAG_BOOL,     /* bool * */
    CLI_FLAG_STR,      /* const char **: borrowed from argv, the environment or the default */
    CLI_FLAG_U64,      /* uint64_t *: decimal */
    CLI_FLAG_DOUBLE,   /* double * */
    CLI_FLAG_DURATION, /* int64_t *: milliseconds; "30s", "1h30m" */
    CLI_FLAG_BYTES,    /* uint64_t *: "4096", "64KiB", "2GiB" */
    CLI_FLAG_LIST,     /* struct cli_list *: may be repeated; commas separate in the environment */
};

struct cli_list {
    const char **items;
    size_t count;
};

struct cli_flag {
    const char *name; /* without the dashes */
    enum cli_flag_kind kind;
    void *value;
    const char *argument; /* what stands for the value in --help */
    const char *standard; /* the default as text; NULL: unset, false, or an empty list */
    const char *help;
};

struct cli_spec {
    const char *usage;   /* "promfabric import [FLAG...] FILE..." */
    const char *summary; /* one or more sentences below the usage line */
    const struct cli_flag *flags;
    size_t flag_count;
};

enum cli_parsed { CLI_PARSED_OK, CLI_PARSED_HELP, CLI_PARSED_BAD };

/* Fill the values. Positional arguments are moved to the front of @argv (from index 1 on) and their
 * number is written to @ret_positional. On CLI_PARSED_HELP the help was printed to stdout; on
 * CLI_PARSED_BAD one line was printed to stderr and the caller exits with 2. "--" ends the flags.
 */
enum cli_parsed cli_flags_parse(const struct cli_spec *spec, int argc, char **argv,
                                int *ret_positional);

/* Append the flags and their values as {"name":"value",...}. */
void cli_flags_json(const struct cli_spec *spec, struct qf_strbuf *buf);

/* Free what list flags allocated. */
void cli_flags_done(const struct cli_spec *spec);

#endif
