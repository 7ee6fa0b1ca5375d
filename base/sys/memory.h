/* memory.h - how the process keeps the memory it frees. */
#ifndef BASE_SYS_MEMORY_H
#define BASE_SYS_MEMORY_H

/* For servers, once at the start: buffers of a few megabytes come and go with every query, and by
 * default each one is a mapping of its own, which the kernel zeroes page by page every time. Keep
 * them in the heap and give back only what is beyond 32 MiB at its top. Such a heap is kept for
 * every two cores, not, as by default, eight for each. */
void qf_memory_setup(void);

/* For a process some of whose threads give way to all others (thread.h), before it starts threads: as many heaps as the
 * system likes, so that few threads share one. One that loses the processor while it holds the lock of a heap keeps it until
 * nobody else wants to run, on a busy machine for seconds, and all who share the heap wait (tests/bench/sys/bench_heap.c). */
void qf_memory_apart(void);

#endif
