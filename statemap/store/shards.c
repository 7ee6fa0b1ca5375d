/* shards.c - the table of open environments: LMDB must not open one twice, and none stays open for nothing. */
#include <stdlib.h>
#include <string.h>

#include "base/sys/clock.h"
#include "statemap/store/store_int.h"

struct sm_env_options sm_env_options_of(const struct sm_store *store,
                                        const struct sm_definition *definition, const char *folder)
{
    return (struct sm_env_options){
        .folder = folder,
        .name = definition->name,
        .layout = definition->layout,
        .map_bytes = definition->map_bytes,
        .readers = (unsigned)definition->readers,
        .hash = store->hash,
    };
}

/* With the lock. */
static struct sm_shard *find(struct sm_store *store, const char *name, uint64_t version)
{
    for (size_t i = 0; i < store->shards.count; i++)
        if (store->shards.items[i]->version == version &&
            strcmp(store->shards.items[i]->name, name) == 0)
            return store->shards.items[i];
    return NULL;
}

static qf_rc open_shard(struct sm_store *store, const struct sm_definition *definition,
                        uint64_t version, struct sm_shard **ret_shard, struct qf_err *err)
{
    QF_CLEANUP(qf_freep)
    char *folder = version ? sm_snapshot_path(store, definition->name, version)
                           : sm_path(store->root, "shards", definition->name);
    struct sm_env_options options = sm_env_options_of(store, definition, folder);
    struct sm_env *env;
    qf_rc rc = QF_OK;

    options.fixed = version != 0;
    if (version)
        rc = sm_snapshot_check(folder, definition->name, err);
    if (rc == QF_OK)
        rc = sm_env_open(&options, &env, err);
    if (rc != QF_OK)
        return rc;
    *ret_shard = qf_xcalloc(1, sizeof(**ret_shard));
    **ret_shard = (struct sm_shard){ .env = env, .version = version };
    memcpy((*ret_shard)->name, definition->name, sizeof((*ret_shard)->name));
    QF_VEC_PUSH(&store->shards, *ret_shard);
    return QF_OK;
}

qf_rc sm_shard_take(struct sm_store *store, const struct sm_definition *definition,
                    uint64_t version, struct sm_shard **ret_shard, struct qf_err *err)
{
    struct sm_shard *shard;
    qf_rc rc = QF_OK;

    qf_lock_take(store->lock);
    shard = find(store, definition->name, version);
    if (!shard)
        rc = open_shard(store, definition, version, &shard, err);
    if (rc == QF_OK) {
        shard->users++;
        *ret_shard = shard;
    }
    qf_lock_drop(store->lock);
    return rc;
}

/* With the lock. */
static void close_at(struct sm_store *store, size_t i)
{
    (void)sm_env_close(store->shards.items[i]->env);
    free(store->shards.items[i]);
    store->shards.items[i] = store->shards.items[--store->shards.count];
}

/* With the lock: environments whose map went are closed by who used them last. */
static void close_detached(struct sm_store *store)
{
    for (size_t i = store->shards.count; i-- > 0;)
        if (!store->shards.items[i]->name[0] && store->shards.items[i]->users == 0)
            close_at(store, i);
}

void sm_shard_give_back(struct sm_store *store, struct sm_shard *shard)
{
    qf_lock_take(store->lock);
    shard->users--;
    shard->used_ms = qf_clock_mono_ms();
    if (!shard->name[0])
        close_detached(store);
    qf_lock_drop(store->lock);
}

void sm_shard_detach(struct sm_store *store, const char *name)
{
    qf_lock_take(store->lock);
    for (size_t i = 0; i < store->shards.count; i++)
        if (strcmp(store->shards.items[i]->name, name) == 0)
            store->shards.items[i]->name[0] = '\0';
    close_detached(store);
    qf_lock_drop(store->lock);
}

void sm_shard_replaced(struct sm_store *store, const char *name)
{
    struct sm_shard *shard;

    qf_lock_take(store->lock);
    shard = find(store, name, 0);
    if (shard)
        shard->name[0] = '\0';
    close_detached(store);
    qf_lock_drop(store->lock);
}

bool sm_shard_close(struct sm_store *store, const char *name, uint64_t version)
{
    bool closed = true;

    qf_lock_take(store->lock);
    for (size_t i = 0; i < store->shards.count; i++) {
        struct sm_shard *shard = store->shards.items[i];

        if (shard->version != version || strcmp(shard->name, name) != 0)
            continue;
        closed = shard->users == 0;
        if (closed)
            close_at(store, i);
        break;
    }
    qf_lock_drop(store->lock);
    return closed;
}

void sm_shards_idle(struct sm_store *store, int64_t now_ms)
{
    qf_lock_take(store->lock);
    for (size_t i = store->shards.count; i-- > 0;)
        if (store->shards.items[i]->users == 0 &&
            now_ms - store->shards.items[i]->used_ms >= SM_ENV_IDLE_MS)
            close_at(store, i);
    qf_lock_drop(store->lock);
}

size_t sm_store_open_count(struct sm_store *store)
{
    size_t count;

    qf_lock_take(store->lock);
    count = store->shards.count;
    qf_lock_drop(store->lock);
    return count;
}

static qf_rc begin(struct sm_store *store, struct qf_str name, uint64_t version,
                   struct sm_reading *ret_reading, struct qf_err *err)
{
    struct sm_definition definition;
    struct sm_reading reading = { 0 };
    qf_rc rc = sm_store_definition(store, name, &definition, err);

    if (rc == QF_OK)
        rc = sm_shard_take(store, &definition, version, &reading.shard, err);
    if (rc != QF_OK)
        return rc;
    rc = sm_read_begin(reading.shard->env, &reading.txn, err);
    if (rc != QF_OK) {
        sm_shard_give_back(store, reading.shard);
        return rc;
    }
    *ret_reading = reading;
    return QF_OK;
}

qf_rc sm_reading_begin(struct sm_store *store, struct qf_str name, struct sm_reading *ret_reading,
                       struct qf_err *err)
{
    return begin(store, name, 0, ret_reading, err);
}

qf_rc sm_snapshot_begin(struct sm_store *store, struct qf_str name, uint64_t version,
                        struct sm_reading *ret_reading, struct qf_err *err)
{
    if (version == 0)
        return qf_err_set(err, QF_ENOTFOUND, "there is no snapshot of version 0");
    return begin(store, name, version, ret_reading, err);
}

qf_rc sm_store_version(struct sm_store *store, struct qf_str name, uint64_t *ret_version,
                       struct qf_err *err)
{
    struct sm_reading reading;
    qf_rc rc = sm_reading_begin(store, name, &reading, err);

    if (rc != QF_OK)
        return rc;
    *ret_version = sm_about(reading.txn).version;
    sm_reading_end(store, &reading);
    return QF_OK;
}

void sm_reading_end(struct sm_store *store, struct sm_reading *reading)
{
    reading->txn = sm_end(reading->txn);
    if (reading->shard)
        sm_shard_give_back(store, QF_TAKE(reading->shard));
}
