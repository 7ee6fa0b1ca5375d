/* claim_log.c - claims of imports in the log of our own nodes. */
#include "segments/write/claim_log.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/strbuf.h"
#include "segments/store/ring_small.h"

#define DIGITS 20
/* Each costs as many others, that begin at this moment, a look. */
#define TRIES_MAX 100
#define PAUSE_STEP_MS 5
#define PAUSE_MAX_MS 100
/* Taken away at once. */
#define MARKS_MAX 1000
#define DEAD_MAX 1000

struct claim_log {
    struct sg_store *store;
    char *tenant;
    char *name; /* of the claim; NULL: there is none any more */
    uint64_t generation, id;
    unsigned step;
};

/* --- what a listing says --- */

static void names_done(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(names[i]);
}

void claim_log_view_done(struct claim_log_view *view)
{
    names_done(view->marks.items, view->marks.count);
    names_done(view->claims.items, view->claims.count);
    QF_VEC_DONE(&view->marks);
    QF_VEC_DONE(&view->claims);
}

/* The digits that the last part of a name begins with. */
static bool read_generation(struct qf_str name, uint64_t *ret_generation)
{
    const char *slash = name.len ? memrchr(name.data, '/', name.len) : NULL;
    size_t at = slash ? (size_t)(slash - name.data) + 1 : name.len;

    return name.len >= at + DIGITS &&
           qf_parse_u64(qf_str_sub(name, at, at + DIGITS), ret_generation);
}

bool claim_log_hear(struct claim_log_view *view, struct qf_str name)
{
    bool is_mark = qf_str_starts(name, QF_STR(SG_CLAIM_MARK_PREFIX));
    uint64_t generation;

    if ((!is_mark && !qf_str_starts(name, QF_STR(CLAIM_LOG_PREFIX))) ||
        !read_generation(name, &generation))
        return false;
    if (is_mark) {
        view->greatest = QF_MAX(view->greatest, generation);
        if (view->marks.count < MARKS_MAX)
            QF_VEC_PUSH(&view->marks, qf_xmemdup0(name.data, name.len));
    } else if (generation >= view->dead_below) {
        view->least = view->least ? QF_MIN(view->least, generation) : generation;
    } else if (view->claims.count < DEAD_MAX) {
        QF_VEC_PUSH(&view->claims, qf_xmemdup0(name.data, name.len));
    }
    return true;
}

uint64_t claim_log_choose(const struct claim_log_view *view, uint64_t generation)
{
    return view->greatest >= generation ? claim_of_import(view->greatest + 1) : generation;
}

static bool on_name(void *ctx, const struct sg_store_object *object)
{
    (void)claim_log_hear(ctx, object->name);
    return true;
}

static qf_rc look_at(const struct claim_log *log, const char *prefix,
                     const struct sg_store_call *call, struct claim_log_view *view,
                     struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf folder = QF_STRBUF_INIT;

    qf_strbuf_printf(&folder, "%stenant=%s/", prefix, log->tenant);
    return sg_store_list(log->store, qf_strbuf_view(&folder), QF_STR(""), call, on_name, view, err);
}

static qf_rc look(const struct claim_log *log, const struct sg_store_call *call,
                  struct claim_log_view *view, struct qf_err *err)
{
    qf_rc rc = look_at(log, SG_CLAIM_MARK_PREFIX, call, view, err);

    return rc ? rc : look_at(log, CLAIM_LOG_PREFIX, call, view, err);
}

/* --- names that come and go --- */

static char *print_name(const struct claim_log *log, const char *prefix)
{
    struct qf_strbuf name = QF_STRBUF_INIT;

    qf_strbuf_printf(&name, "%stenant=%s/%020" PRIu64 "-%016" PRIx64 "-%u", prefix, log->tenant,
                     log->generation, log->id, log->step);
    return qf_strbuf_take(&name);
}

static qf_rc commit(const struct claim_log *log, const struct ring_small *change,
                    const struct sg_store_call *call, struct qf_err *err)
{
    return ring_small_commit(change, log->store, qf_str_from(log->tenant), call, err);
}

/* --- an import begins --- */

/* The first mark of a tenant is one that all of those who begin add. QF_EGONE: there were others meanwhile. */
static qf_rc add_root(const struct claim_log *log, const struct sg_store_call *call,
                      struct qf_err *err)
{
    QF_CLEANUP(ring_small_done) struct ring_small change = RING_SMALL_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;
    qf_rc rc;

    qf_strbuf_printf(&name, SG_CLAIM_MARK_PREFIX "tenant=%s/%020d", log->tenant, 0);
    rc = ring_small_add(&change, log->store, qf_strbuf_cstr(&name), call, err);
    return rc ? rc : commit(log, &change, call, err);
}

