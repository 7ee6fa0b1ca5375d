/* machine.h - what the machine, or the container, gives to this process. */
#ifndef BASE_SYS_MACHINE_H
#define BASE_SYS_MACHINE_H

#include <stdint.h>

/* Bytes of memory this process may use: the machine's, or less if its control group says so. */
uint64_t qf_machine_memory_bytes(void);

#endif
