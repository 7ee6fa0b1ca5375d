/* even.c - digests are compared, then checksums, then documents are joined. */
#include "queryworker/keep/even.h"

#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "ring/core/manifest.h"
#include "ring/core/sheet.h"
#include "segments/store/keep_client.h"

#define CALL_MS 10000

/* Another owner of a slot. */
struct other {
    struct qw_even *even;
    const char *url;
    struct rg_keep_query query; /* slot, epoch */
};

static qf_rc ask(const struct qw_even *even, const char *url, const char *path,
                 const struct rg_keep_query *query, struct qf_strbuf *body, struct qf_err *err)
{
    const struct sg_store_limit limit = { .cancel = even->stop,
                                          .deadline_ms = qf_clock_mono_ms() + CALL_MS };
    struct sg_keep_answer answer;

    return sg_keep_ask(even->client, url, "GET", path, query, QF_STR(""), &limit, body, &answer,
                       err);
}

/* --- one document --- */

/* What is here under the name of @query, and its checksum; all zeros: nothing. */
static bool read_own(struct kp_keeper *keeper, const struct rg_keep_query *query,
                     struct qf_strbuf *bytes, struct rg_sum *sum)
{
    struct kp_said said;
    struct qf_err err = { 0 };

    *sum = (struct rg_sum){ { 0 } };
    kp_doc_get(keeper, query, bytes, &said);
    if (said.status == 404)
        return true;
    return said.status == 200 &&
           sg_keep_sum(
               &(struct sg_store_bytes){ .data = bytes->data, .fd = -1, .size = bytes->len }, sum,
               &err) == QF_OK;
}

/* Join @theirs into what is here. False: somebody was quicker, or the disk does not take it; the next comparison sees. */
static bool join(struct kp_keeper *keeper, const struct rg_keep_query *query,
                 const struct rg_sheet *theirs)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf before = QF_STRBUF_INIT, after = QF_STRBUF_INIT;
    QF_CLEANUP(rg_sheet_done) struct rg_sheet own = { 0 };
    struct kp_said said;
    struct rg_sum was;

    if (!read_own(keeper, query, &before, &was) ||
        (before.len && rg_sheet_decode(qf_strbuf_view(&before), &own) != QF_OK))
        return false;
    rg_sheet_join(&own, theirs);
    rg_sheet_encode(&after, &own);
    if (qf_str_eq(qf_strbuf_view(&before), qf_strbuf_view(&after)))
        return false; /* nothing new: they lack something, and will find out */
    kp_doc_put(keeper, query, qf_strbuf_view(&after), &was, &said);
    return said.status == 200;
}

static qf_rc take_one(const struct other *other, struct qf_str name, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    QF_CLEANUP(rg_sheet_done) struct rg_sheet theirs = { 0 };
    struct qw_even *even = other->even;
    struct rg_keep_query query = other->query;
    qf_rc rc;

    query.name = name;
    rc = ask(even, other->url, RG_KEEP_DOC, &query, &bytes, err);
    if (rc == QF_ENOTFOUND) { /* cleaned meanwhile */
        *err = (struct qf_err){ 0 };
        return QF_OK;
    }
    if (rc != QF_OK)
        return rc;
    even->left -= QF_MIN(even->left, (uint64_t)bytes.len + 1);
    if (rg_sheet_decode(qf_strbuf_view(&bytes), &theirs) != QF_OK)
        atomic_fetch_add(&even->unreadable, 1); /* of a later release, or damaged */
    else if (join(even->keeper, &query, &theirs))
        atomic_fetch_add(&even->mended, 1);
    return QF_OK;
}

/* --- a slot --- */

static bool differs_here(const struct other *other, const struct rg_doc *doc)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct rg_keep_query query = other->query;
    struct rg_sum sum;

    query.name = doc->name;
    return doc->bytes.len == RG_SUM_BYTES && read_own(other->even->keeper, &query, &bytes, &sum) &&
           memcmp(sum.bytes, doc->bytes.data, RG_SUM_BYTES) != 0;
}

static qf_rc take_page(struct other *other, const struct rg_docs *page, struct qf_err *err)
{
    qf_rc rc = QF_OK;

    for (size_t i = 0;
         i < page->count && rc == QF_OK && other->even->left && !atomic_load(other->even->stop);
         i++)
        if (differs_here(other, &page->items[i]))
            rc = take_one(other, page->items[i].name, err);
    return rc;
}