/* All marks, and the claims of the dead, by a mark of the generation, and a claim unless @claim is NULL. QF_EGONE: another
 * one was quicker. */
static qf_rc replace_marks(const struct claim_log *log, const struct claim_log_view *view,
                           const char *claim, const struct sg_store_call *call, struct qf_err *err)
{
    QF_CLEANUP(ring_small_done) struct ring_small change = RING_SMALL_INIT;
    QF_CLEANUP(qf_freep) char *mark = print_name(log, SG_CLAIM_MARK_PREFIX);
    qf_rc rc = ring_small_add(&change, log->store, mark, call, err);

    if (rc == QF_OK && claim)
        rc = ring_small_add(&change, log->store, claim, call, err);
    for (size_t i = 0; i < view->marks.count; i++)
        QF_VEC_PUSH(&change.removed, qf_str_from(view->marks.items[i]));
    for (size_t i = 0; i < view->claims.count; i++)
        QF_VEC_PUSH(&change.removed, qf_str_from(view->claims.items[i]));
    return rc ? rc : commit(log, &change, call, err);
}

static qf_rc try_once(struct claim_log *log, uint64_t generation, uint64_t dead_below,
                      const struct sg_store_call *call, struct qf_err *err)
{
    QF_CLEANUP(claim_log_view_done) struct claim_log_view view = { .dead_below = dead_below };
    QF_CLEANUP(qf_freep) char *name = NULL;
    qf_rc rc = look(log, call, &view, err);

    if (rc)
        return rc;
    if (!view.marks.count)
        rc = add_root(log, call, err);
    if (rc || !view.marks.count)
        return rc ? rc : QF_EGONE; /* with it, from the beginning */
    log->step++;
    log->generation = claim_log_choose(&view, generation);
    name = print_name(log, CLAIM_LOG_PREFIX);
    rc = replace_marks(log, &view, name, call, err);
    if (rc == QF_OK)
        log->name = QF_TAKE(name);
    return rc;
}

static struct claim_log *log_free(struct claim_log *log)
{
    free(log->tenant);
    free(log->name);
    free(log);
    return NULL;
}

/* A clock that is behind would have all that is written live count for more than what is imported later. */
static uint64_t not_behind(uint64_t generation, int64_t now_ms)
{
    uint64_t now = now_ms > 60000 ? claim_of_import((uint64_t)(now_ms - 60000) * 1000) : 0;

    return QF_MAX(generation, now);
}

/* Somebody was quicker, or owners changed. */
static qf_rc again(struct sg_store *store, int tries, const struct sg_store_call *call,
                   struct qf_err *err)
{
    if (call && call->cancel && atomic_load_explicit(call->cancel, memory_order_relaxed))
        return qf_err_set(err, QF_ECANCELED, "canceled");
    (void)poll(NULL, 0, QF_MIN(tries * PAUSE_STEP_MS, PAUSE_MAX_MS));
    return sg_ring_follow(store, 0, call, err);
}

static struct claim_log *log_new(struct sg_store *store, struct qf_str tenant)
{
    struct claim_log *log = qf_xcalloc(1, sizeof(*log));

    log->store = store;
    log->tenant = qf_xmemdup0(tenant.data, tenant.len);
    log->id = ring_small_id();
    return log;
}

/* Claims of lesser generations are of the dead. */
static uint64_t dead_at(int64_t now_ms)
{
    return now_ms > CLAIM_LOG_LIFE_MS ? (uint64_t)(now_ms - CLAIM_LOG_LIFE_MS) * 1000 : 0;
}

qf_rc claim_log_new(struct sg_store *store, struct qf_str tenant, uint64_t generation,
                    const struct sg_store_call *call, struct claim_log **ret_log,
                    struct qf_err *err)
{
    struct claim_log *log = log_new(store, tenant);
    struct qf_err why = { 0 };
    int64_t now_ms = 0;
    qf_rc rc = sg_store_clock(store, call, &now_ms, &why);

    for (int tries = 0; rc == QF_OK && tries < TRIES_MAX; tries++) {
        why = (struct qf_err){ 0 };
        rc = try_once(log, not_behind(generation, now_ms), dead_at(now_ms), call, &why);
        if (rc != QF_EGONE)
            break;
        rc = tries + 1 < TRIES_MAX ? again(store, tries, call, &why) : QF_EBUSY;
    }
    if (rc == QF_OK) {
        *ret_log = log;
        return QF_OK;
    }
    (void)log_free(log);
    if (rc == QF_EBUSY)
        return qf_err_set(err, rc, "too many imports of tenant %.*s begin at once",
                          QF_STR_ARG(tenant));
    return qf_err_set(err, rc, "%s", why.msg);
}

/* --- who merges stays below --- */

uint64_t claim_log_settled(const struct claim_log_view *view, uint64_t below)
{
    return view->least ? QF_MIN(below, view->least) : below;
}

