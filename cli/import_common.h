/* import_common.h - what `import` and `demo-data` share: a batch, progress, interruption. */
#ifndef CLI_IMPORT_COMMON_H
#define CLI_IMPORT_COMMON_H

#include <stdbool.h>
#include <stdint.h>

#include "segments/import/import.h"

struct import_cli {
    const char *store;
    const char *tenant;
    uint64_t shards;
    int64_t window;
    uint64_t memory;
    const char *temp_dir;
    bool quiet;

    struct sg_store *opened;
    struct sg_claim *claim;
    uint64_t inputs_bytes;                  /* of all inputs; 0: not known */
    int64_t started_ms, shown_ms, phase_ms; /* when it started, told something, began a phase */
    bool writing;
    bool terminal;
    uint64_t malformed, malformed_shown; /* lines */
    uint64_t exemplars, metadata;        /* read, of text */
    bool samples_stored;                 /* also if something failed */
};

/* The flags of struct import_cli, to be spread into a command's table. */
#define IMPORT_CLI_FLAGS(o)                                                                        \
    { "store",    CLI_FLAG_STR,                                                                    \
      &(o).store, "URL",                                                                           \
      "./store",  "where segments go: a folder, s3://bucket/prefix or ring://HOST:PORT[,...]" },   \
        { "tenant", CLI_FLAG_STR, &(o).tenant, "NAME", "default", "whose data they are" },         \
        { "shards", CLI_FLAG_U64, &(o).shards,                                                     \
          "N",      "4",          "shards to spread series over, a power of two" },                \
        { "window", CLI_FLAG_DURATION, &(o).window, "DURATION", "2h", "time range of a segment" }, \
        { "memory", CLI_FLAG_BYTES, &(o).memory,                                                   \
          "BYTES",  "256MiB",       "memory for sorting; beyond it, temporary files are used" },   \
        { "temp-dir", CLI_FLAG_STR, &(o).temp_dir,                                                 \
          "DIR",      NULL,         "where temporary files go (default $TMPDIR or /tmp)" },        \
    {                                                                                              \
        "quiet", CLI_FLAG_BOOL, &(o).quiet, NULL, NULL, "no progress"                              \
    }

/* Open the store and fill @ret_options; false after a line on stderr. Installs handlers for SIGINT
 * and SIGTERM that cancel the batch, and shows its progress. */
bool import_cli_start(struct import_cli *cli, struct sg_batch_options *ret_options);
/* For struct sg_import_options; the context is @cli. */
void import_cli_reading(void *cli, const struct sg_import_progress *progress);
void import_cli_read(void *cli, const struct sg_import_read *read);
void import_cli_malformed(void *cli, const char *file, uint64_t line, const char *what);
/* End the progress line and tell the outcome; returns the exit code. */
int import_cli_end(struct import_cli *cli, const struct sg_batch_summary *summary, qf_rc rc,
                   const struct qf_err *err);

#endif
