/* lease_log.c - leases that one holder takes at a time, on our own nodes. */
#include "segments/store/lease_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"
#include "segments/store/lease.h"
#include "segments/store/ring_small.h"

/* Each costs somebody else who is quicker, or owners that changed. */
#define TRIES 3
#define NAMES_MAX 1000

struct found {
    QF_VEC(char *) names; /* ascending: the last one was renewed last */
};

static void found_done(struct found *found)
{
    for (size_t i = 0; i < found->names.count; i++)
        free(found->names.items[i]);
    QF_VEC_DONE(&found->names);
}

static bool on_object(void *ctx, const struct sg_store_object *object)
{
    struct found *found = ctx;

    QF_VEC_PUSH(&found->names, qf_xmemdup0(object->name.data, object->name.len));
    return found->names.count < NAMES_MAX;
}

bool lease_log_is_over(struct qf_str name, int64_t now_ms)
{
    const char *slash = name.len ? memrchr(name.data, '/', name.len) : NULL;
    int64_t stamp, ttl;
    char text[80];

    if (!slash)
        return true;
    (void)snprintf(text, sizeof(text), "%.*s", (int)(name.data + name.len - slash - 1), slash + 1);
    if (sscanf(text, "%20" SCNd64 "-%" SCNd64, &stamp, &ttl) != 2 || stamp <= 0 || ttl <= 0 ||
        ttl > SG_LEASE_TTL_MAX_MS)
        return true;
    /* A stamp from the future is of a clock that was set back. */
    return now_ms - stamp >= ttl + SG_LEASE_GRAIN_MS || stamp - now_ms >= ttl + SG_LEASE_GRAIN_MS;
}

static char *print_name(const char *folder, int64_t stamp_ms, int64_t ttl_ms)
{
    struct qf_strbuf name = QF_STRBUF_INIT;

    qf_strbuf_printf(&name, "%s%020" PRId64 "-%" PRId64 "-%016" PRIx64, folder, stamp_ms, ttl_ms,
                     ring_small_id());
    return qf_strbuf_take(&name);
}

/* @name instead of all of @old. QF_EGONE: somebody was quicker, or owners changed. */
static qf_rc replace(struct sg_store *store, const char *folder, char *const *old, size_t count,
                     const char *name, const struct sg_store_call *call, struct qf_err *err)
{
    QF_CLEANUP(ring_small_done) struct ring_small change = RING_SMALL_INIT;
    qf_rc rc = ring_small_add(&change, store, name, call, err);

    for (size_t i = 0; i < count; i++)
        QF_VEC_PUSH(&change.removed, qf_str_from(old[i]));
    return rc ? rc : ring_small_commit(&change, store, qf_str_from(folder), call, err);
}

/* QF_EGONE: look again. */
static qf_rc try_take(struct sg_store *store, const char *folder, int64_t ttl_ms,
                      const struct sg_store_call *call, char **ret_object, struct qf_err *err)
{
    QF_CLEANUP(found_done) struct found found = { 0 };
    QF_CLEANUP(qf_freep) char *name = NULL;
    int64_t now_ms;
    qf_rc rc = sg_store_list(store, qf_str_from(folder), QF_STR(""), call, on_object, &found, err);

    if (rc == QF_OK)
        rc = sg_store_clock(store, call, &now_ms, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < found.names.count; i++)
        if (!lease_log_is_over(qf_str_from(found.names.items[i]), now_ms))
            return qf_err_set(err, QF_EBUSY, "%s is held", found.names.items[i]);
    if (!found.names.count) { /* the first is one that all of those who begin add */
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf root = QF_STRBUF_INIT;

        qf_strbuf_printf(&root, "%s%020d-0-%016d", folder, 0, 0);
        rc = replace(store, folder, NULL, 0, qf_strbuf_cstr(&root), call, err);
        return rc ? rc : QF_EGONE;
    }
    name = print_name(folder, now_ms, ttl_ms);
    rc = replace(store, folder, found.names.items, found.names.count, name, call, err);
    if (rc == QF_OK)
        *ret_object = QF_TAKE(name);
    return rc;
}

qf_rc lease_log_take(struct sg_store *store, const char *folder, int64_t ttl_ms,
                     const struct sg_store_call *call, char **ret_object, struct qf_err *err)
{
    struct qf_err why = { 0 };
    qf_rc rc = QF_EGONE;

    for (int i = 0; i < TRIES && rc == QF_EGONE; i++) {
        why = (struct qf_err){ 0 };
        rc = i ? sg_ring_follow(store, 0, call, &why) : QF_OK;
        if (rc == QF_OK)
            rc = try_take(store, folder, ttl_ms, call, ret_object, &why);
    }
    if (rc == QF_EGONE)
        return qf_err_set(err, QF_EBUSY, "%s: somebody else took it at the same time", folder);
    return rc ? qf_err_set(err, rc, "%s", why.msg) : QF_OK;
}

qf_rc lease_log_renew(struct sg_store *store, const char *folder, int64_t ttl_ms,
                      const struct sg_store_call *call, char **object, struct qf_err *err)
{
    struct qf_err why = { 0 };
    qf_rc rc = QF_EGONE;

    for (int i = 0; i < TRIES && rc == QF_EGONE; i++) {
        QF_CLEANUP(qf_freep) char *name = NULL;
        int64_t now_ms = 0;

        why = (struct qf_err){ 0 };
        rc = i ? sg_ring_follow(store, 0, call, &why) : QF_OK;
        if (rc == QF_OK)
            rc = sg_store_clock(store, call, &now_ms, &why);
        if (rc)
            break;
        name = print_name(folder, now_ms, ttl_ms);
        rc = replace(store, folder, object, 1, name, call, &why);
        if (rc == QF_OK) {
            free(*object);
            *object = QF_TAKE(name);
        } else if (rc == QF_EGONE && !sg_ring_lists(store, qf_str_from(*object))) {
            return qf_err_set(err, QF_ENOTFOUND, "%s: somebody took it over", *object);
        }
    }
    if (rc == QF_EGONE)
        rc = QF_EUNAVAILABLE; /* owners went on changing */
    return rc ? qf_err_set(err, rc, "%s", why.msg) : QF_OK;
}

void lease_log_drop(struct sg_store *store, const char *folder, const char *object,
                    const struct sg_store_call *call)
{
    QF_CLEANUP(qf_freep) char *name = print_name(folder, 0, 0);
    QF_CLEANUP(qf_freep) char *held = qf_xstrdup(object);

    (void)!replace(store, folder, &held, 1, name, call, NULL);
}
