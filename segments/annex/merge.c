/* merge.c - small annexes become one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "segments/annex/annex_int.h"
#include "segments/annex/files.h"
#include "segments/store/turn.h"

/* A file that has less is worth being merged again. */
#define SMALL_BYTES (SG_ANNEX_BYTES_AIM / 2)
/* What is read for one merge, and what that may take in memory. More small files than these take another pass. */
#define INPUT_BYTES_MAX ((uint64_t)32 << 20)
#define MEMORY_BYTES_MAX ((size_t)512 << 20)
#define FILES_MAX 1000000

struct merging {
    const struct sg_annex_merge *options;
    struct sg_annex_merged *merged;
    struct sg_annex *annex;
    QF_VEC(const struct sg_annex_file *) inputs; /* read, and in the collection */
    QF_VEC(char *) outputs;
    struct sg_turn *turn; /* while it puts */
    bool busy;            /* some are being removed, and were left alone */
};

static void tell_damaged(struct merging *m, const char *name, const struct qf_err *why)
{
    char text[2048];

    m->merged->damaged++;
    (void)snprintf(text, sizeof(text), "%s: %s", name, why->msg);
    if (m->options->damaged)
        m->options->damaged(m->options->ctx, text);
}

static qf_rc read_input(struct merging *m, const struct sg_annex_file *file, struct qf_err *err)
{
    struct qf_arena *arena = qf_arena_new(SIZE_MAX); /* bounded by the size of a file */
    struct sg_annex_contents contents;
    struct qf_err why = { 0 };
    char *data = NULL;
    size_t len;
    qf_rc rc = sg_store_read_all(m->options->store, qf_str_from(file->name), SG_ANNEX_BYTES_MAX,
                                 m->options->call, &data, &len, &why);

    if (rc == QF_OK)
        rc = sg_annex_decode((struct qf_str){ data, len }, &file->parts, arena, &contents, &why);
    if (rc == QF_OK && !sg_annex_add_contents(m->annex, &contents))
        rc = qf_err_set(err, QF_ELIMIT,
                        "files of exemplars and metadata of %.*s: merging them "
                        "takes more memory than it may",
                        QF_STR_ARG(m->options->tenant));
    else if (rc == QF_OK)
        QF_VEC_PUSH(&m->inputs, file);
    free(data);
    (void)qf_arena_free(arena);
    if (rc == QF_ECORRUPT || rc == QF_EUNSUPPORTED)
        tell_damaged(m, file->name, &why);
    /* One that is gone is in what somebody else merged it into. */
    return rc == QF_ECORRUPT || rc == QF_EUNSUPPORTED || rc == QF_ENOTFOUND ? QF_OK
           : (rc == QF_OK || (err && err->rc))                              ? rc
                                               : qf_err_set(err, rc, "%s", why.msg);
}

static qf_rc put_output(void *ctx, const char *name, struct qf_str bytes, struct qf_err *err)
{
    struct merging *m = ctx;
    struct sg_annex_result result = { 0 };

    if (sg_turn_tick(m->turn, m->options->call, err) != QF_OK)
        return QF_EBUSY;
    QF_VEC_PUSH(&m->outputs, qf_xstrdup(name));
    return sg_annex_put_file(m->options->store, name, bytes, m->options->call, &result, err);
}

static bool is_output(const struct merging *m, const char *name)
{
    for (size_t i = 0; i < m->outputs.count; i++)
        if (strcmp(m->outputs.items[i], name) == 0)
            return true;
    return false;
}

/* Everything that was read is in the store again: what it was read from may go. */
static qf_rc remove_inputs(struct merging *m, struct qf_err *err)
{
    qf_rc rc = QF_OK;

    for (size_t i = 0; i < m->inputs.count && rc == QF_OK; i++)
        if (!is_output(m, m->inputs.items[i]->name))
            rc = sg_store_delete(m->options->store, qf_str_from(m->inputs.items[i]->name),
                                 m->options->call, err);
    return rc;
}

/* --- in turn with removals --- */

static qf_rc begin_turn(struct merging *m, struct qf_err *err)
{
    int64_t min_ts = INT64_MAX, max_ts = INT64_MIN;

    for (size_t i = 0; i < m->inputs.count; i++) {
        min_ts = QF_MIN(min_ts, m->inputs.items[i]->parts.min_ts);
        max_ts = QF_MAX(max_ts, m->inputs.items[i]->parts.max_ts);
    }
    return sg_turn_merge(m->options->store, m->options->tenant, min_ts, max_ts, m->options->call,
                         &m->turn, err);
}

/* One that is gone was removed, or somebody else was quicker: the next pass knows. */
static qf_rc look_again(const struct merging *m, bool *ret_all, struct qf_err *err)
{
    *ret_all = true;
    for (size_t i = 0; i < m->inputs.count && *ret_all; i++) {
        struct sg_store_info info;
        struct qf_err why = { 0 };
        qf_rc rc = sg_store_stat(m->options->store, qf_str_from(m->inputs.items[i]->name),
                                 m->options->call, &info, &why);

        if (rc && rc != QF_ENOTFOUND)
            return qf_err_set(err, rc, "%s", why.msg);
        *ret_all = rc == QF_OK;
    }
    return QF_OK;
}

