/* name.c - names of annexes, both ways. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/pure/duration.h"
#include "base/pure/number.h"
#include "base/pure/tenant.h"
#include "segments/annex/annex.h"
#include "segments/parquet/segment_name.h"

static const char *kind_text(enum sg_annex_kind kind)
{
    return kind == SG_ANNEX_EXEMPLARS ? "exemplars" : "metadata";
}

void sg_annex_print_prefix(struct qf_strbuf *buf, struct qf_str tenant, enum sg_annex_kind kind)
{
    assert(qf_tenant_valid(tenant));
    qf_strbuf_printf(buf, SG_ANNEX_PREFIX "tenant=%.*s/%s/", QF_STR_ARG(tenant), kind_text(kind));
}

void sg_annex_print_folder(struct qf_strbuf *buf, struct qf_str tenant, enum sg_annex_kind kind,
                           int64_t min_ts)
{
    struct qf_civil day = qf_civil_from_seconds(qf_floor_div(min_ts, 1000));

    sg_annex_print_prefix(buf, tenant, kind);
    qf_strbuf_printf(buf, "date=%04lld-%02d-%02d/", (long long)day.year, day.month, day.day);
}

void sg_annex_name_print(struct qf_strbuf *buf, const struct sg_annex_name *name)
{
    assert(name->min_ts <= name->max_ts);
    sg_annex_print_folder(buf, name->tenant, name->kind, name->min_ts);
    qf_strbuf_printf(buf, "%013" PRId64 "_%013" PRId64 "_%016" PRIx64 ".annex", name->min_ts,
                     name->max_ts, name->id);
}

/* The text up to @separator, which is taken off @rest with it. */
static struct qf_str cut(struct qf_str *rest, char separator)
{
    const char *at = rest->len ? memchr(rest->data, separator, rest->len) : NULL;
    struct qf_str head = qf_str_sub(*rest, 0, at ? (size_t)(at - rest->data) : rest->len);

    *rest = qf_str_sub(*rest, head.len + 1, rest->len);
    return head;
}

/* Only what sg_annex_name_print() writes is a name: it is written again and compared. */
bool sg_annex_name_parse(struct qf_str text, struct sg_annex_name *ret_name)
{
    static const struct qf_str start = QF_STR_INIT(SG_ANNEX_PREFIX "tenant=");
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf again = QF_STRBUF_INIT;
    struct sg_annex_name name = { .kind = SG_ANNEX_EXEMPLARS };
    struct qf_str rest, id;
    char digits[17] = "";

    if (!qf_str_starts(text, start))
        return false;
    rest = qf_str_sub(text, start.len, text.len);
    name.tenant = cut(&rest, '/');
    if (qf_str_is(cut(&rest, '/'), "metadata"))
        name.kind = SG_ANNEX_METADATA;
    (void)cut(&rest, '/');
    if (!qf_tenant_valid(name.tenant) || !qf_parse_i64(cut(&rest, '_'), &name.min_ts) ||
        !qf_parse_i64(cut(&rest, '_'), &name.max_ts) || !sg_times_fit(name.min_ts, name.max_ts))
        return false;
    id = cut(&rest, '.');
    if (id.len != sizeof(digits) - 1)
        return false;
    memcpy(digits, id.data, id.len);
    name.id = strtoull(digits, NULL, 16);
    sg_annex_name_print(&again, &name);
    if (!qf_str_eq(text, qf_strbuf_view(&again)))
        return false;
    *ret_name = name;
    return true;
}
