/* lease.h - a small object in the store that says "I am at this", until it is not renewed any more.
 *
 * There are two kinds:
 *
 *   sg_lease_take()  one holder at a time of a name ("retention", "compact/TENANT"): whoever comes
 *                    second gets QF_EBUSY and does something else.
 *   sg_lease_add()   any number of holders of a name, each with a text of its own ("import/TENANT",
 *                    "generation 1700000000000000"): others list them and keep out of their way.
 *
 * A lease saves work; it is not a lock. A process may sleep for an hour between looking at its lease
 * and acting, a request may arrive long after its sender gave up, and a server may not know
 * conditional puts. So whatever a lease guards must come to no harm when two do it.
 *
 * No clock of a holder counts, so clocks may be off by hours. How old a lease is, the store says:
 * the time of its clock (sg_store_clock()) less that of the object's last change. A holder measures
 * from before it sent its last renewal, with a clock that only counts. If both run at about the same
 * speed, a holder knows that its lease is over (sg_lease_left_ms()) before anybody else thinks so.
 *
 * In the store:
 *     _leases/NAME/NUMBER    taken; of several the highest number counts, and each is put only if it
 *                            is new: of all who find the same lease expired one becomes the holder
 *     _leases/NAME/ID        added; 16 hex digits
 * Expired ones of the first kind are removed by the next holder, all by sg_lease_expire().
 *
 * On our own nodes there is the first kind alone (lease_log.h), and one of several exactly becomes the holder; what the
 * second kind is for the order of the log does (segments/write/claim_log.h, segments/compact/trade.h).
 *
 * Recipe for a writer that must not be overtaken (an import and compaction): the writer adds its
 * lease first, puts its objects, then calls sg_lease_renew(): if that says QF_ENOTFOUND it takes
 * its objects back. The other side lists leases, keeps away from those that live, and breaks the
 * dead ones (sg_lease_break()) before it lists objects: then each object of a broken writer is
 * either in that listing or taken back. That holds whatever clocks say, and is worth no more than the
 * writer's living until it has looked. */
#ifndef SEGMENTS_STORE_LEASE_H
#define SEGMENTS_STORE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "segments/store/store.h"

#define SG_LEASE_PREFIX "_leases/"
#define SG_LEASE_TEXT_MAX 512
/* A lease that nobody renewed for as long as this counts no more, whatever it says of itself. */
#define SG_LEASE_TTL_MAX_MS INT64_C(86400000)
/* Others wait for so much longer than its time before they call it expired. */
#define SG_LEASE_GRAIN_MS 2000

struct sg_lease;

struct sg_lease_options {
    const char *name; /* "retention", "import/TENANT": without the prefix, copied */
    const char
        *text;      /* who holds it and why, one line of at most SG_LEASE_TEXT_MAX bytes; copied */
    int64_t ttl_ms; /* how long it lasts without being renewed; at most SG_LEASE_TTL_MAX_MS */
};

/* Become the holder of @options->name. QF_EBUSY: somebody is, and @err says who and since when;
 * QF_EINVAL: options that cannot be; else the errors of the store. */
QF_MUST_CHECK qf_rc sg_lease_take(struct sg_store *store, const struct sg_lease_options *options,
                                  const struct sg_store_call *call, struct sg_lease **ret_lease,
                                  struct qf_err *err);
/* Become a holder of @options->name, among others. */
QF_MUST_CHECK qf_rc sg_lease_add(struct sg_store *store, const struct sg_lease_options *options,
                                 const struct sg_store_call *call, struct sg_lease **ret_lease,
                                 struct qf_err *err);

/* Is a third of its time over? Then renew it. */
bool sg_lease_due(const struct sg_lease *lease);
/* How long nobody else can think that it is over; 0: it is. */
int64_t sg_lease_left_ms(const struct sg_lease *lease);
/* Look whether it is still there, and renew it. QF_ENOTFOUND: it was broken, or somebody took it
 * over: stop. QF_ETIMEOUT: no time is left: stop. Others: the store failed; call again while there
 * is time. */
QF_MUST_CHECK qf_rc sg_lease_renew(struct sg_lease *lease, const struct sg_store_call *call,
                                   struct qf_err *err);
/* Give it back: the object is removed, or if the store fails expires, and @lease is freed. Accepts NULL,
 * returns NULL. */
struct sg_lease *sg_lease_drop(struct sg_lease *lease);
/* Free @lease and let its object expire. Accepts NULL, returns NULL. */
struct sg_lease *sg_lease_leave(struct sg_lease *lease);

/* --- those of others --- */

struct sg_lease_info {
    struct qf_str object; /* its name in the store */
    struct qf_str name;   /* as in the options */
    struct qf_str text;
    int64_t ttl_ms, age_ms; /* since it was renewed, by the clock of the store */
    bool expired;
};
/* Return false to end the listing early; that is not an error. @info is borrowed. */
typedef bool sg_lease_list_fn(void *ctx, const struct sg_lease_info *info);

/* Call @fn for every lease whose name is @name or begins with "@name/"; "": for all. Objects that are
 * no leases are left out, and count as expired leases without a text once they are older than
 * SG_LEASE_TTL_MAX_MS. */
QF_MUST_CHECK qf_rc sg_lease_list(struct sg_store *store, const char *name,
                                  const struct sg_store_call *call, sg_lease_list_fn *fn, void *ctx,
                                  struct qf_err *err);
/* End the lease @object of somebody else: its holder finds out with its next sg_lease_renew(). */
QF_MUST_CHECK qf_rc sg_lease_break(struct sg_store *store, struct qf_str object,
                                   const struct sg_store_call *call, struct qf_err *err);
/* Remove those that are over since SG_LEASE_TTL_MAX_MS at least; @dry_run: only count them. */
QF_MUST_CHECK qf_rc sg_lease_expire(struct sg_store *store, bool dry_run,
                                    const struct sg_store_call *call, size_t *ret_removed,
                                    struct qf_err *err);

#endif
