/* log.c - logfmt and JSON lines on stderr. */
#include "base/sys/log.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/pure/duration.h"
#include "base/pure/number.h"
#include "base/pure/strbuf.h"
#include "base/sys/clock.h"

#define LINE_BYTES_MAX 8192

static _Atomic int log_level = QF_LOG_LEVEL_INFO;
static _Atomic int log_format = QF_LOG_LOGFMT;
static char log_role[64];

static const char *const level_names[] = { "debug", "info", "warn", "error" };

void qf_log_setup(enum qf_log_level level, enum qf_log_format format, const char *role)
{
    atomic_store(&log_level, (int)level);
    atomic_store(&log_format, (int)format);
    (void)snprintf(log_role, sizeof(log_role), "%s", role ? role : "");
}

bool qf_log_parse_level(const char *text, enum qf_log_level *ret_level)
{
    for (size_t i = 0; i < QF_COUNT_OF(level_names); i++) {
        if (strcmp(text, level_names[i]) == 0) {
            *ret_level = (enum qf_log_level)i;
            return true;
        }
    }
    return false;
}

bool qf_log_enabled(enum qf_log_level level)
{
    return (int)level >= atomic_load_explicit(&log_level, memory_order_relaxed);
}

static bool needs_quotes(struct qf_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.data[i] <= ' ' || strchr("\"=\\\x7f", s.data[i]))
            return true;
    return s.len == 0;
}

static void put_pair(struct qf_strbuf *buf, bool json, const char *key, struct qf_str value,
                     bool bare)
{
    if (json) {
        qf_strbuf_putc(buf, buf->len == 0 ? '{' : ',');
        qf_strbuf_json(buf, qf_str_from(key));
        qf_strbuf_putc(buf, ':');
    } else {
        if (buf->len)
            qf_strbuf_putc(buf, ' ');
        qf_strbuf_puts(buf, key);
        qf_strbuf_putc(buf, '=');
    }
    if (bare || (!json && !needs_quotes(value)))
        qf_strbuf_str(buf, value);
    else
        qf_strbuf_json(buf, value);
}

static void put_kv(struct qf_strbuf *buf, bool json, const struct qf_kv *kv)
{
    char digits[QF_DOUBLE_TEXT_MAX];

    switch (kv->kind) {
    case QF_KV_KIND_STR:
        put_pair(buf, json, kv->key, kv->str, false);
        return;
    case QF_KV_KIND_I64:
        (void)snprintf(digits, sizeof(digits), "%lld", (long long)kv->i64);
        break;
    case QF_KV_KIND_U64:
        (void)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)kv->u64);
        break;
    case QF_KV_KIND_DOUBLE:
        (void)qf_double_json(kv->number, digits);
        if (json && (kv->number != kv->number || kv->number - kv->number != 0)) {
            put_pair(buf, json, kv->key, qf_str_from(digits), false); /* no JSON number */
            return;
        }
        break;
    }
    put_pair(buf, json, kv->key, qf_str_from(digits), true);
}

void qf_log(enum qf_log_level level, const char *msg, const struct qf_kv *kvs, size_t count)
{
    struct qf_strbuf line = { .limit = LINE_BYTES_MAX }, time = QF_STRBUF_INIT;
    bool json = atomic_load(&log_format) == QF_LOG_JSON;

    qf_time_print_rfc3339(&time, qf_clock_wall_ms());
    put_pair(&line, json, "ts", qf_strbuf_view(&time), false);
    put_pair(&line, json, "level", qf_str_from(level_names[level]), false);
    if (log_role[0])
        put_pair(&line, json, "role", qf_str_from(log_role), false);
    put_pair(&line, json, "msg", qf_str_from(msg), false);
    for (size_t i = 0; i < count; i++) {
        size_t before = line.len;

        put_kv(&line, json, &kvs[i]);
        if (line.overflowed)
            line.len = before; /* half a field would spoil the line */
        line.overflowed = false;
    }
    line.limit = 0;
    qf_strbuf_puts(&line, json ? "}\n" : "\n");
    if (write(STDERR_FILENO, line.data, line.len) < 0)
        line.overflowed = true; /* nowhere left to say so */
    qf_strbuf_done(&line);
    qf_strbuf_done(&time);
}
