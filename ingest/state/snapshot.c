/* snapshot.c - copies of maps for those who read them elsewhere. */
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "ingest/state/state_int.h"

/* The newest copy is good for so long after it was made: a map that changes all the time is not copied all the time. */
#define FRESH_MS 2000

static bool is_fresh(const struct sm_snapshot_file *file)
{
    struct stat seen;
    int64_t age;

    if (fstat(file->file, &seen) < 0)
        return false;
    age =
        qf_clock_wall_ms() - ((int64_t)seen.st_mtim.tv_sec * 1000 + seen.st_mtim.tv_nsec / 1000000);
    return age >= 0 && age < FRESH_MS;
}

/* With the lock of copies. */
static qf_rc make(struct in_state *state, struct sm_store *store, struct qf_str name,
                  struct in_state_snapshot *snapshot, struct qf_err *err)
{
    uint64_t now, newest = 0;
    qf_rc rc = sm_store_version(store, name, &now, err);

    if (rc == QF_OK)
        rc = sm_snapshot_newest(store, name, &newest, err);
    if (rc != QF_OK)
        return rc;
    if (newest && sm_snapshot_open(store, name, newest, &snapshot->file, NULL) == QF_OK) {
        snapshot->version = newest;
        if (newest == now || is_fresh(&snapshot->file))
            return QF_OK;
        (void)close(snapshot->file.file);
        snapshot->file.file = -1;
    }
    rc = sm_snapshot_make(store, name, &snapshot->version, err);
    if (rc == QF_OK) {
        atomic_fetch_add(&state->snapshots, 1);
        rc = sm_snapshot_open(store, name, snapshot->version, &snapshot->file, err);
    }
    return rc;
}

/* Before it is sent: the disk may give back something else by now. */
static qf_rc look_through(struct in_state *state, struct sm_store *store, struct qf_str name,
                          struct in_state_snapshot *snapshot, struct qf_err *err)
{
    uint64_t version = snapshot->version;
    qf_rc rc = sm_snapshot_verify(store, name, version, err);

    if (rc != QF_ECORRUPT)
        return rc;
    QF_LOG_ERROR("a snapshot of a state map is damaged: it is made again", QF_KV_SLICE("map", name),
                 QF_KV_U64("version", version));
    (void)close(snapshot->file.file);
    snapshot->file.file = -1;
    rc = sm_snapshot_remove(store, name, version, err);
    if (rc != QF_OK)
        return rc;
    if (err)
        *err = (struct qf_err){ 0 };
    rc = make(state, store, name, snapshot, err);
    if (rc == QF_OK && snapshot->version != version)
        return QF_OK; /* the map has gone on: whoever wanted that version is told */
    return rc;
}

static qf_rc find(struct in_state *state, struct sm_store *store, struct qf_str name,
                  uint64_t version, struct in_state_snapshot *snapshot, struct qf_err *err)
{
    qf_rc rc;

    if (!version)
        return make(state, store, name, snapshot, err);
    snapshot->version = version;
    rc = sm_snapshot_open(store, name, version, &snapshot->file, err);
    if (rc != QF_ENOTFOUND)
        return rc;
    /* Nobody asked this node for it yet, but it may be what the map is now. */
    if (err)
        *err = (struct qf_err){ 0 };
    rc = make(state, store, name, snapshot, err);
    if (rc != QF_OK || snapshot->version == version)
        return rc;
    (void)close(snapshot->file.file);
    snapshot->file.file = -1;
    return qf_err_set(err, QF_EGONE, "map %.*s: version %" PRIu64 " is not here (any more)",
                      QF_STR_ARG(name), version);
}

qf_rc in_state_snapshot(struct in_state *state, struct qf_str tenant, struct qf_str name,
                        uint64_t version, uint64_t after, bool whole,
                        struct in_state_snapshot *ret_snapshot, struct qf_err *err)
{
    struct in_state_snapshot snapshot = { .file.file = -1 };
    struct sm_definition definition;
    struct sm_store *store;
    uint64_t now;
    qf_rc rc = in_state_store(state, tenant, &store, err);

    if (rc == QF_OK)
        rc = sm_store_definition(store, name, &definition, err);
    if (rc != QF_OK)
        return rc;
    snapshot.created = definition.created;
    rc = sm_store_version(store, name, &now, err);
    if (rc == QF_ENOTFOUND || (rc == QF_OK && !version && after == now)) {
        snapshot.version = rc == QF_OK ? now : 0;
        if (err)
            *err = (struct qf_err){ 0 };
        *ret_snapshot = snapshot;
        return QF_OK;
    }
    if (rc != QF_OK)
        return rc;
    qf_lock_take(state->copy);
    rc = find(state, store, name, version, &snapshot, err);
    if (rc == QF_OK && whole)
        rc = look_through(state, store, name, &snapshot, err);
    qf_lock_drop(state->copy);
    if (rc == QF_OK && version && snapshot.version != version)
        rc = qf_err_set(err, QF_EGONE, "map %.*s: version %" PRIu64 " is not here any more",
                        QF_STR_ARG(name), version);
    if (rc == QF_OK)
        *ret_snapshot = snapshot;
    else if (snapshot.file.file >= 0)
        (void)close(snapshot.file.file);
    return rc;
}
