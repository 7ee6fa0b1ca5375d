/* log.h - one line per event on stderr, as logfmt or JSON.
 *
 *     QF_LOG_INFO("work accepted", QF_KV_STR("query_id", id), QF_KV_U64("attempt", n));
 *
 * Levels: error, someone must act; warn, we coped and say how; info, lifecycle; debug, anything.
 * Thread-safe: a line is written with one write(). Fields that would make it longer than
 * 8 KiB are left out. */
#ifndef BASE_SYS_LOG_H
#define BASE_SYS_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/slice.h"

enum qf_log_level { QF_LOG_LEVEL_DEBUG, QF_LOG_LEVEL_INFO, QF_LOG_LEVEL_WARN, QF_LOG_LEVEL_ERROR };
enum qf_log_format { QF_LOG_LOGFMT, QF_LOG_JSON };

enum qf_kv_kind { QF_KV_KIND_STR, QF_KV_KIND_I64, QF_KV_KIND_U64, QF_KV_KIND_DOUBLE };

struct qf_kv {
    const char *key;
    enum qf_kv_kind kind;
    struct qf_str str;
    int64_t i64;
    uint64_t u64;
    double number;
};

#define QF_KV_STR(k, cstr)                                                                         \
    ((struct qf_kv){ .key = (k), .kind = QF_KV_KIND_STR, .str = qf_str_from(cstr) })
#define QF_KV_SLICE(k, s) ((struct qf_kv){ .key = (k), .kind = QF_KV_KIND_STR, .str = (s) })
#define QF_KV_I64(k, v) ((struct qf_kv){ .key = (k), .kind = QF_KV_KIND_I64, .i64 = (v) })
#define QF_KV_U64(k, v) ((struct qf_kv){ .key = (k), .kind = QF_KV_KIND_U64, .u64 = (v) })
#define QF_KV_DOUBLE(k, v) ((struct qf_kv){ .key = (k), .kind = QF_KV_KIND_DOUBLE, .number = (v) })

/* Before threads start. @role ("api", "worker-1") is put on every line; NULL for none. */
void qf_log_setup(enum qf_log_level level, enum qf_log_format format, const char *role);
/* "debug", "info", "warn", "error"; false if it is none of these. */
bool qf_log_parse_level(const char *text, enum qf_log_level *ret_level);
bool qf_log_enabled(enum qf_log_level level);

void qf_log(enum qf_log_level level, const char *msg, const struct qf_kv *kvs, size_t count);

/* The message comes first, then any number of QF_KV_*. */
#define QF_LOG_AT(level, ...)                                                                      \
    do {                                                                                           \
        if (qf_log_enabled(level))                                                                 \
            QF_LOG_CALL((level), __VA_ARGS__, { 0 });                                              \
    } while (0)
#define QF_LOG_CALL(level, msg, ...)                                                               \
    do {                                                                                           \
        const struct qf_kv qf_kvs_[] = { __VA_ARGS__ };                                            \
        qf_log((level), (msg), qf_kvs_, sizeof(qf_kvs_) / sizeof(qf_kvs_[0]) - 1);                 \
    } while (0)
#define QF_LOG_DEBUG(...) QF_LOG_AT(QF_LOG_LEVEL_DEBUG, __VA_ARGS__)
#define QF_LOG_INFO(...) QF_LOG_AT(QF_LOG_LEVEL_INFO, __VA_ARGS__)
#define QF_LOG_WARN(...) QF_LOG_AT(QF_LOG_LEVEL_WARN, __VA_ARGS__)
#define QF_LOG_ERROR(...) QF_LOG_AT(QF_LOG_LEVEL_ERROR, __VA_ARGS__)

#endif
