/* fuzz_ring_entry.c - any bytes as entries of meta or of a partition: refused, or read the same again, and applied. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/core/manifest.h"
#include "ring/core/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A ring that has something to alter. */
static struct rg_ring *start(void)
{
    struct rg_ring *ring = rg_ring_new(8);
    static const char *const names[] = { "a", "b", "c" };

    for (uint64_t i = 0; i < 3; i++)
        (void)rg_ring_apply(ring, i + 1,
                            &(struct rg_entry){ .kind = RG_ADD, .name = qf_str_from(names[i]) });
    (void)rg_ring_apply(ring, 4, &(struct rg_entry){ .kind = RG_FOUND, .copies = 2 });
    return ring;
}

static void entry_of(struct rg_ring *ring, struct qf_str bytes)
{
    struct qf_strbuf again = QF_STRBUF_INIT;
    struct rg_entry entry;

    if (rg_entry_decode(bytes, &entry) != QF_OK)
        return;
    rg_entry_encode(&again, &entry);
    assert(qf_str_eq(bytes, qf_strbuf_view(&again)));
    qf_strbuf_done(&again);
    (void)rg_ring_apply(ring, ring->applied + 1, &entry);
}

static void note_of(struct rg_manifest *manifest, struct qf_str bytes)
{
    struct qf_strbuf again = QF_STRBUF_INIT;
    struct rg_note note;

    if (rg_note_decode(bytes, &note) != QF_OK)
        return;
    rg_note_encode(&again, &note);
    assert(qf_str_eq(bytes, qf_strbuf_view(&again)));
    qf_strbuf_done(&again);
    (void)rg_manifest_apply(manifest, rg_manifest_applied(manifest) + 1, &note);
    rg_note_done(&note);
}

/* Entries stand behind each other, each with its length in a byte. A ring that comes of them can be read again. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rg_ring *ring = start(), *read = NULL;
    struct rg_manifest *manifest = rg_manifest_new(8, 16, 4), *manifest_read = NULL;
    struct qf_str rest = { (const char *)data, size };
    struct qf_strbuf bytes = QF_STRBUF_INIT, others = QF_STRBUF_INIT;

    while (rest.len > 1) {
        size_t len = (unsigned char)rest.data[0];
        struct qf_str one = qf_str_sub(rest, 1, 1 + len);

        entry_of(ring, one);
        note_of(manifest, one);
        rest = qf_str_sub(rest, 1 + len, rest.len);
    }
    rg_ring_encode(&bytes, ring);
    assert(rg_ring_decode(qf_strbuf_view(&bytes), &read) == QF_OK);
    rg_manifest_encode(&others, manifest);
    assert(rg_manifest_decode(qf_strbuf_view(&others), &manifest_read) == QF_OK);
    (void)rg_ring_free(ring);
    (void)rg_ring_free(read);
    (void)rg_manifest_free(manifest);
    (void)rg_manifest_free(manifest_read);
    qf_strbuf_done(&bytes);
    qf_strbuf_done(&others);
    return 0;
}
