/* follow.c - settings of tenants, from ingest nodes. */
#include "queryapi/settings/follow.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/vec.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "base/sys/thread.h"
#include "ring/tenant/page.h"
#include "segments/store/keep_client.h"

/* Before all nodes are asked again: as long as nothing is known, and later. */
#define UNKNOWN_PAUSE_MS 100
#define PAUSE_MS 1000
/* Nodes of an older release are asked again, since they will be newer one day. */
#define OLD_PAUSE_MS 5000
/* A request is answered after RG_TENANT_WAIT_MS at the latest, or after a part of the age that is stale. */
#define ASK_MS (RG_TENANT_WAIT_MS + 10000)
#define WAIT_LEAST_MS 200
#define WAITS_PER_AGE 4
/* Of a node that is less sure than that another one is asked next. */
#define SURE_MS 15000

struct qa_follow {
    struct qa_tenants *tenants;
    struct sg_keep_client_options of_client; /* its texts are the options' */
    struct sg_keep_client *client;
    const char *scheme;
    int64_t wait_ms;
    struct qf_thread *thread;
    atomic_bool stopping;
    /* Of the thread. */
    struct rg_tenant_table *table;
    uint64_t cluster; /* 0: nothing is known */
    size_t node;
    qf_rc said;           /* what the log last heard */
    struct qf_lock *lock; /* of what follows */
    QF_VEC(char *) nodes;
    bool known, tried; /* settings; every node, at least once */
};

/* --- answers --- */

static void be_known(struct qa_follow *follow)
{
    qf_lock_take(follow->lock);
    follow->known = follow->tried = true;
    qf_lock_wake_all(follow->lock);
    qf_lock_drop(follow->lock);
}

/* @heard becomes part of the table, or replaces it if it is of another cluster. */
static bool merge(struct qa_follow *follow, struct rg_tenant_table **heard, uint64_t cluster)
{
    size_t count = rg_tenant_table_count(*heard);
    struct rg_tenant_table *old = follow->table;

    if (follow->cluster != cluster) {
        follow->table = *heard;
        *heard = old;
        follow->cluster = cluster;
        return true;
    }
    for (size_t i = 0; i < count; i++)
        if (!rg_tenant_table_put(follow->table, rg_tenant_table_at(*heard, i)))
            return false; /* cannot be: no more of them than a node has */
    return count > 0;
}

static void freep_table(struct rg_tenant_table **table)
{
    *table = rg_tenant_table_free(*table);
}

/* *@ret_sure: the node that said it hears of a leader. */
static qf_rc take_page(struct qa_follow *follow, struct qf_str bytes, int64_t now_ms,
                       bool *ret_sure, struct qf_err *err)
{
    QF_CLEANUP(freep_table) struct rg_tenant_table *heard = rg_tenant_table_new();
    struct rg_tenant_page page;
    qf_rc rc = rg_tenant_page_decode(bytes, heard, &page);

    if (rc != QF_OK)
        return qf_err_set(err, QF_EPROTO, "settings of tenants that cannot be read");
    if (merge(follow, &heard, page.cluster)) {
        qa_tenants_settle(follow->tenants, rg_tenant_table_limits(follow->table),
                          rg_tenant_table_count(follow->table));
        QF_LOG_INFO("settings of tenants read",
                    QF_KV_U64("tenants", rg_tenant_table_count(follow->table)),
                    QF_KV_U64("version", rg_tenant_table_version(follow->table)));
    }
    if (page.version >= rg_tenant_table_version(follow->table)) /* else that node is behind */
        qa_tenants_confirm(follow->tenants, now_ms - page.confirmed_ms);
    *ret_sure = page.confirmed_ms <= SURE_MS;
    be_known(follow);
    return QF_OK;
}

/* --- asking --- */

/* One of the nodes, free() it; NULL: there are none. */
static char *next_node(struct qa_follow *follow)
{
    char *node = NULL;

    qf_lock_take(follow->lock);
    if (follow->nodes.count)
        node = qf_xstrdup(follow->nodes.items[follow->node % follow->nodes.count]);
    qf_lock_drop(follow->lock);
    return node;
}

static qf_rc ask(struct qa_follow *follow, const char *node, bool *ret_sure, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf url = QF_STRBUF_INIT, body = QF_STRBUF_INIT;
    const struct sg_store_limit limit = { .cancel = &follow->stopping,
                                          .deadline_ms = qf_clock_mono_ms() + ASK_MS };
    qf_rc rc;

    qf_strbuf_printf(&url, "%s://%s%s", follow->scheme, node, RG_TENANT_PAGE_PATH);
    if (follow->cluster) /* else all, at once */
        qf_strbuf_printf(&url, "?cluster=%016" PRIx64 "&since=%" PRIu64 "&wait=%" PRId64 "ms",
                         follow->cluster, rg_tenant_table_version(follow->table), follow->wait_ms);
    rc = sg_keep_fetch(follow->client, qf_strbuf_cstr(&url), RG_TENANT_PAGE_BYTES_MAX, &limit,
                       &body, err);
    return rc == QF_OK ? take_page(follow, qf_strbuf_view(&body), qf_clock_mono_ms(), ret_sure, err)
                       : rc;
}

/* Nodes of an older release: their cluster has no settings. */
static void be_without(struct qa_follow *follow)
{
    qa_tenants_settle(follow->tenants, NULL, 0);
    qa_tenants_confirm(follow->tenants, qf_clock_mono_ms());
    be_known(follow);
}

