/* fuzz_ring_wish.c - any bytes as wishes, as records of meta and as a saved state: refused, or good. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/state/show.h"
#include "ring/state/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void record_of(struct rg_state *state, struct rg_wish *wish)
{
    struct qf_strbuf record = QF_STRBUF_INIT;

    rg_record_encode(&record, &wish->entry);
    assert(rg_state_apply(state, rg_state_ring(state)->applied + 1, qf_strbuf_view(&record)) ==
           QF_OK);
    qf_strbuf_done(&record);
}

static void wish_of(struct rg_state *state, struct qf_str bytes)
{
    struct qf_strbuf again = QF_STRBUF_INIT;
    struct rg_wish wish;

    if (rg_wish_decode(bytes, &wish) != QF_OK)
        return;
    rg_wish_encode(&again, &wish);
    assert(qf_str_eq(bytes, qf_strbuf_view(&again)));
    qf_strbuf_done(&again);
    if (rg_state_try(state, &wish, 1000) == RG_APPLIED)
        record_of(state, &wish);
}

/* Wishes stand behind each other, each with its length in a byte; all of it is tried as a record and as a state, too. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qf_str all = { (const char *)data, size }, rest = all;
    struct qf_strbuf text = QF_STRBUF_INIT;
    struct rg_state *state = rg_state_new();

    (void)rg_state_restore(state, all);
    (void)rg_state_apply(state, rg_state_ring(state)->applied + 1, all);
    while (rest.len > 1) {
        size_t len = (unsigned char)rest.data[0];

        wish_of(state, qf_str_sub(rest, 1, 1 + len));
        rest = qf_str_sub(rest, 1 + len, rest.len);
    }
    rg_show_nodes(&text, rg_state_ring(state), 2000, 10);
    rg_show_changes(&text, rg_state_ring(state), 2000);
    qf_strbuf_done(&text);
    (void)rg_state_free(state);
    return 0;
}
