/* fuzz_ring_tenant.c - any bytes as records about tenants, as a saved table and as a page: refused, or good. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/tenant/page.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void entry_of(struct rg_tenant_table *table, struct qf_str bytes)
{
    struct qf_strbuf again = QF_STRBUF_INIT;
    struct rg_tenant_entry entry;

    if (rg_tenant_entry_decode(bytes, &entry) == QF_OK) {
        rg_tenant_entry_encode(&again, &entry);
        assert(qf_str_eq(bytes, qf_strbuf_view(&again)));
        (void)rg_tenant_table_apply(table, rg_tenant_table_version(table) + 1, &entry, 3);
    }
    qf_strbuf_done(&again);
}

/* What was saved comes back as the same bytes. */
static void save_again(struct rg_tenant_table *table)
{
    struct qf_strbuf one = QF_STRBUF_INIT, other = QF_STRBUF_INIT;
    struct rg_tenant_table *copy = rg_tenant_table_new();

    rg_tenant_table_save(&one, table);
    assert(rg_tenant_table_restore(copy, qf_strbuf_view(&one)) == QF_OK);
    rg_tenant_table_save(&other, copy);
    assert(qf_str_eq(qf_strbuf_view(&one), qf_strbuf_view(&other)));
    (void)rg_tenant_table_free(copy);
    qf_strbuf_done(&one);
    qf_strbuf_done(&other);
}

/* Entries stand behind each other, each with its length in a byte; all of it is tried as the others, too. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qf_str all = { (const char *)data, size }, rest = all;
    struct rg_tenant_table *table = rg_tenant_table_new(), *heard = rg_tenant_table_new();
    struct qf_strbuf text = QF_STRBUF_INIT, bytes = QF_STRBUF_INIT;
    struct rg_tenant_entry entry;
    struct rg_tenant_page page;

    (void)!rg_tenant_table_restore(table, all);
    (void)!rg_tenant_page_decode(all, heard, &page);
    (void)!rg_tenant_record_decode(all, &bytes, &entry);
    while (rest.len > 1) {
        size_t len = (unsigned char)rest.data[0];

        entry_of(table, qf_str_sub(rest, 1, 1 + len));
        rest = qf_str_sub(rest, 1 + len, rest.len);
    }
    rg_tenant_table_show(&text, table, QF_STR(""), 3);
    save_again(table);
    qf_strbuf_done(&text);
    qf_strbuf_done(&bytes);
    (void)rg_tenant_table_free(heard);
    (void)rg_tenant_table_free(table);
    return 0;
}
