/* fuzz_ring_sheet.c - any bytes as a document of a keeper, and as what a client says it has read: refused, or written and read the
 * same again, and joined with another one in either order with equal bytes. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/core/sheet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whether all of @sheet and @other are kept beside each other: beyond these bounds what comes first may go first. */
static bool has_room(const struct rg_sheet *sheet, const struct rg_sheet *other)
{
    return sheet->document.count + other->document.count <= RG_SIBLINGS_MAX &&
           sheet->repeat_count + other->repeat_count <= RG_REPEATS_MAX;
}

/* What @bytes and @other are together. False: one of them is no sheet, or they are too much. */
static bool join(struct qf_str bytes, struct qf_str other, struct qf_strbuf *ret_sum)
{
    struct rg_sheet sheet = { 0 }, added = { 0 };
    bool joined = rg_sheet_decode(bytes, &sheet) == QF_OK &&
                  rg_sheet_decode(other, &added) == QF_OK && has_room(&sheet, &added);

    if (joined) {
        rg_sheet_join(&sheet, &added);
        rg_sheet_encode(ret_sum, &sheet);
    }
    rg_sheet_done(&sheet);
    rg_sheet_done(&added);
    return joined;
}

static void check_join(struct qf_str left, struct qf_str right)
{
    struct qf_strbuf one = QF_STRBUF_INIT, other = QF_STRBUF_INIT;

    if (join(left, right, &one)) {
        assert(join(right, left, &other));
        assert(qf_str_eq(qf_strbuf_view(&one), qf_strbuf_view(&other)));
        assert(one.len <= RG_SHEET_BYTES_MAX);
    }
    qf_strbuf_done(&one);
    qf_strbuf_done(&other);
}

static void check_sheet(struct qf_str bytes)
{
    struct qf_strbuf again = QF_STRBUF_INIT, twice = QF_STRBUF_INIT;
    struct rg_sheet sheet;

    if (rg_sheet_decode(bytes, &sheet) != QF_OK)
        return;
    for (size_t i = 0; i < sheet.document.count; i++)
        assert(rg_sheet_bytes(&sheet, &sheet.document.values[i]).len <= RG_VALUE_BYTES_MAX);
    rg_sheet_encode(&again, &sheet);
    rg_sheet_done(&sheet);
    assert(rg_sheet_decode(qf_strbuf_view(&again), &sheet) == QF_OK);
    rg_sheet_encode(&twice, &sheet);
    assert(qf_str_eq(qf_strbuf_view(&again), qf_strbuf_view(&twice)));
    rg_sheet_done(&sheet);
    qf_strbuf_done(&again);
    qf_strbuf_done(&twice);
}

static void check_context(struct qf_str text)
{
    struct qf_strbuf again = QF_STRBUF_INIT, twice = QF_STRBUF_INIT;
    struct rg_context context;

    if (rg_context_parse(text, &context) == QF_OK) {
        (void)rg_context_write(&context, 7, 1, 1000, 5);
        rg_context_print(&again, &context);
        assert(again.len <= RG_CONTEXT_TEXT_MAX);
        assert(rg_context_parse(qf_strbuf_view(&again), &context) == QF_OK);
        rg_context_print(&twice, &context);
        assert(qf_str_eq(qf_strbuf_view(&again), qf_strbuf_view(&twice)));
    }
    qf_strbuf_done(&again);
    qf_strbuf_done(&twice);
}

/* The first two bytes say where the second sheet begins. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qf_str all = { (const char *)data, size }, rest;
    size_t at;

    check_context(all);
    check_sheet(all);
    if (size < 2)
        return 0;
    rest = qf_str_sub(all, 2, size);
    at = ((size_t)data[0] << 8 | data[1]) % (rest.len + 1);
    check_sheet(rest);
    check_join(qf_str_sub(rest, 0, at), qf_str_sub(rest, at, rest.len));
    return 0;
}
