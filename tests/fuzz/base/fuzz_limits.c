/* fuzz_limits.c - files of tenants' limits from any bytes: what was accepted says no nonsense. */
#include <stdint.h>
#include <stdlib.h>

#include "base/pure/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qf_str text = { (const char *)data, size };
    struct qf_limits_table *table = qf_limits_parse(text, "limits", NULL);
    struct qf_limits others, limits;

    if (!table)
        return 0;
    for (int i = 0; i < QF_LIMIT__COUNT; i++)
        others.of[i] = 1;
    limits = qf_limits_of(table, qf_str_sub(text, 0, size / 4), &others);
    for (int i = 0; i < QF_LIMIT__COUNT; i++)
        if (limits.of[i] == 0)
            abort(); /* nobody may have nothing */
    (void)qf_limits_free(table);
    return 0;
}