/* QF_EGONE: look again, for the mark was raised, or somebody else was quicker. */
static qf_rc settle_once(struct claim_log *log, uint64_t below, uint64_t dead_below,
                         const struct sg_store_call *call, uint64_t *ret_below, struct qf_err *err)
{
    QF_CLEANUP(claim_log_view_done) struct claim_log_view view = { .dead_below = dead_below };
    qf_rc rc = look(log, call, &view, err);

    if (rc)
        return rc;
    if ((below <= 1 || view.greatest >= below - 1) && !view.claims.count) {
        *ret_below = claim_log_settled(&view, below);
        return QF_OK;
    }
    log->step++;
    log->generation = QF_MAX(view.greatest, below ? below - 1 : 0);
    rc = view.marks.count ? replace_marks(log, &view, NULL, call, err) : add_root(log, call, err);
    /* Claims that came since the look are above a mark that was there by then, but perhaps not above this one. */
    return rc ? rc : QF_EGONE;
}

qf_rc claim_log_settle(struct sg_store *store, struct qf_str tenant, uint64_t below,
                       const struct sg_store_call *call, uint64_t *ret_below, struct qf_err *err)
{
    struct claim_log *log = log_new(store, tenant);
    struct qf_err why = { 0 };
    int64_t now_ms = 0;
    qf_rc rc = sg_store_clock(store, call, &now_ms, &why);

    for (int tries = 0; rc == QF_OK && tries < TRIES_MAX; tries++) {
        why = (struct qf_err){ 0 };
        rc = settle_once(log, below, dead_at(now_ms), call, ret_below, &why);
        if (rc != QF_EGONE)
            break;
        rc = tries + 1 < TRIES_MAX ? again(store, tries, call, &why) : QF_EBUSY;
    }
    (void)log_free(log);
    if (rc == QF_EBUSY)
        return qf_err_set(err, rc, "too many imports of tenant %.*s begin at once",
                          QF_STR_ARG(tenant));
    return rc ? qf_err_set(err, rc, "%s", why.msg) : QF_OK;
}

uint64_t claim_log_generation(const struct claim_log *log)
{
    return log->generation;
}

/* --- and ends --- */

static qf_rc broken(const struct claim_log *log, struct qf_err *err)
{
    return qf_err_set(err, QF_ENOTFOUND, "%s was taken away meanwhile: import again", log->name);
}

qf_rc claim_log_check(struct claim_log *log, const struct sg_store_call *call, struct qf_err *err)
{
    qf_rc rc = log->name ? sg_ring_refresh(log->store, call, err) : QF_OK;

    if (rc == QF_OK && log->name && !sg_ring_lists(log->store, qf_str_from(log->name)))
        return broken(log, err);
    return rc;
}

qf_rc claim_log_name(struct claim_log *log, const struct sg_claim_naming *naming,
                     const struct sg_store_call *call, struct qf_err *err)
{
    QF_CLEANUP(ring_small_done) struct ring_small change = { .epoch = naming->epoch };
    QF_CLEANUP(qf_freep) char *next = NULL;
    struct qf_err why = { 0 };
    qf_rc rc = QF_OK;

    if (!log->name)
        return qf_err_set(err, QF_EINVAL, "the claim has ended");
    for (size_t i = 0; i < naming->count; i++)
        QF_VEC_PUSH(&change.added, naming->blobs[i]);
    QF_VEC_PUSH(&change.removed, qf_str_from(log->name));
    if (naming->more) {
        log->step++;
        next = print_name(log, CLAIM_LOG_PREFIX);
        rc = ring_small_add(&change, log->store, next, call, err);
    }
    if (rc == QF_OK)
        rc = commit(log, &change, call, &why);
    if (rc == QF_EGONE && claim_log_check(log, call, NULL) == QF_ENOTFOUND)
        return broken(log, err);
    if (rc == QF_OK) {
        free(log->name);
        log->name = QF_TAKE(next);
    }
    return why.rc ? qf_err_set(err, rc, "%s", why.msg) : rc;
}

qf_rc claim_log_drop(struct claim_log *log, const struct sg_store_call *call, struct qf_err *err)
{
    struct qf_str name = qf_str_from(log->name ? log->name : "");
    const struct sg_ring_change change = { .tenant = qf_str_from(log->tenant),
                                           .removed = &name,
                                           .removed_count = 1 };
    qf_rc rc = log->name ? sg_ring_change(log->store, &change, call, err) : QF_OK;

    if (rc == QF_OK) {
        free(log->name);
        log->name = NULL;
    }
    return rc;
}

struct claim_log *claim_log_end(struct claim_log *log, const struct sg_store_call *call)
{
    if (!log)
        return NULL;
    (void)!claim_log_drop(log, call, NULL);
    return log_free(log);
}
