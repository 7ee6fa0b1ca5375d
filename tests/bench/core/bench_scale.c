/* bench_scale.c - what coordination costs one API with 1,000 workers, and one worker with 100 APIs.
 *
 * usage: bench_scale [WORKERS [APIS]]      default: 1000 100
 *
 * The cores are the real ones, on a virtual clock. Each process of a fabric has one core, and streams
 * are one to one, so a fabric costs as many of these as it has processes: docs/SCALE.md. Processor time,
 * the best of several rounds; memory as the allocator counts it. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/pure/alloc.h"
#include "base/pure/macros.h"
#include "tests/lib/core/coretest.h"

enum { ROUNDS = 20, BIG = 4096 };

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* neighbours on the machine do not count */
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static size_t allocated(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* A step of the API's core; how many effects it had. */
static size_t tell(struct wc_api *wc, struct wc_api_event event)
{
    struct wc_api_effects effects;

    if (wc_api_step(wc, &event, &effects) != QF_OK)
        abort();
    return effects.count;
}

static struct wc_api_event from_worker(enum wc_api_event_type type, uint64_t worker, qf_time_ms now)
{
    return (struct wc_api_event){
        .type = type, .worker = { worker }, .session = { worker }, .now = now
    };
}

static void say_status(struct wc_api *wc, uint64_t worker, qf_time_ms now)
{
    struct wc_api_event event = from_worker(WC_API_EV_STATUS, worker, now);

    event.status.worker_key = core_worker_key(worker);
    event.status.accepting = true;
    (void)tell(wc, event);
}

static struct wc_api *api_with(size_t workers, qf_time_ms now)
{
    struct wc_api_limits limits = wc_api_limits_default();
    struct wc_api *wc;
    size_t before = allocated();

    limits.workers_max = (uint32_t)QF_MAX(workers, (size_t)1024);
    wc = wc_api_new(&limits);
    if (!wc)
        abort();
    printf("API core, tables for %u workers and 65,536 items: %.1f MiB\n", limits.workers_max,
           (double)(allocated() - before) / 1048576);
    for (uint64_t w = 1; w <= workers; w++) {
        (void)tell(wc, from_worker(WC_API_EV_DISCOVERED, w, now));
        (void)tell(wc, from_worker(WC_API_EV_CONNECTED, w, now));
        say_status(wc, w, now);
    }
    return wc;
}

/* A second in which nobody asks anything: a heartbeat to each worker, and its echo, its status and its own
 * heartbeat back. */
static void api_idle(struct wc_api *wc, size_t workers, qf_time_ms *now)
{
    double best = 1e9;
    size_t beats = 0;

    for (int round = 0; round < ROUNDS; round++) {
        double begun = seconds();

        beats = 0;
        for (qf_time_ms until = *now + 1000; *now < until; *now += 10)
            if (wc_api_deadline(wc) <= *now)
                beats += tell(wc, (struct wc_api_event){ .type = WC_API_EV_TICK, .now = *now });
        for (uint64_t w = 1; w <= workers; w++) {
            struct wc_api_event echo = from_worker(WC_API_EV_HEARTBEAT, w, *now);

            echo.sent_at = *now - 1;
            (void)tell(wc, echo);
            say_status(wc, w, *now);
        }
        begun = seconds() - begun;
        best = QF_MIN(best, begun);
    }
    if (beats != workers)
        abort();
    printf(
        "API core, idle, %zu workers: %zu messages out and %zu in a second, %.2f ms of processor "
        "time\n",
        workers, 2 * workers, 3 * workers, best * 1e3);
}

/* One query of BIG items: assigned, accepted, ready, fetched, committed. */
static void api_big_query(struct wc_api *wc, size_t workers, qf_time_ms now)
{
    struct wc_api_item_spec *items = qf_xcalloc(BIG, sizeof(*items));
    uint64_t *worker_of = qf_xcalloc(BIG, sizeof(*worker_of)), first = 1;
    double assign = 1e9, all = 1e9;

    for (int round = 0; round < ROUNDS; round++, first += BIG) {
        struct wc_api_event begin = { .type = WC_API_EV_QUERY_BEGIN,
                                      .query = { (uint64_t)round + 1 },
                                      .now = now };
        struct wc_api_effects effects;
        double begun, assigned;

        for (uint64_t i = 0; i < BIG; i++)
            items[i] = (struct wc_api_item_spec){ { first + i }, { 1 }, i * 7919, 0, 0 };
        begin.begin.items = items;
        begin.begin.count = BIG;
        begun = seconds();
        if (wc_api_step(wc, &begin, &effects) != QF_OK || effects.count != BIG)
            abort();
        assigned = seconds() - begun;
        for (size_t i = 0; i < BIG; i++)
            worker_of[effects.items[i].work.v - first] = effects.items[i].worker.v;
        for (uint64_t i = 0; i < BIG; i++) {
            struct wc_api_event event = from_worker(WC_API_EV_ACCEPTED, worker_of[i], now);

            event.work.v = first + i;
            event.attempt = 1;
            (void)tell(wc, event);
            event.type = WC_API_EV_READY;
            event.checksum = (struct wc_checksum){ 1, i };
            (void)tell(wc, event);
            event.type = WC_API_EV_FETCHED;
            (void)tell(wc, event);
        }
        begun = seconds() - begun;
        assign = QF_MIN(assign, assigned);
        all = QF_MIN(all, begun);
    }
    if (wc_api_stats(wc)->queries_ok != ROUNDS)
        abort();
    printf("API core, a query of %d items among %zu workers: assigned in %.2f ms, all of its steps "
           "%.2f ms\n",
           BIG, workers, assign * 1e3, all * 1e3);
    free(worker_of);
    free(items);
}

static size_t tell_worker(struct wc_worker *wc, struct wc_worker_event event)
{
    struct wc_worker_effects effects;

    if (wc_worker_step(wc, &event, &effects) != QF_OK)
        abort();
    return effects.count;
}

static void worker_idle(size_t apis)
{
    struct wc_worker_limits limits = { .sessions_max = 256, .slots = 2 };
    size_t before = allocated(), said = 0;
    struct wc_worker *wc = wc_worker_new(&limits);
    qf_time_ms now = 1;
    double best = 1e9;

    if (!wc || apis > limits.sessions_max)
        abort();
    printf("worker core, tables for 256 APIs and 16,384 works: %.1f MiB\n",
           (double)(allocated() - before) / 1048576);
    (void)tell_worker(wc, (struct wc_worker_event){
                              .type = WC_WORKER_EV_ACCEPTING, .accepting = true, .now = now });
    for (uint64_t a = 1; a <= apis; a++)
        (void)tell_worker(wc, (struct wc_worker_event){ .type = WC_WORKER_EV_SESSION_OPEN,
                                                        .session = { a },
                                                        .now = now });
    for (int round = 0; round < ROUNDS; round++) {
        double begun = seconds();

        now += 1000;
        said = 0;
        for (uint64_t a = 1; a <= apis; a++)
            said += tell_worker(wc, (struct wc_worker_event){ .type = WC_WORKER_EV_HEARTBEAT,
                                                              .session = { a },
                                                              .sent_at = now,
                                                              .now = now });
        begun = seconds() - begun;
        best = QF_MIN(best, begun);
    }
    printf(
        "worker core, idle, %zu APIs: %zu messages out and %zu in a second, %.3f ms of processor "
        "time\n",
        apis, said + apis, 2 * apis, best * 1e3);
    (void)wc_worker_free(wc);
}

int main(int argc, char **argv)
{
    size_t workers = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
    size_t apis = argc > 2 ? strtoul(argv[2], NULL, 10) : 100;
    qf_time_ms now = 1;
    struct wc_api *wc;

    if (!workers || !apis || apis > 256) {
        fprintf(stderr, "usage: bench_scale [WORKERS [APIS]]    at most 256 APIs\n");
        return 2;
    }
    wc = api_with(workers, now);
    api_idle(wc, workers, &now);
    api_big_query(wc, workers, now);
    (void)wc_api_free(wc);
    worker_idle(apis);
    return 0;
}
