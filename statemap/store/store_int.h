/* store_int.h - the inside of a store. */
#ifndef STATEMAP_STORE_STORE_INT_H
#define STATEMAP_STORE_STORE_INT_H

#include "base/pure/vec.h"
#include "base/sys/thread.h"
#include "statemap/store/folder.h"
#include "statemap/store/store.h"

/* An environment that is open: a map's, or a snapshot's of it. */
struct sm_shard {
    char name[SM_NAME_MAX + 1]; /* "": its map went */
    uint64_t version;           /* of a snapshot; 0: the map */
    struct sm_env *env;
    size_t users;
    int64_t used_ms;
};

struct sm_rule_set;

struct sm_store {
    char *root;
    int lock_file; /* -1: it is not written to */
    uint64_t (*hash)(struct qf_str bytes);
    void (*step)(void *ctx, const char *what);
    void *step_ctx;
    struct qf_lock *lock; /* of what follows */
    QF_VEC(struct sm_shard *) shards;
    bool cannot_exchange;               /* folders, on this file system: it was tried */
    uint64_t writers;                   /* numbers given to loads */
    QF_VEC(struct sm_rule_set *) rules; /* as the file has them, oldest first */
    bool rules_read;
};

void sm_step_done(struct sm_store *store, const char *what);

/* What a map's environment is opened with. */
struct sm_env_options sm_env_options_of(const struct sm_store *store,
                                        const struct sm_definition *definition, const char *folder);

/* The open environment of a map (or of a snapshot), for one user more. QF_ENOTFOUND: it is not there. */
QF_MUST_CHECK qf_rc sm_shard_take(struct sm_store *store, const struct sm_definition *definition,
                                  uint64_t version, struct sm_shard **ret_shard,
                                  struct qf_err *err);
void sm_shard_give_back(struct sm_store *store, struct sm_shard *shard);
void sm_shards_idle(struct sm_store *store, int64_t now_ms); /* monotonic */
/* Environments of the map and of its snapshots are nobody's from now on; who reads them still may. */
void sm_shard_detach(struct sm_store *store, const char *name);
/* The map's folder is another one from now on: its environment, not those of snapshots, as above. */
void sm_shard_replaced(struct sm_store *store, const char *name);
/* Close an environment that nobody uses; false: somebody does. */
bool sm_shard_close(struct sm_store *store, const char *name, uint64_t version);

QF_MUST_CHECK qf_rc sm_position_next(struct sm_store *store, uint64_t *ret_position,
                                     struct qf_err *err);
char *sm_snapshot_path(const struct sm_store *store, const char *name, uint64_t version);
QF_MUST_CHECK qf_rc sm_snapshot_check(const char *path, const char *name, struct qf_err *err);
void sm_rules_forget(struct sm_store *store); /* they are read again, if anybody asks */
QF_MUST_CHECK qf_rc sm_snapshots_clean(struct sm_store *store, struct qf_err *err);

#endif
