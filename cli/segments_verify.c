/* segments_verify.c - promfabric segments verify: is everything in a store whole, and what does a
 * damaged file cost?
 *
 * Names are listed page by page and each page is checked by several threads, so that memory does not
 * grow with the store. What is damaged is told as it is found, with what is lost by it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/vec.h"
#include "base/sys/clock.h"
#include "base/sys/thread.h"
#include "cli/segments.h"
#include "segments/annex/annex.h"

#define PAGE_MAX 4096
#define JOBS_MAX 64
/* Tenants whose damage is added up; of more, the sum is told. */
#define TENANTS_MAX 100

struct item {
    char *name;
    uint64_t size;
    bool done;
};

/* What is lost, of one tenant. */
struct loss {
    char tenant[QF_TENANT_MAX + 1];
    uint64_t segments, bytes, series, samples;
    uint64_t unknown; /* segments whose footer does not tell series and samples */
    int64_t min_ts, max_ts;
};

struct verify {
    const struct segments_cli *cli;
    struct sg_store *store;
    const atomic_bool *cancel;
    bool named; /* by the caller: one that is not there is an error */
    QF_VEC(struct item) page;
    bool more;
    atomic_size_t next;
    uint64_t total, total_bytes; /* 0: not known */

    struct qf_lock *lock; /* guards the rest, and what is printed */
    uint64_t verified, bytes, bad, unread, vanished;
    uint64_t annexes; /* of those verified */
    struct loss losses[TENANTS_MAX];
    size_t loss_count;
    bool terminal;
    int64_t shown_ms;
};

/* --- what a damaged file costs --- */

static struct loss *loss_of(struct verify *v, struct qf_str tenant)
{
    for (size_t i = 0; i < v->loss_count; i++)
        if (qf_str_is(tenant, v->losses[i].tenant))
            return &v->losses[i];
    if (v->loss_count < TENANTS_MAX) {
        struct loss *loss = &v->losses[v->loss_count++];

        (void)snprintf(loss->tenant, sizeof(loss->tenant), "%.*s", QF_STR_ARG(tenant));
        loss->min_ts = INT64_MAX;
        loss->max_ts = INT64_MIN;
        return loss;
    }
    return &v->losses[TENANTS_MAX - 1];
}

static void add_loss(struct verify *v, const struct item *item, const struct sg_meta *meta)
{
    struct sg_segment_name name;
    struct loss *loss;

    if (!sg_segment_name_parse(qf_str_from(item->name), &name))
        return;
    loss = loss_of(v, name.tenant);
    loss->segments++;
    loss->bytes += item->size;
    loss->min_ts = QF_MIN(loss->min_ts, name.min_ts);
    loss->max_ts = QF_MAX(loss->max_ts, name.max_ts);
    loss->unknown += !meta;
    loss->series += meta ? meta->series_count : 0;
    loss->samples += meta ? meta->sample_count : 0;
}

static void print_cost(const struct item *item, const struct sg_meta *meta)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct sg_segment_name name;

    if (!sg_segment_name_parse(qf_str_from(item->name), &name))
        return;
    segments_print_times(&text, name.min_ts, name.max_ts);
    fprintf(stderr, "  costs tenant %.*s, shard %u of %u, %s: ", QF_STR_ARG(name.tenant),
            name.shard, name.shard_count, qf_strbuf_cstr(&text));
    if (meta)
        fprintf(stderr, "%" PRIu64 " series, %" PRIu64 " samples\n", meta->series_count,
                meta->sample_count);
    else
        fprintf(stderr, "how many series and samples, its footer does not tell any more\n");
}

static void print_losses(const struct verify *v)
{
    for (size_t i = 0; i < v->loss_count; i++) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
        const struct loss *loss = &v->losses[i];

        qf_strbuf_printf(&text, "tenant %s: %" PRIu64 " damaged, ", loss->tenant, loss->segments);
        segments_print_bytes(&text, loss->bytes);
        qf_strbuf_puts(&text, ", between ");
        segments_print_times(&text, loss->min_ts, loss->max_ts);
        qf_strbuf_printf(&text, ": %s%" PRIu64 " series, %" PRIu64 " samples",
                         loss->unknown ? "at least " : "", loss->series, loss->samples);
        printf("%s\n", qf_strbuf_cstr(&text));
    }
    if (v->loss_count)
        printf("Queries that need a damaged segment fail and name it; others do not notice. "
               "Restore it, "
               "or delete it\n(promfabric segments rm NAME) and import what it had again.\n");
}

/* --- one segment --- */

/* A name must tell the truth about its content: catalogue and merge rely on it. */
static qf_rc check_name(const char *text, const struct sg_meta *meta, struct qf_err *err)
{
    struct sg_segment_name name;

    if (!sg_segment_name_parse(qf_str_from(text), &name))
        return qf_err_set(err, QF_EINVAL, "not the name of a segment");
    if (!qf_str_eq(name.tenant, meta->name.tenant) || name.min_ts != meta->name.min_ts ||
        name.max_ts != meta->name.max_ts || name.shard != meta->name.shard ||
        name.shard_count != meta->name.shard_count || name.generation != meta->name.generation ||
        name.id != meta->name.id)
        return qf_err_set(err, QF_ECORRUPT, "the name does not fit the content");
    return QF_OK;
}

