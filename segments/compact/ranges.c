/* ranges.c - up to which generation all ranges of ingest nodes are in the store. */
#include "segments/compact/ranges.h"

#include <inttypes.h>

#include "base/pure/number.h"
#include "base/pure/strbuf.h"
#include "base/pure/vec.h"
#include "segments/write/claim.h"

#define DIGITS 20
#define WORDS_MAX 1000
/* A new one is left when the last one is as old as this part of the time they wait. */
#define SPACING 6

struct word {
    uint64_t generation;
    int64_t put_ms;
};

struct words {
    size_t prefix_len;
    QF_VEC(struct word) all; /* by generation */
};

static void words_done(struct words *words)
{
    QF_VEC_DONE(&words->all);
}

static bool on_word(void *ctx, const struct sg_store_object *object)
{
    struct words *words = ctx;
    struct qf_str digits = qf_str_sub(object->name, words->prefix_len, object->name.len);
    struct word word = { .put_ms = object->mtime_ms };

    if (digits.len == DIGITS && qf_parse_u64(digits, &word.generation))
        QF_VEC_PUSH(&words->all, word);
    return words->all.count < WORDS_MAX;
}

static void print_folder(struct qf_strbuf *buf, struct qf_str tenant)
{
    qf_strbuf_printf(buf, SG_RANGES_PREFIX "tenant=%.*s/", QF_STR_ARG(tenant));
}

static qf_rc leave(struct sg_store *store, struct qf_str tenant, uint64_t generation,
                   const struct sg_store_call *call, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;

    print_folder(&name, tenant);
    qf_strbuf_printf(&name, "%020" PRIu64, generation);
    return sg_store_put(store, qf_strbuf_view(&name), "\n", 1, call, err);
}

/* The greatest that is old enough; those before it say nothing any more. One that seems to come from the future is young. */
static uint64_t take_oldest(struct sg_store *store, struct qf_str tenant, const struct words *words,
                            int64_t now_ms, int64_t settle_ms, const struct sg_store_call *call)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;
    size_t best = words->all.count;

    for (size_t i = 0; i < words->all.count; i++)
        if (words->all.items[i].put_ms && now_ms - words->all.items[i].put_ms >= settle_ms)
            best = i;
    if (best == words->all.count)
        return 0;
    for (size_t i = 0; i < best; i++) {
        qf_strbuf_reset(&name);
        print_folder(&name, tenant);
        qf_strbuf_printf(&name, "%020" PRIu64, words->all.items[i].generation);
        (void)!sg_store_delete(store, qf_strbuf_view(&name), call, NULL);
    }
    return words->all.items[best].generation;
}

static qf_rc through_the_store(struct sg_store *store, struct qf_str tenant, uint64_t settled,
                               int64_t now_ms, int64_t settle_ms, const struct sg_store_call *call,
                               uint64_t *ret_settled, struct qf_err *err)
{
    QF_CLEANUP(words_done) struct words words = { 0 };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf folder = QF_STRBUF_INIT;
    const struct word *last;
    qf_rc rc;

    print_folder(&folder, tenant);
    words.prefix_len = folder.len;
    rc = sg_store_list(store, qf_strbuf_view(&folder), QF_STR(""), call, on_word, &words, err);
    if (rc)
        return rc;
    *ret_settled = take_oldest(store, tenant, &words, now_ms, settle_ms, call);
    last = words.all.count ? &words.all.items[words.all.count - 1] : NULL;
    /* A clock that was set back leaves one in the future: then each time, until it is not. */
    if (!settled ||
        (last && (last->generation >= settled ||
                  (now_ms >= last->put_ms && now_ms - last->put_ms < settle_ms / SPACING))))
        return QF_OK;
    return leave(store, tenant, settled, call, err);
}

qf_rc sg_ranges_settle(struct sg_store *store, const struct sg_agree *agree, struct qf_str tenant,
                       int64_t now_ms, int64_t settle_ms, int64_t grace_ms,
                       const struct sg_store_call *call, uint64_t *ret_below, struct qf_err *err)
{
    struct sg_agreed agreed;
    uint64_t settled;
    qf_rc rc = sg_agree_below(agree, tenant, now_ms > 0 ? (uint64_t)now_ms * 1000 : 0, grace_ms / 2,
                              call ? call->cancel : NULL, &agreed, err);

    if (rc == QF_OK)
        rc = sg_claim_only_cluster(store, tenant, agreed.cluster, call, err);
    settled = agreed.generation;
    if (rc == QF_OK && settle_ms > 0)
        rc = through_the_store(store, tenant, agreed.generation, now_ms, settle_ms, call, &settled,
                               err);
    if (rc == QF_OK)
        *ret_below = settled + 1;
    return rc;
}
