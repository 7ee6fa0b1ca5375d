/* page.h - how APIs follow the settings of tenants: a request to any ingest node, with the operator's key where there are keys.
 *
 *     GET /v1/tenant-settings                  all of them
 *     GET /v1/tenant-settings?since=VERSION    those with a greater version, as soon as there are some, or after `wait`
 *                 &cluster=HEX&wait=20s        at most a minute
 *
 * The answer is 200 with a page (application/octet-stream). `confirmed_ms` says how long ago this node was sure to have all
 * that was agreed on: the leader of `meta` told it. A node that follows a leader confirms itself every few seconds;
 * without one the age grows. 503: this node was never sure since it started: ask another one; 429: too many wait here; 404: a
 * node of an older release, whose cluster has no settings of tenants. Settings that a follower does not know, of a newer
 * release, are passed over. Pure. */
#ifndef RING_TENANT_PAGE_H
#define RING_TENANT_PAGE_H

#include "ring/tenant/tenant.h"

#define RG_TENANT_PAGE_PATH "/v1/tenant-settings"
#define RG_TENANT_PAGE_TYPE "application/octet-stream"

enum {
    RG_TENANT_WAIT_MS = 20 * 1000,     /* unless `wait` says otherwise */
    RG_TENANT_WAIT_MAX_MS = 60 * 1000, /* a client waits a few seconds longer */
    RG_TENANT_PAGE_BYTES_MAX = 16 << 20
};

struct rg_tenant_page {
    uint64_t cluster; /* another one than before: ask for all */
    uint64_t version; /* everything up to it is known with this page */
    int64_t confirmed_ms;
};

/* The page of @table's tenants above @since. */
void rg_tenant_page_encode(struct qf_strbuf *buf, const struct rg_tenant_page *page,
                           const struct rg_tenant_table *table, uint64_t since);
/* Put its tenants into @table. QF_ECORRUPT: then some of them may be there; QF_EUNSUPPORTED: a page of another kind. */
QF_MUST_CHECK qf_rc rg_tenant_page_decode(struct qf_str bytes, struct rg_tenant_table *table,
                                          struct rg_tenant_page *ret_page);

#endif
