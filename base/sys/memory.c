/* memory.c - how the process keeps the memory it frees. */
#include "base/sys/memory.h"

#include <malloc.h>

#define KEPT_BYTES (32 << 20) /* the largest threshold that malloc takes */

void qf_memory_setup(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
}
