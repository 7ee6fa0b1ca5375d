#include "queue/log/bytes.h"
#include "queue/log/sequence_state.h"

/* "PFQSEQ01", version, counter, four values, zeros up to the checksum in the last 8 bytes. */
#define SEQUENCE_MAGIC UINT64_C(0x3130514553514650)
enum { CHECK_AT = QL_SEQUENCE_COPY_BYTES - 8, COPIES = 2 };

void ql_sequence_state_encode(const struct ql_sequence_state *state, uint64_t counter,
                              unsigned char out[QL_SEQUENCE_COPY_BYTES])
{
    const uint64_t words[] = { SEQUENCE_MAGIC, QL_SEQUENCE_STATE_VERSION, counter,
                               state->cluster, state->incarnation,        state->term,
                               state->vote };

    memset(out, 0, QL_SEQUENCE_COPY_BYTES);
    for (size_t i = 0; i < QF_COUNT_OF(words); i++)
        ql_put(out + 8 * i, words[i], 8);
    ql_put(out + CHECK_AT, ql_check(out, CHECK_AT, 0), 8);
}

qf_rc ql_sequence_state_decode(const unsigned char *data, size_t len,
                               struct ql_sequence_state *ret_state, uint64_t *ret_counter)
{
    if (len < QL_SEQUENCE_COPY_BYTES || ql_get(data, 8) != SEQUENCE_MAGIC ||
        ql_get(data + CHECK_AT, 8) != ql_check(data, CHECK_AT, 0))
        return QF_ECORRUPT;
    if (ql_get(data + 8, 8) != QL_SEQUENCE_STATE_VERSION)
        return QF_EUNSUPPORTED;
    *ret_counter = ql_get(data + 16, 8);
    *ret_state = (struct ql_sequence_state){ .cluster = ql_get(data + 24, 8),
                                             .incarnation = ql_get(data + 32, 8),
                                             .term = ql_get(data + 40, 8),
                                             .vote = ql_get(data + 48, 8) };
    return QF_OK;
}

/* The newer whole copy of the file's bytes. */
static qf_rc newest(struct ql_disk *disk, struct qf_str bytes, struct ql_sequence_state *ret_state,
                    uint64_t *ret_counter, struct qf_err *err)
{
    bool found = false;

    for (size_t i = 0; i < COPIES; i++) {
        size_t at = i * QL_SEQUENCE_COPY_BYTES;
        struct ql_sequence_state state;
        uint64_t counter;
        qf_rc rc = at < bytes.len ? ql_sequence_state_decode((const unsigned char *)bytes.data + at,
                                                             bytes.len - at, &state, &counter)
                                  : QF_ECORRUPT;

        if (rc == QF_EUNSUPPORTED)
            return qf_err_set(err, rc,
                              "%s/" QL_SEQUENCE_STATE_FILE
                              " was written by a newer version: start that version",
                              disk->label);
        if (rc == QF_OK && (!found || counter > *ret_counter)) {
            *ret_state = state;
            *ret_counter = counter;
            found = true;
        }
    }
    if (!found)
        return qf_err_set(err, QF_ECORRUPT,
                          "%s/" QL_SEQUENCE_STATE_FILE
                          " is damaged in both copies: remove this node from the cluster, empty "
                          "the folder and add it as a new node",
                          disk->label);
    return QF_OK;
}

static qf_rc write_copies(struct ql_disk *disk, int file, const struct ql_sequence_state *state,
                          uint64_t counter, struct qf_err *err)
{
    unsigned char copy[QL_SEQUENCE_COPY_BYTES];
    qf_rc rc = QF_OK;

    ql_sequence_state_encode(state, counter, copy);
    for (size_t i = 0; rc == QF_OK && i < COPIES; i++) {
        rc = disk->ops->write(disk, file, i * sizeof(copy), copy, sizeof(copy), err);
        if (rc == QF_OK)
            rc = disk->ops->sync(disk, file, err);
    }
    return rc;
}

static qf_rc store(struct ql_disk *disk, const struct ql_sequence_state *state, uint64_t counter,
                   struct qf_err *err)
{
    int file;
    qf_rc rc = disk->ops->open(disk, QL_SEQUENCE_STATE_FILE, false, &file, err);

    if (rc != QF_OK)
        return rc;
    rc = write_copies(disk, file, state, counter, err);
    disk->ops->close(disk, file);
    return rc;
}

static qf_rc read_newest(struct ql_disk *disk, struct ql_sequence_state *ret_state,
                         uint64_t *ret_counter, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    qf_rc rc = ql_disk_load(disk, QL_SEQUENCE_STATE_FILE, 1 << 16, &bytes, err);

    return rc == QF_OK ? newest(disk, qf_strbuf_view(&bytes), ret_state, ret_counter, err) : rc;
}

qf_rc ql_sequence_state_load(struct ql_disk *disk, struct ql_sequence_state *ret_state,
                             struct qf_err *err)
{
    struct ql_sequence_state state;
    uint64_t counter;
    qf_rc rc = read_newest(disk, &state, &counter, err);

    /* What was read may never have been synced: a killed process leaves it to the page cache. */
    if (rc == QF_OK)
        rc = store(disk, &state, counter, err);
    if (rc == QF_OK)
        *ret_state = state;
    return rc;
}

/* The first save: both copies in a file that is there whole or not at all. */
static qf_rc create(struct ql_disk *disk, const struct ql_sequence_state *state, struct qf_err *err)
{
    unsigned char copies[COPIES * QL_SEQUENCE_COPY_BYTES];

    for (size_t i = 0; i < COPIES; i++)
        ql_sequence_state_encode(state, 1, copies + i * QL_SEQUENCE_COPY_BYTES);
    return ql_disk_replace(disk, QL_SEQUENCE_STATE_FILE, copies, sizeof(copies), err);
}

qf_rc ql_sequence_state_save(struct ql_disk *disk, const struct ql_sequence_state *state,
                             struct qf_err *err)
{
    struct ql_sequence_state old;
    uint64_t counter;
    qf_rc rc = read_newest(disk, &old, &counter, NULL);

    if (rc == QF_ENOTFOUND)
        return create(disk, state, err);
    if (rc != QF_OK)
        return qf_err_set(err, rc, "%s/" QL_SEQUENCE_STATE_FILE " cannot be read any more",
                          disk->label);
    return store(disk, state, counter + 1, err);
}
