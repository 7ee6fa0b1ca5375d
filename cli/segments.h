/* segments.h - what the words of `promfabric segments` share. */
#ifndef CLI_SEGMENTS_H
#define CLI_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "segments/parquet/segment_reader.h"
#include "segments/store/store.h"

/* Of the command line. */
struct segments_cli {
    const char *store, *tenant, *temp_dir;
    const char *after;              /* verify: go on behind this name */
    uint64_t jobs;                  /* verify: segments at a time */
    const char *from, *to;          /* rm */
    int64_t retention_ms, slack_ms; /* expire */
    const char *limits_file;        /* expire */
    int64_t age_ms;                 /* sweep */
    bool dry_run, yes;              /* rm, expire, sweep */
};

/* Words. @names are the positional arguments. Each returns the exit code. */
int segments_verify(const struct segments_cli *cli, struct sg_store *store, char **names,
                    int name_count);
int segments_rm(const struct segments_cli *cli, struct sg_store *store, char **names,
                int name_count);
int segments_expire(const struct segments_cli *cli, struct sg_store *store);
int segments_sweep(const struct segments_cli *cli, struct sg_store *store);

/* A reader of a local copy of an object that goes with it; NULL and @err filled. */
struct sg_reader *segments_fetch(const struct segments_cli *cli, struct sg_store *store,
                                 const char *name, const struct sg_store_call *call,
                                 struct qf_err *err);

/* "2026-01-31T00:00:00Z 2026-01-31T01:59:59Z" */
void segments_print_times(struct qf_strbuf *text, int64_t min_ts, int64_t max_ts);
/* "12.3 MiB" */
void segments_print_bytes(struct qf_strbuf *text, uint64_t bytes);

/* Set by SIGINT and SIGTERM once segments_catch_signals() was called. */
const atomic_bool *segments_catch_signals(void);

/* May it be done? Asks on a terminal; without one, and without --yes, says that --yes is needed. */
bool segments_confirm(const struct segments_cli *cli, const char *question);

#endif
