#include "queue/log/store.h"

#include <assert.h>

/* "PFQSNAP1", version, five numbers, two lengths, checksum; then members and state and, from version 2 on,
 * whatever is left: the application. */
#define SNAPSHOT_MAGIC UINT64_C(0x3150414e53514650)
enum { HEADER_WORDS = 10, HEADER = 8 * HEADER_WORDS, CHECK_WORD = 9 };

static uint64_t snapshot_check(const unsigned char *header, const struct ql_snapshot *snapshot)
{
    uint64_t check = ql_check(header, 8 * CHECK_WORD, 0);

    check = ql_check(snapshot->members.data, snapshot->members.len, check);
    check = ql_check(snapshot->state.data, snapshot->state.len, check);
    if (snapshot->application.len)
        check = ql_check(snapshot->application.data, snapshot->application.len, check);
    return check;
}

static uint64_t version_of(const struct ql_snapshot *snapshot)
{
    if (!snapshot->application.len)
        return 1;
    return snapshot->needed ? 3 : 2;
}

void ql_snapshot_encode(struct qf_strbuf *buf, const struct ql_snapshot *snapshot)
{
    const uint64_t words[] = { SNAPSHOT_MAGIC,
                               version_of(snapshot),
                               snapshot->index,
                               snapshot->term,
                               snapshot->change_index,
                               snapshot->generation,
                               snapshot->generation_first,
                               snapshot->members.len,
                               snapshot->state.len };
    unsigned char header[HEADER];

    for (size_t i = 0; i < QF_COUNT_OF(words); i++)
        ql_put(header + 8 * i, words[i], 8);
    ql_put(header + 8 * CHECK_WORD, snapshot_check(header, snapshot), 8);
    qf_strbuf_add(buf, header, sizeof(header));
    qf_strbuf_str(buf, snapshot->members);
    qf_strbuf_str(buf, snapshot->state);
    qf_strbuf_str(buf, snapshot->application);
}

qf_rc ql_snapshot_decode(struct qf_str bytes, struct ql_snapshot *ret_snapshot)
{
    const unsigned char *in = (const unsigned char *)bytes.data;
    struct ql_snapshot snapshot;
    uint64_t members, state, version;
    struct qf_str rest;

    if (bytes.len < HEADER || ql_get(in, 8) != SNAPSHOT_MAGIC)
        return QF_ECORRUPT;
    rest = qf_str_sub(bytes, HEADER, bytes.len);
    version = ql_get(in + 8, 8);
    members = ql_get(in + 56, 8);
    state = ql_get(in + 64, 8);
    if (members > rest.len || state > rest.len - members)
        return QF_ECORRUPT;
    snapshot = (struct ql_snapshot){
        .index = ql_get(in + 16, 8),
        .term = ql_get(in + 24, 8),
        .change_index = ql_get(in + 32, 8),
        .generation = ql_get(in + 40, 8),
        .generation_first = ql_get(in + 48, 8),
        .members = qf_str_sub(rest, 0, (size_t)members),
        .state = qf_str_sub(rest, (size_t)members, (size_t)(members + state)),
        .application = qf_str_sub(rest, (size_t)(members + state), rest.len),
        .needed = version == 3,
    };
    if (ql_get(in + 8 * CHECK_WORD, 8) != snapshot_check(in, &snapshot))
        return QF_ECORRUPT;
    if (version > QL_SNAPSHOT_VERSION)
        return QF_EUNSUPPORTED;
    if (version != version_of(&snapshot) || !snapshot.index || !snapshot.term ||
        !snapshot.generation || !snapshot.generation_first)
        return QF_ECORRUPT;
    *ret_snapshot = snapshot;
    return QF_OK;
}

qf_rc ql_store_create(struct ql_disk *disk, const struct ql_sequence_state *sequence,
                      struct qf_err *err)
{
    struct ql_sequence_state old;
    qf_rc rc = ql_sequence_state_load(disk, &old, NULL);

    if (rc != QF_ENOTFOUND)
        return qf_err_set(err, QF_EEXIST, "%s already holds a node", disk->label);
    return ql_sequence_state_save(disk, sequence, err);
}

