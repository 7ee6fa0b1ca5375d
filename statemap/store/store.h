/* store.h - the maps of one tenant on this node: a folder, and what becomes of loads in it.
 *
 *     definitions/NAME.json       what was said of each map
 *     rules.json                  what samples are told of them: rules.h
 *     position                    the number of the last part
 *     writer/                     loads being made: an LMDB environment per map
 *     receive/                    a part on its way in
 *     staging/POSITION.part       parts that wait, in their order
 *     merging/NAME/               a part's rows, unpacked
 *     shards/NAME/                the maps: the first part moves there, others are merged into it
 *     snapshots/NAME/VERSION/     copies that stay as they are
 *
 * A load counts from the moment it lies in staging/; until then a crash leaves nothing of it. From there on a crash between any
 * two steps costs nothing: a shard says which part it has last, so a part is merged once, and the part goes only after that. The
 * maps of one load become visible one after the other. One process writes at a time (the file `lock`); others may read.
 *
 * This node is the only owner: what a part comes from and where its number comes from is behind sm_writer, so that a log can give
 * numbers and other nodes can get parts. */
#ifndef STATEMAP_STORE_STORE_H
#define STATEMAP_STORE_STORE_H

#include "base/pure/vec.h"
#include "statemap/core/definition.h"
#include "statemap/store/env.h"
#include "statemap/store/upkeep.h"

struct sm_store;

struct sm_store_options {
    const char *root;                          /* made if it is not there, when writing */
    bool write;                                /* QF_EBUSY: another process writes */
    uint64_t (*hash)(struct qf_str bytes);     /* of keys; NULL: XXH3 */
    void (*step)(void *ctx, const char *what); /* between steps, for tests and progress; or NULL */
    void *step_ctx;
};

#define SM_ENV_IDLE_MS 60000       /* environments are closed after so long */
#define SM_SNAPSHOT_KEEP_MS 600000 /* snapshots are kept so long after a newer one was made */
#define SM_COMPACT_BYTES_MIN (UINT64_C(1) << 20)
enum { SM_MAPS_MAX = 10000 };

/* What an earlier process left half done is put away, or taken up by the next sm_store_merge(). */
QF_MUST_CHECK qf_rc sm_store_open(const struct sm_store_options *options,
                                  struct sm_store **ret_store, struct qf_err *err);
struct sm_store *sm_store_close(struct sm_store *store); /* Accepts NULL, returns NULL. */

/* Definitions. Kind and short keys of a map that is there stay: QF_EEXIST. Names are folded. */
QF_MUST_CHECK qf_rc sm_store_define(struct sm_store *store, const struct sm_definition *definition,
                                    struct qf_err *err);
/* QF_ENOTFOUND. The rows go with the next sm_store_clean(). */
QF_MUST_CHECK qf_rc sm_store_undefine(struct sm_store *store, struct qf_str name,
                                      struct qf_err *err);
/* What a log decided, whatever was there before; its name is folded and it was checked. */
QF_MUST_CHECK qf_rc sm_store_put_definition(struct sm_store *store,
                                            const struct sm_definition *definition,
                                            struct qf_err *err);
/* The map goes with its rows and snapshots at once; who reads them still may. No such map: QF_OK. */
QF_MUST_CHECK qf_rc sm_store_drop(struct sm_store *store, const char *name, struct qf_err *err);
QF_MUST_CHECK qf_rc sm_store_definition(struct sm_store *store, struct qf_str name,
                                        struct sm_definition *ret_definition, struct qf_err *err);
typedef QF_VEC(struct sm_definition) sm_definitions;
/* By name; QF_VEC_DONE() it. */
QF_MUST_CHECK qf_rc sm_store_definitions(struct sm_store *store, sm_definitions *ret_definitions,
                                         struct qf_err *err);

/* A load: rows of any maps, that count together or not at all. */
struct sm_writer;
QF_MUST_CHECK qf_rc sm_writer_begin(struct sm_store *store, struct sm_writer **ret_writer,
                                    struct qf_err *err);
/* QF_EINVAL: this row cannot be put, the load goes on. After any other error only sm_writer_abort() is left. */
QF_MUST_CHECK qf_rc sm_writer_put(struct sm_writer *writer, const struct sm_definition *definition,
                                  const struct sm_row *row, struct qf_err *err);
/* Into staging/; @writer is gone. *ret_position: the part's number; 0: there were no rows. */
QF_MUST_CHECK qf_rc sm_writer_finish(struct sm_writer *writer, uint64_t *ret_position,
                                     struct qf_err *err);
