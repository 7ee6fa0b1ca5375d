/* load.c - rows of a request: read here, sent to all owners as one part, and done. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "ingest/state/state_int.h"

/* At a time: each has a body and a part. */
enum { LOADS_MAX = 8, REASONS_KEPT = 10, PIECES_AT_ONCE = 4, TRIES = 3 };
/* Until what was sent is merged here: a map of many rows takes a while. */
#define WAIT_MS 300000
/* Until this node has heard of the log at all. */
#define FIRST_MS 2000

static void skipped(void *ctx, const char *why)
{
    struct in_state_load *load = ctx;

    if (load->reasons_count++ >= REASONS_KEPT)
        return;
    if (load->reasons.len)
        qf_strbuf_putc(&load->reasons, ',');
    qf_strbuf_json(&load->reasons, qf_str_from(why));
}

/* The rows as a part at @path. */
static qf_rc make_part(struct sm_store *store, struct in_state_load *load, const char *path,
                       bool *ret_any, struct qf_err *err)
{
    struct sm_load_options options = { .store = store,
                                       .map = load->map,
                                       .now_ms = load->now_ms,
                                       .skip = load->skip,
                                       .skipped = skipped,
                                       .ctx = load };
    struct sm_load *rows;
    qf_rc rc = sm_writer_begin(store, &options.writer, err);

    if (rc != QF_OK)
        return rc;
    rows = sm_load_new(&options, load->format);
    rc = sm_load_feed(rows, load->body, err);
    if (rc == QF_OK)
        rc = sm_load_end(rows, err);
    load->loaded = sm_load_count(rows);
    (void)sm_load_free(rows);
    if (rc == QF_OK)
        return sm_writer_pack(options.writer, path, ret_any, err);
    (void)sm_writer_abort(options.writer);
    return rc;
}

/* --- sending --- */

struct sending {
    struct in_state *state;
    uint64_t upload, size;
    int file;
    XXH3_state_t *sum;
    char *buffer;
};

/* Pieces that may be there already do no harm: they are told by where they begin. */
static qf_rc offer_pieces(struct sending *s, const struct sm_entry *pieces, size_t count,
                          struct qf_err *err)
{
    qf_rc rc = QF_EUNAVAILABLE;

    for (int i = 0; i < TRIES && qf_rc_retryable(rc); i++) {
        uint64_t last;
        bool unknown;

        if (err)
            *err = (struct qf_err){ 0 };
        rc = in_state_offer(s->state, pieces, count, &last, &unknown, err);
    }
    return rc;
}

static qf_rc send_some(struct sending *s, bool *ret_more, struct qf_err *err)
{
    struct sm_entry pieces[PIECES_AT_ONCE];
    size_t count = 0, room = (size_t)PIECES_AT_ONCE * SM_PIECE_MAX, len = 0;
    ssize_t got = 1;

    while (len < room && got != 0) {
        got = read(s->file, s->buffer + len, room - len);
        if (got < 0 && errno != EINTR)
            return qf_err_set(err, QF_EIO, "a part cannot be read: %s", strerror(errno));
        len += got > 0 ? (size_t)got : 0;
    }
    *ret_more = got != 0;
    for (size_t at = 0; at < len; at += SM_PIECE_MAX)
        pieces[count++] = (struct sm_entry){ .kind = SM_ENTRY_PIECE,
                                             .upload = s->upload,
                                             .offset = s->size + at,
                                             .bytes = { s->buffer + at,
                                                        QF_MIN(len - at, (size_t)SM_PIECE_MAX) } };
    (void)XXH3_64bits_update(s->sum, s->buffer, len);
    s->size += len;
    return count ? offer_pieces(s, pieces, count, err) : QF_OK;
}

static qf_rc send_part(struct in_state *state, const char *path, struct sm_entry *ret_load,
                       struct qf_err *err)
{
    struct sending s = { .state = state, .upload = ret_load->upload };
    bool more = true;
    qf_rc rc = QF_OK;

