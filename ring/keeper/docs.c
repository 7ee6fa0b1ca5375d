/* docs.c - small documents, opaque, by slot and name. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "ring/keeper/keeper_int.h"

static void doc_name(struct qf_strbuf *buf, const struct rg_keep_query *query)
{
    qf_strbuf_printf(buf, "%04" PRIx32 "/%.*s", query->slot, QF_STR_ARG(query->name));
}

static bool takes(struct kp_keeper *keeper, const struct rg_keep_query *query, struct kp_said *said)
{
    bool ok;

    qf_lock_take(keeper->lock);
    ok = kp_takes(keeper, query, said);
    qf_lock_drop(keeper->lock);
    return ok;
}

static void say_failed(struct kp_said *said, const struct qf_err *err)
{
    kp_say(said, err->rc == QF_ENOSPC ? 507 : 500, "%s\n", err->msg);
}

/* Is what is there what @was says? */
static bool is_as_it_was(struct kp_keeper *keeper, struct qf_str name, const struct rg_sum *was,
                         struct kp_said *said)
{
    QF_CLEANUP(qf_freep) char *data = NULL;
    struct qf_err err = { 0 };
    struct rg_sum sum = { { 0 } };
    size_t len = 0;
    qf_rc rc =
        sg_store_read_all(keeper->docs, name, RG_KEEP_DOC_BYTES_MAX, NULL, &data, &len, &err);

    if (rc == QF_OK)
        rc = sg_keep_sum(&(struct sg_store_bytes){ .data = data, .fd = -1, .size = len }, &sum,
                         &err);
    if (rc != QF_OK && rc != QF_ENOTFOUND) {
        say_failed(said, &err);
        return false;
    }
    if (memcmp(&sum, was, sizeof(sum)) == 0)
        return true;
    kp_say(said, 428, "the document is another one by now\n");
    return false;
}

void kp_doc_put(struct kp_keeper *keeper, const struct rg_keep_query *query, struct qf_str bytes,
                const struct rg_sum *was, struct kp_said *said)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;
    struct qf_err err = { 0 };

    *said = (struct kp_said){ .status = 200 };
    if (bytes.len > RG_KEEP_DOC_BYTES_MAX) {
        kp_say(said, 413, "a document has at most %d bytes\n", RG_KEEP_DOC_BYTES_MAX);
        return;
    }
    if (!kp_has_room(keeper, bytes.len)) {
        kp_say(said, 507, "no room on this disk\n");
        return;
    }
    doc_name(&name, query);
    qf_lock_take(keeper->doc_lock); /* cleaning and other puts wait */
    if (takes(keeper, query, said) &&
        (!was || is_as_it_was(keeper, qf_strbuf_view(&name), was, said))) {
        qf_rc rc =
            sg_store_put(keeper->docs, qf_strbuf_view(&name), bytes.data, bytes.len, NULL, &err);

        kp_docs_changed(keeper, query->slot);
        if (rc != QF_OK)
            say_failed(said, &err);
        else
            (void)takes(keeper, query, said); /* the epoch may have changed meanwhile */
    }
    qf_lock_drop(keeper->doc_lock);
}

void kp_doc_get(struct kp_keeper *keeper, const struct rg_keep_query *query,
                struct qf_strbuf *ret_bytes, struct kp_said *said)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;
    QF_CLEANUP(qf_freep) char *data = NULL;
    struct qf_err err = { 0 };
    size_t len = 0;
    qf_rc rc;

    *said = (struct kp_said){ .status = 200 };
    if (!takes(keeper, query, said))
        return;
    doc_name(&name, query);
    rc = sg_store_read_all(keeper->docs, qf_strbuf_view(&name), RG_KEEP_DOC_BYTES_MAX, NULL, &data,
                           &len, &err);
    if (rc == QF_OK)
        qf_strbuf_str(ret_bytes, (struct qf_str){ data, len });
    else if (rc == QF_ENOTFOUND)
        kp_say(said, 404, "there is no such document here\n");
    else
        say_failed(said, &err);
}

struct page {
    struct kp_keeper *keeper;
    QF_VEC(struct rg_doc) docs;
    size_t bytes;
    bool more;
    struct qf_err err;
};

static bool add_doc(void *ctx, const struct sg_store_object *object)
{
    struct page *page = ctx;
    struct rg_doc doc;
    char *data = NULL;
    size_t len = 0;
    qf_rc rc;

    if (page->docs.count &&
        (page->docs.count == RG_KEEP_DOCS_MAX || page->bytes + object->size > RG_KEEP_DOCS_BYTES)) {
        page->more = true;
        return false;
    }
    rc = sg_store_read_all(page->keeper->docs, object->name, RG_KEEP_DOC_BYTES_MAX, NULL, &data,
                           &len, &page->err);
    if (rc == QF_ENOTFOUND) { /* cleaned meanwhile */
        page->err = (struct qf_err){ 0 };
        return true;
    }
    if (rc)
        return false;
    doc.name = (struct qf_str){ qf_xmemdup0(object->name.data + 5, object->name.len - 5),
                                object->name.len - 5 };
    doc.bytes = (struct qf_str){ data, len };
    QF_VEC_PUSH(&page->docs, doc);
    page->bytes += len;
    return true;
}

void kp_docs(struct kp_keeper *keeper, const struct rg_keep_query *query, struct qf_str after,
             struct qf_strbuf *ret_page, struct kp_said *said)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf from = QF_STRBUF_INIT;
    struct page page = { .keeper = keeper };
    char prefix[8];

    *said = (struct kp_said){ .status = 200 };
    if (!takes(keeper, query, said))
        return;
    (void)snprintf(prefix, sizeof(prefix), "%04" PRIx32 "/", query->slot);
    if (after.len)
        qf_strbuf_printf(&from, "%s%.*s", prefix, QF_STR_ARG(after));
    if (sg_store_list(keeper->docs, qf_str_from(prefix), qf_strbuf_view(&from), NULL, add_doc,
                      &page, &page.err) != QF_OK ||
        page.err.rc)
        say_failed(said, &page.err);
    else
        rg_docs_encode(ret_page, &(struct rg_docs){ .items = page.docs.items,
                                                    .count = page.docs.count,
                                                    .more = page.more });
    for (size_t i = 0; i < page.docs.count; i++) {
        free((char *)page.docs.items[i].name.data);
        free((char *)page.docs.items[i].bytes.data);
    }
    QF_VEC_DONE(&page.docs);
}
