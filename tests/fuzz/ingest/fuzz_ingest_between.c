/* fuzz_ingest_between.c - any bytes as what ingest nodes tell each other besides records: outcomes of
 * writes, questions for a status, and the exemplars and metadata of a record. Refused, or read to the
 * end, and the same again when written. The first byte chooses. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ingest/core/extras.h"
#include "ingest/core/outcome.h"
#include "ingest/head/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void outcome(struct qf_str bytes)
{
    struct qf_strbuf again = QF_STRBUF_INIT;
    struct in_outcome read, twice;
    qf_rc rc;

    if (in_outcome_decode(bytes, &read) != QF_OK)
        return;
    assert(memchr(read.first, 0, sizeof(read.first)));
    in_outcome_encode(&again, &read);
    rc = in_outcome_decode(qf_strbuf_view(&again), &twice);
    assert(rc == QF_OK && strcmp(read.first, twice.first) == 0 && read.limited == twice.limited &&
           memcmp(&read.accepted, &twice.accepted, sizeof(read.accepted)) == 0);
    qf_strbuf_done(&again);
}

static void question(struct qf_str bytes)
{
    const struct in_status_of of = { .partition = 1, .queue_id = 2, .shards = 4, .node = "a" };
    struct in_ledger *ledger = in_ledger_new();
    struct qf_strbuf answer = QF_STRBUF_INIT, again = QF_STRBUF_INIT;
    struct in_status_ask ask;
    qf_rc rc = in_status_answer(bytes, ledger, &of, &answer);

    if (in_status_ask_decode(bytes, &ask) == QF_OK) {
        assert(rc == QF_OK && answer.len);
        in_status_ask_encode(&again, &ask);
        rc = in_status_ask_decode(qf_strbuf_view(&again), &ask);
        assert(rc == QF_OK);
    } else {
        assert(rc == QF_ECORRUPT && !answer.len);
    }
    qf_strbuf_done(&answer);
    qf_strbuf_done(&again);
    (void)in_ledger_free(ledger);
}

static void extras(struct qf_str bytes)
{
    struct qf_arena *arena = qf_arena_new(1 << 20);
    struct qf_str rest = bytes;
    struct in_extra extra;
    bool valid = in_extras_valid(bytes, arena);
    size_t read = 0;

    for (; in_extra_next(&rest, &extra); read += extra.bytes.len)
        assert(extra.bytes.len &&
               (extra.kind == IN_EXTRA_EXEMPLAR || extra.kind == IN_EXTRA_METADATA));
    assert(read + rest.len == bytes.len && (!valid || !rest.len));
    (void)qf_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(struct qf_str) = { outcome, question, extras };
    struct qf_str bytes;

    if (!size)
        return 0;
    bytes = (struct qf_str){ (const char *)data + 1, size - 1 };
    readers[data[0] % 3](bytes);
    return 0;
}
