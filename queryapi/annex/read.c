/* read.c - what the annexes of the store have for an answer. */
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "base/sys/clock.h"
#include "queryapi/annex/annex_int.h"

/* Files of one answer. */
#define FILES_MAX 50000
/* Listings of one answer: files go when they were merged, which is once a day. */
#define LISTINGS_MAX 8
/* Files that are fetched together, what they may take, and how many at the same time. */
#define GROUP_MAX 64
#define GROUP_BYTES_MAX ((uint64_t)32 << 20)
#define FETCHES_MAX 8

/* --- files that were read before --- */

struct qa_annex_bytes *qa_annex_bytes_drop(struct qa_annex_bytes *bytes)
{
    if (!bytes || atomic_fetch_sub(&bytes->refs, 1) > 1)
        return NULL;
    free(bytes->name);
    free(bytes->data);
    free(bytes);
    return NULL;
}

static size_t place_of(const char *name)
{
    return qf_hash_bytes(qf_str_from(name)) % QA_ANNEX_PLACES;
}

static struct qa_annex_bytes *find_kept(struct qa_annex *annex, const char *name)
{
    struct qa_annex_bytes *bytes;

    qf_lock_take(annex->lock);
    bytes = annex->places[place_of(name)];
    if (bytes && strcmp(bytes->name, name) == 0)
        atomic_fetch_add(&bytes->refs, 1);
    else
        bytes = NULL;
    qf_lock_drop(annex->lock);
    return bytes;
}

/* With the lock. */
static void clear_place(struct qa_annex *annex, size_t place)
{
    struct qa_annex_bytes *bytes = annex->places[place];

    annex->kept_bytes -= bytes ? bytes->len : 0;
    annex->places[place] = qa_annex_bytes_drop(bytes);
}

static void keep(struct qa_annex *annex, struct qa_annex_bytes *bytes)
{
    size_t place = place_of(bytes->name);

    qf_lock_take(annex->lock);
    clear_place(annex, place);
    while (annex->kept_bytes + bytes->len > QA_ANNEX_KEPT_BYTES)
        clear_place(annex, annex->hand++ % QA_ANNEX_PLACES);
    atomic_fetch_add(&bytes->refs, 1);
    annex->places[place] = bytes;
    annex->kept_bytes += bytes->len;
    qf_lock_drop(annex->lock);
}

void qa_annex_forget(struct qa_annex *annex)
{
    for (size_t i = 0; i < QA_ANNEX_PLACES; i++)
        clear_place(annex, i);
}

/* --- reading --- */

static struct sg_store_call call_of(const struct qa_annex_ask *ask)
{
    int64_t left = ask->deadline_ms - qf_clock_mono_ms();

    return (struct sg_store_call){ .cancel = &ask->annex->stopping,
                                   .timeout_ms = ask->deadline_ms ? QF_MAX(left, (int64_t)1) : 0 };
}

static qf_rc fetch(const struct qa_annex_ask *ask, const char *name,
                   struct qa_annex_bytes **ret_bytes, struct qf_err *err)
{
    const struct sg_store_call call = call_of(ask);
    struct qa_annex_bytes *bytes = find_kept(ask->annex, name);
    qf_rc rc;

    *ret_bytes = bytes;
    if (bytes)
        return QF_OK;
    bytes = qf_xcalloc(1, sizeof(*bytes));
    atomic_store(&bytes->refs, 1);
    bytes->name = qf_xstrdup(name);
    rc = sg_store_read_all(ask->annex->options.store, qf_str_from(name), SG_ANNEX_BYTES_MAX, &call,
                           &bytes->data, &bytes->len, err);
    if (rc != QF_OK) {
        (void)qa_annex_bytes_drop(bytes);
        return rc;
    }
    keep(ask->annex, bytes);
    *ret_bytes = bytes;
    return QF_OK;
}

bool qa_annex_matches(const struct qa_annex_ask *ask, struct qf_labels series)
{
    for (size_t i = 0; i < ask->selector_count; i++)
        if (pq_matchers_match(ask->matchers[i], ask->matcher_counts[i], series))
            return true;
    return false;
}

