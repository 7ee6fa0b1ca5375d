/* settings.c - settings of tenants brought to those who heed them; the leader is asked how far they are. */
#include "ingest/ring/settings.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "ring/coord/coord.h"

/* Once confirmed, settings are confirmed again after this. */
#define CONFIRM_MS 5000
/* Between two questions as long as nothing is confirmed. */
#define RETRY_MS 250
#define ASK_MS 2000

struct in_settings {
    struct rg_tenants *tenants;
    struct qf_limits_file *limits;
    struct qn_node *node;
    uint64_t settled; /* version that the limits have */
    int64_t due_ms;
    atomic_bool asking;
    atomic_int_fast64_t asked_ms;
};

struct in_settings *in_settings_new(struct rg_tenants *tenants, struct qf_limits_file *limits,
                                    struct qn_node *node)
{
    struct in_settings *settings = qf_xcalloc(1, sizeof(*settings));

    settings->tenants = tenants;
    settings->limits = limits;
    settings->node = node;
    return settings;
}

struct in_settings *in_settings_free(struct in_settings *settings)
{
    free(settings);
    return NULL;
}

/* On the node's thread. */
static void answered(void *ctx, struct qn_ask *ask)
{
    struct in_settings *settings = ctx;
    qf_rc rc = ask->answer.err.rc;
    uint64_t version = 0;

    /* A leader of an older release does not know the question: there cannot be settings yet. */
    if (rc == QF_EUNSUPPORTED || rc == QF_EINVAL ||
        (rc == QF_OK && qf_parse_u64(qf_strbuf_view(&ask->answer.text), &version)))
        rg_tenants_confirm(settings->tenants, qn_cluster(settings->node), version,
                           atomic_load(&settings->asked_ms));
    (void)qn_ask_free(ask);
    atomic_store(&settings->asking, false);
}

static void confirm(struct in_settings *settings, int64_t mono_ms)
{
    struct qn_ask *ask;

    if (atomic_exchange(&settings->asking, true))
        return;
    ask = rg_coord_question(RG_ASK_VERSION, QF_STR(""));
    ask->timeout_ms = ASK_MS;
    ask->done = answered;
    ask->ctx = settings;
    atomic_store(&settings->asked_ms, mono_ms);
    if (qn_ask(settings->node, ask))
        return;
    (void)qn_ask_free(ask);
    atomic_store(&settings->asking, false);
}

void in_settings_tick(struct in_settings *settings, int64_t mono_ms)
{
    int64_t age_ms = rg_tenants_age_ms(settings->tenants, mono_ms);

    if (rg_tenants_version(settings->tenants) != settings->settled) {
        qf_limits_file_settle(settings->limits,
                              rg_tenants_limits(settings->tenants, &settings->settled));
        QF_LOG_INFO("settings of tenants", QF_KV_U64("version", settings->settled));
    }
    if (mono_ms >= settings->due_ms && (age_ms < 0 || age_ms >= CONFIRM_MS)) {
        settings->due_ms = mono_ms + RETRY_MS;
        confirm(settings, mono_ms);
    }
    rg_tenants_tick(settings->tenants, mono_ms, false);
}
