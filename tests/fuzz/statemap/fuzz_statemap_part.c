/* fuzz_statemap_part.c - any bytes as a part: refused, or its sections are there in full. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "statemap/store/part.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int file = memfd_create("part", MFD_CLOEXEC);
    char path[64];
    struct sm_part part;

    assert(file >= 0 && write(file, data, size) == (ssize_t)size);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    if (sm_part_open(path, &part, NULL) == QF_OK) {
        assert(part.count > 0);
        if (sm_part_verify(&part, NULL) == QF_OK)
            for (size_t i = 0; i < part.count; i++)
                assert(part.sections[i].offset + part.sections[i].packed <= size);
        sm_part_close(&part);
    }
    (void)close(file);
    return 0;
}
