/* bench_heap.c - how long allocations wait for a background thread that shares their heap.
 *
 * usage: bench_heap
 *
 * A thread that gives way to all others, as background jobs do, may lose the processor while it holds the lock of the heap.
 * Where other programs keep all cores busy it does not come back for long, and whoever needs the heap waits. Prints the time
 * of 200 allocations of some kilobytes, every 8 ms: alone, beside such a thread in one heap, and in several. Run it on a
 * busy machine: on an idle one there is nothing to see. */
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/macros.h"
#include "base/pure/prng.h"
#include "base/sys/clock.h"
#include "base/sys/thread.h"

#define ROUNDS 600
#define BLOCKS 200
#define KEPT 64
#define PAUSE_MS 8

static atomic_ulong blocks_taken;

static void run_job(void *arg)
{
    struct qf_prng prng = { .state = 1 };
    char *kept[KEPT] = { 0 };

    (void)arg;
    qf_thread_yield_to_others();
    for (;;) {
        size_t i = (size_t)qf_prng_below(&prng, KEPT);

        free(kept[i]);
        kept[i] = qf_xmalloc(2000 + (size_t)qf_prng_below(&prng, 60000));
        kept[i][0] = 1;
        atomic_fetch_add_explicit(&blocks_taken, 1, memory_order_relaxed);
    }
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int64_t time_blocks(void)
{
    char *blocks[BLOCKS];
    int64_t began = qf_clock_mono_ns();

    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = qf_xmalloc(3000 + i * 50);
        blocks[i][0] = 1;
    }
    for (size_t i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    return qf_clock_mono_ns() - began;
}

static void measure(int heaps, bool job)
{
    const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000L };
    int64_t took[ROUNDS];

    (void)mallopt(M_ARENA_MAX, heaps);
    if (job && !qf_thread_start("job", run_job, NULL))
        exit(1);
    for (size_t i = 0; i < ROUNDS; i++) {
        (void)nanosleep(&pause, NULL);
        took[i] = time_blocks();
    }
    qsort(took, ROUNDS, sizeof(took[0]), by_size);
    printf("%d heap%s, %-16s p50 %8.3f ms   p99 %8.3f ms   longest %8.1f ms   (job: %lu blocks)\n",
           heaps, heaps == 1 ? ", " : "s,", job ? "beside a job" : "alone",
           (double)took[ROUNDS / 2] / 1e6, (double)took[ROUNDS * 99 / 100] / 1e6,
           (double)took[ROUNDS - 1] / 1e6, atomic_load(&blocks_taken));
    fflush(stdout);
}

/* Each in a process of its own: heaps stay as they were made. */
static void measure_apart(int heaps, bool job)
{
    pid_t child = fork();

    if (child == 0) {
        measure(heaps, job);
        _exit(0);
    }
    if (child < 0 || waitpid(child, NULL, 0) < 0)
        exit(1);
}

int main(void)
{
    measure_apart(1, false);
    measure_apart(1, true);
    measure_apart(8, true);
    return 0;
}
