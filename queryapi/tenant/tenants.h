/* tenants.h - tenants that have queries: what each may have, and what it has.
 *
 * Where ingest nodes have settings of tenants (queryapi/settings/follow.h) these come before the file; until they were
 * heard of for the first time nobody knows what a tenant may have.
 *
 * A tenant is known as long as something holds it, so there are no more of them than queries. Its
 * limits are those of the flags, or of the file of limits (base/pure/limits.h), which is read again when it has
 * changed; a query keeps those it began with, memory counts at once. */
#ifndef QUERYAPI_TENANT_TENANTS_H
#define QUERYAPI_TENANT_TENANTS_H

#include <stdbool.h>

#include "base/pure/err.h"
#include "base/pure/purse.h"
#include "base/pure/tenant.h"
#include "base/pure/limits.h"

struct qa_tenants;

struct qa_tenants_options {
    struct qf_limits limits; /* of those that the file does not name */
    const char *file;        /* or NULL */
    struct qf_purse *purse;  /* of all queries; outlives all tenants */
};

/* NULL and @err filled: QF_EIO, QF_EINVAL of the file. */
struct qa_tenants *qa_tenants_new(const struct qa_tenants_options *options, struct qf_err *err);
/* All tenants have been dropped. Accepts NULL, returns NULL. */
struct qa_tenants *qa_tenants_free(struct qa_tenants *tenants);

/* Read the file again if it is another one; *ret_changed says so. QF_EIO, QF_EINVAL: it is not usable
 * now, the limits read before stay. Any thread, one at a time. */
QF_MUST_CHECK qf_rc qa_tenants_refresh(struct qa_tenants *tenants, bool *ret_changed,
                                       struct qf_err *err);

/* --- settings that were agreed on. Any thread --- */

/* They are to be waited for. */
void qa_tenants_await(struct qa_tenants *tenants);
/* From now on these count, of @count tenants; @settings, which may be NULL, goes with @tenants. */
void qa_tenants_settle(struct qa_tenants *tenants, struct qf_limits_table *settings, size_t count);
/* They were all there were at @mono_ms. */
void qa_tenants_confirm(struct qa_tenants *tenants, int64_t mono_ms);
/* Is it known what tenants may have? */
bool qa_tenants_known(const struct qa_tenants *tenants);
/* How long ago settings were all there were; 0: none are waited for; -1: nobody knows. */
int64_t qa_tenants_age_ms(const struct qa_tenants *tenants, int64_t mono_ms);
size_t qa_tenants_settled(const struct qa_tenants *tenants);

/* What the tenant called @name may have now. Any thread. */
struct qf_limits qa_tenants_limits(struct qa_tenants *tenants, struct qf_str name);
/* As qf_limits_retentions(), of now. Any thread. */
uint64_t qa_tenants_retentions(struct qa_tenants *tenants);

struct qa_tenant {
    uint64_t id;           /* no other that is held has it */
    struct qf_purse purse; /* memory of its queries */
    uint64_t spool_bytes;  /* announced artifacts of its queries: the coordinator's */
    /* Of tenants.c. */
    char name[QF_TENANT_MAX + 1];
    struct qa_tenants *of;
    struct qa_tenant *next;
    size_t holders;
};

/* The tenant called @name, held, with its limits of now. Any thread. */
struct qa_tenant *qa_tenants_take(struct qa_tenants *tenants, struct qf_str name,
                                  struct qf_limits *ret_limits);
/* Any thread. Accepts NULL, returns NULL. */
struct qa_tenant *qa_tenant_drop(struct qa_tenant *tenant);

#endif
