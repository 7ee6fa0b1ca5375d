/* head_int.h - the inside of a head: tenants, ranges and who holds them. */
#ifndef INGEST_HEAD_HEAD_INT_H
#define INGEST_HEAD_HEAD_INT_H

#include "base/pure/map.h"
#include "base/pure/vec.h"
#include "base/sys/thread.h"
#include "ingest/head/annex.h"
#include "ingest/head/head.h"
#include "ingest/head/memory.h"

/* The files of a closed range; they are removed with the last reference. */
struct in_files {
    atomic_uint refs;
    QF_VEC(struct in_head_file) items;   /* segments */
    QF_VEC(struct in_head_file) annexes; /* exemplars and metadata (annex.h) */
    uint64_t bytes;                      /* of all of them */
    char *manifest;                      /* says whose they are; NULL: nothing does */
    bool stay;                           /* they outlive the process: not removed */
};
struct in_files *in_files_new(void);
struct in_files *in_files_ref(struct in_files *files);
struct in_files *in_files_drop(struct in_files *files); /* Accepts NULL, returns NULL. */

/* Behind the head's lock, but for `generation` and `from`, which do not change. */
struct in_head_range {
    uint64_t generation, from;
    uint64_t to; /* 0: open */
    bool sealed;
    struct in_memory *memory; /* NULL: given up */
    struct in_files *files;   /* NULL: not built yet */
    int64_t closed_ms, sealed_ms;
};

/* Files of a range of a process before this one (manifest.h). */
struct in_kept {
    char *tenant;
    uint64_t generation, from, to;
    struct in_files *files;
};

struct in_head_tenant {
    char *name;
    QF_VEC(struct in_head_range *) ranges; /* oldest first */
};

struct in_head {
    struct in_head_options options;
    char *dir;
    struct qf_lock *lock; /* of tenants and ranges; held for moments only */
    struct qf_map names;  /* to places in tenants */
    QF_VEC(struct in_head_tenant *) tenants;
    QF_VEC(struct in_kept) kept; /* not claimed yet; behind the lock */
    struct in_extras *extras;
    struct in_told told;
    struct qf_arena *arena; /* of the queue's thread, for one record */
    atomic_uint_fast64_t applied, unknown, serial;
    atomic_uint_fast64_t told_epoch; /* raised when not all ranges were made here, in order */
};

int64_t in_head_now(const struct in_head *head);
/* With the lock: the tenant and its range, or NULL. */
struct in_head_tenant *in_head_tenant(const struct in_head *head, struct qf_str name);
struct in_head_range *in_head_range(const struct in_head_tenant *tenant, uint64_t generation);

/* Write the files of a closed range in @memory. */
struct in_build {
    const struct in_head *head;
    struct qf_str tenant;
    uint64_t generation;
    const struct in_memory *memory;
    struct in_files *files; /* added to */
};
QF_MUST_CHECK qf_rc in_build_files(const struct in_build *build, struct qf_err *err);
/* A path in the head's folder that nobody else gets. */
char *in_head_new_path(const struct in_head *head, const char *suffix);

#endif
