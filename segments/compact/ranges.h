/* ranges.h - up to which generation all ranges of ingest nodes are in the store, and show in a listing. Blocks.
 *
 * Ingest nodes say what is sealed now (agree.h); what was sealed a moment ago may not show in a listing yet. So whoever hears
 * of a generation leaves it in the store, and it counts once that is older than listings are late, by the store's clock:
 *
 *     _settled/tenant=T/GENERATION      20 digits; every range up to it was sealed when this was put, and none will be
 *
 * What stands there stays true; smaller ones are deleted. */
#ifndef SEGMENTS_COMPACT_RANGES_H
#define SEGMENTS_COMPACT_RANGES_H

#include "segments/compact/agree.h"

#define SG_RANGES_PREFIX "_settled/"

/* *ret_below: generations below it get no more files of ingest nodes; everything that was put under one shows in a listing
 * that begins now. @now_ms: by the store's clock. @settle_ms: how long a file may take to show in a listing; @grace_ms: how
 * long it stays after it was replaced. Errors of
 * sg_agree_below() and of the store; QF_EINVAL: another cluster writes to the tenant. */
QF_MUST_CHECK qf_rc sg_ranges_settle(struct sg_store *store, const struct sg_agree *agree,
                                     struct qf_str tenant, int64_t now_ms, int64_t settle_ms,
                                     int64_t grace_ms, const struct sg_store_call *call,
                                     uint64_t *ret_below, struct qf_err *err);

#endif
