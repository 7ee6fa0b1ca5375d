/* fuzz_ring_state.c - any bytes as a snapshot's ring, a manifest or a keeper's epochs: refused, or read the same again, and it
 * goes on. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ring/core/keep.h"
#include "ring/core/manifest.h"
#include "ring/core/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever was read takes entries. */
static void go_on(struct rg_ring *ring)
{
    struct rg_entry entry = { .kind = RG_ADD, .name = QF_STR("fuzz"), .time_ms = ring->time_ms };
    uint64_t index = ring->applied;

    if (index > UINT64_MAX - 100 || ring->epoch > UINT64_MAX - 100)
        return;
    (void)rg_ring_apply(ring, ++index, &entry);
    memset(&entry.slots, 0xff, sizeof(entry.slots));
    for (size_t i = 0; i < RG_CHANGES_MAX && i < 8; i++) {
        entry.change = ring->changes[i].id;
        entry.kind = RG_BEGIN;
        (void)rg_ring_apply(ring, ++index, &entry);
        entry.kind = RG_CANCEL;
        (void)rg_ring_apply(ring, ++index, &entry);
    }
    (void)rg_ring_health(ring, 0, 1);
}

static void ring_of(struct qf_str bytes)
{
    struct qf_strbuf again = QF_STRBUF_INIT;
    struct rg_ring *ring = NULL;

    if (rg_ring_decode(bytes, &ring) != QF_OK)
        return;
    rg_ring_encode(&again, ring);
    assert(qf_str_eq(bytes, qf_strbuf_view(&again)));
    go_on(ring);
    (void)rg_ring_free(ring);
    qf_strbuf_done(&again);
}

static void manifest_of(struct qf_str bytes)
{
    struct qf_strbuf again = QF_STRBUF_INIT;
    struct rg_manifest *manifest = NULL;
    struct rg_blob blob = { .name = QF_STR("fuzz") };
    struct rg_note note = {
        .kind = RG_NOTE_ADDED, .epoch = UINT64_MAX, .added = &blob, .added_count = 1
    };

    if (rg_manifest_decode(bytes, &manifest) != QF_OK)
        return;
    rg_manifest_encode(&again, manifest);
    assert(qf_str_eq(bytes, qf_strbuf_view(&again)));
    if (rg_manifest_applied(manifest) < UINT64_MAX)
        (void)rg_manifest_apply(manifest, rg_manifest_applied(manifest) + 1, &note);
    (void)rg_manifest_free(manifest);
    qf_strbuf_done(&again);
}

static void keep_of(struct qf_str bytes)
{
    struct qf_strbuf again = QF_STRBUF_INIT;
    struct rg_keep keep;

    if (rg_keep_decode(bytes, &keep) != QF_OK)
        return;
    rg_keep_encode(&again, &keep);
    assert(qf_str_eq(bytes, qf_strbuf_view(&again)));
    qf_strbuf_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qf_str bytes = { (const char *)data, size };

    if (size == 0)
        return 0;
    /* The first byte says which. */
    bytes = qf_str_sub(bytes, 1, size);
    if (data[0] % 3 == 0)
        ring_of(bytes);
    else if (data[0] % 3 == 1)
        manifest_of(bytes);
    else
        keep_of(bytes);
    return 0;
}
