/* bench_core.c - how fast the coordination core decides. Prints; asserts nothing.
 *
 * Numbers to hold it against: assignment among 100 workers within 2 microseconds, a lost worker
 * with 10,000 items reassigned within 20 ms, 1,000,000 steps a second in the simulator. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/pure/alloc.h"
#include "tests/lib/core/coretest.h"
#include "tests/sim/sim.h"

enum { WORKERS = 100, ITEMS = 10000, ROUNDS = 20 };

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* neighbours on the machine do not count */
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void step(struct wc_api *wc, const struct wc_api_event *event,
                 struct wc_api_effects *ret_effects)
{
    if (wc_api_step(wc, event, ret_effects) != QF_OK)
        abort();
}

static void worker_up(struct wc_api *wc, uint64_t w)
{
    struct wc_api_event event = { .type = WC_API_EV_DISCOVERED, .worker = { w } };
    struct wc_api_effects effects;

    step(wc, &event, &effects);
    event.type = WC_API_EV_CONNECTED;
    event.session.v = w;
    step(wc, &event, &effects);
    event.type = WC_API_EV_STATUS;
    event.status.worker_key = core_worker_key(w);
    event.status.accepting = true;
    step(wc, &event, &effects);
}

/* One query of ITEMS items; returns seconds for the step that assigns them all. */
static double begin(struct wc_api *wc, uint64_t q, const struct wc_api_item_spec *items)
{
    struct wc_api_event event = { .type = WC_API_EV_QUERY_BEGIN, .query = { q } };
    struct wc_api_effects effects;
    double start;

    event.begin.items = items;
    event.begin.count = ITEMS;
    start = seconds();
    step(wc, &event, &effects);
    start = seconds() - start;
    if (effects.count != ITEMS)
        abort();
    return start;
}

static void cancel(struct wc_api *wc, uint64_t q)
{
    struct wc_api_event event = { .type = WC_API_EV_QUERY_CANCEL, .query = { q } };
    struct wc_api_effects effects;

    step(wc, &event, &effects);
}

static struct wc_api_item_spec *make_items(void)
{
    struct wc_api_item_spec *items = qf_xcalloc(ITEMS, sizeof(*items));

    for (uint64_t i = 0; i < ITEMS; i++)
        items[i] = (struct wc_api_item_spec){ { i + 1 }, { 1 }, i * 7919 };
    return items;
}

static void bench_assign(const struct wc_api_item_spec *items)
{
    struct wc_api_limits limits = { .workers_max = WORKERS, .items_max = ITEMS };
    struct wc_api *wc = wc_api_new(&limits);
    double best = 1e9;

    for (uint64_t w = 1; w <= WORKERS; w++)
        worker_up(wc, w);
    for (uint64_t q = 1; q <= ROUNDS; q++) {
        double took = begin(wc, q, items);

        best = took < best ? took : best;
        cancel(wc, q);
    }
    printf("assign among %d workers: %.3f microseconds per item\n", WORKERS, best / ITEMS * 1e6);
    wc_api_free(wc);
}

/* All items on one worker; then it is lost and a hundred others share them. */
static void bench_lost(const struct wc_api_item_spec *items)
{
    double best = 1e9;

    for (int round = 0; round < ROUNDS; round++) {
        struct wc_api_limits limits = { .workers_max = WORKERS + 1, .items_max = ITEMS };
        struct wc_api_event event = { .type = WC_API_EV_DISCONNECTED,
                                      .worker = { 1 },
                                      .session = { 1 } };
        struct wc_api *wc = wc_api_new(&limits);
        struct wc_api_effects effects;
        double start;

        worker_up(wc, 1);
        (void)begin(wc, 1, items);
        for (uint64_t w = 2; w <= WORKERS + 1; w++)
            worker_up(wc, w);
        start = seconds();
        step(wc, &event, &effects);
        start = seconds() - start;
        if (effects.count != ITEMS + 1)
            abort();
        best = start < best ? start : best;
        wc_api_free(wc);
    }
    printf("lost worker with %d items, %d others: %.2f ms\n", ITEMS, WORKERS, best * 1e3);
}

static void bench_sim(bool check)
{
    struct sim_options options = { .events = 200000, .check = check };
    uint64_t steps = 0;
    double start = seconds();

    for (options.seed = 1; options.seed <= 10; options.seed++) {
        struct sim_result result = sim_run(&options);

        if (result.failure)
            abort();
        steps += result.steps;
    }
    printf("simulator, invariants %s: %.0f steps per second (%" PRIu64 " steps)\n",
           check ? "checked after every step" : "unchecked", (double)steps / (seconds() - start),
           steps);
}

int main(void)
{
    struct wc_api_item_spec *items = make_items();

    bench_assign(items);
    bench_lost(items);
    bench_sim(false);
    bench_sim(true);
    free(items);
    return 0;
}
