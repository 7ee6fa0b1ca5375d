/* memory.h - how the process keeps the memory it frees. */
#ifndef BASE_SYS_MEMORY_H
#define BASE_SYS_MEMORY_H

/* For servers, once at the start: buffers of a few megabytes come and go with every query, and by
 * default each one is a mapping of its own, which the kernel zeroes page by page every time. Keep
 * them in the heap and give back only what is beyond 32 MiB at its top. */
void qf_memory_setup(void);

#endif
