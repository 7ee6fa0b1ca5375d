/* fuzz_ingest_ledger.c - any bytes as a snapshot's ledger: refused, or a ledger that goes on, and comes
 * back the same. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "ingest/core/ledger.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct in_record record = { .kind = IN_SAMPLES, .tenant = QF_STR("t"), .time_ms = 1 };
    struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct in_ledger *ledger = NULL, *again = NULL;
    uint64_t next;

    if (in_ledger_decode((struct qf_str){ (const char *)data, size }, &ledger) != QF_OK)
        return 0;
    in_ledger_encode(&bytes, ledger);
    assert(in_ledger_decode(qf_strbuf_view(&bytes), &again) == QF_OK);
    assert(in_ledger_needed_from(ledger) == in_ledger_needed_from(again));
    next = in_ledger_applied(ledger) + 1;
    (void)in_ledger_apply(ledger, next, &record, NULL);
    record.kind = IN_SEAL;
    if (next < UINT64_MAX)
        (void)in_ledger_apply(ledger, next + 1, &record, NULL);
    (void)in_ledger_free(ledger);
    (void)in_ledger_free(again);
    qf_strbuf_done(&bytes);
    return 0;
}
