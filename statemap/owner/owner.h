/* owner.h - the maps of all tenants at one owner: what the log says (statemap/core/entry.h), done in its order, on a disk.
 *
 *     position                    how far the log was done, and from where it is read again
 *     receive/UPLOAD              a part whose load has not come yet
 *     outgoing/UPLOAD             one that was made here and is sent
 *     tenants/TENANT/             its maps: statemap/store/store.h
 *
 * Every owner does the same with the same entries, so definitions and rows are the same everywhere, whatever moment anybody crashes at.
 * An entry is done when sm_owner_apply() says QF_OK: what it came to is the verdict, the same at every owner but for disks that are
 * full or damaged. Its effect is on the disk before the position is.
 *
 * One thread applies, merges and maintains; any thread reads tenants' stores. */
#ifndef STATEMAP_OWNER_OWNER_H
#define STATEMAP_OWNER_OWNER_H

#include "statemap/core/entry.h"
#include "statemap/store/folder.h"
#include "statemap/store/store.h"

struct sm_owner;

/* Uploads under way; pieces of more count for nothing. */
enum { SM_UPLOADS_MAX = 64, SM_TENANT_MAPS_MAX = 1000 };
#define SM_UPLOAD_BYTES_MAX (UINT64_C(8) << 30)
/* One of which so long no piece came, by the times of the log, is forgotten. */
#define SM_UPLOAD_MS_MAX 600000

/* QF_EBUSY: another process has the folder. */
QF_MUST_CHECK qf_rc sm_owner_open(const char *root, struct sm_owner **ret_owner,
                                  struct qf_err *err);
struct sm_owner *sm_owner_close(struct sm_owner *owner); /* Accepts NULL, returns NULL. */

/* The first entry that it wants. */
uint64_t sm_owner_next(const struct sm_owner *owner);
/* Entries up to here are done. */
uint64_t sm_owner_applied(const struct sm_owner *owner);
/* Those before this one are not needed any more, once sm_owner_save() was called. */
uint64_t sm_owner_needed(const struct sm_owner *owner);

/* What became of an entry. */
struct sm_verdict {
    struct qf_err err; /* rc: QF_OK, or why it counts for nothing */
    uint64_t version;  /* define, rule: of the definition or rule */
};

/* Do the entry at @position, which the log took at @time_ms. Entries come in their order; those that were done are passed over.
 * QF_ENOSPC, QF_EIO: our disk, do it again later. QF_ECORRUPT: what lies here is not what came; begin again at sm_owner_next(),
 * which has gone back. */
QF_MUST_CHECK qf_rc sm_owner_apply(struct sm_owner *owner, uint64_t position, int64_t time_ms,
                                   struct qf_str bytes, struct sm_verdict *ret_verdict,
                                   struct qf_err *err);
/* Nothing before @next is left to be done: entries of other kinds are not told. */
void sm_owner_pass(struct sm_owner *owner, uint64_t next);
/* Put the position on the disk, if it has changed. */
QF_MUST_CHECK qf_rc sm_owner_save(struct sm_owner *owner, struct qf_err *err);

/* Merge what waits. Parts that wait still, and why, are told by sm_owner_waiting(). */
void sm_owner_merge(struct sm_owner *owner);
uint64_t sm_owner_waiting(const struct sm_owner *owner, struct qf_err *ret_why);

/* The maps of @tenant. QF_ENOTFOUND: it never had any. Any thread; the store stays until the owner is closed. */
QF_MUST_CHECK qf_rc sm_owner_store(struct sm_owner *owner, struct qf_str tenant,
                                   struct sm_store **ret_store, struct qf_err *err);
/* Where a part may lie until it was sent; free() it. Nothing is left there after a crash. */
char *sm_owner_outgoing(const struct sm_owner *owner, uint64_t upload);
/* Whoever has maps, by name. Any thread. */
QF_MUST_CHECK qf_rc sm_owner_tenants(struct sm_owner *owner, struct sm_names *ret_names,
                                     struct qf_err *err);

#endif
