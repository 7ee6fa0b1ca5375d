/* fuzz_ingest_intake.c - any bytes as what another node wants a leader to write: refused, or made into
 * records that apply and leave ledger and intake sound. Each batch is behind its length, two bytes; a
 * length of 0 closes the range, of 0xffff begins a new leadership. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "ingest/core/intake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW INT64_C(1767225600000)

struct world {
    struct in_ledger *ledger;
    struct in_intake *intake;
    struct qf_strbuf record;
    uint64_t index;
    int64_t mono;
};

static void apply(struct world *world, struct in_pending *pending)
{
    struct in_outcome outcome;
    struct in_record record;
    enum in_verdict verdict;
    qf_rc rc = in_record_decode(qf_strbuf_view(&world->record), &record, NULL);

    assert(rc == QF_OK);
    verdict = in_ledger_apply(world->ledger, ++world->index, &record, NULL);
    assert(verdict == IN_APPLIED); /* a leader proposes nothing that counts for nothing */
    in_intake_applied(world->intake, &record, verdict);
    in_intake_ended(world->intake, pending, QF_OK, &outcome);
}

static void take(struct world *world, struct qf_str bytes)
{
    struct in_pending *pending = NULL;
    struct in_outcome outcome;
    struct in_record batch;

    if (in_record_decode(bytes, &batch, NULL) != QF_OK || batch.kind != IN_SAMPLES)
        return;
    if (in_intake_take(world->intake, world->ledger, &batch, NOW, world->mono, &world->record,
                       &outcome, &pending) == IN_INTAKE_RECORD)
        apply(world, pending);
    else
        assert(!pending);
}

static void step(struct world *world, size_t len, struct qf_str bytes)
{
    struct in_pending *pending;

    qf_strbuf_reset(&world->record);
    world->mono += 1000;
    in_intake_tick(world->intake, world->mono);
    if (len == 0xffff) {
        in_intake_end(world->intake);
        in_intake_begin(world->intake, world->ledger, NOW, world->mono);
    } else if (len == 0) {
        pending = in_intake_seal(world->intake, world->ledger, QF_STR("t"), &world->record);
        if (pending)
            apply(world, pending);
    } else {
        take(world, bytes);
    }
}

static struct qf_limits limits_of(void *ctx, struct qf_str tenant)
{
    (void)ctx;
    (void)tenant;
    return (struct qf_limits){ .of = { [QF_LIMIT_SERIES] = 100 } };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct in_intake_limits limits = {
        .out_of_order_ms = 7200000, .future_ms = 600000, .metadata_max = 10, .idle_ms = 2000
    };
    struct in_quota *quota = in_quota_new(limits_of, NULL);
    struct world world = { .ledger = in_ledger_new(),
                           .intake = in_intake_new(&limits, quota, 1),
                           .record = QF_STRBUF_INIT,
                           .mono = 1 };
    struct in_outcome outcome;
    struct qf_strbuf again = QF_STRBUF_INIT;

    if (in_outcome_decode((struct qf_str){ (const char *)data, size }, &outcome) == QF_OK)
        in_outcome_encode(&again, &outcome);
    in_intake_begin(world.intake, world.ledger, NOW, world.mono);
    while (size >= 2) {
        size_t len = data[0] | (size_t)data[1] << 8, have;

        data += 2;
        size -= 2;
        have = len == 0xffff ? 0 : QF_MIN(len, size);
        step(&world, len, (struct qf_str){ (const char *)data, have });
        data += have;
        size -= have;
    }
    qf_strbuf_done(&again);
    qf_strbuf_done(&world.record);
    (void)in_intake_free(world.intake);
    (void)in_quota_free(quota);
    (void)in_ledger_free(world.ledger);
    return 0;
}