/* Or into the file @path, which was not there, for others to carry about; @writer is gone. *ret_any: it is there; else there were no
 * rows. */
QF_MUST_CHECK qf_rc sm_writer_pack(struct sm_writer *writer, const char *path, bool *ret_any,
                                   struct qf_err *err);
/* A part at @path, on the same disk and looked through, gets @position in staging/. Once it is there it is not at @path. */
QF_MUST_CHECK qf_rc sm_store_stage(struct sm_store *store, const char *path, uint64_t position,
                                   struct qf_err *err);
struct sm_writer *sm_writer_abort(struct sm_writer *writer); /* Accepts NULL, returns NULL. */

/* Merge what waits. A map that is full (QF_ENOSPC) keeps its parts waiting, others are merged; a damaged part (QF_ECORRUPT, it is named)
 * holds up those behind it. *ret_left: parts that wait still. */
QF_MUST_CHECK qf_rc sm_store_merge(struct sm_store *store, uint64_t *ret_left, struct qf_err *err);

/* Condensation and retention of a map, as its definition says, at @now_ms. */
QF_MUST_CHECK qf_rc sm_store_upkeep(struct sm_store *store, struct qf_str name, int64_t now_ms,
                                    struct sm_upkeep *ret_upkeep, struct qf_err *err);
/* Give the disk back what a map's file no longer needs, if that is at least half of it and SM_COMPACT_BYTES_MIN: *ret_freed bytes,
 * else 0. It is copied meanwhile, and nobody else may write to the map; who reads may go on. QF_ENOTFOUND: it has no rows yet;
 * QF_ENOSPC: no room for the copy; QF_EUNSUPPORTED: not on this file system, and it is not tried again. After an error the map is as it was. */
QF_MUST_CHECK qf_rc sm_store_compact(struct sm_store *store, struct qf_str name,
                                     uint64_t *ret_freed, struct qf_err *err);
/* Maps without a definition and old snapshots go, idle environments are closed. What is in use waits for the next time. */
QF_MUST_CHECK qf_rc sm_store_clean(struct sm_store *store, struct qf_err *err);
size_t sm_store_open_count(struct sm_store *store); /* environments */

/* Read a map as it is now; a map without rows yet: QF_ENOTFOUND. Any number of threads at a time. */
struct sm_reading {
    struct sm_shard *shard;
    struct sm_txn *txn;
};
QF_MUST_CHECK qf_rc sm_reading_begin(struct sm_store *store, struct qf_str name,
                                     struct sm_reading *ret_reading, struct qf_err *err);
void sm_reading_end(struct sm_store *store, struct sm_reading *reading);

/* The number of the last part in it. QF_ENOTFOUND: it has no rows yet, or there is no such map. */
QF_MUST_CHECK qf_rc sm_store_version(struct sm_store *store, struct qf_str name,
                                     uint64_t *ret_version, struct qf_err *err);

/* Copy a map as it is now to snapshots/, unless its version is there. */
QF_MUST_CHECK qf_rc sm_snapshot_make(struct sm_store *store, struct qf_str name,
                                     uint64_t *ret_version, struct qf_err *err);
/* The newest copy there is; 0: there is none. */
QF_MUST_CHECK qf_rc sm_snapshot_newest(struct sm_store *store, struct qf_str name,
                                       uint64_t *ret_version, struct qf_err *err);
struct sm_snapshot_file {
    int file; /* close() it */
    uint64_t size;
    char sum[17];
};
/* Whether its sum is what it was: QF_ECORRUPT. */
QF_MUST_CHECK qf_rc sm_snapshot_verify(struct sm_store *store, struct qf_str name, uint64_t version,
                                       struct qf_err *err);
QF_MUST_CHECK qf_rc sm_snapshot_remove(struct sm_store *store, struct qf_str name, uint64_t version,
                                       struct qf_err *err);
/* Its file, open, with what its sum was; nothing is compared. QF_ENOTFOUND. */
QF_MUST_CHECK qf_rc sm_snapshot_open(struct sm_store *store, struct qf_str name, uint64_t version,
                                     struct sm_snapshot_file *ret_file, struct qf_err *err);
/* Read that copy. QF_ENOTFOUND: it is not there (any more); QF_ECORRUPT: its sum is another one. */
QF_MUST_CHECK qf_rc sm_snapshot_begin(struct sm_store *store, struct qf_str name, uint64_t version,
                                      struct sm_reading *ret_reading, struct qf_err *err);

#endif
