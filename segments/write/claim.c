/* claim.c - which generations may still get files. */
#include "segments/write/claim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/strbuf.h"
#include "base/pure/vec.h"
#include "segments/store/lease.h"
#include "segments/store/ring.h"
#include "segments/write/claim_log.h"

#define MARK_DIGITS 20
#define MARKS_MAX 1000
#define END_TIMEOUT_MS 5000
/* How far the clock of an import may be ahead of the store's, which need only tell seconds. */
#define AHEAD_MAX_MS 60000
/* Each costs as many others, that begin at this moment, a generation. */
#define TRIES_MAX 100

struct sg_claim {
    struct sg_store *store;
    char *name;
    uint64_t generation;
    struct sg_lease *lease;
    struct claim_log *log; /* on our own nodes, and nothing else then */
};

/* --- the mark --- */

struct marks {
    size_t prefix_len;
    QF_VEC(uint64_t) all; /* ascending */
};

static void marks_done(struct marks *marks)
{
    QF_VEC_DONE(&marks->all);
}

static uint64_t greatest(const struct marks *marks)
{
    return marks->all.count ? marks->all.items[marks->all.count - 1] : 0;
}

static bool on_mark(void *ctx, const struct sg_store_object *object)
{
    struct marks *marks = ctx;
    struct qf_str digits = qf_str_sub(object->name, marks->prefix_len, object->name.len);
    uint64_t mark;

    if (digits.len == MARK_DIGITS && qf_parse_u64(digits, &mark))
        QF_VEC_PUSH(&marks->all, mark);
    return marks->all.count < MARKS_MAX;
}

static void print_folder(struct qf_strbuf *buf, struct qf_str tenant)
{
    qf_strbuf_printf(buf, SG_CLAIM_MARK_PREFIX "tenant=%.*s/", QF_STR_ARG(tenant));
}

static qf_rc list_marks(struct sg_store *store, struct qf_str tenant,
                        const struct sg_store_call *call, struct marks *ret_marks,
                        struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf folder = QF_STRBUF_INIT;

    print_folder(&folder, tenant);
    ret_marks->prefix_len = folder.len;
    return sg_store_list(store, qf_strbuf_view(&folder), QF_STR(""), call, on_mark, ret_marks, err);
}

/* Nobody gets a generation up to @mark any more. Smaller marks, which are @marks, say nothing then. QF_EEXIST: it is there,
 * and was to be new. */
static qf_rc put_mark(struct sg_store *store, struct qf_str tenant, const struct marks *marks,
                      uint64_t mark, bool only_new, const struct sg_store_call *call,
                      struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;
    size_t folder_len;
    qf_rc rc = QF_EUNSUPPORTED;

    print_folder(&name, tenant);
    folder_len = name.len;
    qf_strbuf_printf(&name, "%020" PRIu64, mark);
    if (only_new)
        rc = sg_store_put_new(store, qf_strbuf_view(&name), "\n", 1, call, err);
    if (rc == QF_EUNSUPPORTED)
        rc = sg_store_put(store, qf_strbuf_view(&name), "\n", 1, call, err);
    for (size_t i = 0; rc == QF_OK && i < marks->all.count; i++) {
        name.len = folder_len;
        qf_strbuf_printf(&name, "%020" PRIu64, marks->all.items[i]);
        (void)!sg_store_delete(store, qf_strbuf_view(&name), call, NULL);
    }
    return rc;
}

/* Everything up to @mark is settled. */
static qf_rc raise_mark(struct sg_store *store, struct qf_str tenant, uint64_t mark,
                        const struct sg_store_call *call, struct qf_err *err)
{
    QF_CLEANUP(marks_done) struct marks marks = { 0 };
    qf_rc rc = list_marks(store, tenant, call, &marks, err);

    if (rc || greatest(&marks) >= mark)
        return rc;
    return put_mark(store, tenant, &marks, mark, false, call, err);
}

