/* main.c - promfabric-sim: run seeds of the simulation; a failing one says how to run it again.
 *
 * usage: promfabric-sim [--seed N] [--seeds COUNT] [--events M] [--trace] [--no-check]
 *                       [--apis N] [--workers N] [--exactly]
 *
 * A seed chooses how many there are, at most so many; --exactly: just so many.
 *
 * Exit code 0 if every invariant held in every seed and every query ended. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/sim/sim.h"

struct arguments {
    struct sim_options options;
    uint64_t seeds;
};

static int parse(int argc, char **argv, struct arguments *arguments)
{
    for (int i = 1; i < argc; i++) {
        uint64_t number = i + 1 < argc ? strtoull(argv[i + 1], NULL, 10) : 0;

        if (strcmp(argv[i], "--trace") == 0)
            arguments->options.trace = true;
        else if (strcmp(argv[i], "--no-check") == 0)
            arguments->options.check = false;
        else if (strcmp(argv[i], "--exactly") == 0)
            arguments->options.exactly = true;
        else if (i + 1 == argc)
            return -1;
        else if (strcmp(argv[i], "--seed") == 0)
            arguments->options.seed = number, i++;
        else if (strcmp(argv[i], "--seeds") == 0)
            arguments->seeds = number, i++;
        else if (strcmp(argv[i], "--events") == 0)
            arguments->options.events = number, i++;
        else if (strcmp(argv[i], "--apis") == 0)
            arguments->options.apis_max = (uint32_t)number, i++;
        else if (strcmp(argv[i], "--workers") == 0)
            arguments->options.workers_max = (uint32_t)number, i++;
        else
            return -1;
    }
    return 0;
}

static void add(struct sim_result *sum, const struct sim_result *one)
{
    sum->steps += one->steps;
    sum->queries += one->queries;
    sum->queries_ok += one->queries_ok;
    sum->queries_failed += one->queries_failed;
    sum->refused += one->refused;
    sum->replanned += one->replanned;
    sum->assigned += one->assigned;
    sum->reassigned += one->reassigned;
    sum->late += one->late;
    sum->hedged += one->hedged;
    sum->hedges_won += one->hedges_won;
    sum->duplicates += one->duplicates;
    sum->illegal += one->illegal;
    sum->stale += one->stale;
    sum->lost += one->lost;
    sum->crashes += one->crashes;
    sum->drains += one->drains;
    sum->breaks += one->breaks;
    sum->half_open += one->half_open;
    sum->repeated += one->repeated;
    sum->evicted += one->evicted;
}

static void print(const struct sim_result *sum, uint64_t seeds, double seconds)
{
    printf("%" PRIu64 " seeds, %" PRIu64 " steps (%.0f per second), %" PRIu64 " queries: %" PRIu64
           " ok, %" PRIu64 " failed, the rest died with their API; %" PRIu64 " refused, %" PRIu64
           " replans\n",
           seeds, sum->steps, (double)sum->steps / seconds, sum->queries, sum->queries_ok,
           sum->queries_failed, sum->refused, sum->replanned);
    printf("assigned %" PRIu64 ", reassigned %" PRIu64 ", hedges %" PRIu64 " (%" PRIu64
           " won), late commits %" PRIu64 ", duplicates %" PRIu64 ", illegal %" PRIu64
           ", stale %" PRIu64 "\n",
           sum->assigned, sum->reassigned, sum->hedged, sum->hedges_won, sum->late, sum->duplicates,
           sum->illegal, sum->stale);
    printf("faults: %" PRIu64 " streams broken, %" PRIu64 " half open, %" PRIu64
           " crashes, %" PRIu64 " drains, %" PRIu64 " repeated messages, %" PRIu64
           " evictions; %" PRIu64 " sessions lost\n",
           sum->breaks, sum->half_open, sum->crashes, sum->drains, sum->repeated, sum->evicted,
           sum->lost);
}

int main(int argc, char **argv)
{
    struct arguments arguments = { { .seed = 1, .events = 2000, .check = true }, 1 };
    struct sim_result sum = { 0 };
    uint64_t first;
    clock_t start = clock();

    if (parse(argc, argv, &arguments) < 0) {
        fprintf(stderr, "usage: promfabric-sim [--seed N] [--seeds COUNT] [--events M] [--trace]"
                        " [--no-check] [--apis N] [--workers N] [--exactly]\n");
        return 2;
    }
    first = arguments.options.seed;
    for (uint64_t i = 0; i < arguments.seeds; i++) {
        struct sim_result result;

        arguments.options.seed = first + i;
        result = sim_run(&arguments.options);
        add(&sum, &result);
        if (result.failure) {
            printf("FAILED seed %" PRIu64 " after %" PRIu64 " steps: %s\nreplay: promfabric-sim"
                   " --seed %" PRIu64 " --events %" PRIu64 " --trace\n",
                   first + i, result.steps, result.failure, first + i, arguments.options.events);
            return 1;
        }
    }
    print(&sum, arguments.seeds, (double)(clock() - start) / CLOCKS_PER_SEC + 1e-9);
    return 0;
}
