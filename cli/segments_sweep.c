/* segments_sweep.c - promfabric segments sweep: what writers left that died. */
#include <stdio.h>

#include "cli/segments.h"
#include "segments/write/sweep.h"

/* A writer may be at work on what is younger; an import of much takes hours. */
#define AGE_MIN_MS INT64_C(3600000)

int segments_sweep(const struct segments_cli *cli, struct sg_store *store)
{
    struct sg_sweep_options options = { .store = store,
                                        .age_ms = cli->age_ms,
                                        .dry_run = cli->dry_run };
    struct sg_store_call call = { .cancel = segments_catch_signals() };
    struct qf_err err = { 0 }, why = { 0 };
    struct sg_sweep swept;

    if (cli->age_ms < AGE_MIN_MS) {
        fprintf(stderr,
                "error: --age: at least 1h, as writers may be at work on what is younger\n");
        return 2;
    }
    if (sg_sweep(&options, &call, &swept, &why, &err) != QF_OK) {
        fprintf(stderr, "error: %s\n", err.msg);
        return 1;
    }
    printf(
        "%s: %zu temporary files, unfinished uploads and empty folders, %zu notes of changes, %zu "
        "leases; %zu temporary folders on this machine\n",
        cli->dry_run ? "would go" : "removed", swept.in_store, swept.notes, swept.leases,
        swept.folders);
    if (why.rc != QF_OK)
        fprintf(stderr, "error: cannot look for what is unfinished in the store: %s\n", why.msg);
    return why.rc == QF_OK ? 0 : 1;
}
