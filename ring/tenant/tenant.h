/* tenant.h - what was agreed on for each tenant: its settings, and the entries of `meta` that change them. Pure.
 *
 *     CREATE   NAME, which is not there yet, has SETTINGS
 *     PUT      NAME has SETTINGS from now on, all of them, if its version is VERSION
 *     COPIES   of NAME's settings only the number of copies is another; if its version is VERSION, unless that is 0
 *
 * A tenant's version is the index of the entry that changed it last: no two settings of a tenant ever have the same one,
 * and whoever has all changes up to a version asks for those above it. A setting that is 0 is not said: it is as for all
 * tenants. Tenants do not go: one that says nothing is there all the same, and what files say of it does not count.
 *
 * `copies` is the least number of copies of the tenant's data: the ring keeps as many of everything as it says itself, and
 * an entry that asks for more than that is refused, as is a ring of fewer than a tenant asks for (ring/state/state.h).
 *
 * A record is {"settings":"BASE64"}. One that cannot be read is of a newer release: a node that skipped it would have
 * other settings than the others, so it must not go on. */
#ifndef RING_TENANT_TENANT_H
#define RING_TENANT_TENANT_H

#include "base/pure/limits.h"
#include "base/pure/tenant.h"
#include "base/pure/strbuf.h"
#include "ring/core/tally.h"

enum {
    RG_TENANTS_MAX = 16384,
    RG_TENANTS_SHOWN = 1000,       /* in a page */
    RG_TENANT_RECORD_MAX = 4 << 10 /* bytes of a record */
};

/* Of documents: how many owners must have one, or have answered. */
enum rg_tenant_level { RG_TENANT_ANY, RG_TENANT_ONE, RG_TENANT_QUORUM, RG_TENANT_ALL };
const char *rg_tenant_level_text(enum rg_tenant_level level);
/* False: no such level. */
bool rg_tenant_level_parse(struct qf_str text, enum rg_tenant_level *ret_level);
/* What it comes to: a quorum if nothing is said. */
enum rg_level rg_tenant_level_of(enum rg_tenant_level level);

struct rg_settings {
    uint8_t copies;
    enum rg_tenant_level level;
    struct qf_limits limits;
};

struct rg_tenant {
    char name[QF_TENANT_MAX + 1];
    uint64_t version;
    int64_t created_ms, updated_ms;
    struct rg_settings settings;
};

/* --- entries --- */

enum rg_tenant_kind {
    RG_TENANT_CREATE = 1,
    RG_TENANT_PUT,
    RG_TENANT_COPIES,
    RG_TENANT_KIND__COUNT
};

struct rg_tenant_entry {
    enum rg_tenant_kind kind;
    int64_t time_ms;
    struct qf_str name; /* borrowed */
    uint64_t version;
    struct rg_settings settings;
};

void rg_tenant_entry_encode(struct qf_strbuf *buf, const struct rg_tenant_entry *entry);
/* Borrows from @bytes. QF_ECORRUPT: not what encode would write, or a setting that this release does not know. */
QF_MUST_CHECK qf_rc rg_tenant_entry_decode(struct qf_str bytes, struct rg_tenant_entry *ret_entry);

/* The same as a record of `meta`. QF_ENOTFOUND: it is about something else; QF_EUNSUPPORTED: it cannot be read. Borrows from
 * @bytes, which is filled. */
void rg_tenant_record_encode(struct qf_strbuf *buf, const struct rg_tenant_entry *entry);
QF_MUST_CHECK qf_rc rg_tenant_record_decode(struct qf_str record, struct qf_strbuf *bytes,
                                            struct rg_tenant_entry *ret_entry);

/* --- all of them --- */

/* Why an entry counts for nothing. */
enum rg_tenant_verdict {
    RG_TENANT_APPLIED,
    RG_TENANT_SAME, /* all that it says is so already */
    RG_TENANT_EXISTS,
    RG_TENANT_NO_SUCH,
    RG_TENANT_STALE,    /* the version is another: somebody was quicker */
    RG_TENANT_TOO_MANY, /* copies: more than the ring keeps */
    RG_TENANT_NO_RING,  /* copies, and no ring keeps any */
    RG_TENANT_FULL,
    RG_TENANT_BAD, /* a value that cannot be */
    RG_TENANT_VERDICT__COUNT
};
const char *rg_tenant_verdict_text(enum rg_tenant_verdict verdict);
/* The error of an asker; QF_OK of APPLIED and SAME. */
qf_rc rg_tenant_verdict_rc(enum rg_tenant_verdict verdict);

/* One thread owns a table, or a lock. */
struct rg_tenant_table;

struct rg_tenant_table *rg_tenant_table_new(void);
struct rg_tenant_table *
rg_tenant_table_free(struct rg_tenant_table *table); /* Accepts NULL, returns NULL. */

/* What would come of @entry; @kept: copies that the ring keeps of everything, 0: there is no ring. */
enum rg_tenant_verdict rg_tenant_table_try(const struct rg_tenant_table *table,
                                           const struct rg_tenant_entry *entry, uint8_t kept);
/* Apply @entry, the one at @index of the log, above all before. */
enum rg_tenant_verdict rg_tenant_table_apply(struct rg_tenant_table *table, uint64_t index,
                                             const struct rg_tenant_entry *entry, uint8_t kept);
/* Put in @tenant as it is, or in the place of the one that has its name. False: the table is full. */
bool rg_tenant_table_put(struct rg_tenant_table *table, const struct rg_tenant *tenant);

size_t rg_tenant_table_count(const struct rg_tenant_table *table);
/* In the order of their creation; until the next change. */
const struct rg_tenant *rg_tenant_table_at(const struct rg_tenant_table *table, size_t i);
const struct rg_tenant *rg_tenant_table_find(const struct rg_tenant_table *table,
                                             struct qf_str name); /* NULL: none */
/* Its number in that order; the count: none. */
size_t rg_tenant_table_number(const struct rg_tenant_table *table, struct qf_str name);
/* The greatest version; 0: there is none. */
uint64_t rg_tenant_table_version(const struct rg_tenant_table *table);
/* The most copies that a tenant asks for. */
uint8_t rg_tenant_table_copies(const struct rg_tenant_table *table);
/* What they may have, as limits_file.h takes it. */
struct qf_limits_table *rg_tenant_table_limits(const struct rg_tenant_table *table);

/* For snapshots: equal tables give equal bytes; none as long as there are no tenants. Decoding is strict: QF_ECORRUPT,
 * QF_EUNSUPPORTED: by a newer release. Then @table is as before. */
void rg_tenant_table_save(struct qf_strbuf *buf, const struct rg_tenant_table *table);
QF_MUST_CHECK qf_rc rg_tenant_table_restore(struct rg_tenant_table *table, struct qf_str bytes);

/* --- what is said of them --- */

/* As JSON; @copies: that the ring keeps, 0: there is no ring. */
void rg_tenant_show(struct qf_strbuf *buf, const struct rg_tenant *tenant, uint8_t copies);
/* A page of them, in the order of their creation, behind the one called @after; empty: from the first. The last one is
 * named as `next` if there are more. */
void rg_tenant_table_show(struct qf_strbuf *buf, const struct rg_tenant_table *table,
                          struct qf_str after, uint8_t copies);

#endif
