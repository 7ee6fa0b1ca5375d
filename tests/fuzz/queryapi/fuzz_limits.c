/* fuzz_limits.c - files of tenants' limits from any bytes: what was accepted says no nonsense. */
#include <stdint.h>
#include <stdlib.h>

#include "queryapi/tenant/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qf_str text = { (const char *)data, size };
    struct qa_limits_table *table = qa_limits_parse(text, "limits", NULL);
    struct qa_limits others = { .of = { 1, 1, 1, 1, 1, 1, 1, 1 } }, limits;

    if (!table)
        return 0;
    limits = qa_limits_of(table, qf_str_sub(text, 0, size / 4), &others);
    for (int i = 0; i < QA_LIMIT__COUNT; i++)
        if (limits.of[i] == 0)
            abort(); /* nobody may have nothing */
    (void)qa_limits_free(table);
    return 0;
}
