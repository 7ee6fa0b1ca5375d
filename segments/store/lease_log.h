/* lease_log.h - leases that one holder takes at a time, on our own nodes: names in a log (lease.h says what leases are for).
 *
 *     _leases/NAME/STAMP-TTL-ID    renewed at STAMP (20 digits, milliseconds, of an ingest node's clock), for TTL
 *
 * There is one such name of a lease, or none ever. Taking and renewing replace it, which one of several does
 * (ring_small.h). Given back it has the stamp 0. */
#ifndef SEGMENTS_STORE_LEASE_LOG_H
#define SEGMENTS_STORE_LEASE_LOG_H

#include "segments/store/store.h"

/* Become the holder: *ret_object, the caller's, is the name. QF_EBUSY: somebody is, or was quicker. */
QF_MUST_CHECK qf_rc lease_log_take(struct sg_store *store, const char *folder, int64_t ttl_ms,
                                   const struct sg_store_call *call, char **ret_object,
                                   struct qf_err *err);
/* Renew *@object, which becomes another name. QF_ENOTFOUND: somebody took it over. */
QF_MUST_CHECK qf_rc lease_log_renew(struct sg_store *store, const char *folder, int64_t ttl_ms,
                                    const struct sg_store_call *call, char **object,
                                    struct qf_err *err);
/* Give it back, if that is possible. */
void lease_log_drop(struct sg_store *store, const char *folder, const char *object,
                    const struct sg_store_call *call);

/* Is a lease of this name over at @now_ms? Also what cannot be read. Pure. */
bool lease_log_is_over(struct qf_str name, int64_t now_ms);

#endif
