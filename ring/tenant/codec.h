/* codec.h - settings and tenants as bytes: what entries, snapshots and pages share. */
#ifndef RING_TENANT_CODEC_H
#define RING_TENANT_CODEC_H

#include "ring/core/bytes.h"
#include "ring/tenant/tenant.h"

void rg_put_settings(struct qf_strbuf *buf, const struct rg_settings *settings);
/* @lenient: settings of a newer release are passed over; else they are bad. */
void rg_get_settings(struct rg_cursor *c, bool lenient, struct rg_settings *ret_settings);
void rg_put_tenant(struct qf_strbuf *buf, const struct rg_tenant *tenant);
void rg_get_tenant(struct rg_cursor *c, bool lenient, struct rg_tenant *ret_tenant);
/* A snapshot into @table, which is empty. */
qf_rc rg_tenant_table_decode(struct rg_tenant_table *table, struct qf_str bytes);

#endif
