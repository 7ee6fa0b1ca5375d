/* state.h - what the words of `promfabric state` share. */
#ifndef CLI_STATE_H
#define CLI_STATE_H

#include "statemap/load/load.h"
#include "statemap/store/store.h"

/* Of the command line. */
struct state_cli {
    const char *data, *tenant;                     /* of this machine */
    const char *kind, *type, *metric;              /* define */
    bool short_keys;                               /* define */
    int64_t condense_ms, retention_ms, timeout_ms; /* define */
    uint64_t map_bytes, readers;                   /* define */
    const char *map, *format, *on_error;           /* load */
    bool quiet;                                    /* load */
    const char *time;                              /* get */
    uint64_t limit;                                /* rows */
    const char *prefix;                            /* rows */
};

/* Words. @names are the positional arguments. Each returns the exit code. */
int state_load(const struct state_cli *cli, struct sm_store *store, char **names, int count);
int state_get(const struct state_cli *cli, struct sm_store *store, char **names, int count);
int state_rows(const struct state_cli *cli, struct sm_store *store, char **names, int count);

/* What --format says, or the end of the file's name; false: nothing. */
bool state_format_of(const struct state_cli *cli, const char *file, enum sm_format *ret_format);

/* A line on stderr; returns 1. */
int state_failed(const struct qf_err *err);

#endif
