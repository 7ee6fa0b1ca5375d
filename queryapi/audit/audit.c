/* audit.c - entries of the audit log. */
#include "queryapi/audit/audit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"
#include "base/sys/clock.h"
#include "base/sys/line_log.h"

struct qa_audit_entry *qa_audit_new(struct qf_line_log *log, const char *method, struct qf_str path)
{
    struct qa_audit_entry *entry = qf_xcalloc(1, sizeof(*entry));

    entry->log = log;
    atomic_init(&entry->holders, 1);
    entry->begun_ns = qf_clock_mono_ns();
    entry->method = method;
    memcpy(entry->path, path.data, QF_MIN(path.len, sizeof(entry->path) - 1));
    return entry;
}

struct qa_audit_entry *qa_audit_hold(struct qa_audit_entry *entry)
{
    (void)atomic_fetch_add(&entry->holders, 1);
    return entry;
}

static void put_time(struct qf_strbuf *line)
{
    int64_t now = qf_clock_wall_ms();
    time_t seconds = (time_t)(now / 1000);
    struct tm parts;
    char text[40];

    (void)gmtime_r(&seconds, &parts);
    (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    qf_strbuf_printf(line, "{\"time\":\"%s.%03dZ\"", text, (int)(now % 1000));
}

/* ,"name":"text", if there is one */
static void put_text(struct qf_strbuf *line, const char *name, const char *text)
{
    if (!text[0])
        return;
    qf_strbuf_printf(line, ",\"%s\":", name);
    qf_strbuf_json(line, qf_str_from(text));
}

static void write_line(const struct qa_audit_entry *entry)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf line = QF_STRBUF_INIT;

    put_time(&line);
    put_text(&line, "method", entry->method);
    put_text(&line, "path", entry->path);
    qf_strbuf_printf(&line, ",\"status\":%d,\"complete\":%s", entry->status,
                     entry->complete ? "true" : "false");
    put_text(&line, "tenant", entry->tenant);
    put_text(&line, "key", entry->key);
    if (entry->query_id[0]) {
        put_text(&line, "query_id", entry->query_id);
        qf_strbuf_printf(&line,
                         ",\"outcome\":\"%s\",\"samples\":%" PRIu64 ",\"bytes\":%" PRIu64
                         ",\"points\":%" PRIu64,
                         entry->outcome == QF_OK ? "ok" : qf_rc_name(entry->outcome),
                         entry->samples, entry->bytes, entry->points);
    }
    qf_strbuf_printf(&line, ",\"seconds\":%.6f}", entry->seconds);
    qf_line_log_add(entry->log, qf_strbuf_view(&line));
}

struct qa_audit_entry *qa_audit_drop(struct qa_audit_entry *entry)
{
    if (!entry || atomic_fetch_sub(&entry->holders, 1) != 1)
        return NULL;
    entry->seconds = (double)(qf_clock_mono_ns() - entry->begun_ns) / 1e9;
    write_line(entry);
    free(entry);
    return NULL;
}
