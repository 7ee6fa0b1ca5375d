/* segment_name.c - names of segments, both ways. */
#include "segments/parquet/segment_name.h"

#include <assert.h>

#include "base/pure/duration.h"
#include "base/pure/number.h"

static bool shard_count_valid(uint64_t count)
{
    return count && count <= SG_SHARDS_MAX && (count & (count - 1)) == 0;
}

void sg_segment_name_print_folder(struct qf_strbuf *buf, struct qf_str tenant, int64_t min_ts)
{
    struct qf_civil day = qf_civil_from_seconds(qf_floor_div(min_ts, 1000));

    assert(qf_tenant_valid(tenant));
    qf_strbuf_printf(buf, "tenant=%.*s/date=%04lld-%02d-%02d/", QF_STR_ARG(tenant),
                     (long long)day.year, day.month, day.day);
}

void sg_segment_name_print(struct qf_strbuf *buf, const struct sg_segment_name *name)
{
    assert(name->min_ts <= name->max_ts);
    assert(shard_count_valid(name->shard_count));
    assert(name->shard < name->shard_count);
    sg_segment_name_print_folder(buf, name->tenant, name->min_ts);
    qf_strbuf_printf(buf, "%013lld_%013lld_s%uof%u_g%llu_%016llx.parquet", (long long)name->min_ts,
                     (long long)name->max_ts, name->shard, name->shard_count,
                     (unsigned long long)name->generation, (unsigned long long)name->id);
}

/* Cut @text at the first @separator; false if there is none. */
static bool cut(struct qf_str *text, char separator, struct qf_str *ret_head)
{
    const char *at = text->len ? memchr(text->data, separator, text->len) : NULL;

    if (!at)
        return false;
    *ret_head = qf_str_sub(*text, 0, (size_t)(at - text->data));
    *text = qf_str_sub(*text, ret_head->len + 1, text->len);
    return true;
}

static bool cut_prefix(struct qf_str *text, struct qf_str prefix)
{
    if (!qf_str_starts(*text, prefix))
        return false;
    *text = qf_str_sub(*text, prefix.len, text->len);
    return true;
}

static bool parse_shard(struct qf_str text, struct sg_segment_name *name)
{
    struct qf_str shard_text;
    uint64_t shard, count;

    if (!cut_prefix(&text, QF_STR("s")) || !cut(&text, 'o', &shard_text) ||
        !cut_prefix(&text, QF_STR("f")) || !qf_parse_u64(shard_text, &shard) ||
        !qf_parse_u64(text, &count) || !shard_count_valid(count) || shard >= count)
        return false;
    name->shard = (uint32_t)shard;
    name->shard_count = (uint32_t)count;
    return true;
}

static bool parse_hex16(struct qf_str text, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (text.len != 16)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];

        if (c >= '0' && c <= '9')
            value = value << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    *ret_value = value;
    return true;
}

bool sg_segment_name_parse(struct qf_str text, struct sg_segment_name *ret_name)
{
    struct sg_segment_name name = { 0 };
    struct qf_str date, part;

    if (!cut_prefix(&text, QF_STR("tenant=")) || !cut(&text, '/', &name.tenant) ||
        !qf_tenant_valid(name.tenant))
        return false;
    if (!cut_prefix(&text, QF_STR("date=")) || !cut(&text, '/', &date) || date.len < 10)
        return false;
    if (!cut(&text, '_', &part) || !qf_parse_i64(part, &name.min_ts))
        return false;
    if (!cut(&text, '_', &part) || !qf_parse_i64(part, &name.max_ts) ||
        !sg_times_fit(name.min_ts, name.max_ts))
        return false;
    if (!cut(&text, '_', &part) || !parse_shard(part, &name))
        return false;
    if (!cut(&text, '_', &part) || !cut_prefix(&part, QF_STR("g")) ||
        !qf_parse_u64(part, &name.generation))
        return false;
    if (!cut(&text, '.', &part) || !parse_hex16(part, &name.id) || !qf_str_is(text, "parquet"))
        return false;
    *ret_name = name;
    return true;
}
