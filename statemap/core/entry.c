/* entry.c - entries of the log of maps, as bytes. */
#include "statemap/core/entry.h"

#include "base/pure/tenant.h"
#include "statemap/core/bytes.h"

static void put_number(struct qf_strbuf *buf, uint64_t number)
{
    unsigned char bytes[8];

    sm_write_be(bytes, number, 8);
    qf_strbuf_add(buf, bytes, sizeof(bytes));
}

static void put_tenant(struct qf_strbuf *buf, struct qf_str tenant)
{
    qf_strbuf_putc(buf, (char)tenant.len);
    qf_strbuf_str(buf, tenant);
}

void sm_entry_encode(struct qf_strbuf *buf, const struct sm_entry *entry)
{
    qf_strbuf_putc(buf, (char)entry->kind);
    switch (entry->kind) {
    case SM_ENTRY_DEFINE:
    case SM_ENTRY_DROP:
    case SM_ENTRY_RULE:
    case SM_ENTRY_UNRULE:
        put_tenant(buf, entry->tenant);
        put_number(buf, entry->expected);
        qf_strbuf_str(buf, entry->bytes);
        return;
    case SM_ENTRY_PIECE:
        put_number(buf, entry->upload);
        put_number(buf, entry->offset);
        qf_strbuf_str(buf, entry->bytes);
        return;
    case SM_ENTRY_LOAD:
        put_number(buf, entry->upload);
        put_number(buf, entry->size);
        put_number(buf, entry->sum);
        put_tenant(buf, entry->tenant);
        return;
    }
}

/* What is left to read; `bad` sticks. */
struct rest {
    struct qf_str bytes;
    bool bad;
};

static uint64_t take_number(struct rest *rest)
{
    uint64_t number;

    if (rest->bytes.len < 8) {
        rest->bad = true;
        return 0;
    }
    number = sm_read_be(rest->bytes.data, 8);
    rest->bytes = qf_str_sub(rest->bytes, 8, rest->bytes.len);
    return number;
}

static struct qf_str take_tenant(struct rest *rest)
{
    size_t len = rest->bytes.len ? (unsigned char)rest->bytes.data[0] : 0;
    struct qf_str tenant;

    if (rest->bytes.len < len + 1) {
        rest->bad = true;
        return QF_STR("");
    }
    tenant = qf_str_sub(rest->bytes, 1, len + 1);
    rest->bytes = qf_str_sub(rest->bytes, len + 1, rest->bytes.len);
    rest->bad |= !qf_tenant_valid(tenant);
    return tenant;
}

qf_rc sm_entry_decode(struct qf_str bytes, struct sm_entry *ret_entry)
{
    struct rest rest = { bytes.len ? qf_str_sub(bytes, 1, bytes.len) : bytes, bytes.len == 0 };
    struct sm_entry entry = { 0 };

    switch (bytes.len ? bytes.data[0] : 0) {
    case SM_ENTRY_DEFINE:
    case SM_ENTRY_DROP:
    case SM_ENTRY_RULE:
    case SM_ENTRY_UNRULE:
        entry.tenant = take_tenant(&rest);
        entry.expected = take_number(&rest);
        entry.bytes = rest.bytes;
        break;
    case SM_ENTRY_PIECE:
        entry.upload = take_number(&rest);
        entry.offset = take_number(&rest);
        entry.bytes = rest.bytes;
        rest.bad |= !rest.bytes.len || rest.bytes.len > SM_PIECE_MAX;
        break;
    case SM_ENTRY_LOAD:
        entry.upload = take_number(&rest);
        entry.size = take_number(&rest);
        entry.sum = take_number(&rest);
        entry.tenant = take_tenant(&rest);
        rest.bad |= rest.bytes.len > 0;
        break;
    default:
        rest.bad = true;
    }
    if (rest.bad)
        return QF_EPROTO;
    entry.kind = (enum sm_entry_kind)bytes.data[0];
    *ret_entry = entry;
    return QF_OK;
}
