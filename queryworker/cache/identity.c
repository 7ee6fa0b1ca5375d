/* identity.c - a look at the store's name, now and then. */
#include "queryworker/cache/identity.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/macros.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "base/sys/pool.h"
#include "proto/codec/control.h"

#define LOOK_MIN_MS 1000
#define LOOK_MISSING_MAX_MS 10000
#define LOOK_AGAIN_MS 60000
#define LOOK_TIMEOUT_MS 10000

struct qw_identity {
    struct sg_store *store;
    struct qf_pool *pool; /* of one thread */
    atomic_bool stopping;

    /* Of the caller's thread, but while a look is under way. */
    char text[SG_STORE_ID_LEN + 1];
    char found[SG_STORE_ID_LEN + 1]; /* of the look: empty if it could not be told */
    qf_time_ms look_at, wait_ms;
    bool looking;
    atomic_bool looked; /* the look is over, found is there */
};

_Static_assert(sizeof(PB_STORE_NONE) <= SG_STORE_ID_LEN + 1, "");

struct qw_identity *qw_identity_new(struct sg_store *store, struct qf_err *err)
{
    struct qw_identity *identity = qf_xcalloc(1, sizeof(*identity));

    identity->store = store;
    identity->wait_ms = LOOK_MIN_MS;
    identity->pool = qf_pool_new("store", 1, 1);
    if (identity->pool)
        return identity;
    (void)qf_err_set(err, QF_EIO, "cannot start a thread");
    return qw_identity_free(identity);
}

struct qw_identity *qw_identity_free(struct qw_identity *identity)
{
    if (!identity)
        return NULL;
    atomic_store(&identity->stopping, true);
    identity->pool = qf_pool_free(identity->pool);
    free(identity);
    return NULL;
}

static void look(void *arg)
{
    struct qw_identity *identity = arg;
    struct sg_store_call call = { .cancel = &identity->stopping, .timeout_ms = LOOK_TIMEOUT_MS };
    struct qf_err err = { 0 };
    bool created;
    qf_rc rc = sg_store_identity(identity->store, false, &call, identity->found, &created, &err);

    if (rc == QF_ENOTFOUND)
        (void)snprintf(identity->found, sizeof(identity->found), PB_STORE_NONE);
    else if (rc != QF_OK) {
        identity->found[0] = '\0';
        QF_LOG_DEBUG("cannot tell which store this is", QF_KV_STR("reason", err.msg));
    }
    atomic_store(&identity->looked, true);
}

/* What could not be told leaves what was known. */
static void take_look(struct qw_identity *identity, qf_time_ms now)
{
    bool named;

    if (!identity->looking || !atomic_load(&identity->looked))
        return;
    if (identity->found[0])
        memcpy(identity->text, identity->found, sizeof(identity->text));
    named = identity->text[0] && strcmp(identity->text, PB_STORE_NONE) != 0;
    identity->look_at = now + (named ? LOOK_AGAIN_MS : identity->wait_ms);
    identity->wait_ms = named ? LOOK_MIN_MS : QF_MIN(identity->wait_ms * 2, LOOK_MISSING_MAX_MS);
    identity->looking = false;
}

void qw_identity_beat(struct qw_identity *identity, qf_time_ms now)
{
    if (!identity)
        return;
    take_look(identity, now);
    if (identity->looking || now < identity->look_at)
        return;
    atomic_store(&identity->looked, false);
    identity->looking = qf_pool_submit(identity->pool, look, identity);
}

const char *qw_identity_text(struct qw_identity *identity)
{
    if (!identity)
        return "";
    take_look(identity, qf_clock_mono_ms());
    return identity->text;
}
