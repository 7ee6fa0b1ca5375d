/* fuzz_statemap_rule.c - any bytes as a rule, and as an entry that has one: refused, or printed and read the same again. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "statemap/core/entry.h"
#include "statemap/store/rule_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_rule(struct qf_str text)
{
    struct qf_strbuf once = QF_STRBUF_INIT, twice = QF_STRBUF_INIT;
    struct sm_rule rule, again;
    int64_t number;

    if (sm_rule_read(text, "", &rule, NULL) == QF_OK) {
        assert(rule.from_count > 0 && rule.from_count <= SM_RULE_FROM_MAX);
        assert(rule.member_count <= SM_RULE_MEMBERS_MAX);
        sm_rule_print(&once, &rule);
        assert(sm_rule_read(qf_strbuf_view(&once), "", &again, NULL) == QF_OK);
        sm_rule_print(&twice, &again);
        assert(qf_str_eq(qf_strbuf_view(&once), qf_strbuf_view(&twice)));
    }
    (void)sm_rule_number(text, &number);
    qf_strbuf_done(&once);
    qf_strbuf_done(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qf_str bytes = { (const char *)data, size };
    struct qf_strbuf again = QF_STRBUF_INIT;
    struct sm_entry entry;

    check_rule(bytes);
    if (sm_entry_decode(bytes, &entry) == QF_OK) {
        sm_entry_encode(&again, &entry);
        assert(qf_str_eq(qf_strbuf_view(&again), bytes));
        if (entry.kind == SM_ENTRY_RULE)
            check_rule(entry.bytes);
    }
    qf_strbuf_done(&again);
    return 0;
}