/* Everything that @other has of the slot and that is not like that here, as long as bytes are left. */
static qf_rc take_slot(struct other *other, struct qf_err *err)
{
    char after[RG_BLOB_NAME_MAX + 1] = "";
    bool more = true;
    qf_rc rc = QF_OK;

    while (more && rc == QF_OK && other->even->left && !atomic_load(other->even->stop)) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
        struct rg_keep_query query = other->query;
        struct rg_docs page;

        query.after = qf_str_from(after);
        rc = ask(other->even, other->url, RG_KEEP_SUMS, &query, &body, err);
        if (rc != QF_OK)
            break;
        if (rg_docs_decode(qf_strbuf_view(&body), &page) != QF_OK)
            return qf_err_set(err, QF_EPROTO, "%s: checksums that cannot be read", other->url);
        rc = take_page(other, &page, err);
        more = page.more && page.count;
        if (page.count) {
            struct qf_str last = page.items[page.count - 1].name; /* at most RG_BLOB_NAME_MAX */

            memcpy(after, last.data, last.len);
            after[last.len] = '\0';
        }
        rg_docs_done(&page);
    }
    return rc;
}

/* --- everybody --- */

/* Owners before a move: newcomers are filled by whoever drives it. */
static bool owns(const struct rg_ring *ring, uint32_t slot, uint8_t node)
{
    return rg_owners_set(&ring->slots[slot].owners) & RG_NODE(node);
}

static bool is_equal(const struct rg_digest *a, const struct rg_digest *b)
{
    if (!a || !b)
        return a == b;
    return memcmp(a->sum.bytes, b->sum.bytes, RG_SUM_BYTES) == 0;
}

/* Compare with one of them. A slot of which one side has no digest yet is left as it was. */
static void compare(struct qw_even *even, const struct rg_ring *ring, uint8_t node, uint8_t with,
                    const struct rg_digests *own, const struct rg_digests *theirs)
{
    struct other other = { .even = even, .url = ring->nodes[with].url };
    struct qf_err err = { 0 };

    for (uint32_t slot = 0; slot < ring->slot_count && !err.rc; slot++) {
        const struct rg_digest *a = rg_digests_of(own, slot), *b = rg_digests_of(theirs, slot);
        bool again = even->differed[slot] & RG_NODE(with);

        if (!owns(ring, slot, node) || !owns(ring, slot, with)) {
            even->differed[slot] &= ~RG_NODE(with);
            continue;
        }
        if ((a && !a->known) || (b && !b->known))
            continue;
        even->differed[slot] &= ~RG_NODE(with);
        if (is_equal(a, b))
            continue;
        even->differed[slot] |= RG_NODE(with);
        other.query = (struct rg_keep_query){ .slot = slot, .epoch = ring->slots[slot].epoch };
        if (again && b && even->left)
            (void)take_slot(&other, &err);
    }
    if (err.rc)
        QF_LOG_DEBUG("documents could not be compared with another owner's, will try again",
                     QF_KV_STR("node", ring->nodes[with].name), QF_KV_STR("error", err.msg));
}

static void compare_with(struct qw_even *even, const struct rg_ring *ring, uint8_t node,
                         uint8_t with, const struct rg_digests *own)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    const struct rg_keep_query query = { 0 };
    struct rg_digests theirs;
    struct qf_err err = { 0 };

    /* Who is of an earlier release says 404. */
    if (ask(even, ring->nodes[with].url, RG_KEEP_DIGESTS, &query, &body, &err) != QF_OK ||
        rg_digests_decode(qf_strbuf_view(&body), &theirs) != QF_OK)
        return;
    compare(even, ring, node, with, own, &theirs);
    rg_digests_done(&theirs);
}

static bool shares_slots(const struct rg_ring *ring, uint8_t node, uint8_t with)
{
    for (uint32_t slot = 0; slot < ring->slot_count; slot++)
        if (owns(ring, slot, node) && owns(ring, slot, with))
            return true;
    return false;
}

/* Owns nothing that this node does. */
static void forget(struct qw_even *even, uint8_t node)
{
    for (uint32_t slot = 0; slot < RG_SLOTS; slot++)
        even->differed[slot] &= ~RG_NODE(node);
}

static uint64_t count_behind(const struct qw_even *even, const struct rg_ring *ring)
{
    uint64_t count = 0;

    for (uint32_t slot = 0; slot < ring->slot_count; slot++)
        count += even->differed[slot] != 0;
    return count;
}

void qw_even_pass(struct qw_even *even, const struct rg_ring *ring, uint8_t node)
{
    struct rg_digests own;

    (void)kp_digest_docs(even->keeper, QW_EVEN_BYTES);
    if (even->passes++ % QW_EVEN_PASSES)
        return;
    even->left = QW_EVEN_BYTES;
    kp_doc_digests(even->keeper, &own);
    for (uint8_t with = 0; with < RG_NODES_MAX && !atomic_load(even->stop); with++) {
        const struct rg_node *of = &ring->nodes[with];

        if (with == node || of->down) /* who is down is compared with when it is back */
            continue;
        if (of->url[0] && shares_slots(ring, node, with))
            compare_with(even, ring, node, with, &own);
        else
            forget(even, with);
    }
    rg_digests_done(&own);
    atomic_store(&even->behind, count_behind(even, ring));
}