/* --- writers --- */

static qf_rc add_lease(struct sg_claim *claim, const char *word, int64_t ttl_ms,
                       const struct sg_store_call *call, struct sg_lease **ret_lease,
                       struct qf_err *err)
{
    char text[40];
    struct sg_lease_options options = { .name = claim->name, .text = text, .ttl_ms = ttl_ms };

    (void)snprintf(text, sizeof(text), "%s %" PRIu64, word, claim->generation);
    return sg_lease_add(claim->store, &options, call, ret_lease, err);
}

static void free_claim(struct sg_claim *claim)
{
    claim->lease = sg_lease_drop(claim->lease);
    free(claim->name);
    free(claim);
}

/* The same millisecond, the second half of it; never less than @generation, and in the same order. */
uint64_t claim_of_import(uint64_t generation)
{
    return generation - generation % 1000 + 500 + generation % 1000 / 2;
}

bool sg_claim_is_import(uint64_t generation)
{
    return generation % 1000 >= 500;
}

/* Claim another generation, above @mark. */
static qf_rc rise_above(struct sg_claim *claim, uint64_t mark, const struct sg_store_call *call,
                        struct qf_err *err)
{
    struct sg_lease *lower = claim->lease;
    qf_rc rc;

    claim->generation = claim_of_import(mark + 1);
    rc = add_lease(claim, "generation", SG_CLAIM_TTL_MS, call, &claim->lease, err);
    if (rc == QF_OK)
        (void)sg_lease_drop(lower);
    return rc;
}

/* The mark is looked at when the lease is there, and raised to what is claimed: nobody else gets that. */
static qf_rc leave_mark(struct sg_claim *claim, struct qf_str tenant,
                        const struct sg_store_call *call, struct qf_err *err)
{
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        QF_CLEANUP(marks_done) struct marks marks = { 0 };
        struct qf_err why = { 0 };
        qf_rc rc = list_marks(claim->store, tenant, call, &marks, err);

        if (rc == QF_OK && greatest(&marks) >= claim->generation) {
            rc = rise_above(claim, greatest(&marks), call, err);
            if (rc == QF_OK)
                continue;
        }
        if (rc)
            return rc;
        rc = put_mark(claim->store, tenant, &marks, claim->generation, true, call, &why);
        if (rc != QF_EEXIST) /* another import was quicker: above it */
            return rc ? qf_err_set(err, rc, "%s", why.msg) : QF_OK;
    }
    return qf_err_set(err, QF_EBUSY, "too many imports of tenant %.*s begin at once",
                      QF_STR_ARG(tenant));
}

/* A clock that is ahead would be followed by all later imports, and nothing of theirs could be merged until it is that late. */
static qf_rc bound_by_store(struct sg_store *store, const struct sg_store_call *call,
                            uint64_t *generation, struct qf_err *err)
{
    int64_t now;
    qf_rc rc = sg_store_clock(store, call, &now, err);

    if (rc == QF_OK && now > 0 && *generation / 1000 > (uint64_t)now + AHEAD_MAX_MS)
        *generation = (uint64_t)now * 1000;
    return rc;
}

qf_rc sg_claim_new(struct sg_store *store, struct qf_str tenant, uint64_t generation,
                   const struct sg_store_call *call, struct sg_claim **ret_claim,
                   struct qf_err *err)
{
    struct sg_claim *claim = qf_xcalloc(1, sizeof(*claim));
    struct qf_strbuf name = QF_STRBUF_INIT;
    qf_rc rc = bound_by_store(store, call, &generation, err);

