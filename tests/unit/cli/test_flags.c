/* test_flags.c - command-line flags: sources of values, their order, and refusals. */
#include "cli/flags.h"

#include <stdint.h>
#include <stdlib.h>

#include "tests/lib/test.h"

static struct {
    const char *store;
    uint64_t workers, disk;
    int64_t timeout;
    double ratio;
    bool demo, color;
    struct cli_list peers;
} o;

static const struct cli_flag flags[] = {
    { "store", CLI_FLAG_STR, &o.store, "DIR", "./store", "where segments live" },
    { "workers", CLI_FLAG_U64, &o.workers, "N", "2", "workers" },
    { "disk", CLI_FLAG_BYTES, &o.disk, "SIZE", "1GiB", "disk budget" },
    { "drain-timeout", CLI_FLAG_DURATION, &o.timeout, "DURATION", "1m30s", "drain" },
    { "ratio", CLI_FLAG_DOUBLE, &o.ratio, "R", "0.5", "ratio" },
    { "demo", CLI_FLAG_BOOL, &o.demo, NULL, NULL, "demo data" },
    { "color", CLI_FLAG_BOOL, &o.color, NULL, "true", "colours" },
    { "peer", CLI_FLAG_LIST, &o.peers, "HOST:PORT", NULL, "may be repeated" },
};
static const struct cli_spec spec = { "test", "A test.", flags, QF_COUNT_OF(flags) };

static enum cli_parsed parse(char **argv, int *ret_positional)
{
    int argc = 0;

    cli_flags_done(&spec);
    o.demo = false;
    while (argv[argc])
        argc++;
    return cli_flags_parse(&spec, argc, argv, ret_positional);
}

/* Without arguments or environment every flag has its default. */
TEST(flags_have_defaults)
{
    char *argv[] = { "x", NULL };
    int positional;

    CHECK_EQ(parse(argv, &positional), CLI_PARSED_OK);
    CHECK_STR(o.store, "./store");
    CHECK_EQ(o.workers, 2);
    CHECK_EQ(o.disk, 1 << 30);
    CHECK_EQ(o.timeout, 90000);
    CHECK_BITS(o.ratio, 0.5);
    CHECK(!o.demo && o.color);
    CHECK_EQ(o.peers.count, 0);
}

/* The command line beats the environment, which beats the default. */
TEST(flags_prefer_the_command_line)
{
    char *argv[] = { "x",      "--workers=7", "file", "--no-color", "--peer", "a:1",
                     "--demo", "--peer=b:2",  "--",   "--last",     NULL };
    int positional;

    CHECK_EQ(setenv("PROMFABRIC_WORKERS", "5", 1), 0);
    CHECK_EQ(setenv("PROMFABRIC_DRAIN_TIMEOUT", "3s", 1), 0);
    CHECK_EQ(parse(argv, &positional), CLI_PARSED_OK);
    (void)unsetenv("PROMFABRIC_WORKERS");
    (void)unsetenv("PROMFABRIC_DRAIN_TIMEOUT");
    CHECK_EQ(o.workers, 7);
    CHECK_EQ(o.timeout, 3000);
    CHECK(o.demo && !o.color);
    CHECK_EQ(o.peers.count, 2);
    CHECK_STR(o.peers.items[1], "b:2");
    CHECK_EQ(positional, 2);
    CHECK_STR(argv[1], "file");
    CHECK_STR(argv[2], "--last");
    cli_flags_done(&spec);
}

/* Lists in the environment are separated by commas. */
TEST(flags_split_lists_of_the_environment)
{
    char *argv[] = { "x", NULL };
    int positional;

    CHECK_EQ(setenv("PROMFABRIC_PEER", "a:1,b:2,,c:3", 1), 0);
    CHECK_EQ(parse(argv, &positional), CLI_PARSED_OK);
    (void)unsetenv("PROMFABRIC_PEER");
    CHECK_EQ(o.peers.count, 3);
    CHECK_STR(o.peers.items[2], "c:3");
    cli_flags_done(&spec);
}

/* What is no value of a flag, or no flag, is refused. */
TEST(flags_refuse_nonsense)
{
    char *bad[][3] = { { "x", "--workers=many", NULL }, { "x", "--workers", NULL },
                       { "x", "--unknown", NULL },      { "x", "--disk=4XB", NULL },
                       { "x", "--demo=maybe", NULL },   { "x", "--drain-timeout=5", NULL },
                       { "x", "--no-store", NULL } };
    int positional;

    for (size_t i = 0; i < QF_COUNT_OF(bad); i++)
        CHECK_EQ(parse(bad[i], &positional), CLI_PARSED_BAD);
    CHECK_EQ(setenv("PROMFABRIC_WORKERS", "x", 1), 0);
    CHECK_EQ(parse((char *[]){ "x", NULL }, &positional), CLI_PARSED_BAD);
    (void)unsetenv("PROMFABRIC_WORKERS");
    cli_flags_done(&spec);
}
