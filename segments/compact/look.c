/* look.c - which files there are, and which replace which. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"
#include "base/sys/clock.h"
#include "segments/catalog/catalog.h"
#include "segments/compact/fetch.h"
#include "segments/compact/pass_int.h"
#include "segments/plan/plan.h"
#include "segments/store/ring.h"
#include "segments/write/sweep.h"

/* --- the listing --- */

static int by_name(const void *name, const void *file)
{
    return qf_str_cmp(*(const struct qf_str *)name, ((const struct pass_file *)file)->name);
}

static struct pass_file *find(struct pass_file *files, size_t count, struct qf_str name)
{
    return count ? bsearch(&name, files, count, sizeof(files[0]), by_name) : NULL;
}

static bool on_object(void *ctx, const struct sg_store_object *object)
{
    struct pass *p = ctx;
    struct pass_file file = { .size = object->size,
                              .mtime_ms = object->mtime_ms,
                              .replaced_by = SG_PLAN_NONE };
    const struct pass_file *before = find(p->learnt.items, p->learnt.count, object->name);

    if (!sg_segment_name_parse(object->name, &file.parts) ||
        !qf_str_eq(file.parts.tenant, p->tenant))
        return true;
    if (before && before->size == object->size && qf_str_eq(before->etag, object->etag)) {
        file = *before;
        file.replaced_by = SG_PLAN_NONE;
    } else {
        file.name = qf_arena_str(p->names, object->name);
        file.etag = qf_arena_str(p->names, object->etag);
        file.parts.tenant = p->tenant;
    }
    QF_VEC_PUSH(&p->files, file);
    return true;
}

static qf_rc list(struct pass *p, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf prefix = QF_STRBUF_INIT;
    int64_t began = qf_clock_mono_ms();
    qf_rc rc;

    qf_strbuf_printf(&prefix, "tenant=%.*s/", QF_STR_ARG(p->tenant));
    QF_VEC_DONE(&p->learnt);
    memcpy(&p->learnt, &p->files, sizeof(p->learnt));
    memset(&p->files, 0, sizeof(p->files));
    rc = sg_store_list(p->options->store, qf_strbuf_view(&prefix), QF_STR(""), &p->call, on_object,
                       p, err);
    /* What others replaced meanwhile must not have gone yet: the listing may have missed both. */
    if (rc == QF_OK && p->options->grace_ms > 0 &&
        qf_clock_mono_ms() - began > p->options->grace_ms / 2)
        return qf_err_set(err, QF_ETIMEOUT,
                          "listing the store took longer than half of the grace; make that longer");
    return rc;
}

/* --- what files say of themselves --- */

void sg_pass_damaged(struct pass *p, size_t index, const char *why)
{
    p->files.items[index].damaged = true;
    p->result.damaged++;
    sg_pass_tell(p, SG_PASS_DAMAGED, "%s", why);
}

static qf_rc learn(struct pass *p, size_t index, struct qf_err *err)
{
    struct pass_file *file = &p->files.items[index];
    struct sg_meta meta;
    struct qf_err why = { 0 };
    qf_rc rc;

    if (file->known || file->damaged)
        return QF_OK;
    rc = sg_catalog_read_meta(p->options->store, file->name, &p->call, p->names, &meta, &why);
    if (rc == QF_ECORRUPT || rc == QF_EUNSUPPORTED || rc == QF_ELIMIT)
        sg_pass_damaged(p, index, why.msg);
    if (rc == QF_OK) {
        file->known = true;
        file->outdated = meta.schema_version < SG_SCHEMA_VERSION;
        file->replaces = meta.replaces;
        file->beside = meta.beside;
    }
    /* One that is gone by now is found out by whoever needs it. */
    return rc == QF_OK || file->damaged || rc == QF_ENOTFOUND ? QF_OK
                                                              : qf_err_set(err, rc, "%s", why.msg);
}

/* Of all of them: the file that says what a job replaced need not be the one that covers it. What did not change since the
 * listing before is known. */
static qf_rc learn_all(struct pass *p, struct qf_err *err)
{
    qf_rc rc = QF_OK;

    for (size_t i = 0; i < p->files.count && rc == QF_OK; i++)
        rc = learn(p, i, err);
    return rc;
}

/* --- what replaces what --- */