static void tell(struct qa_follow *follow, qf_rc rc, const struct qf_err *err)
{
    if (rc == follow->said || atomic_load(&follow->stopping))
        return;
    follow->said = rc;
    if (rc == QF_OK)
        QF_LOG_INFO("settings of tenants are followed");
    else
        QF_LOG_WARN("settings of tenants cannot be read: those that are known go on counting",
                    QF_KV_STR("error", err->msg));
}

/* The key may be another one by now: it is read with a new client. */
static void renew_key(struct qa_follow *follow)
{
    struct sg_keep_client *client = sg_keep_client_new(&follow->of_client, NULL);

    if (!client)
        return;
    (void)sg_keep_client_free(follow->client);
    follow->client = client;
}

/* With the lock, until @ms are over. */
static void pause_for(struct qa_follow *follow, int64_t ms)
{
    int64_t until_ms = qf_clock_mono_ms() + ms;

    while (!atomic_load(&follow->stopping) && qf_clock_mono_ms() < until_ms)
        (void)qf_lock_wait(follow->lock, QF_MAX(until_ms - qf_clock_mono_ms(), INT64_C(1)));
}

/* Nobody was of use: a pause after a round of all nodes. */
static void go_on(struct qa_follow *follow, qf_rc rc, size_t *failed)
{
    qf_lock_take(follow->lock);
    follow->node++;
    if (rc == QF_ENOTFOUND && follow->known) {
        pause_for(follow, OLD_PAUSE_MS);
    } else if (++*failed >= follow->nodes.count) {
        follow->tried = follow->tried || follow->nodes.count;
        qf_lock_wake_all(follow->lock);
        pause_for(follow, follow->known ? PAUSE_MS : UNKNOWN_PAUSE_MS);
        *failed = 0;
    }
    qf_lock_drop(follow->lock);
}

static void run(void *arg)
{
    struct qa_follow *follow = arg;
    size_t failed = 0;

    while (!atomic_load(&follow->stopping)) {
        QF_CLEANUP(qf_freep) char *node = next_node(follow);
        struct qf_err err = { 0 };
        bool sure = true;
        qf_rc rc = node ? ask(follow, node, &sure, &err)
                        : qf_err_set(&err, QF_EUNAVAILABLE, "no ingest node is known");

        if (rc == QF_ENOTFOUND && !follow->cluster)
            be_without(follow);
        if (rc == QF_EAUTH || rc == QF_EDENIED)
            renew_key(follow);
        if (node)
            tell(follow, rc == QF_ENOTFOUND ? QF_OK : rc, &err);
        if (rc == QF_OK && sure)
            failed = 0;
        else
            go_on(follow, rc, &failed);
    }
}

/* --- beginning and end --- */

struct qa_follow *qa_follow_new(const struct qa_follow_options *options, struct qf_err *err)
{
    struct qa_follow *follow = qf_xcalloc(1, sizeof(*follow));

    follow->tenants = options->tenants;
    follow->wait_ms = QF_MAX(options->age_ms / WAITS_PER_AGE, (int64_t)WAIT_LEAST_MS);
    follow->wait_ms = QF_MIN(follow->wait_ms, (int64_t)RG_TENANT_WAIT_MS);
    follow->scheme = options->ca_file ? "https" : "http";
    follow->lock = qf_lock_new();
    follow->table = rg_tenant_table_new();
    qa_tenants_await(follow->tenants);
    follow->of_client = (struct sg_keep_client_options){ .key_file = options->key_file,
                                                         .ca_file = options->ca_file,
                                                         .stall_timeout_ms = ASK_MS };
    follow->client = sg_keep_client_new(&follow->of_client, err);
    if (!follow->client)
        return qa_follow_free(follow);
    follow->thread = qf_thread_start("settings", run, follow);
    if (follow->thread)
        return follow;
    (void)qf_err_set(err, QF_EUNAVAILABLE, "cannot start threads");
    return qa_follow_free(follow);
}

/* With the lock. */
static void forget_nodes(struct qa_follow *follow)
{
    for (size_t i = 0; i < follow->nodes.count; i++)
        free(follow->nodes.items[i]);
    follow->nodes.count = 0;
}

struct qa_follow *qa_follow_free(struct qa_follow *follow)
{
    if (!follow)
        return NULL;
    atomic_store(&follow->stopping, true);
    qf_lock_take(follow->lock);
    qf_lock_wake_all(follow->lock);
    qf_lock_drop(follow->lock);
    (void)qf_thread_join(follow->thread);
    (void)sg_keep_client_free(follow->client);
    follow->table = rg_tenant_table_free(follow->table);
    forget_nodes(follow);
    QF_VEC_DONE(&follow->nodes);
    (void)qf_lock_free(follow->lock);
    free(follow);
    return NULL;
}

void qa_follow_nodes(struct qa_follow *follow, const char *const *addresses, size_t count)
{
    qf_lock_take(follow->lock);
    forget_nodes(follow);
    for (size_t i = 0; i < count; i++)
        QF_VEC_PUSH(&follow->nodes, qf_xstrdup(addresses[i]));
    qf_lock_wake_all(follow->lock);
    qf_lock_drop(follow->lock);
}

void qa_follow_wait(struct qa_follow *follow, int64_t timeout_ms)
{
    int64_t until_ms = qf_clock_mono_ms() + timeout_ms;

    qf_lock_take(follow->lock);
    while (!follow->tried && qf_clock_mono_ms() < until_ms)
        (void)qf_lock_wait(follow->lock, QF_MAX(until_ms - qf_clock_mono_ms(), INT64_C(1)));
    qf_lock_drop(follow->lock);
}