static qf_rc load_snapshot(struct ql_store *store, struct qf_err *err)
{
    struct qf_err why = { 0 };
    qf_rc rc =
        ql_disk_load(store->disk, QL_SNAPSHOT_FILE, QL_SNAPSHOT_MAX, &store->snapshot_bytes, &why);

    store->snapshot = (struct ql_snapshot){ .generation = 1, .generation_first = 1 };
    if (rc == QF_ENOTFOUND)
        return QF_OK;
    if (rc != QF_OK)
        return qf_err_set(err, rc, "%s", why.msg);
    rc = ql_snapshot_decode(qf_strbuf_view(&store->snapshot_bytes), &store->snapshot);
    if (rc == QF_EUNSUPPORTED)
        return qf_err_set(
            err, rc, "%s/" QL_SNAPSHOT_FILE " was written by a newer version: start that version",
            store->disk->label);
    if (rc != QF_OK)
        return qf_err_set(err, rc,
                          "%s/" QL_SNAPSHOT_FILE
                          " is damaged: remove this node from the cluster, empty the folder and "
                          "add it as a new node, so that its peers rebuild it",
                          store->disk->label);
    return QF_OK;
}

static qf_rc open_log(struct ql_store *store, struct qf_err *err)
{
    store->options.generation = store->snapshot.generation;
    return ql_log_open(store->disk, &store->options, store->snapshot.generation_first, &store->log,
                       &store->recovery, err);
}

qf_rc ql_store_open(struct ql_store *store, struct ql_disk *disk, const struct ql_options *options,
                    struct qf_err *err)
{
    qf_rc rc;

    *store = (struct ql_store){ .disk = disk, .options = *options };
    rc = ql_sequence_state_load(disk, &store->sequence, err);
    store->options.salt = store->sequence.incarnation;
    if (rc == QF_OK)
        rc = load_snapshot(store, err);
    if (rc == QF_OK)
        rc = open_log(store, err);
    if (rc == QF_OK && store->snapshot.index &&
        (ql_log_first(store->log) > store->snapshot.index + 1 ||
         ql_log_last(store->log) < store->snapshot.index))
        rc = qf_err_set(err, QF_ECORRUPT,
                        "the log of %s does not reach its snapshot: remove this node from the "
                        "cluster, empty the folder and add it as a new node",
                        disk->label);
    if (rc != QF_OK)
        ql_store_close(store);
    return rc;
}

void ql_store_close(struct ql_store *store)
{
    store->log = ql_log_free(store->log);
    qf_strbuf_done(&store->snapshot_bytes);
    store->snapshot_bytes = (struct qf_strbuf)QF_STRBUF_INIT;
}

void ql_store_save_end(struct ql_store *store, struct qf_strbuf *bytes)
{
    qf_rc rc;

    qf_strbuf_done(&store->snapshot_bytes);
    store->snapshot_bytes = *bytes;
    *bytes = (struct qf_strbuf)QF_STRBUF_INIT;
    rc = ql_snapshot_decode(qf_strbuf_view(&store->snapshot_bytes), &store->snapshot);
    assert(rc == QF_OK);
}

/* Write snapshot.dat and keep what was written. */
static qf_rc replace_snapshot(struct ql_store *store, const struct ql_snapshot *snapshot,
                              struct qf_err *err)
{
    struct qf_strbuf bytes = QF_STRBUF_INIT;
    qf_rc rc;

    ql_snapshot_encode(&bytes, snapshot);
    rc = ql_disk_replace(store->disk, QL_SNAPSHOT_FILE, bytes.data, bytes.len, err);
    if (rc == QF_OK)
        ql_store_save_end(store, &bytes);
    qf_strbuf_done(&bytes);
    return rc;
}

void ql_store_save_begin(const struct ql_store *store, const struct ql_snapshot *snapshot,
                         struct qf_strbuf *bytes)
{
    struct ql_snapshot own = *snapshot;

