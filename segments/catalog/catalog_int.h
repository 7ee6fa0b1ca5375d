/* catalog_int.h - the catalogue between its files: catalog.c publishes what refresh.c and
 * rounds.c find and what summaries.c learns. */
#ifndef SEGMENTS_CATALOG_CATALOG_INT_H
#define SEGMENTS_CATALOG_CATALOG_INT_H

#include "base/pure/strbuf.h"
#include "segments/catalog/changes.h"
#include "segments/catalog/index.h"

struct qf_lock;

/* What the last refresh knew of a folder; same order as the snapshot's folders. */
struct known_folder {
    struct index_folder *folder; /* borrowed from the snapshot */
    uint64_t token;
};

struct sg_catalog {
    struct sg_store *store;
    int64_t refresh_interval_ms, summary_time_ms;
    size_t segments_max, summary_bytes_max;

    struct qf_lock *lock; /* guards the fields below; never held during I/O */
    struct sg_catalog_snapshot *snapshot;
    bool refreshing, learning;  /* a thread refreshes */
    uint64_t started, finished; /* refreshes: those that began, the last good one's number; */
    uint64_t whole;             /* the last good one that listed everything, */
    uint64_t anew;              /* and the last that did so whatever folders said */
    uint64_t tenant_number;     /* the last good one of one tenant, */
    uint64_t tenant_hash;       /* and which tenant that was */
    int64_t due_ms;             /* the next listing */
    int64_t learn_due_ms; /* the next look for summaries; QF_TIME_NEVER: all that fit are known */
    struct sg_catalog_told *told; /* NULL: nothing */
    uint64_t told_number;         /* of the last call of sg_catalog_tell() */
    struct qf_err failure;        /* why the index is not current; rc QF_OK: it is */
    struct sg_catalog_stats stats;

    /* Only the thread that refreshes uses these. */
    QF_VEC(struct known_folder) known;
    /* In a store without tokens: */
    struct sg_changes_seen changes;
    struct qf_strbuf round; /* the round has listed everything up to here; empty: it begins */
    size_t recent_next;     /* the tenant whose last days are looked at next */
};

/* Folders that a build has listed: names above @after and below @before. */
struct listed_piece {
    char *after, *before;
};

/* A listing being turned into the next snapshot. */
struct sg_catalog_build {
    struct sg_catalog *catalog;
    const struct sg_store_call *call;
    QF_VEC(struct known_folder) folders; /* with a reference each */
    size_t old;                          /* how far `known` has been walked */
    struct index_builder builder;        /* of the folder being listed */
    bool building;
    uint64_t token;
    size_t segments;
    uint64_t listed, skipped;
    bool changed;
    bool same;            /* what was asked for is as it is known, and nothing was built */
    uint64_t told_number; /* what was told before it began is known when it has ended, ... */
    bool whole;           /* all of it, or what is in: */
    QF_VEC(struct listed_piece) pieces;
    struct qf_err *err;
    qf_rc rc;
};

/* The first of these folders, which are in order, that is not below @name. */
size_t sg_catalog_lower_bound(const struct known_folder *folders, size_t count, struct qf_str name);

/* "tenant=T/date=D/" of an object at any depth below it; empty for one that lies higher up. */
struct qf_str sg_catalog_folder_of(struct qf_str name);

/* List the whole store into @build; where folders have tokens, those that changed. */
QF_MUST_CHECK qf_rc sg_catalog_build_run(struct sg_catalog_build *build);

/* The same for the folders of one tenant, where folders have tokens; all others stay as they are known.
 * Sets build->same and builds nothing if none of them changed. */
QF_MUST_CHECK qf_rc sg_catalog_build_tenant(struct sg_catalog_build *build, struct qf_str tenant);

/* For a store without tokens, on top of the folders known: first list the folders that writers
 * noted, however long it takes; then, until @until_ms, the next part of the round through the
 * bucket and the last days of each tenant. */
QF_MUST_CHECK qf_rc sg_catalog_build_changes(struct sg_catalog_build *build);
QF_MUST_CHECK qf_rc sg_catalog_build_round(struct sg_catalog_build *build, int64_t until_ms);
/* Drop the folders that were not published. */
void sg_catalog_build_done(struct sg_catalog_build *build);

/* Fetch summaries that are not known, newest days first, within the budgets. The caller sees to it
 * that only one thread does. False if time ran out, or the store failed, before all were known. */
bool sg_catalog_learn(struct sg_catalog *catalog, struct sg_catalog_snapshot *snapshot,
                      const struct sg_store_call *call);

#endif