    s.file = open(path, O_RDONLY | O_CLOEXEC);
    if (s.file < 0)
        return qf_err_set(err, QF_EIO, "%s: %s", path, strerror(errno));
    s.buffer = qf_xmalloc((size_t)PIECES_AT_ONCE * SM_PIECE_MAX);
    s.sum = XXH3_createState();
    (void)XXH3_64bits_reset(s.sum);
    while (more && rc == QF_OK)
        rc = send_some(&s, &more, err);
    ret_load->size = s.size;
    ret_load->sum = XXH3_64bits_digest(s.sum);
    (void)XXH3_freeState(s.sum);
    free(s.buffer);
    (void)close(s.file);
    return rc;
}

/* Whether it counted is known at this node once it has done it: asked again, the first one counts. */
static qf_rc commit(struct in_state *state, const struct sm_entry *entry,
                    struct in_state_load *load, struct qf_err *err)
{
    struct sm_verdict verdict = { 0 };
    qf_rc rc = QF_EUNAVAILABLE;

    for (int i = 0; i < TRIES && qf_rc_retryable(rc); i++) {
        bool unknown;

        if (err)
            *err = (struct qf_err){ 0 };
        rc = in_state_offer(state, entry, 1, &load->position, &unknown, err);
        if (!unknown)
            break;
    }
    if (rc == QF_OK)
        rc = in_state_wait(state, load->position, WAIT_MS, &verdict, err);
    if (rc == QF_OK && verdict.err.rc == QF_EUNAVAILABLE)
        (void)in_state_loaded(state, entry->upload, &verdict, &load->position);
    if (rc == QF_OK && verdict.err.rc != QF_OK)
        rc = qf_err_set(err, verdict.err.rc, "%s", verdict.err.msg);
    return rc;
}

static qf_rc load_rows(struct in_state *state, struct in_state_load *load, struct qf_err *err)
{
    struct sm_entry entry = { .kind = SM_ENTRY_LOAD, .tenant = load->tenant };
    QF_CLEANUP(qf_freep) char *path = NULL;
    struct sm_owner *owner;
    struct sm_store *store;
    bool any = false;
    qf_rc rc = in_state_owner(state, &owner, err);

    if (rc == QF_OK)
        rc = sm_owner_store(owner, load->tenant, &store, err);
    if (rc != QF_OK)
        return rc;
    if (getrandom(&entry.upload, sizeof(entry.upload), 0) != sizeof(entry.upload))
        return qf_err_set(err, QF_EIO, "no random numbers");
    path = sm_owner_outgoing(owner, entry.upload);
    rc = make_part(store, load, path, &any, err);
    if (rc == QF_OK && any)
        rc = send_part(state, path, &entry, err);
    (void)unlink(path);
    if (rc == QF_OK && any)
        rc = commit(state, &entry, load, err);
    return rc;
}

qf_rc in_state_load(struct in_state *state, struct in_state_load *load, struct qf_err *err)
{
    bool may;
    qf_rc rc;

    qf_lock_take(state->lock);
    may = state->loads < LOADS_MAX;
    state->loads += may;
    qf_lock_drop(state->lock);
    if (!may)
        return qf_err_set(err, QF_EBUSY, "too many loads are under way at this node: try again");
    /* Who was told by another node that a map is there may be here before the log is. */
    (void)!in_state_reach(state, 1, FIRST_MS, NULL);
    rc = load_rows(state, load, err); /* which says what is not there, whether it waited or not */
    qf_lock_take(state->lock);
    state->loads--;
    qf_lock_drop(state->lock);
    atomic_fetch_add(&state->loads_done, rc == QF_OK);
    atomic_fetch_add(&state->rows, rc == QF_OK ? load->loaded.rows : 0);
    atomic_fetch_add(&state->skipped, rc == QF_OK ? load->loaded.skipped : 0);
    return rc;
}
