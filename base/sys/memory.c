/* memory.c - how the process keeps the memory it frees. */
#include "base/sys/memory.h"

#include <malloc.h>
#include <unistd.h>

#include "base/pure/macros.h"

#define KEPT_BYTES (32 << 20) /* the largest threshold that malloc takes */
#define ARENAS_MAX 64
#define HEAPS_PER_CORE 8 /* malloc's own choice */

/* One arena for two cores: each keeps what was freed in it, and threads meet in one only for what is
 * too large for their own caches. */
static int arenas(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (cores < 4)
        return 1;
    return cores / 2 < ARENAS_MAX ? (int)(cores / 2) : ARENAS_MAX;
}

void qf_memory_apart(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    (void)mallopt(M_ARENA_MAX, (int)(QF_MAX(cores, 1L) * HEAPS_PER_CORE));
}

void qf_memory_setup(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    (void)mallopt(M_ARENA_MAX, arenas());
}
