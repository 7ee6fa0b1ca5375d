/* sweep.h - what writers left behind that died: nobody else looks for it.
 *
 * Nothing goes that a reader could see, or that a writer could still be at work on: each kind is
 * left alone until it is older than any writer takes. Whole segments are never swept: every one that
 * is there is part of answers. */
#ifndef SEGMENTS_WRITE_SWEEP_H
#define SEGMENTS_WRITE_SWEEP_H

#include "segments/store/store.h"

/* Leftovers in a store are removed when no writer can still be at work on them. */
#define SG_SWEEP_AGE_MS INT64_C(86400000)

struct sg_sweep_options {
    struct sg_store *store;
    const char *temp_dir; /* of batches on this machine; NULL: where they are by default */
    int64_t age_ms;       /* of leftovers in the store; 0: SG_SWEEP_AGE_MS */
    bool dry_run;         /* only count */
};

struct sg_sweep {
    size_t in_store; /* temporary files, unfinished uploads, empty folders */
    size_t notes;    /* of changes, which readers look at for half an hour (changes.h) */
    size_t leases;   /* that are over since a day (lease.h) */
    size_t folders;  /* temporary ones of batches whose process is gone */
};

/* Remove notes and leases, which also tells early whether the store can be used: errors of
 * sg_store_list() and sg_store_delete(). Then temporary folders of this machine, then leftovers in
 * the store, as far as that is possible: *ret_why, if it is not, says why. */
QF_MUST_CHECK qf_rc sg_sweep(const struct sg_sweep_options *options,
                             const struct sg_store_call *call, struct sg_sweep *ret_sweep,
                             struct qf_err *ret_why, struct qf_err *err);

/* Remove temporary folders whose owners are gone from @temp_dir, which belongs to the caller alone. */
void sg_sweep_folders(const char *temp_dir);

/* A new temporary folder for a batch, which its owner keeps locked as long as it lives (*ret_fd).
 * NULL and @err filled: QF_EIO. */
char *sg_sweep_make_folder(const char *temp_dir, int *ret_fd, struct qf_err *err);

#endif
