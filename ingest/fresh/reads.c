/* reads.c - reads of heads: threads, memory and places of their own, no tenant with all of them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/private_dir.h"
#include "ingest/fresh/fresh_int.h"

#define READ_SUFFIX ".read"

struct in_fresh_read *in_fresh_read_new(void)
{
    struct in_fresh_read *read = qf_xcalloc(1, sizeof(*read));

    read->arena = qf_arena_new((size_t)16 << 20);
    return read;
}

struct in_fresh_read *in_fresh_read_free(struct in_fresh_read *read)
{
    if (!read)
        return NULL;
    (void)qf_arena_free(read->arena);
    free(read);
    return NULL;
}

/* --- places --- */

static struct in_fresh_share **find_share(struct in_fresh *fresh, struct qf_str tenant)
{
    struct in_fresh_share **at = &fresh->shares;

    while (*at && !qf_str_is(tenant, (*at)->tenant))
        at = &(*at)->next;
    return at;
}

/* A place for one more read of the tenant, or why there is none. */
static qf_rc take_place(struct in_fresh *fresh, struct in_fresh_read *read, struct qf_err *err)
{
    uint64_t most = fresh->options.reads_max;
    struct in_fresh_share **share;
    qf_rc rc = QF_OK;

    qf_lock_take(fresh->lock);
    share = find_share(fresh, read->ask.tenant);
    if (fresh->waiting >= most || (*share && (*share)->reads >= QF_MAX(most / 2, UINT64_C(1))))
        rc = qf_err_set(err, QF_EBUSY, "too many reads of heads are under way: try again");
    if (rc == QF_OK) {
        if (!*share) {
            *share = qf_xcalloc(1, sizeof(**share));
            memcpy((*share)->tenant, read->ask.tenant.data, read->ask.tenant.len);
        }
        (*share)->reads++;
        fresh->waiting++;
    }
    qf_lock_drop(fresh->lock);
    return rc;
}

static void give_place(struct in_fresh *fresh, struct qf_str tenant)
{
    struct in_fresh_share **share, *empty = NULL;

    qf_lock_take(fresh->lock);
    share = find_share(fresh, tenant);
    fresh->waiting--;
    if (--(*share)->reads == 0) {
        empty = *share;
        *share = empty->next;
    }
    qf_lock_drop(fresh->lock);
    free(empty);
}

/* --- reading --- */

/* The file is open from here on and has no name any more. */
static qf_rc open_result(const char *path, int *ret_fd, struct qf_err *err)
{
    *ret_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*ret_fd < 0)
        return qf_err_set(err, QF_EIO, "%s: %s", path, strerror(errno));
    (void)unlink(path);
    return QF_OK;
}

static qf_rc read_head(struct in_fresh *fresh, struct in_fresh_read *read,
                       struct in_head_answer *ret_answer, int *ret_fd, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    struct in_head *head = in_heads_get(fresh->options.heads, read->partition, NULL);
    struct stat status;
    qf_rc rc;

    qf_strbuf_printf(&path, "%s/%016" PRIx64 READ_SUFFIX, fresh->reads_dir,
                     atomic_fetch_add(&fresh->serial, 1));
    read->ask.path = qf_strbuf_cstr(&path);
    read->ask.cancel = &read->cancel;
    read->ask.memory_bytes = fresh->options.read_bytes / fresh->options.read_threads;
    if (atomic_load(&read->cancel))
        return qf_err_set(err, QF_ECANCELED, "canceled");
    rc = in_head_read(head, &read->ask, ret_answer, err);
    if (rc != QF_OK || !ret_answer->samples)
        return rc;
    rc = open_result(read->ask.path, ret_fd, err);
    if (rc == QF_OK && fstat(*ret_fd, &status) == 0)
        atomic_fetch_add(&fresh->bytes, (uint64_t)status.st_size);
    atomic_fetch_add(&fresh->samples, ret_answer->samples);
    return rc;
}

static void run(void *arg)
{
    struct in_fresh_read *read = arg;
    struct in_fresh *fresh = read->fresh;
    struct in_head_answer answer = { 0 };
    struct qf_err err = { 0 };
    char tenant[QF_TENANT_MAX + 1] = "";
    int fd = -1;
    qf_rc rc = read_head(fresh, read, &answer, &fd, &err);

    memcpy(tenant, read->ask.tenant.data, read->ask.tenant.len);
    atomic_fetch_add(&fresh->reads, 1);
    atomic_fetch_add(&fresh->gone, rc == QF_ENOTFOUND);
    read->done(read, fd, &answer, &err);
    give_place(fresh, qf_str_from(tenant));
}

qf_rc in_fresh_read(struct in_fresh *fresh, struct in_fresh_read *read, struct qf_err *err)
{
    uint64_t queue_id = 0;
    qf_rc rc;

    if (!qf_tenant_valid(read->ask.tenant))
        return qf_err_set(err, QF_EINVAL, "not a valid tenant");
    if (!in_heads_get(fresh->options.heads, read->partition, &queue_id) ||
        queue_id != read->queue_id)
        return qf_err_set(err, QF_ENOTFOUND, "partition %u of that queue is not here",
                          read->partition);
    rc = take_place(fresh, read, err);
    read->fresh = fresh;
    if (rc == QF_OK && !qf_pool_submit(fresh->pool, run, read)) {
        give_place(fresh, read->ask.tenant);
        rc = qf_err_set(err, QF_EBUSY, "too many reads of heads are under way: try again");
    }
    atomic_fetch_add(&fresh->refused, rc == QF_EBUSY);
    return rc;
}

/* --- life --- */

/* What a process before this one did not come to remove. */
static void empty_folder(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (qf_str_ends(qf_str_from(entry->d_name), QF_STR(READ_SUFFIX)))
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        (void)closedir(dir);
}

qf_rc in_fresh_reads_start(struct in_fresh *fresh, struct qf_err *err)
{
    struct qf_strbuf path = QF_STRBUF_INIT;
    qf_rc rc;

    qf_strbuf_printf(&path, "%s/reads", fresh->options.data);
    fresh->reads_dir = qf_strbuf_take(&path);
    fresh->lock = qf_lock_new();
    rc = qf_private_dir(fresh->reads_dir, err);
    if (rc != QF_OK)
        return rc;
    empty_folder(fresh->reads_dir);
    fresh->pool = qf_pool_new("heads", fresh->options.read_threads, fresh->options.reads_max);
    return fresh->pool ? QF_OK : qf_err_set(err, QF_EUNAVAILABLE, "cannot start threads");
}

void in_fresh_reads_stop(struct in_fresh *fresh)
{
    fresh->pool = qf_pool_free(fresh->pool);
    (void)qf_lock_free(fresh->lock);
    free(fresh->reads_dir);
}
