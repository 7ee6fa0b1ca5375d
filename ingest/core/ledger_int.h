/* ledger_int.h - the ledger's own state, shared by its files. */
#ifndef INGEST_CORE_LEDGER_INT_H
#define INGEST_CORE_LEDGER_INT_H

#include "base/pure/map.h"
#include "base/pure/vec.h"
#include "ingest/core/ledger.h"

struct in_ledger {
    uint64_t applied;
    int64_t time_ms, floor_ms;
    struct qf_map names; /* to places in tenants */
    struct in_tenant **tenants;
    size_t tenant_count, tenant_capacity;
    struct in_keys keys;
    QF_VEC(uint64_t) voids;       /* indices in the unsealed log, ascending */
    struct rg_manifest *manifest; /* NULL: nothing was noted */
    uint64_t manifest_changed;
};

/* The tenant called @name, made if need be. NULL: there are too many. */
struct in_tenant *in_ledger_make_tenant(struct in_ledger *ledger, struct qf_str name);
/* One more range or file of a tenant, zeroed; bounds are the caller's business. */
struct in_range *in_tenant_add_range(struct in_tenant *tenant);
struct in_recent_file *in_tenant_add_file(struct in_tenant *tenant);

/* ledger_elected.c */
enum in_verdict in_ledger_elect(struct in_ledger *ledger, const struct in_record *record);
struct in_elected *in_tenant_add_elected(struct in_tenant *tenant); /* zeroed */
void in_tenant_drop_elected(struct in_tenant *tenant);              /* all of them */

/* ledger_note.c: the note of @record. False: it counts for nothing. */
bool in_ledger_note(struct in_ledger *ledger, uint64_t index, const struct in_record *record);

/* ledger_past.c */
void in_ledger_note_void(struct in_ledger *ledger, uint64_t index);
void in_ledger_forget_voids(struct in_ledger *ledger); /* of what was sealed */

#endif