    own.generation = store->snapshot.generation;
    own.generation_first = store->snapshot.generation_first;
    ql_snapshot_encode(bytes, &own);
}

qf_rc ql_store_save(struct ql_store *store, const struct ql_snapshot *snapshot, struct qf_err *err)
{
    struct ql_snapshot own = *snapshot;

    own.generation = store->snapshot.generation;
    own.generation_first = store->snapshot.generation_first;
    return replace_snapshot(store, &own, err);
}

/* Write @count entries, in batches, to the empty log of the next generation. */
static qf_rc fill(struct ql_log *log, const struct ql_entry *entries, size_t count,
                  struct qf_err *err)
{
    qf_rc rc = QF_OK;

    for (size_t start = 0; rc == QF_OK && start < count;) {
        size_t n = 0, bytes = 0;

        while (start + n < count && (n == 0 || bytes + entries[start + n].data.len < 1 << 20))
            bytes += ql_entry_bytes(entries[start + n++].data.len);
        rc = ql_log_append(log, entries + start, n, false, err);
        start += n;
    }
    return rc == QF_OK ? ql_log_sync(log, err) : rc;
}

qf_rc ql_store_clear(struct ql_disk *disk, uint64_t generation, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf names = QF_STRBUF_INIT;
    qf_rc rc = disk->ops->list(disk, &names, err);

    for (size_t at = 0; rc == QF_OK && at < names.len; at += strlen(names.data + at) + 1) {
        uint64_t of, number;

        if (ql_log_file_parse(names.data + at, &of, &number) && of == generation)
            rc = disk->ops->remove(disk, names.data + at, err);
    }
    return rc;
}

qf_rc ql_store_prepare(struct ql_disk *disk, const struct ql_options *options,
                       const struct ql_snapshot *snapshot, const struct ql_entry *entries,
                       size_t count, struct ql_log **ret_log, struct qf_err *err)
{
    uint64_t generation = options->generation + 1;
    struct ql_log *log;
    qf_rc rc = ql_store_clear(disk, generation, err); /* what an earlier attempt left behind */

    if (rc != QF_OK)
        return rc;
    log = ql_log_begin(disk, options, generation, snapshot->index + 1 - count);
    rc = fill(log, entries, count, err);
    if (rc == QF_OK) {
        *ret_log = log;
        return QF_OK;
    }
    (void)ql_log_free(log);
    if (rc == QF_ENOSPC && ql_store_clear(disk, generation, NULL) != QF_OK)
        rc = QF_EIO;
    return rc;
}

qf_rc ql_store_switch(struct ql_store *store, const struct ql_snapshot *snapshot,
                      struct ql_log *log, struct qf_err *err)
{
    struct ql_snapshot own = *snapshot;
    qf_rc rc;

    own.generation = store->snapshot.generation + 1;
    own.generation_first = ql_log_first(log);
    rc = replace_snapshot(store, &own, err);
    if (rc != QF_OK)
        return rc;
    (void)ql_log_free(store->log);
    store->log = log;
    store->options.generation = own.generation;
    return QF_OK;
}

qf_rc ql_store_install(struct ql_store *store, const struct ql_snapshot *snapshot,
                       const struct ql_entry *entries, size_t count, struct qf_err *err)
{
    uint64_t old = store->snapshot.generation;
    struct ql_log *log;
    qf_rc rc = ql_store_prepare(store->disk, &store->options, snapshot, entries, count, &log, err);

    if (rc != QF_OK)
        return rc;
    rc = ql_store_switch(store, snapshot, log, err);
    if (rc != QF_OK) {
        (void)ql_log_free(log);
        return rc;
    }
    return ql_store_clear(store->disk, old, err);
}

qf_rc ql_store_vote(struct ql_store *store, uint64_t term, uint64_t vote, struct qf_err *err)
{
    struct ql_sequence_state next = store->sequence;
    qf_rc rc;

    next.term = term;
    next.vote = vote;
    rc = ql_sequence_state_save(store->disk, &next, err);
    if (rc == QF_OK)
        store->sequence = next;
    return rc;
}
