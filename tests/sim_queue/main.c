/* main.c - promfabric-sim-queue: run seeds of the queue's simulation; a failing one says how to run it
 * again.
 *
 * usage: promfabric-sim-queue [--seed N] [--seeds COUNT] [--events M] [--nodes N] [--trace]
 *                             [--full-disks] [--together] [--late-saves] [--chains]
 *                             [--without RULE]... [--expect-failure]
 *
 * --without takes a rule out (see rules.h); with --expect-failure the program succeeds at the first
 * seed that finds out. Exit code 0 if every seed went well. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/sim_queue/rules.h"
#include "tests/sim_queue/sim.h"

struct arguments {
    struct sim_options options;
    uint64_t seeds;
    bool expect_failure;
};

static int parse(int argc, char **argv, struct arguments *arguments)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        uint64_t number = strtoull(value, NULL, 10);

        if (strcmp(argv[i], "--trace") == 0)
            arguments->options.trace = true;
        else if (strcmp(argv[i], "--full-disks") == 0)
            arguments->options.full_disks = true;
        else if (strcmp(argv[i], "--together") == 0)
            arguments->options.together = true;
        else if (strcmp(argv[i], "--late-saves") == 0)
            arguments->options.late_saves = true;
        else if (strcmp(argv[i], "--chains") == 0)
            arguments->options.chains = true;
        else if (strcmp(argv[i], "--expect-failure") == 0)
            arguments->expect_failure = true;
        else if (i + 1 == argc)
            return -1;
        else if (strcmp(argv[i], "--seed") == 0)
            arguments->options.seed = number, i++;
        else if (strcmp(argv[i], "--seeds") == 0)
            arguments->seeds = number, i++;
        else if (strcmp(argv[i], "--events") == 0)
            arguments->options.events = number, i++;
        else if (strcmp(argv[i], "--nodes") == 0)
            arguments->options.nodes = (uint32_t)number, i++;
        else if (strcmp(argv[i], "--without") == 0 && sim_rule_off(value, &arguments->options))
            i++;
        else
            return -1;
    }
    return 0;
}

static void add(struct sim_result *sum, const struct sim_result *one)
{
    const uint64_t *from = &one->events;
    uint64_t *to = &sum->events;

    for (size_t i = 0; i < (sizeof(*one) - sizeof(one->failure)) / sizeof(uint64_t); i++)
        to[i] += from[i];
}

static void print(const struct sim_result *sum, uint64_t seeds, double seconds)
{
    printf("%" PRIu64 " seeds, %" PRIu64 " events (%.0f per second), %" PRIu64 " steps, %" PRIu64
           " entries applied\n",
           seeds, sum->events, (double)sum->events / seconds, sum->steps, sum->applied);
    printf("offers %" PRIu64 ": %" PRIu64 " acknowledged, %" PRIu64 " refused, %" PRIu64
           " unknown; %" PRIu64 " reads, %" PRIu64 " records consumed\n",
           sum->offers, sum->acked, sum->refused, sum->unknown, sum->reads, sum->consumed);
    printf("%" PRIu64 " terms led, %" PRIu64 " changes of members, %" PRIu64 " snapshots, %" PRIu64
           " installed, %" PRIu64 " messages (%" PRIu64 " lost, %" PRIu64 " doubled)\n",
           sum->elections, sum->changes, sum->snapshots, sum->installs, sum->messages, sum->lost,
           sum->doubled);
    printf("faults: %" PRIu64 " crashes, %" PRIu64 " with loss of power, %" PRIu64
           " wiped, %" PRIu64 " flipped bits, %" PRIu64 " failed syncs, %" PRIu64 " clock jumps\n",
           sum->crashes, sum->power_losses, sum->wipes, sum->flips, sum->failed_syncs, sum->jumps);
    if (sum->together)
        printf("%" PRIu64 " records offered beside others, %" PRIu64 " acknowledged\n",
               sum->together, sum->together_acked);
    if (sum->links)
        printf("%" PRIu64 " records of applications, each on the one before: %" PRIu64
               " acknowledged, %" PRIu64 " refused\n",
               sum->links, sum->links_acked, sum->links_refused);
    if (sum->fills)
        printf("%" PRIu64 " full disks, %" PRIu64 " entries waited for room\n", sum->fills,
               sum->held);
}

int main(int argc, char **argv)
{
    struct arguments arguments = { { .seed = 1, .events = 20000 }, 1, false };
    struct sim_result sum = { 0 };
    uint64_t first;
    clock_t start = clock();

    if (parse(argc, argv, &arguments) < 0) {
        fprintf(stderr,
                "usage: promfabric-sim-queue [--seed N] [--seeds COUNT] [--events M]"
                " [--nodes N] [--trace] [--full-disks] [--together] [--late-saves] [--chains]"
                " [--without RULE]... [--expect-failure]\nrules:");
        sim_rules_print(stderr);
        return 2;
    }
    first = arguments.options.seed;
    for (uint64_t i = 0; i < arguments.seeds; i++) {
        struct sim_result result;

        arguments.options.seed = first + i;
        result = sim_run(&arguments.options);
        add(&sum, &result);
        if (result.failure) {
            printf("%s seed %" PRIu64 " after %" PRIu64 " events: %s\nreplay: promfabric-sim-queue"
                   " --seed %" PRIu64 " --events %" PRIu64 " --nodes %u --trace%s%s%s%s\n",
                   arguments.expect_failure ? "found by" : "FAILED", first + i, result.events,
                   result.failure, first + i, arguments.options.events, arguments.options.nodes,
                   arguments.options.full_disks ? " --full-disks" : "",
                   arguments.options.together ? " --together" : "",
                   arguments.options.late_saves ? " --late-saves" : "",
                   arguments.options.chains ? " --chains" : "");
            return arguments.expect_failure ? 0 : 1;
        }
    }
    print(&sum, arguments.seeds, (double)(clock() - start) / CLOCKS_PER_SEC + 1e-9);
    return arguments.expect_failure ? 1 : 0;
}