    qf_strbuf_printf(&name, "import/tenant=%.*s", QF_STR_ARG(tenant));
    claim->name = qf_strbuf_take(&name);
    claim->store = store;
    claim->generation = claim_of_import(generation);
    if (sg_store_is_ring(store)) {
        if (rc == QF_OK)
            rc = claim_log_new(store, tenant, claim->generation, call, &claim->log, err);
    } else {
        if (rc == QF_OK)
            rc = add_lease(claim, "generation", SG_CLAIM_TTL_MS, call, &claim->lease, err);
        if (rc == QF_OK)
            rc = leave_mark(claim, tenant, call, err);
    }
    if (rc == QF_OK)
        *ret_claim = claim;
    else
        free_claim(claim);
    return rc;
}

uint64_t sg_claim_generation(const struct sg_claim *claim)
{
    return claim->log ? claim_log_generation(claim->log) : claim->generation;
}

void sg_claim_tick(struct sg_claim *claim, const struct sg_store_call *call)
{
    if (!claim->log && sg_lease_due(claim->lease))
        (void)!sg_lease_renew(claim->lease, call, NULL);
}

qf_rc sg_claim_check(struct sg_claim *claim, const struct sg_store_call *call, struct qf_err *err)
{
    return claim->log ? claim_log_check(claim->log, call, err)
                      : sg_lease_renew(claim->lease, call, err);
}

qf_rc sg_claim_name(struct sg_claim *claim, const struct sg_claim_naming *naming,
                    const struct sg_store_call *call, struct qf_err *err)
{
    return claim_log_name(claim->log, naming, call, err);
}

qf_rc sg_claim_drop(struct sg_claim *claim, const struct sg_store_call *call, struct qf_err *err)
{
    return claim->log ? claim_log_drop(claim->log, call, err) : QF_OK;
}

struct sg_claim *sg_claim_end(struct sg_claim *claim)
{
    struct sg_store_call call = { .timeout_ms = END_TIMEOUT_MS };
    struct sg_lease *ended;

    if (!claim)
        return NULL;
    if (claim->log) {
        claim->log = claim_log_end(claim->log, &call);
        free_claim(claim);
        return NULL;
    }
    /* If this fails the claim itself stays until it expires, which says the same. */
    if (add_lease(claim, "ended", SG_CLAIM_ENDED_MS, &call, &ended, NULL) == QF_OK) {
        (void)sg_lease_leave(ended);
        free_claim(claim);
    } else {
        (void)sg_lease_leave(claim->lease);
        claim->lease = NULL;
        free_claim(claim);
    }
    return NULL;
}

/* --- compactors --- */

struct settling {
    struct sg_store *store;
    const struct sg_store_call *call;
    int64_t settle_ms;
    uint64_t below;
    struct qf_err *err;
    qf_rc rc;
};

static bool parse_text(struct qf_str text, bool *ret_ended, uint64_t *ret_generation)
{
    struct qf_str word = qf_str_word(&text);

    *ret_ended = qf_str_is(word, "ended");
    return (*ret_ended || qf_str_is(word, "generation")) &&
           qf_parse_u64(qf_str_trim(text), ret_generation);
}

static bool on_lease(void *ctx, const struct sg_lease_info *info)
{
    struct settling *s = ctx;
    uint64_t generation = 0;
    bool ended;

    if (parse_text(info->text, &ended, &generation) && ended ? info->age_ms >= s->settle_ms
                                                             : info->expired) {
        s->rc = sg_lease_break(s->store, info->object, s->call, s->err);
        return s->rc == QF_OK;
    }
    /* Of what cannot be read anything may come. */
    s->below = QF_MIN(s->below, generation);
    return true;
}

qf_rc sg_claim_settle(struct sg_store *store, struct qf_str tenant, uint64_t below,
                      int64_t settle_ms, const struct sg_store_call *call, uint64_t *ret_below,
                      struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;
    struct settling s = {
        .store = store, .call = call, .settle_ms = settle_ms, .below = below, .err = err
    };
    qf_rc rc;

    if (sg_store_is_ring(store))
        return claim_log_settle(store, tenant, below, call, ret_below, err);
    rc = below > 1 ? raise_mark(store, tenant, below - 1, call, err) : QF_OK;

    qf_strbuf_printf(&name, "import/tenant=%.*s", QF_STR_ARG(tenant));
    if (rc == QF_OK)
        rc = sg_lease_list(store, qf_strbuf_cstr(&name), call, on_lease, &s, err);
    if (rc == QF_OK)
        rc = s.rc;
    if (rc == QF_OK)
        *ret_below = s.below;
    return rc;
}