/* The file that @by calls @told. */
static struct pass_file *find_told(struct pass *p, const struct pass_file *by, struct qf_str told)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;
    const char *slash = memrchr(by->name.data, '/', by->name.len);

    if (memchr(told.data, '/', told.len))
        return find(p->files.items, p->files.count, told);
    qf_strbuf_str(&name, qf_str_sub(by->name, 0, (size_t)(slash - by->name.data) + 1));
    qf_strbuf_str(&name, told);
    return find(p->files.items, p->files.count, qf_strbuf_view(&name));
}

/* It counts if all that came with it is there and nothing of that is known to be damaged. */
static bool is_whole(struct pass *p, struct pass_file *by)
{
    struct qf_str beside = by->beside, name;

    if (by->damaged)
        return false;
    while (sg_names_next(&beside, &name)) {
        const struct pass_file *other = find_told(p, by, name);

        if (!other || other->damaged)
            return false;
    }
    return true;
}

static void mark_replaced(struct pass *p, struct pass_file *by)
{
    struct qf_str replaces = by->replaces, name;

    if (!replaces.len || !is_whole(p, by))
        return;
    while (sg_names_next(&replaces, &name)) {
        struct pass_file *file = find_told(p, by, name);

        if (file && file != by)
            file->replaced_by = (size_t)(by - p->files.items);
    }
}

/* Who replaces a file that is replaced itself replaces what that one did: no chains, so that what stays is what counts. */
static void follow_chains(struct pass *p)
{
    for (size_t i = 0; i < p->files.count; i++) {
        struct pass_file *file = &p->files.items[i];

        for (size_t step = 0; file->replaced_by != SG_PLAN_NONE; step++) {
            size_t next = p->files.items[file->replaced_by].replaced_by;

            if (next == SG_PLAN_NONE)
                break;
            /* In a circle, which no job makes, nothing is replaced. */
            file->replaced_by = step < p->files.count ? next : SG_PLAN_NONE;
        }
    }
}

qf_rc sg_pass_look(struct pass *p, struct qf_err *err)
{
    qf_rc rc = list(p, err);

    /* On our own nodes what was replaced is not listed, and no name gets another content: nothing is to be learnt. */
    if (rc == QF_OK && !sg_store_is_ring(p->options->store))
        rc = learn_all(p, err);
    for (size_t i = 0; rc == QF_OK && i < p->files.count; i++)
        mark_replaced(p, &p->files.items[i]);
    if (rc == QF_OK)
        follow_chains(p);
    return rc;
}

/* --- reading it back --- */

static qf_rc verify_one(struct pass *p, struct pass_file *file, const char *dir, struct qf_err *err)
{
    struct qf_err why = { 0 };
    struct sg_reader *reader = sg_fetch(p->options->store, file->name, dir, &p->call, NULL, &why);
    qf_rc rc = reader ? sg_reader_verify(reader, &why) : why.rc;

    (void)sg_reader_free(reader);
    if (rc == QF_ECORRUPT || rc == QF_EUNSUPPORTED)
        sg_pass_damaged(p, (size_t)(file - p->files.items), why.msg);
    return rc == QF_OK || file->damaged || rc == QF_ENOTFOUND ? rc
                                                              : qf_err_set(err, rc, "%s", why.msg);
}

qf_rc sg_pass_verify(struct pass *p, struct pass_file *by, struct qf_err *err)
{
    struct qf_str beside = by->beside, name;
    char *dir;
    int fd;
    qf_rc rc;

    if (by->verified || by->damaged)
        return QF_OK;
    dir = sg_sweep_make_folder(p->options->temp_dir, &fd, err);
    if (!dir)
        return err->rc;
    rc = verify_one(p, by, dir, err);
    while (rc == QF_OK && sg_names_next(&beside, &name)) {
        struct pass_file *other = find_told(p, by, name);

        rc = other ? verify_one(p, other, dir, err) : QF_ENOTFOUND;
    }
    by->verified = rc == QF_OK;
    (void)rmdir(dir);
    free(dir);
    (void)close(fd);
    /* Damaged or gone: what it replaces stays. */
    return rc == QF_ECORRUPT || rc == QF_EUNSUPPORTED || rc == QF_ENOTFOUND ? QF_OK : rc;
}
