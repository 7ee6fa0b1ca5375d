/* fuzz_ring_keeper.c - any bytes as bodies of requests to keepers and of their answers: refused, or read the same again. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/wire/keeper.h"
#include "ring/wire/listing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void told_of(struct qf_str bytes, struct qf_strbuf *again)
{
    uint64_t epochs[RG_SLOTS];
    uint32_t count;

    if (rg_told_decode(bytes, epochs, &count) != QF_OK)
        return;
    rg_told_encode(again, epochs, count);
    assert(qf_str_eq(bytes, qf_strbuf_view(again)));
}

static void names_of(struct qf_str bytes, struct qf_strbuf *again)
{
    struct rg_names names;

    if (rg_names_decode(bytes, &names) != QF_OK)
        return;
    rg_names_encode(again, &names);
    assert(qf_str_eq(bytes, qf_strbuf_view(again)));
    for (size_t i = 0; i < names.count; i++)
        assert(rg_blob_slot(names.names[i], RG_PLACEMENTS, RG_SLOTS) < RG_SLOTS);
    rg_names_done(&names);
}

static void held_of(struct qf_str bytes, struct qf_strbuf *again)
{
    struct rg_held held;

    if (rg_held_decode(bytes, &held) != QF_OK)
        return;
    rg_held_encode(again, &held);
    assert(qf_str_eq(bytes, qf_strbuf_view(again)));
    rg_held_done(&held);
}

static void docs_of(struct qf_str bytes, struct qf_strbuf *again)
{
    struct rg_docs docs;

    if (rg_docs_decode(bytes, &docs) != QF_OK)
        return;
    rg_docs_encode(again, &docs);
    assert(qf_str_eq(bytes, qf_strbuf_view(again)));
    rg_docs_done(&docs);
}

static void page_of(struct qf_str bytes, struct qf_strbuf *again)
{
    struct rg_page page;

    if (rg_page_decode(bytes, &page) != QF_OK)
        return;
    rg_page_encode(again, &page);
    assert(qf_str_eq(bytes, qf_strbuf_view(again)));
    rg_page_done(&page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const kinds[])(struct qf_str, struct qf_strbuf *) = { told_of, names_of, held_of,
                                                                        docs_of, page_of };
    struct qf_str bytes = { (const char *)data, size };
    struct qf_strbuf again = QF_STRBUF_INIT;
    struct rg_sum sum;

    if (size == 0)
        return 0;
    bytes = qf_str_sub(bytes, 1, size);
    kinds[data[0] % 5](bytes, &again); /* the first byte says which */
    (void)rg_blob_name_valid(bytes);
    (void)rg_sum_parse(bytes, &sum);
    qf_strbuf_done(&again);
    return 0;
}
