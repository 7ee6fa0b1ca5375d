/* fuzz_params.c - request parameters, times, durations and Kubernetes lists from any bytes. */
#include <stdint.h>
#include <stdlib.h>

#include "base/http/params.h"
#include "queryapi/discovery/discovery.h"
#include "queryapi/http/params.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qf_str text = { (const char *)data, size };
    struct qf_arena *arena = qf_arena_new((size_t)1 << 20);
    struct qh_params params = { 0 };
    char *found[16];
    uint64_t limit;
    int64_t ms;
    size_t count;

    (void)!qh_params_add_form(arena, &params, text, NULL);
    (void)!qh_params_add_json(arena, &params, text, NULL);
    (void)!qa_param_time("time", text, &ms, NULL);
    (void)!qa_param_duration("step", text, &ms, NULL);
    (void)!qa_param_when("s", text, 1700000000000, 1700000000000, &ms, NULL);
    (void)!qa_param_limit(text, &limit, NULL);
    (void)qa_unescape_name(arena, text);
    if (qa_kubernetes_parse(text, "control", found, 16, &count, NULL) == QF_OK)
        for (size_t i = 0; i < count; i++)
            free(found[i]);
    (void)qf_arena_free(arena);
    return 0;
}
