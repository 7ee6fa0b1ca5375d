/* fuzz_statemap_row.c - any bytes as a stored row: refused, or stored the same again. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "statemap/core/row.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first byte says which layout, the second how long the stored key is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sm_layout layout;
    struct qf_strbuf value_again = QF_STRBUF_INIT, text = QF_STRBUF_INIT;
    unsigned char key_again[SM_STORED_KEY_MAX];
    struct qf_str key, value;
    struct sm_place place;
    struct sm_row row;

    if (size < 2)
        return 0;
    layout.kind = (enum sm_kind)(data[0] % SM_KIND__COUNT);
    layout.direct = sm_kind_keyed(layout.kind) && data[0] / SM_KIND__COUNT % 2;
    value = (struct qf_str){ (const char *)data + 2, size - 2 };
    key = qf_str_sub(value, 0, data[1]);
    value = qf_str_sub(value, key.len, value.len);
    if (sm_row_decode(&layout, key, value, &row, &place, NULL) != QF_OK)
        return 0;
    assert(sm_row_key(&layout, &row, place, key_again) == key.len);
    assert(memcmp(key_again, key.data, key.len) == 0);
    sm_row_value(&layout, &row, &value_again);
    assert(qf_str_eq(qf_strbuf_view(&value_again), value));
    assert(sm_subject_len(&layout, key) <= key.len);
    if (sm_kind_valued(layout.kind)) {
        sm_value_print(&text, row.value);
        sm_value_json(&text, row.value);
    }
    qf_strbuf_done(&value_again);
    qf_strbuf_done(&text);
    return 0;
}