qf_rc qa_annex_spent(const struct qa_annex_ask *ask, struct qf_err *err)
{
    return qf_purse_empty_ancestor(&ask->purse)
               ? qf_err_set(err, QF_EUNAVAILABLE, "other queries use all memory: try again")
               : qf_err_set(err, QF_ELIMIT,
                            "more exemplars or metadata than memory allows: ask for less");
}

/* Copies of those that were asked for; series stand together. */
static bool take_exemplars(struct qa_annex_answer *answer, const struct sg_annex_contents *contents,
                           struct qf_arena *scratch)
{
    struct qa_annex_ask *ask = answer->ask;
    struct sg_found_exemplar found = { 0 };
    struct qf_labels labels;
    bool wanted = false, ok = true;

    for (size_t i = 0; i < contents->count && ok; i++) {
        const struct sg_exemplar *exemplar = &contents->exemplars[i];

        if (i == 0 || !qf_str_eq(exemplar[-1].series, exemplar->series)) {
            ok = qf_labels_decode(scratch, exemplar->series, &labels, NULL) == QF_OK;
            wanted = ok && qa_annex_matches(ask, labels);
            ok = ok && (!wanted || qf_labels_copy(ask->arena, labels, &found.series));
        }
        if (!wanted || exemplar->ts < ask->min_ts || exemplar->ts > ask->max_ts)
            continue;
        found.ts = exemplar->ts;
        found.value = exemplar->value;
        ok = ok && qf_labels_decode(scratch, exemplar->labels, &labels, NULL) == QF_OK &&
             qf_labels_copy(ask->arena, labels, &found.labels) &&
             sg_found_add(&answer->found, ask->arena, &found);
    }
    return ok;
}

static qf_rc take(struct qa_annex_answer *answer, const struct sg_annex_file *file,
                  const struct qa_annex_bytes *bytes, struct qf_err *err)
{
    struct qf_arena *scratch = qf_arena_new_from(&answer->ask->purse);
    struct sg_annex_contents contents;
    qf_rc rc = sg_annex_decode((struct qf_str){ bytes->data, bytes->len }, &file->parts, scratch,
                               &contents, err);

    if (rc == QF_OK &&
        !(contents.kind == SG_ANNEX_EXEMPLARS ? take_exemplars(answer, &contents, scratch)
                                              : sg_annex_add_contents(answer->metadata, &contents)))
        rc = qa_annex_spent(answer->ask, err);
    else if (rc == QF_ECORRUPT || rc == QF_EUNSUPPORTED)
        rc = qf_err_prefix(err, rc, "%s", file->name);
    (void)qf_arena_free(scratch);
    return rc;
}

static bool is_listed(const struct sg_annex_list *list, const char *name, size_t *at)
{
    while (*at < list->files.count && strcmp(list->files.items[*at].name, name) < 0)
        (*at)++;
    return *at < list->files.count && strcmp(list->files.items[*at].name, name) == 0;
}

/* Files that are fetched together, by several threads: each waits for the store. */
struct group {
    const struct qa_annex_ask *ask;
    const struct sg_annex_file *files[GROUP_MAX];
    size_t count;
    uint64_t size; /* of all of them */
    atomic_size_t next;
    struct qa_annex_bytes *bytes[GROUP_MAX];
    struct qf_err errs[GROUP_MAX];
};

static bool is_over(const struct qa_annex_ask *ask, struct qf_err *err)
{
    if (atomic_load(&ask->annex->stopping) || qh_stream_gone(ask->stream))
        (void)qf_err_set(err, QF_ECANCELED, "canceled");
    else if (ask->deadline_ms && qf_clock_mono_ms() >= ask->deadline_ms)
        (void)qf_err_set(err, QF_ETIMEOUT, "reading the store took too long");
    return err->rc != QF_OK;
}

