/* machine.c - memory of the machine or of the control group. */
#include "base/sys/machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/pure/macros.h"

/* A file with one number; UINT64_MAX if there is none, as for the word "max". */
static uint64_t read_number(const char *path)
{
    FILE *file = fopen(path, "re");
    uint64_t number = UINT64_MAX;

    if (!file)
        return number;
    if (fscanf(file, "%" SCNu64, &number) != 1)
        number = UINT64_MAX;
    (void)fclose(file);
    return number;
}

uint64_t qf_machine_memory_bytes(void)
{
    /* A container sees its own group at the root: versions 2 and 1. */
    uint64_t group = QF_MIN(read_number("/sys/fs/cgroup/memory.max"),
                            read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t all = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_C(1) << 30;

    return QF_MIN(all, group);
}
