/* digests.c - what stands for the documents of a slot, so that keepers can compare them without sending them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "ring/keeper/keeper_int.h"
#include "segments/store/keep_client.h"

void kp_docs_changed(struct kp_keeper *keeper, uint32_t slot)
{
    qf_lock_take(keeper->lock);
    keeper->digests[slot].known = false;
    keeper->digests[slot].changes++;
    qf_lock_drop(keeper->lock);
}

/* --- one after the other --- */

/* A walk over the documents of a slot. */
struct walk {
    struct kp_keeper *keeper;
    size_t count, count_max; /* 0: all */
    uint64_t bytes;
    bool more;
    QF_VEC(struct rg_doc) sums; /* of a page: */
    XXH3_state_t *state;        /* or NULL */
    struct qf_err err;
};

static void add_sum(struct walk *walk, struct qf_str name, const struct rg_sum *sum)
{
    struct rg_doc doc = { .name = { qf_xmemdup0(name.data, name.len), name.len },
                          .bytes = { qf_xmemdup0((const char *)sum->bytes, RG_SUM_BYTES),
                                     RG_SUM_BYTES } };

    QF_VEC_PUSH(&walk->sums, doc);
}

static bool visit(void *ctx, const struct sg_store_object *object)
{
    struct walk *walk = ctx;
    struct qf_str name = qf_str_sub(object->name, 5, object->name.len); /* behind "SSSS/" */
    QF_CLEANUP(qf_freep) char *data = NULL;
    struct rg_sum sum;
    size_t len = 0;
    qf_rc rc;

    walk->more = walk->count_max && walk->count == walk->count_max;
    if (walk->more)
        return false;
    rc = sg_store_read_all(walk->keeper->docs, object->name, RG_KEEP_DOC_BYTES_MAX, NULL, &data,
                           &len, &walk->err);
    if (rc == QF_ENOTFOUND) { /* cleaned meanwhile */
        walk->err = (struct qf_err){ 0 };
        return true;
    }
    if (rc == QF_OK)
        rc = sg_keep_sum(&(struct sg_store_bytes){ .data = data, .fd = -1, .size = len }, &sum,
                         &walk->err);
    if (rc != QF_OK)
        return false;
    walk->count++;
    walk->bytes += len;
    if (walk->state) {
        (void)XXH3_128bits_update(walk->state, name.data, name.len);
        (void)XXH3_128bits_update(walk->state, "", 1); /* ends the name */
        (void)XXH3_128bits_update(walk->state, sum.bytes, RG_SUM_BYTES);
    } else {
        add_sum(walk, name, &sum);
    }
    return true;
}

static qf_rc walk_over(struct walk *walk, uint32_t slot, struct qf_str after)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf from = QF_STRBUF_INIT;
    char prefix[8];
    qf_rc rc;

    (void)snprintf(prefix, sizeof(prefix), "%04" PRIx32 "/", slot);
    if (after.len)
        qf_strbuf_printf(&from, "%s%.*s", prefix, QF_STR_ARG(after));
    rc = sg_store_list(walk->keeper->docs, qf_str_from(prefix), qf_strbuf_view(&from), NULL, visit,
                       walk, &walk->err);
    return rc != QF_OK ? rc : walk->err.rc;
}

/* --- pages of checksums --- */

void kp_doc_sums(struct kp_keeper *keeper, const struct rg_keep_query *query, struct qf_str after,
                 struct qf_strbuf *ret_page, struct kp_said *said)
{
    struct walk walk = { .keeper = keeper, .count_max = RG_KEEP_DOCS_MAX };
    bool takes;

    *said = (struct kp_said){ .status = 200 };
    qf_lock_take(keeper->lock);
    takes = kp_takes(keeper, query, said);
    qf_lock_drop(keeper->lock);
    if (!takes)
        return;
    if (walk_over(&walk, query->slot, after) != QF_OK)
        kp_say(said, 500, "%s\n", walk.err.msg);
    else
        rg_docs_encode(ret_page, &(struct rg_docs){ .items = walk.sums.items,
                                                    .count = walk.sums.count,
                                                    .more = walk.more });
    for (size_t i = 0; i < walk.sums.count; i++) {
        free((char *)walk.sums.items[i].name.data);
        free((char *)walk.sums.items[i].bytes.data);
    }
    QF_VEC_DONE(&walk.sums);
}

/* --- digests --- */

/* The next slot from @from on that has no digest; RG_SLOTS: none. */
static uint32_t next_unknown(struct kp_keeper *keeper, uint32_t from, uint64_t *ret_changes)
{
    qf_lock_take(keeper->lock);
    while (from < RG_SLOTS && keeper->digests[from].known)
        from++;
    *ret_changes = from < RG_SLOTS ? keeper->digests[from].changes : 0;
    qf_lock_drop(keeper->lock);
    return from;
}

static void keep_digest(struct kp_keeper *keeper, uint32_t slot, uint64_t changes,
                        const struct walk *walk)
{
    XXH128_canonical_t sum;

    XXH128_canonicalFromHash(&sum, XXH3_128bits_digest(walk->state));
    qf_lock_take(keeper->lock);
    if (keeper->digests[slot].changes == changes) {
        struct kp_digest digest = { .known = true, .changes = changes, .count = walk->count };

        memcpy(digest.sum.bytes, sum.digest, RG_SUM_BYTES);
        keeper->digests[slot] = digest;
    }
    qf_lock_drop(keeper->lock);
}

/* Most slots have no documents, and no folder: nothing is listed for these. */
static bool has_folder(const struct kp_keeper *keeper, uint32_t slot)
{
    char path[16];

    (void)snprintf(path, sizeof(path), "docs/%04" PRIx32, slot);
    return faccessat(keeper->root, path, F_OK, 0) == 0 || errno != ENOENT;
}

uint64_t kp_digest_docs(struct kp_keeper *keeper, uint64_t bytes)
{
    XXH3_state_t *state = XXH3_createState();
    uint64_t read = 0, changes;

    for (uint32_t slot = 0; state && read < bytes; slot++) {
        struct walk walk = { .keeper = keeper, .state = state };

        slot = next_unknown(keeper, slot, &changes);
        if (slot == RG_SLOTS)
            break;
        (void)XXH3_128bits_reset(state);
        if (!has_folder(keeper, slot) || walk_over(&walk, slot, QF_STR("")) == QF_OK)
            keep_digest(keeper, slot, changes, &walk);
        read += 1 + walk.bytes; /* something, also of an empty slot */
    }
    (void)XXH3_freeState(state);
    return read;
}

void kp_doc_digests(struct kp_keeper *keeper, struct rg_digests *ret_digests)
{
    struct rg_digests digests = { .items = qf_xcalloc(RG_SLOTS, sizeof(*digests.items)) };

    qf_lock_take(keeper->lock);
    for (uint32_t i = 0; i < RG_SLOTS; i++) {
        const struct kp_digest *of = &keeper->digests[i];

        if (!of->known || of->count)
            digests.items[digests.count++] =
                (struct rg_digest){ .slot = i, .known = of->known, .sum = of->sum };
    }
    qf_lock_drop(keeper->lock);
    *ret_digests = digests;
}