static void fetch_some(void *arg)
{
    struct group *group = arg;
    size_t i;

    while ((i = atomic_fetch_add(&group->next, 1)) < group->count)
        if (!is_over(group->ask, &group->errs[i]))
            (void)fetch(group->ask, group->files[i]->name, &group->bytes[i], &group->errs[i]);
}

static void fetch_group(struct group *group)
{
    struct qf_thread *threads[FETCHES_MAX] = { 0 };

    for (size_t i = 1; i < FETCHES_MAX && i < group->count; i++)
        threads[i] = qf_thread_start("annex", fetch_some, group);
    fetch_some(group);
    for (size_t i = 1; i < FETCHES_MAX; i++)
        if (threads[i])
            (void)qf_thread_join(threads[i]);
}

/* Take the files of @group, which is empty afterwards. */
static qf_rc read_group(struct qa_annex_answer *answer, struct group *group, struct qf_err *err)
{
    qf_rc rc = QF_OK;

    fetch_group(group);
    for (size_t i = 0; i < group->count; i++) {
        if (rc == QF_OK && !group->bytes[i])
            rc = qf_err_set(err, group->errs[i].rc, "%s", group->errs[i].msg);
        if (rc == QF_OK)
            rc = take(answer, group->files[i], group->bytes[i], err);
        (void)qa_annex_bytes_drop(group->bytes[i]);
    }
    *group = (struct group){ .ask = group->ask };
    return rc;
}

/* Take what has come since the listing @before. *ret_more: something has. */
static qf_rc read_list(struct qa_annex_answer *answer, const struct sg_annex_list *before,
                       const struct sg_annex_list *list, bool *ret_more, struct qf_err *err)
{
    struct group *group = qf_xcalloc(1, sizeof(*group));
    size_t at = 0;
    qf_rc rc = QF_OK;

    group->ask = answer->ask;
    for (size_t i = 0; i < list->files.count && rc == QF_OK; i++) {
        const struct sg_annex_file *file = &list->files.items[i];

        if (is_listed(before, file->name, &at))
            continue;
        *ret_more = true;
        /* All of them are in memory at the same time. */
        if (group->count == GROUP_MAX ||
            (group->count && group->size + file->size > GROUP_BYTES_MAX))
            rc = read_group(answer, group, err);
        group->files[group->count++] = file;
        group->size += file->size;
    }
    if (rc == QF_OK)
        rc = read_group(answer, group, err);
    free(group);
    return rc;
}

/* A listing is no snapshot: while it is under way a file may be merged into one whose place it has passed, and go before
 * its own is reached. Then neither is listed, and nothing tells; but the next listing, which begins after the merged one
 * was put, has it. So the store is listed until there is nothing new, at least twice. */
qf_rc qa_annex_read(struct qa_annex_answer *answer, struct qf_err *err)
{
    const struct qa_annex_ask *ask = answer->ask;
    const struct sg_annex_find find = { .tenant = ask->tenant,
                                        .kind = ask->kind,
                                        .min_ts = ask->min_ts,
                                        .max_ts = ask->max_ts,
                                        .files_max = FILES_MAX };
    struct sg_annex_list before = { 0 };
    bool more = true;
    qf_rc rc = QF_OK;

    for (int i = 0; i < LISTINGS_MAX && more && (rc == QF_OK || rc == QF_ENOTFOUND); i++) {
        const struct sg_store_call call = call_of(ask);
        struct sg_annex_list list = { 0 };

        *err = (struct qf_err){ 0 };
        more = i == 0;
        rc = sg_annex_find(ask->annex->options.store, &find, &call, &list, err);
        if (rc == QF_OK)
            rc = read_list(answer, &before, &list, &more, err);
        if (rc == QF_OK) {
            sg_annex_list_done(&before);
            before = list;
        } else { /* what was taken of it is taken again, which changes nothing */
            sg_annex_list_done(&list);
            more = true;
        }
    }
    sg_annex_list_done(&before);
    if (more && (rc == QF_OK || rc == QF_ENOTFOUND))
        return qf_err_set(err, QF_EUNAVAILABLE,
                          "files of exemplars and metadata come and go all the time: try again");
    return rc;
}