/* The store did not let us look: that says nothing of the segment. */
static bool is_unread(qf_rc rc)
{
    return rc == QF_EIO || rc == QF_ETIMEOUT || rc == QF_EDENIED || rc == QF_EAUTH ||
           rc == QF_ENOSPC || rc == QF_EPROTO;
}

static void show_progress(struct verify *v)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    int64_t now = qf_clock_mono_ms();

    if (now - v->shown_ms < (v->terminal ? 200 : 5000))
        return;
    v->shown_ms = now;
    qf_strbuf_printf(&text, "%" PRIu64, v->verified);
    if (v->total)
        qf_strbuf_printf(&text, " of %" PRIu64, v->total);
    qf_strbuf_puts(&text, " segments, ");
    segments_print_bytes(&text, v->bytes);
    if (v->total_bytes) {
        qf_strbuf_puts(&text, " of ");
        segments_print_bytes(&text, v->total_bytes);
    }
    fprintf(stderr, "%s%s, %" PRIu64 " bad%s", v->terminal ? "\r\033[K" : "", qf_strbuf_cstr(&text),
            v->bad, v->terminal ? "" : "\n");
    (void)fflush(stderr);
}

static void tell(struct verify *v, struct item *item, qf_rc rc, const struct sg_meta *meta,
                 const struct qf_err *err)
{
    bool vanished = rc == QF_ENOTFOUND && !v->named;

    qf_lock_take(v->lock);
    v->verified += !vanished;
    v->annexes += !vanished && qf_str_starts(qf_str_from(item->name), QF_STR(SG_ANNEX_PREFIX));
    v->bytes += item->size;
    v->vanished += vanished;
    v->unread += is_unread(rc);
    if (rc != QF_OK && !vanished) {
        fprintf(stderr, "%serror: %s: %s\n", v->terminal ? "\r\033[K" : "", item->name, err->msg);
        if (!is_unread(rc)) {
            v->bad++;
            print_cost(item, meta);
            add_loss(v, item, meta);
        }
    }
    show_progress(v);
    qf_lock_drop(v->lock);
}

/* Exemplars and metadata; what such a file costs, nobody can tell any more. */
static void verify_annex(struct verify *v, struct item *item, const struct sg_annex_name *name)
{
    struct sg_store_call call = { .cancel = v->cancel };
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct sg_annex_contents contents;
    struct qf_err err = { 0 };
    char *data = NULL;
    size_t len;
    qf_rc rc = sg_store_read_all(v->store, qf_str_from(item->name), SG_ANNEX_BYTES_MAX, &call,
                                 &data, &len, &err);

    if (rc == QF_OK)
        rc = sg_annex_decode((struct qf_str){ data, len }, name, arena, &contents, &err);
    if (rc != QF_ECANCELED) {
        tell(v, item, rc, NULL, &err);
        item->done = true;
    }
    free(data);
    (void)qf_arena_free(arena);
}

static void verify_segment(struct verify *v, struct item *item)
{
    struct sg_store_call call = { .cancel = v->cancel };
    struct qf_err err = { 0 };
    struct sg_reader *reader = segments_fetch(v->cli, v->store, item->name, &call, &err);
    qf_rc rc = reader ? sg_reader_verify(reader, &err) : err.rc;

    if (rc == QF_OK)
        rc = check_name(item->name, sg_reader_meta(reader), &err);
    if (rc != QF_ECANCELED) {
        tell(v, item, rc, reader ? sg_reader_meta(reader) : NULL, &err);
        item->done = true;
    }
    (void)sg_reader_free(reader);
}

static void verify_one(struct verify *v, struct item *item)
{
    struct sg_annex_name name;

    if (sg_annex_name_parse(qf_str_from(item->name), &name))
        verify_annex(v, item, &name);
    else
        verify_segment(v, item);
}

static void work(void *arg)
{
    struct verify *v = arg;
    size_t i;

    while (!atomic_load(v->cancel) && (i = atomic_fetch_add(&v->next, 1)) < v->page.count)
        verify_one(v, &v->page.items[i]);
}

static void verify_page(struct verify *v)
{
    struct qf_thread *threads[JOBS_MAX] = { 0 };
    size_t jobs = QF_MIN((size_t)v->cli->jobs, (size_t)JOBS_MAX);

    atomic_store(&v->next, 0);
    for (size_t i = 1; i < jobs && i < v->page.count; i++)
        threads[i] = qf_thread_start("verify", work, v);
    work(v);
    for (size_t i = 1; i < jobs; i++)
        if (threads[i])
            (void)qf_thread_join(threads[i]);
}

/* --- all of them --- */