/* Outputs are not taken back: another merge may have found them there and have removed the inputs. */
static qf_rc check_turn(struct merging *m, struct qf_err *err)
{
    qf_rc rc = sg_turn_check(m->turn, m->options->call, err);

    return rc == QF_ENOTFOUND || rc == QF_ETIMEOUT ? QF_EBUSY : rc;
}

static qf_rc put_merged(struct merging *m, struct qf_err *err)
{
    const struct sg_annex_files output = { .tenant = m->options->tenant,
                                           .file = put_output,
                                           .ctx = m };
    bool all = false;
    qf_rc rc = begin_turn(m, err);

    if (rc == QF_OK)
        rc = look_again(m, &all, err);
    if (rc == QF_OK && all)
        rc = sg_annex_write(m->annex, &output, err);
    if (rc == QF_OK && all)
        rc = check_turn(m, err);
    if (rc == QF_OK && all)
        rc = remove_inputs(m, err);
    m->turn = sg_turn_end(m->turn);
    m->merged->inputs += all ? m->inputs.count : 0;
    m->merged->outputs += m->outputs.count;
    return rc;
}

/* --- all of it --- */

static void forget(struct merging *m)
{
    m->annex = sg_annex_free(m->annex);
    for (size_t i = 0; i < m->outputs.count; i++)
        free(m->outputs.items[i]);
    QF_VEC_DONE(&m->outputs);
    QF_VEC_DONE(&m->inputs);
}

/* Merge @count files, which are small. */
static qf_rc merge_files(struct merging *m, const struct sg_annex_file *const *files, size_t count,
                         struct qf_err *err)
{
    qf_rc rc = QF_OK;

    m->annex = sg_annex_new(MEMORY_BYTES_MAX);
    for (size_t i = 0; i < count && rc == QF_OK; i++)
        rc = read_input(m, files[i], err);
    if (rc == QF_OK && m->inputs.count > 1)
        rc = put_merged(m, err);
    forget(m);
    return rc;
}

/* Whether two files may become one. */
static bool belong_together(const struct sg_annex_file *a, const struct sg_annex_file *b)
{
    return a->parts.kind == SG_ANNEX_METADATA || qf_floor_div(a->parts.min_ts, ANNEX_DAY_MS) ==
                                                     qf_floor_div(b->parts.min_ts, ANNEX_DAY_MS);
}

/* The small ones from @first on that become one: how many were looked at. */
static size_t take_group(const struct merging *m, const struct sg_annex_list *list, size_t first,
                         const struct sg_annex_file **group, size_t *ret_count)
{
    uint64_t bytes = 0;
    size_t i;

    *ret_count = 0;
    for (i = first; i < list->files.count; i++) {
        const struct sg_annex_file *file = &list->files.items[i];

        if (*ret_count &&
            (!belong_together(group[0], file) || bytes + file->size > INPUT_BYTES_MAX))
            break;
        if (file->size >= SMALL_BYTES || file->parts.max_ts >= m->options->before_ms)
            continue;
        group[(*ret_count)++] = file;
        bytes += file->size;
    }
    return i - first;
}

static qf_rc merge_kind(struct merging *m, enum sg_annex_kind kind, struct qf_err *err)
{
    const struct sg_annex_find find = { .tenant = m->options->tenant,
                                        .kind = kind,
                                        .min_ts = INT64_MIN,
                                        .max_ts = m->options->before_ms - 1,
                                        .files_max = FILES_MAX };
    struct sg_annex_list list = { 0 };
    const struct sg_annex_file **group;
    size_t count;
    qf_rc rc = sg_annex_find(m->options->store, &find, m->options->call, &list, err);

    group = qf_xcalloc(list.files.count + 1, sizeof(struct sg_annex_file *));
    for (size_t i = 0; i < list.files.count && rc == QF_OK;) {
        i += take_group(m, &list, i, group, &count);
        if (count > 1 && m->options->dry_run)
            m->merged->inputs += count;
        else if (count > 1)
            rc = merge_files(m, group, count, err);
        m->busy |= rc == QF_EBUSY;
        rc = rc == QF_EBUSY ? QF_OK : rc;
    }
    free(group);
    sg_annex_list_done(&list);
    return rc;
}

qf_rc sg_annex_merge(const struct sg_annex_merge *merge, struct sg_annex_merged *ret_merged,
                     struct qf_err *err)
{
    struct merging m = { .options = merge, .merged = ret_merged };
    qf_rc rc;

    *ret_merged = (struct sg_annex_merged){ 0 };
    rc = merge_kind(&m, SG_ANNEX_EXEMPLARS, err);
    if (rc == QF_OK)
        rc = merge_kind(&m, SG_ANNEX_METADATA, err);
    return rc == QF_OK && m.busy
               ? qf_err_set(err, QF_EBUSY, "exemplars or metadata of tenant %.*s are being removed",
                            QF_STR_ARG(merge->tenant))
               : rc;
}
