/* fuzz_core.h - one input of the fuzzer, also fed with random bytes by an ordinary test. */
#ifndef TESTS_FUZZ_CORE_FUZZ_CORE_H
#define TESTS_FUZZ_CORE_FUZZ_CORE_H

#include <stddef.h>
#include <stdint.h>

/* Aborts if an invariant is broken. */
void fuzz_core(const uint8_t *bytes, size_t size);

#endif
