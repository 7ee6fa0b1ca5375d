/* publish.c - sorted records to segments in a store, all or nothing. */
#include "segments/write/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/vec.h"
#include "base/sys/clock.h"
#include "segments/catalog/changes.h"
#include "segments/parquet/segment_writer.h"
#include "segments/write/claim.h"
#include "segments/write/naming.h"

/* Notes of the segments put are left this often during a commit, and at its end. */
#define NOTE_INTERVAL_MS 1000
/* Taking back ends when so many deletions failed in a row: the store is away. */
#define ROLL_BACK_FAILURES_MAX 3

struct publish {
    struct publish_options options;
    struct sg_store *store;
    const atomic_bool *cancel;
    char *path; /* of the segment being written */
    struct sg_writer *writer;
    int64_t window;
    uint32_t shard;
    uint64_t samples; /* of that segment */
    struct publish_result result;
    struct naming *naming;  /* on our own nodes; else NULL */
    QF_VEC(char *) put;     /* keys, to take them back */
    QF_VEC(char *) present; /* keys that were there already and are relied on */
    struct sg_changes_note note;
    int64_t noted_ms;
};

struct publish *publish_new(const struct publish_options *options)
{
    struct publish *p = qf_xcalloc(1, sizeof(*p));
    struct qf_strbuf path = QF_STRBUF_INIT;

    qf_strbuf_printf(&path, "%s/segment.parquet", options->dir);
    p->options = *options;
    p->store = options->batch->store;
    p->cancel = options->batch->cancel;
    p->path = qf_strbuf_take(&path);
    p->naming = naming_new(options->batch, options->dir);
    p->noted_ms = qf_clock_mono_ms();
    return p;
}

struct publish *publish_free(struct publish *p)
{
    if (!p)
        return NULL;
    (void)sg_writer_free(p->writer);
    (void)naming_free(p->naming);
    (void)unlink(p->path);
    free(p->path);
    for (size_t i = 0; i < p->put.count; i++)
        free(p->put.items[i]);
    QF_VEC_DONE(&p->put);
    for (size_t i = 0; i < p->present.count; i++)
        free(p->present.items[i]);
    QF_VEC_DONE(&p->present);
    sg_changes_note_done(&p->note);
    free(p);
    return NULL;
}

struct search {
    const struct sg_segment_name *name;
    char *found; /* its key */
};

static bool look(void *ctx, const struct sg_store_object *object)
{
    struct search *search = ctx;
    struct sg_segment_name other;

    if (sg_segment_name_parse(object->name, &other) && other.id == search->name->id &&
        other.min_ts == search->name->min_ts && other.max_ts == search->name->max_ts &&
        other.shard == search->name->shard && other.shard_count == search->name->shard_count)
        search->found = qf_xmemdup0(object->name.data, object->name.len);
    return !search->found;
}

/* Does the store have a segment with this content already? Its name differs in the generation. */
static qf_rc is_present(struct publish *p, const struct sg_segment_name *name, bool *ret_present,
                        struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf key = QF_STRBUF_INIT;
    struct search search = { .name = name };
    struct sg_store_call call = { .cancel = p->cancel };
    const char *id, *generation;
    qf_rc rc;

    sg_segment_name_print(&key, name);
    id = strrchr(key.data, '_');
    generation = memrchr(key.data, '_', (size_t)(id - key.data));
    rc = sg_store_list(p->store, (struct qf_str){ key.data, (size_t)(generation - key.data) + 2 },
                       QF_STR(""), &call, look, &search, err);
    *ret_present = search.found != NULL;
    if (search.found)
        QF_VEC_PUSH(&p->present, search.found);
    return rc;
}

static qf_rc put_file(struct publish *p, struct qf_str key, struct qf_err *err)
{
    struct sg_store_call call = { .cancel = p->cancel };
    struct stat status;
    int fd = open(p->path, O_RDONLY | O_CLOEXEC);
    qf_rc rc;

    if (fd < 0 || fstat(fd, &status) != 0) {
        rc = qf_err_set(err, QF_EIO, "%s: cannot open: %s", p->path, strerror(errno));
    } else {
        rc = sg_store_put_fd(p->store, key, fd, (uint64_t)status.st_size, &call, err);
        p->result.bytes += (uint64_t)status.st_size;
    }
    if (fd >= 0)
        (void)close(fd);
    return rc;
}

/* With its owners; it is seen when naming_finish() names it. */
static qf_rc place_file(struct publish *p, struct qf_str key, struct qf_err *err)
{
    uint64_t bytes = 0;
    qf_rc rc = naming_put(p->naming, key, p->path, &bytes, err);

    p->result.bytes += bytes;
    return rc;
}

static qf_rc put_note(struct publish *p, struct qf_err *err)
{
    struct sg_store_call call = { .cancel = p->cancel };

    p->noted_ms = qf_clock_mono_ms();
    return sg_changes_note_put(&p->note, p->store, &call, err);
}

