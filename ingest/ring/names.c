/* names.c - manifests read from this process's node, page by page. */
#include "ingest/ring/names.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/thread.h"
#include "ingest/accept/partition.h"
#include "ingest/core/listing.h"
#include "queue/node/blocked.h"

#define FRESH_MS 1000
#define ASK_MS 5000
/* No record of a log is behind it: a page with what came after it has nothing but its head. */
#define NOTHING (UINT64_MAX / 2)

struct name {
    uint32_t slot;
    uint32_t len;
    size_t at; /* in bytes */
};

struct in_names {
    struct qn_node *node;
    struct qf_lock *lock; /* of what was listed last */
    int64_t listed_ms;    /* 0: nothing was */
    uint64_t epoch;
    struct qf_strbuf bytes;
    QF_VEC(struct name) names;
};

static qf_rc ask_node(struct qn_node *node, struct qn_ask *ask, struct qf_strbuf *ret_text,
                      struct qf_err *err)
{
    struct qn_blocked blocked;
    qf_rc rc = QF_OK;
    bool asked;

    ask->operates = true;
    ask->timeout_ms = ASK_MS;
    qn_blocked_begin(&blocked, ask);
    asked = qn_ask(node, ask);
    ask = qn_blocked_end(&blocked, ask, asked);
    if (!asked)
        rc = qf_err_set(err, QF_EBUSY, "too many requests are under way");
    else if (ask->answer.err.rc != QF_OK)
        rc = qf_err_set(err, ask->answer.err.rc, "%s", ask->answer.err.msg);
    else if (ret_text)
        qf_strbuf_str(ret_text, qf_strbuf_view(&ask->answer.text));
    (void)qn_ask_free(ask);
    return rc;
}

/* Ask for a page into @bytes, which it borrows from. */
static qf_rc read_page(struct in_names *names, uint32_t partition,
                       const struct in_listing_ask *wanted, struct qf_strbuf *bytes,
                       struct rg_page *ret_page, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf question = QF_STRBUF_INIT;
    char queue[QN_NAME_SIZE];
    struct qn_ask *ask;
    qf_rc rc;

    in_listing_ask_encode(&question, wanted);
    qn_partition_name(partition, queue);
    ask = qn_ask_new(QN_QUESTION, qf_str_from(queue));
    qn_ask_add(ask, qf_strbuf_view(&question));
    qf_strbuf_reset(bytes);
    rc = ask_node(names->node, ask, bytes, err);
    if (rc == QF_OK && rg_page_decode(qf_strbuf_view(bytes), ret_page) != QF_OK)
        rc = qf_err_set(err, QF_EPROTO, "a page of a manifest that cannot be read");
    return rc;
}

static void keep_page(struct in_names *names, const struct rg_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        const struct rg_blob *blob = &page->items[i];
        struct name name = { blob->slot, (uint32_t)blob->name.len, names->bytes.len };

        if (blob->removed)
            continue;
        qf_strbuf_str(&names->bytes, blob->name);
        QF_VEC_PUSH(&names->names, name);
    }
}

static qf_rc list_partition(struct in_names *names, uint32_t partition, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct in_listing_ask wanted = { 0 };
    bool more = true;
    qf_rc rc = QF_OK;

    while (more && rc == QF_OK) {
        struct rg_page page;

        rc = read_page(names, partition, &wanted, &bytes, &page, err);
        if (rc != QF_OK)
            break;
        if (!wanted
                 .after) /* what is named behind the first page is in a later one, or put to all */
            names->epoch = QF_MIN(names->epoch, page.epoch);
        keep_page(names, &page);
        more = page.more && page.count;
        wanted.queue = page.queue;
        if (page.count)
            wanted.after = page.items[page.count - 1].index;
        rg_page_done(&page);
    }
    return rc;
}

/* With the lock taken. */
static qf_rc refresh(struct in_names *names, struct qf_err *err)
{
    uint32_t partitions = qn_partitions(names->node);
    int64_t began = qf_clock_mono_ms();
    qf_rc rc = partitions ? QF_OK : qf_err_set(err, QF_EUNAVAILABLE, "no partitions are known yet");

    if (names->listed_ms && began - names->listed_ms < FRESH_MS)
        return QF_OK;
    names->listed_ms = 0;
    names->names.count = 0;
    qf_strbuf_reset(&names->bytes);
    names->epoch = UINT64_MAX;
    for (uint32_t i = 0; i < partitions && rc == QF_OK; i++)
        rc = list_partition(names, i, err);
    if (rc == QF_OK)
        names->listed_ms = began;
    return rc;
}

qf_rc in_names_list(struct in_names *names, uint32_t slot, struct rg_listing *listing,
                    struct qf_err *err)
{
    size_t at = 0;
    qf_rc rc;

    qf_lock_take(names->lock);
    rc = refresh(names, err);
    for (size_t i = 0; rc == QF_OK && i < names->names.count; i++) {
        const struct name *name = &names->names.items[i];

        if (name->slot != slot)
            continue;
        qf_strbuf_add(&listing->bytes, names->bytes.data + name->at, name->len);
        QF_VEC_PUSH(&listing->names, (struct qf_str){ NULL, name->len });
    }
    listing->epoch = names->epoch;
    qf_lock_drop(names->lock);
    for (size_t i = 0; i < listing->names.count; i++) { /* the bytes do not move any more */
        listing->names.items[i].data = listing->bytes.data + at;
        at += listing->names.items[i].len;
    }
    return rc;
}

qf_rc in_names_adopt(struct in_names *names, uint32_t partition, const struct rg_ring *ring,
                     struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT, record = QF_STRBUF_INIT;
    struct rg_note note = { .kind = RG_NOTE_EPOCH, .epoch = ring->epoch };
    struct rg_page page;
    qf_rc rc =
        read_page(names, partition, &(struct in_listing_ask){ .since = NOTHING, .after = NOTHING },
                  &bytes, &page, err);

    if (rc != QF_OK)
        return rc;
    note.since = page.epoch;
    rg_page_done(&page);
    if (note.since >= ring->epoch)
        return QF_OK;
    rg_ring_altered(ring, note.since, &note.slots);
    qf_strbuf_reset(&bytes);
    rg_note_encode(&bytes, &note);
    in_record_put_note(&record, qf_strbuf_view(&bytes));
    return ask_node(names->node, in_partition_ask(partition, qf_strbuf_view(&record)), NULL, err);
}

struct in_names *in_names_new(struct qn_node *node)
{
    struct in_names *names = qf_xcalloc(1, sizeof(*names));

    names->node = node;
    names->lock = qf_lock_new();
    return names;
}

struct in_names *in_names_free(struct in_names *names)
{
    if (names) {
        names->lock = qf_lock_free(names->lock);
        qf_strbuf_done(&names->bytes);
        QF_VEC_DONE(&names->names);
        free(names);
    }
    return NULL;
}
