/* print.c - a row as a line of JSON. */
#include "statemap/core/print.h"

#include "base/pure/duration.h"

static void print_time(struct qf_strbuf *buf, const char *name, int64_t time)
{
    qf_strbuf_printf(buf, ",\"%s\":\"", name);
    qf_time_print_rfc3339(buf, time);
    qf_strbuf_putc(buf, '"');
}

void sm_row_print(struct qf_strbuf *buf, const char *map, enum sm_kind kind,
                  const struct sm_row *row)
{
    qf_strbuf_printf(buf, "{\"map\":\"%s\"", map);
    if (sm_kind_keyed(kind)) {
        qf_strbuf_puts(buf, ",\"key\":");
        qf_strbuf_json(buf, row->key);
    }
    if (sm_kind_ranged(kind))
        qf_strbuf_printf(buf, ",\"from\":%lld,\"to\":%lld", (long long)row->from,
                         (long long)row->to);
    if (sm_kind_timed(kind))
        print_time(buf, "time", row->time);
    if (kind == SM_SESSION) {
        print_time(buf, "start", row->time);
        print_time(buf, "end", row->end);
    }
    if (sm_kind_valued(kind)) {
        qf_strbuf_printf(buf, ",\"type\":\"%s\",\"value\":", sm_type_name(row->value.type));
        sm_value_json(buf, row->value);
    }
    qf_strbuf_putc(buf, '}');
}
