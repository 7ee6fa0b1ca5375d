/* audit.h - a line of JSON per request: who asked for what, how it went and what it cost.
 *
 *     {"time":"2026-01-02T03:04:05.678Z","method":"GET","path":"/api/v1/query","status":200,
 *      "complete":true,"tenant":"team-a","key":"grafana","query_id":"api-1-7","outcome":"ok",
 *      "samples":1200,"bytes":4096,"points":12,"seconds":0.012}
 *
 * What a request has not is not there: no tenant where none is asked for, no query where there was
 * none. Parameters, headers and keys are never written. An entry has two holders, the exchange and its
 * query, which end in any order; the last one writes the line. */
#ifndef QUERYAPI_AUDIT_AUDIT_H
#define QUERYAPI_AUDIT_AUDIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/slice.h"
#include "base/pure/tenant.h"

struct qf_line_log;

#define QA_AUDIT_PATH_MAX 300
#define QA_AUDIT_KEY_MAX 63

struct qa_audit_entry {
    struct qf_line_log *log;
    atomic_int holders;
    int64_t begun_ns;
    /* Of the exchange. */
    const char *method; /* static */
    char path[QA_AUDIT_PATH_MAX + 1];
    char tenant[QF_TENANT_MAX + 1];
    char key[QA_AUDIT_KEY_MAX + 1];
    int status;
    bool complete;
    /* Of the query. */
    char query_id[96];
    qf_rc outcome;
    uint64_t samples, bytes, points;
    double seconds;
};

/* An entry with one holder, for a line of @log. */
struct qa_audit_entry *qa_audit_new(struct qf_line_log *log, const char *method,
                                    struct qf_str path);
struct qa_audit_entry *qa_audit_hold(struct qa_audit_entry *entry);
/* The last one to drop it writes its line. Accepts NULL, returns NULL. */
struct qa_audit_entry *qa_audit_drop(struct qa_audit_entry *entry);

#endif
