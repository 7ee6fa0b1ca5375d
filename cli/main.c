/* main.c - the one executable: picks the command, which does the rest. */
#include <stdio.h>
#include <string.h>

#include "base/pure/macros.h"
#include "cli/nearest.h"

#define CLI_COMMAND(word, function, help) int function(int argc, char **argv);
#include "cli/commands.def"
#undef CLI_COMMAND

static const struct command {
    const char *word;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
#define CLI_COMMAND(word, function, help) { word, function, help },
#include "cli/commands.def"
#undef CLI_COMMAND
};

int cli_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    printf("promfabric %s\n", PROMFABRIC_VERSION);
    return 0;
}

static void print_help(FILE *out)
{
    fprintf(out,
            "promfabric - PromQL over Parquet, answered by a fabric of workers\n\n"
            "usage: promfabric COMMAND [FLAG...]   (promfabric COMMAND --help tells more)\n\n");
    for (size_t i = 0; i < QF_COUNT_OF(commands); i++)
        fprintf(out, "  %-12s %s\n", commands[i].word, commands[i].help);
}

static const char *command_word(const void *ctx, size_t i)
{
    (void)ctx;
    return commands[i].word;
}

int main(int argc, char **argv)
{
    const char *meant;

    if (argc < 2) {
        print_help(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0)
        return cli_version(argc - 1, argv + 1);
    for (size_t i = 0; i < QF_COUNT_OF(commands); i++)
        if (strcmp(argv[1], commands[i].word) == 0)
            return commands[i].run(argc - 1, argv + 1);
    meant = cli_nearest(qf_str_from(argv[1]), command_word, NULL, QF_COUNT_OF(commands));
    fprintf(stderr, "error: unknown command %s; %s%s\n", argv[1],
            meant ? "did you mean promfabric " : "try promfabric --help", meant ? meant : "");
    return 2;
}