static bool is_known(struct qf_str text)
{
    struct sg_segment_name segment;
    struct sg_annex_name annex;

    return sg_segment_name_parse(text, &segment) || sg_annex_name_parse(text, &annex);
}

static bool collect(void *ctx, const struct sg_store_object *object)
{
    struct verify *v = ctx;

    if (!is_known(object->name))
        return true;
    QF_VEC_PUSH(&v->page, ((struct item){ qf_xmemdup0(object->name.data, object->name.len),
                                          object->size, false }));
    v->more = v->page.count == PAGE_MAX;
    return !v->more;
}

static bool add_up(void *ctx, const struct sg_store_object *object)
{
    struct verify *v = ctx;

    if (is_known(object->name)) {
        v->total++;
        v->total_bytes += object->size;
    }
    return true;
}

/* Forget a page; @after becomes the name up to which everything was looked at. */
static void end_page(struct verify *v, struct qf_strbuf *after)
{
    bool whole = true;

    for (size_t i = 0; i < v->page.count; i++) {
        whole = whole && v->page.items[i].done;
        if (whole) {
            qf_strbuf_reset(after);
            qf_strbuf_puts(after, v->page.items[i].name);
        }
        free(v->page.items[i].name);
    }
    v->page.count = 0;
}

/* What begins with @prefix, behind @after, which moves on. */
static qf_rc verify_prefix(struct verify *v, struct qf_str prefix, struct qf_strbuf *after,
                           struct qf_err *err)
{
    struct sg_store_call call = { .cancel = v->cancel };
    qf_rc rc = sg_store_list(v->store, prefix, qf_strbuf_view(after), &call, add_up, v, err);

    do {
        v->more = false;
        if (rc == QF_OK)
            rc = sg_store_list(v->store, prefix, qf_strbuf_view(after), &call, collect, v, err);
        if (rc == QF_OK)
            verify_page(v);
        end_page(v, after);
    } while (rc == QF_OK && v->more && !atomic_load(v->cancel));
    return rc == QF_ECANCELED ? QF_OK : rc;
}

/* In the order of names: annexes come before segments. */
static qf_rc verify_all(struct verify *v, struct qf_strbuf *after, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf prefix = QF_STRBUF_INIT;
    qf_rc rc;

    qf_strbuf_puts(after, v->cli->after ? v->cli->after : "");
    if (!v->cli->tenant)
        return verify_prefix(v, QF_STR(""), after, err);
    qf_strbuf_printf(&prefix, SG_ANNEX_PREFIX "tenant=%s/", v->cli->tenant);
    rc = verify_prefix(v, qf_strbuf_view(&prefix), after, err);
    if (rc == QF_OK && !atomic_load(v->cancel))
        rc = verify_prefix(
            v, qf_str_sub(qf_strbuf_view(&prefix), sizeof(SG_ANNEX_PREFIX) - 1, prefix.len), after,
            err);
    return rc;
}

static int finish(const struct verify *v, qf_rc rc, const struct qf_err *err, const char *after)
{
    if (v->terminal)
        fprintf(stderr, "\r\033[K");
    print_losses(v);
    printf("%" PRIu64 " segments verified, %" PRIu64 " bad", v->verified - v->annexes, v->bad);
    if (v->annexes)
        printf("; %" PRIu64 " files of exemplars and metadata verified", v->annexes);
    if (v->unread)
        printf(", %" PRIu64 " could not be read", v->unread);
    if (v->vanished)
        printf("; %" PRIu64 " went meanwhile", v->vanished);
    printf("\n");
    if (rc != QF_OK)
        fprintf(stderr, "error: %s\n", err->msg);
    if (atomic_load(v->cancel))
        fprintf(stderr, "stopped; to go on: --after '%s'\n", after);
    return v->bad ? 1 : v->unread || rc != QF_OK || atomic_load(v->cancel) ? 3 : 0;
}

int segments_verify(const struct segments_cli *cli, struct sg_store *store, char **names,
                    int name_count)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf after = QF_STRBUF_INIT;
    struct verify *v = qf_xcalloc(1, sizeof(*v));
    struct qf_err err = { 0 };
    qf_rc rc = QF_OK;
    int code;

    v->cli = cli;
    v->store = store;
    v->cancel = segments_catch_signals();
    v->named = name_count > 0;
    v->lock = qf_lock_new();
    v->terminal = isatty(STDERR_FILENO) == 1;
    v->shown_ms = qf_clock_mono_ms();
    for (int i = 0; i < name_count; i++)
        QF_VEC_PUSH(&v->page, ((struct item){ qf_xstrdup(names[i]), 0, false }));
    if (v->named) {
        verify_page(v);
        end_page(v, &after);
    } else {
        rc = verify_all(v, &after, &err);
    }
    code = finish(v, rc, &err, qf_strbuf_cstr(&after));
    QF_VEC_DONE(&v->page);
    (void)qf_lock_free(v->lock);
    free(v);
    return code;
}