static qf_rc put_segment(struct publish *p, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf key = QF_STRBUF_INIT;
    struct sg_segment_name name;
    bool present = false;
    uint64_t series;
    qf_rc rc;

    if (!p->writer)
        return QF_OK;
    series = sg_writer_series(p->writer);
    rc = sg_writer_finish(p->writer, &name, err);
    if (rc == QF_OK)
        rc = is_present(p, &name, &present, err);
    if (rc == QF_OK && !present) {
        sg_segment_name_print(&key, &name);
        /* Noted first: a put that fails may still have happened. */
        QF_VEC_PUSH(&p->put, qf_xstrdup(qf_strbuf_cstr(&key)));
        rc = p->naming ? place_file(p, qf_strbuf_view(&key), err)
                       : put_file(p, qf_strbuf_view(&key), err);
        sg_changes_note_add(&p->note, qf_strbuf_view(&key));
    }
    if (rc == QF_OK && qf_clock_mono_ms() - p->noted_ms >= NOTE_INTERVAL_MS)
        rc = put_note(p, err);
    if (p->options.batch->claim)
        sg_claim_tick(p->options.batch->claim, &(struct sg_store_call){ .cancel = p->cancel });
    p->writer = sg_writer_free(p->writer);
    (void)unlink(p->path);
    if (rc != QF_OK)
        return rc;
    p->result.segments += !present;
    p->result.segments_present += present;
    p->result.series += series;
    p->result.samples += p->samples;
    p->options.on_segment(p->options.ctx, &p->result);
    return QF_OK;
}

static qf_rc begin_segment(struct publish *p, const struct run_record *record, struct qf_err *err)
{
    unsigned needs = needs_get(p->options.needs, record->window, record->shard);
    struct sg_writer_options options = {
        .path = p->path,
        .tenant = p->options.batch->tenant,
        .shard = record->shard,
        .shard_count = p->options.batch->shard_count,
        .generation = p->options.batch->generation,
        .start_ts = (needs & NEEDS_START_TS) != 0,
        .histograms = (needs & NEEDS_HISTOGRAMS) != 0,
    };
    struct qf_err own = { 0 };

    p->writer = sg_writer_new(&options, err ? err : &own);
    p->window = record->window;
    p->shard = record->shard;
    p->samples = 0;
    return p->writer ? QF_OK : err ? err->rc : own.rc;
}

qf_rc publish_record(struct publish *p, const struct run_record *record, struct qf_err *err)
{
    struct sg_samples samples = { .ts = record->ts,
                                  .values = record->values,
                                  .count = record->count,
                                  .start_ts = record->start_ts,
                                  .histograms = record->histograms };
    qf_rc rc = QF_OK;

    if (p->writer && (record->window != p->window || record->shard != p->shard))
        rc = put_segment(p, err);
    if (rc == QF_OK && !p->writer)
        rc = begin_segment(p, record, err);
    if (rc == QF_OK)
        rc = sg_writer_add_samples(p->writer, record->labels, &samples, err);
    p->samples += record->count;
    return rc;
}

/* A segment that was there already may be of a batch that failed meanwhile and rolled back. */
static qf_rc check_present(struct publish *p, struct qf_err *err)
{
    struct sg_store_call call = { .cancel = p->cancel };

    for (size_t i = 0; i < p->present.count; i++) {
        struct sg_store_info info;
        struct qf_err why = { 0 };
        qf_rc rc = sg_store_stat(p->store, qf_str_from(p->present.items[i]), &call, &info, &why);

        if (rc == QF_ENOTFOUND)
            return qf_err_set(err, rc,
                              "%s was there and is gone: another writer took it back; try again",
                              p->present.items[i]);
        if (rc)
            return qf_err_set(err, rc, "%s", why.msg);
    }
    return QF_OK;
}

qf_rc publish_finish(struct publish *p, struct qf_err *err)
{
    qf_rc rc = put_segment(p, err);

    if (rc == QF_OK)
        rc = check_present(p, err);
    if (rc == QF_OK && p->naming)
        rc = naming_finish(p->naming, err);
    else if (rc == QF_OK && p->options.batch->claim)
        rc = sg_claim_check(p->options.batch->claim, &(struct sg_store_call){ .cancel = p->cancel },
                            err);
    return rc == QF_OK ? put_note(p, err) : rc;
}

size_t publish_roll_back(struct publish *p)
{
    /* Without the cancel flag: rolling back is what a canceled batch still has to do. */
    struct sg_store_call call = { .timeout_ms = 30000 };
    size_t left = p->put.count, failures = 0;

    if (p->naming && !naming_asked(p->naming))
        return 0; /* what has no name is not there */
    if (p->options.batch->claim && sg_claim_drop(p->options.batch->claim, &call, NULL) != QF_OK)
        return left;
    for (size_t i = 0; i < p->put.count && failures < ROLL_BACK_FAILURES_MAX; i++) {
        struct qf_str key = qf_str_from(p->put.items[i]);
        bool gone = sg_store_delete(p->store, key, &call, NULL) == QF_OK;

        left -= gone;
        failures = gone ? 0 : failures + 1;
        sg_changes_note_add(&p->note, key);
    }
    /* Without a note readers find out when they miss a segment, or in time. */
    (void)!sg_changes_note_put(&p->note, p->store, &call, NULL);
    return left;
}