/* --- ingest nodes --- */

static qf_rc has(struct sg_store *store, struct qf_str name, const struct sg_store_call *call,
                 bool *ret_has, struct qf_err *err)
{
    struct sg_store_info info;
    struct qf_err why = { 0 };
    qf_rc rc = sg_store_stat(store, name, call, &info, &why);

    *ret_has = rc == QF_OK;
    return rc == QF_OK || rc == QF_ENOTFOUND ? QF_OK : qf_err_set(err, rc, "%s", why.msg);
}

qf_rc sg_claim_has_ingest(struct sg_store *store, struct qf_str tenant,
                          const struct sg_store_call *call, bool *ret_has, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;

    qf_strbuf_printf(&name, SG_CLAIM_INGEST_PREFIX "tenant=%.*s", QF_STR_ARG(tenant));
    return has(store, qf_strbuf_view(&name), call, ret_has, err);
}

static void print_clusters(struct qf_strbuf *buf, struct qf_str tenant)
{
    qf_strbuf_printf(buf, SG_CLAIM_INGEST_PREFIX "clusters/tenant=%.*s/", QF_STR_ARG(tenant));
}

qf_rc sg_claim_ingest(struct sg_store *store, struct qf_str tenant, uint64_t cluster,
                      const struct sg_store_call *call, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;
    bool there;
    qf_rc rc;

    if (sg_store_is_ring(store)) /* what is there the nodes of one cluster say, always */
        return QF_OK;
    print_clusters(&name, tenant);
    qf_strbuf_printf(&name, "%016" PRIx64, cluster);
    rc = has(store, qf_strbuf_view(&name), call, &there, err);
    if (rc || there)
        return rc;
    rc = sg_store_put(store, qf_strbuf_view(&name), "\n", 1, call, err);
    qf_strbuf_reset(&name);
    qf_strbuf_printf(&name, SG_CLAIM_INGEST_PREFIX "tenant=%.*s", QF_STR_ARG(tenant));
    return rc == QF_OK ? sg_store_put(store, qf_strbuf_view(&name), "\n", 1, call, err) : rc;
}

struct clusters {
    const char *known;
    size_t prefix_len;
    char other[64]; /* "": none */
};

static bool on_cluster(void *ctx, const struct sg_store_object *object)
{
    struct clusters *clusters = ctx;
    struct qf_str cluster = qf_str_sub(object->name, clusters->prefix_len, object->name.len);

    if (qf_str_is(cluster, clusters->known))
        return true;
    (void)snprintf(clusters->other, sizeof(clusters->other), "%.*s", QF_STR_ARG(cluster));
    return false;
}

qf_rc sg_claim_only_cluster(struct sg_store *store, struct qf_str tenant, const char *cluster,
                            const struct sg_store_call *call, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf folder = QF_STRBUF_INIT;
    struct clusters clusters = { .known = cluster };
    qf_rc rc;

    if (sg_store_is_ring(store)) /* whoever says what there is was asked */
        return QF_OK;
    print_clusters(&folder, tenant);
    clusters.prefix_len = folder.len;
    rc =
        sg_store_list(store, qf_strbuf_view(&folder), QF_STR(""), call, on_cluster, &clusters, err);
    if (rc == QF_OK && clusters.other[0])
        return qf_err_set(err, QF_EINVAL,
                          "tenant %.*s is written by ingest nodes of cluster %s, and those that "
                          "were asked are of cluster %s",
                          QF_STR_ARG(tenant), clusters.other, cluster);
    return rc;
}
