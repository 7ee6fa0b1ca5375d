/* limits_file.c - the file of tenants' limits as it is now. */
#include "base/sys/limits_file.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/small_file.h"
#include "base/sys/thread.h"

struct qf_limits_file {
    const char *file;
    struct qf_limits others;
    struct stat seen; /* of whoever refreshes: the file as it was read */
    atomic_uint_fast64_t version;
    struct qf_lock *lock; /* guards what follows */
    struct qf_limits_table *table;
    struct qf_limits_table *settings; /* before it; or NULL */
};

static struct qf_limits_table *read_table(const char *file, struct stat *ret_seen,
                                          struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

    if (qf_small_file_read(file, "the tenants' limits", QF_LIMITS_FILE_BYTES_MAX, &text, ret_seen,
                           err) != QF_OK)
        return NULL;
    return qf_limits_parse(qf_strbuf_view(&text), file, err);
}

struct qf_limits_file *qf_limits_file_new(const char *name, const struct qf_limits *others,
                                          struct qf_err *err)
{
    struct qf_limits_file *file = qf_xcalloc(1, sizeof(*file));

    file->file = name;
    file->others = *others;
    file->lock = qf_lock_new();
    if (!name)
        return file;
    file->table = read_table(name, &file->seen, err);
    return file->table ? file : qf_limits_file_free(file);
}

struct qf_limits_file *qf_limits_file_free(struct qf_limits_file *file)
{
    if (!file)
        return NULL;
    (void)qf_limits_free(file->table);
    (void)qf_limits_free(file->settings);
    (void)qf_lock_free(file->lock);
    free(file);
    return NULL;
}

qf_rc qf_limits_file_refresh(struct qf_limits_file *file, bool *ret_changed, struct qf_err *err)
{
    struct qf_limits_table *table, *old;
    struct qf_err cause = { 0 };
    struct stat now;

    *ret_changed = false;
    if (!file->file || !qf_small_file_changed(file->file, &file->seen))
        return QF_OK;
    table = read_table(file->file, &now, &cause);
    if (!table)
        return qf_err_set(err, cause.rc, "%s", cause.msg);
    file->seen = now;
    *ret_changed = true;
    qf_lock_take(file->lock);
    old = file->table;
    file->table = table;
    qf_lock_drop(file->lock);
    atomic_fetch_add(&file->version, 1);
    (void)qf_limits_free(old);
    return QF_OK;
}

void qf_limits_file_settle(struct qf_limits_file *file, struct qf_limits_table *settings)
{
    struct qf_limits_table *old;

    qf_lock_take(file->lock);
    old = file->settings;
    file->settings = settings;
    qf_lock_drop(file->lock);
    atomic_fetch_add(&file->version, 1);
    (void)qf_limits_free(old);
}

struct qf_limits qf_limits_file_of(struct qf_limits_file *file, struct qf_str name)
{
    struct qf_limits limits;

    qf_lock_take(file->lock);
    limits = qf_limits_of(qf_limits_has(file->settings, name) ? file->settings : file->table, name,
                          &file->others);
    qf_lock_drop(file->lock);
    return limits;
}

uint64_t qf_limits_file_retentions(struct qf_limits_file *file)
{
    static const struct qf_limits nothing;
    uint64_t hash;

    qf_lock_take(file->lock);
    hash = qf_limits_retentions(file->table, file->settings, &file->others) +
           qf_limits_retentions(file->settings, NULL, &nothing);
    qf_lock_drop(file->lock);
    return hash;
}

uint64_t qf_limits_file_version(const struct qf_limits_file *file)
{
    return atomic_load(&file->version);
}
