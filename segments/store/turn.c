/* turn.c - merging segments and removing them take turns. */
#include "segments/store/turn.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/strbuf.h"
#include "segments/store/lease.h"
#include "segments/store/ring.h"

#define WAIT_MS 200

struct sg_turn {
    struct sg_lease *lease;
};

/* --- those of the others --- */

struct others {
    struct sg_store *store;
    const struct sg_store_call *call;
    int64_t min_ts, max_ts;
    bool break_dead;
    bool any; /* one that lives and overlaps */
    struct qf_err *err;
    qf_rc rc;
};

/* Of what cannot be read everything overlaps. */
static bool overlaps(const struct others *others, struct qf_str text)
{
    long long min_ts, max_ts;
    char line[80];

    (void)snprintf(line, sizeof(line), "%.*s", QF_STR_ARG(text));
    if (sscanf(line, "times %lld %lld", &min_ts, &max_ts) != 2)
        return true;
    return min_ts <= others->max_ts && max_ts >= others->min_ts;
}

static bool on_lease(void *ctx, const struct sg_lease_info *info)
{
    struct others *others = ctx;

    if (!overlaps(others, info->text))
        return true;
    if (!info->expired) {
        others->any = true;
    } else if (others->break_dead) {
        others->rc = sg_lease_break(others->store, info->object, others->call, others->err);
    }
    return others->rc == QF_OK;
}

static qf_rc look(struct others *others, const char *kind, struct qf_str tenant, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;
    qf_rc rc;

    others->any = false;
    others->rc = QF_OK;
    others->err = err;
    qf_strbuf_printf(&name, "%s/tenant=%.*s", kind, QF_STR_ARG(tenant));
    rc = sg_lease_list(others->store, qf_strbuf_cstr(&name), others->call, on_lease, others, err);
    return rc ? rc : others->rc;
}

/* --- one's own --- */

static qf_rc begin(const struct others *others, const char *kind, struct qf_str tenant,
                   struct sg_turn **ret_turn, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;
    char text[80];
    struct sg_lease_options options = { .text = text, .ttl_ms = SG_TURN_TTL_MS };
    struct sg_lease *lease;
    qf_rc rc;

    qf_strbuf_printf(&name, "%s/tenant=%.*s", kind, QF_STR_ARG(tenant));
    (void)snprintf(text, sizeof(text), "times %" PRId64 " %" PRId64, others->min_ts,
                   others->max_ts);
    options.name = qf_strbuf_cstr(&name);
    rc = sg_lease_add(others->store, &options, others->call, &lease, err);
    if (rc)
        return rc;
    *ret_turn = qf_xcalloc(1, sizeof(**ret_turn));
    (*ret_turn)->lease = lease;
    return QF_OK;
}

qf_rc sg_turn_merge(struct sg_store *store, struct qf_str tenant, int64_t min_ts, int64_t max_ts,
                    const struct sg_store_call *call, struct sg_turn **ret_turn, struct qf_err *err)
{
    struct others others = { .store = store, .call = call, .min_ts = min_ts, .max_ts = max_ts };
    qf_rc rc = begin(&others, "merge", tenant, ret_turn, err);

    if (rc)
        return rc;
    rc = look(&others, "remove", tenant, err);
    if (rc == QF_OK && others.any)
        rc = qf_err_set(err, QF_EBUSY, "segments of tenant %.*s and these times are being removed",
                        QF_STR_ARG(tenant));
    if (rc)
        *ret_turn = sg_turn_end(*ret_turn);
    return rc;
}

static qf_rc wait_for_merges(struct sg_turn *turn, struct others *others, struct qf_str tenant,
                             void (*on_wait)(void *ctx), void *ctx, struct qf_err *err)
{
    const struct timespec pause = { .tv_nsec = WAIT_MS * 1000000L };
    bool told = false;

    for (;;) {
        qf_rc rc = look(others, "merge", tenant, err);

        if (rc || !others->any)
            return rc;
        if (!told && on_wait)
            on_wait(ctx);
        told = true;
        if (others->call && others->call->cancel &&
            atomic_load_explicit(others->call->cancel, memory_order_relaxed))
            return qf_err_set(err, QF_ECANCELED, "canceled");
        (void)!sg_turn_tick(turn, others->call, NULL);
        (void)nanosleep(&pause, NULL);
    }
}

qf_rc sg_turn_remove(struct sg_store *store, struct qf_str tenant, int64_t min_ts, int64_t max_ts,
                     const struct sg_store_call *call, void (*on_wait)(void *ctx), void *ctx,
                     struct sg_turn **ret_turn, struct qf_err *err)
{
    struct others others = {
        .store = store, .call = call, .min_ts = min_ts, .max_ts = max_ts, .break_dead = true
    };
    qf_rc rc;

    if (sg_store_is_ring(store)) { /* the log says who was first, of merging as well */
        *ret_turn = qf_xcalloc(1, sizeof(**ret_turn));
        return QF_OK;
    }
    rc = begin(&others, "remove", tenant, ret_turn, err);
    if (rc)
        return rc;
    rc = wait_for_merges(*ret_turn, &others, tenant, on_wait, ctx, err);
    if (rc)
        *ret_turn = sg_turn_end(*ret_turn);
    return rc;
}

qf_rc sg_turn_tick(struct sg_turn *turn, const struct sg_store_call *call, struct qf_err *err)
{
    if (!turn->lease)
        return QF_OK;
    if (sg_lease_left_ms(turn->lease) > 0 && sg_lease_due(turn->lease))
        (void)!sg_lease_renew(turn->lease, call, NULL);
    return sg_lease_left_ms(turn->lease) > 0
               ? QF_OK
               : qf_err_set(err, QF_ETIMEOUT, "the lease was not renewed in time");
}

qf_rc sg_turn_check(struct sg_turn *turn, const struct sg_store_call *call, struct qf_err *err)
{
    return turn->lease ? sg_lease_renew(turn->lease, call, err) : QF_OK;
}

struct sg_turn *sg_turn_end(struct sg_turn *turn)
{
    if (!turn)
        return NULL;
    (void)sg_lease_drop(turn->lease);
    free(turn);
    return NULL;
}
