/* fuzz_main.c - libFuzzer's entry. */
#include "tests/fuzz/core/fuzz_core.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    fuzz_core(bytes, size);
    return 0;
}
