/* owner_int.h - the inside of an owner. */
#ifndef STATEMAP_OWNER_OWNER_INT_H
#define STATEMAP_OWNER_OWNER_INT_H

#include <xxhash.h>

#include "base/pure/tenant.h"
#include "base/sys/thread.h"
#include "statemap/owner/owner.h"

/* A part on its way in. */
struct sm_upload {
    uint64_t id, first; /* the position of its first piece */
    uint64_t size;      /* as far as it has come */
    int64_t last_ms;
    bool broken; /* a piece is missing */
    XXH3_state_t *sum;
};

struct sm_tenant {
    char name[QF_TENANT_MAX + 1];
    struct sm_store *store;
    uint64_t waiting; /* parts that could not be merged */
    struct qf_err why;
};

struct sm_owner {
    char *root;
    uint64_t next, applied, saved_applied, saved_needed;
    QF_VEC(struct sm_upload) uploads;
    struct qf_lock *lock; /* of the table of tenants */
    QF_VEC(struct sm_tenant *) tenants;
};

/* The tenant, and with @create its folder. */
QF_MUST_CHECK qf_rc sm_owner_tenant(struct sm_owner *owner, struct qf_str name, bool create,
                                    struct sm_tenant **ret_tenant, struct qf_err *err);
void sm_tenant_merge(struct sm_tenant *tenant);

/* define.c: the verdict on a definition; other errors are our disk's. */
QF_MUST_CHECK qf_rc sm_apply_define(struct sm_owner *owner, uint64_t position,
                                    const struct sm_entry *entry, struct sm_verdict *verdict,
                                    struct qf_err *err);
QF_MUST_CHECK qf_rc sm_apply_drop(struct sm_owner *owner, uint64_t position,
                                  const struct sm_entry *entry, struct sm_verdict *verdict,
                                  struct qf_err *err);

/* rule.c: the verdict on a rule. */
QF_MUST_CHECK qf_rc sm_apply_rule(struct sm_owner *owner, uint64_t position, int64_t time_ms,
                                  const struct sm_entry *entry, struct sm_verdict *verdict,
                                  struct qf_err *err);
QF_MUST_CHECK qf_rc sm_apply_unrule(struct sm_owner *owner, uint64_t position, int64_t time_ms,
                                    const struct sm_entry *entry, struct sm_verdict *verdict,
                                    struct qf_err *err);

/* upload.c */
QF_MUST_CHECK qf_rc sm_apply_piece(struct sm_owner *owner, uint64_t position, int64_t time_ms,
                                   const struct sm_entry *entry, struct qf_err *err);
/* @again: it was done before, its upload is over. */
QF_MUST_CHECK qf_rc sm_apply_load(struct sm_owner *owner, uint64_t position, bool again,
                                  const struct sm_entry *entry, struct sm_verdict *verdict,
                                  struct qf_err *err);
void sm_uploads_expire(struct sm_owner *owner, int64_t time_ms);
/* As after a crash: all begin again. */
void sm_uploads_forget(struct sm_owner *owner);

#endif
