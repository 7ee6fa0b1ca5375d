/* coord.c - records of `meta` applied, wishes decided, questions answered. */
#include "ring/coord/coord.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "ring/coord/time.h"
#include "ring/core/bytes.h"
#include "ring/state/show.h"

/* A snapshot with tenants; without, it is that of the ring alone, whose version is below. */
#define WITH_TENANTS 2
/* What a wish about a tenant begins with: those about the ring begin with the length of a name. */
#define TENANT_WISH 'T'
_Static_assert((int)TENANT_WISH > (int)RG_NAME_MAX, "no name of a node is that long");

struct rg_coord {
    struct rg_coord_options options;
    struct rg_board *board;
    struct rg_tenants *tenants;
    /* Of the node's thread. */
    struct rg_state *state;
    uint64_t index; /* of meta, so far */
    struct rg_time time;
};

/* --- records --- */

static qf_rc refuse_snapshot(qf_rc rc, const char *what, struct qf_err *err)
{
    if (rc == QF_EUNSUPPORTED)
        return qf_err_set(err, rc, "%s saved by a newer release: start that one", what);
    return qf_err_set(err, rc, "%s in the snapshot of meta cannot be read: it is damaged", what);
}

/* The parts of a snapshot, borrowed. False: it is damaged. */
static bool split(struct qf_str bytes, struct qf_str *ret_ring, struct qf_str *ret_tenants)
{
    struct rg_cursor c = { .rest = bytes };
    size_t len;

    *ret_ring = bytes;
    *ret_tenants = QF_STR("");
    if (!bytes.len || rg_get(&c, UINT64_MAX) != WITH_TENANTS)
        return true;
    len = rg_get(&c, SIZE_MAX);
    if (c.bad || c.rest.len <= len)
        return false;
    *ret_ring = qf_str_sub(c.rest, 0, len);
    *ret_tenants = qf_str_sub(c.rest, len, c.rest.len);
    return true;
}

/* Older releases save less than they were told. */
static qf_rc check_release(const struct rg_coord *coord, struct qf_str ring, struct qf_str tenants,
                           struct qf_err *err)
{
    bool lost_ring = !ring.len && rg_state_ring(coord->state)->applied;
    bool lost_tenants = !tenants.len && rg_tenants_version(coord->tenants);

    if (!lost_ring && !lost_tenants)
        return QF_OK;
    return qf_err_set(err, QF_EUNSUPPORTED,
                      "the leader of meta gave a snapshot without the %s: it is of an older "
                      "release; let every ingest node run this one",
                      lost_ring ? "ring of storage nodes" : "settings of tenants");
}

static qf_rc restore(void *ctx, uint64_t index, struct qf_str bytes, struct qf_err *err)
{
    struct rg_coord *coord = ctx;
    struct qf_str ring, tenants;
    qf_rc rc;

    if (!split(bytes, &ring, &tenants))
        return refuse_snapshot(QF_ECORRUPT, "the settings of tenants", err);
    rc = check_release(coord, ring, tenants, err);
    if (rc != QF_OK)
        return rc;
    rc = rg_state_restore(coord->state, ring);
    if (rc == QF_OK && rg_state_ring(coord->state)->applied > index)
        rc = QF_ECORRUPT;
    if (rc != QF_OK)
        return refuse_snapshot(rc, "the ring of storage nodes", err);
    rc = rg_tenants_restore(coord->tenants, index, tenants);
    if (rc != QF_OK)
        return refuse_snapshot(rc, "the settings of tenants", err);
    coord->index = index;
    rg_state_need(coord->state, rg_tenants_copies(coord->tenants));
    rg_board_post(coord->board, rg_state_ring(coord->state));
    return QF_OK;
}

/* What an operator forces, and what undoes a change, stays in the log of every node. */
static void note(const struct rg_coord *coord, uint64_t index)
{
    const struct rg_ring *ring = rg_state_ring(coord->state);
    enum rg_verdict verdict = RG_APPLIED;

    (void)rg_state_verdict(coord->state, index, &verdict);
    QF_LOG_DEBUG("ring", QF_KV_U64("index", index), QF_KV_U64("epoch", ring->epoch),
                 QF_KV_STR("verdict", rg_verdict_text(verdict)));
}

/* A record about a tenant, or about something else. */
static qf_rc apply_tenant(struct rg_coord *coord, const struct qn_record *record)
{
    qf_rc rc =
        rg_tenants_apply(coord->tenants, record->offset, record->data, rg_state_kept(coord->state));

    if (rc == QF_OK)
        rg_state_need(coord->state, rg_tenants_copies(coord->tenants));
    if (rc == QF_EUNSUPPORTED)
        coord->options.fatal(coord->options.ctx,
                             "meta has a record about a tenant that this release cannot read: "
                             "start the newer one that wrote it");
    return rc;
}

static void apply(void *ctx, const struct qn_record *record, bool again)
{
    struct rg_coord *coord = ctx;
    qf_rc rc;

    if (again)
        return;
    coord->index = record->offset;
    if (apply_tenant(coord, record) != QF_ENOTFOUND)
        return;
    rc = rg_state_apply(coord->state, record->offset, record->data);
    if (rc == QF_EUNSUPPORTED)
        coord->options.fatal(coord->options.ctx,
                             "meta has a record about storage nodes that this release cannot read: "
                             "start the newer one that wrote it");
    if (rc != QF_OK)
        return;
    note(coord, record->offset);
    rg_board_post(coord->board, rg_state_ring(coord->state));
}

/* As before as long as there are no tenants: older releases can read it. */
static void save(void *ctx, struct qf_strbuf *buf)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf ring = QF_STRBUF_INIT;
    const struct rg_coord *coord = ctx;

    if (!rg_tenants_version(coord->tenants)) {
        rg_state_save(buf, coord->state);
        return;
    }
    rg_state_save(&ring, coord->state);
    rg_put(buf, WITH_TENANTS);
    rg_put(buf, ring.len);
    qf_strbuf_str(buf, qf_strbuf_view(&ring));
    rg_tenants_save(buf, coord->tenants);
}

/* The state has all that was applied. */
static uint64_t needed_from(void *ctx)
{
    return ((struct rg_coord *)ctx)->index + 1;
}

static void lead(void *ctx, uint64_t term)
{
    struct rg_coord *coord = ctx;

    if (coord->options.lead)
        coord->options.lead(coord->options.ctx, term);
}

/* --- wishes --- */

static enum qn_proposal refuse(struct qn_ask *ask, qf_rc rc, const char *why)
{
    (void)qf_err_set(&ask->answer.err, rc, "%s", why);
    return QN_ANSWERED;
}

/* What the asker hears of the entry at @index. */
static void tell(const struct rg_coord *coord, enum rg_verdict verdict, uint64_t index,
                 struct qn_answer *answer)
{
    const struct rg_ring *ring = rg_state_ring(coord->state);
    qf_rc rc = rg_verdict_rc(verdict);

    if (rc != QF_OK) {
        (void)qf_err_set(&answer->err, rc, "%s", rg_verdict_text(verdict));
        return;
    }
    qf_strbuf_printf(&answer->text, "{\"status\":\"ok\",\"changed\":%s,\"epoch\":%" PRIu64,
                     verdict == RG_APPLIED ? "true" : "false", ring->epoch);
    if (verdict == RG_APPLIED && rg_ring_change(ring, index))
        qf_strbuf_printf(&answer->text, ",\"migration\":\"%" PRIu64 "\"", index);
    qf_strbuf_putc(&answer->text, '}');
}

/* Does everybody know records such as the first of its kind would be? */
static bool all_know(const struct rg_coord *coord, struct qn_ask *ask,
                     bool (*know)(void *ctx, const struct qn_ask *ask, char name[QC_NAME_SIZE]),
                     const char *what)
{
    char name[QC_NAME_SIZE];

    if (!know || know(coord->options.ctx, ask, name))
        return true;
    (void)qf_err_set(&ask->answer.err, QF_EUNAVAILABLE,
                     "node %s is of an older release, or was not seen since this node started: "
                     "there can be %s when every node runs this release",
                     name, what);
    return false;
}

static enum qn_proposal propose_tenant(struct rg_coord *coord, struct qn_ask *ask,
                                       struct qf_str bytes, struct qf_strbuf *record)
{
    struct rg_tenant_entry entry;
    enum rg_tenant_verdict verdict;

    if (rg_tenant_entry_decode(bytes, &entry) != QF_OK)
        return refuse(ask, QF_EPROTO, "a wish that this release cannot read");
    if (!rg_tenants_version(coord->tenants) &&
        !all_know(coord, ask, coord->options.all_know_tenants, "settings of tenants"))
        return QN_ANSWERED;
    entry.time_ms = qf_clock_wall_ms();
    verdict = rg_tenants_try(coord->tenants, &entry, rg_state_kept(coord->state));
    if (verdict == RG_TENANT_APPLIED) {
        rg_tenant_record_encode(record, &entry);
        return QN_PROPOSED;
    }
    rg_tenants_tell(coord->tenants, verdict, entry.name, rg_state_ring(coord->state)->copies,
                    &ask->answer);
    return QN_ANSWERED;
}

static enum qn_proposal propose(void *ctx, struct qn_ask *ask, struct qf_strbuf *record,
                                void **ret_pending)
{
    struct rg_coord *coord = ctx;
    struct qf_str bytes = ask->records.count == 1 ? qn_ask_record(ask, 0) : QF_STR("");
    struct rg_wish wish;
    enum rg_verdict verdict;

    *ret_pending = NULL;
    if (bytes.len && bytes.data[0] == TENANT_WISH)
        return propose_tenant(coord, ask, qf_str_sub(bytes, 1, bytes.len), record);
    if (rg_wish_decode(bytes, &wish) != QF_OK)
        return refuse(ask, QF_EPROTO, "a wish that this release cannot read");
    if (!rg_state_ring(coord->state)->applied &&
        !all_know(coord, ask, coord->options.all_know, "storage nodes"))
        return QN_ANSWERED;
    verdict =
        rg_state_try(coord->state, &wish, rg_time_now(&coord->time, rg_state_ring(coord->state)));
    if (verdict != RG_APPLIED) {
        tell(coord, verdict, 0, &ask->answer);
        return QN_ANSWERED;
    }
    if (wish.entry.forced)
        QF_LOG_WARN("a cleanup without its checks was asked for",
                    QF_KV_STR("node", rg_state_ring(coord->state)->nodes[wish.entry.node].name),
                    QF_KV_U64("slot", rg_slot_set_next(&wish.entry.slots, 0)),
                    QF_KV_SLICE("reason", wish.entry.reason));
    rg_record_encode(record, &wish.entry);
    return QN_PROPOSED;
}

static void ended(void *ctx, void *pending, qf_rc rc, uint64_t index, struct qn_answer *answer)
{
    const struct rg_coord *coord = ctx;
    const struct rg_ring *ring = rg_state_ring(coord->state);
    enum rg_verdict verdict;

    (void)pending;
    if (!answer || rc != QF_OK || rg_tenants_ended(coord->tenants, index, ring->copies, answer))
        return;
    if (rg_state_verdict(coord->state, index, &verdict)) {
        tell(coord, verdict, index, answer);
    } else {
        answer->unknown = true;
        (void)qf_err_set(&answer->err, QF_EUNAVAILABLE, "nobody remembers what came of it: look");
    }
}

struct qn_ask *rg_coord_tenant_wish(const struct rg_tenant_entry *entry)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct qn_ask *ask = qn_ask_new(QN_WRITE, QF_STR(QN_META));

    ask->operates = true;
    qf_strbuf_putc(&bytes, TENANT_WISH);
    rg_tenant_entry_encode(&bytes, entry);
    qn_ask_add(ask, qf_strbuf_view(&bytes));
    return ask;
}

struct qn_ask *rg_coord_wish(const struct rg_wish *wish)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct qn_ask *ask = qn_ask_new(QN_WRITE, QF_STR(QN_META));

    ask->operates = true;
    rg_wish_encode(&bytes, wish);
    qn_ask_add(ask, qf_strbuf_view(&bytes));
    return ask;
}

/* --- questions --- */

static void show_node(const struct rg_ring *ring, struct qf_str name, struct qn_answer *answer)
{
    uint8_t node = name.len ? rg_ring_node(ring, name) : RG_NODES_MAX;

    if (node == RG_NODES_MAX)
        (void)qf_err_set(&answer->err, QF_ENOTFOUND, "there is no such storage node");
    else
        rg_show_node(&answer->text, ring, node);
}

static void show_change(const struct rg_ring *ring, struct qf_str id, int64_t now_ms,
                        struct qn_answer *answer)
{
    const struct rg_change *change = NULL;
    uint64_t number;

    if (qf_parse_u64(id, &number))
        change = rg_ring_change(ring, number);
    if (change)
        rg_show_change(&answer->text, ring, change, now_ms);
    else
        (void)qf_err_set(&answer->err, QF_ENOTFOUND,
                         "there is no such migration, or it is over "
                         "and cleaned up");
}

static void answer(void *ctx, struct qn_ask *ask, uint64_t index)
{
    struct rg_coord *coord = ctx;
    const struct rg_ring *ring = rg_state_ring(coord->state);
    int64_t now_ms = rg_time_now(&coord->time, ring);
    struct qf_str question = ask->records.count ? qn_ask_record(ask, 0) : QF_STR("");
    struct qf_str name = qf_str_sub(question, 1, question.len);

    (void)index;
    switch (question.len ? question.data[0] : 0) {
    case RG_ASK_NODES:
        rg_show_nodes(&ask->answer.text, ring, now_ms, coord->options.dead_ms);
        break;
    case RG_ASK_NODE:
        show_node(ring, name, &ask->answer);
        break;
    case RG_ASK_CHANGES:
        rg_show_changes(&ask->answer.text, ring, now_ms);
        break;
    case RG_ASK_CHANGE:
        show_change(ring, name, now_ms, &ask->answer);
        break;
    case RG_ASK_APPLIED:
        qf_strbuf_u64(&ask->answer.text, ring->applied);
        break;
    case RG_ASK_TENANTS:
        rg_tenants_show(coord->tenants, name, ring->copies, &ask->answer);
        break;
    case RG_ASK_TENANT:
        rg_tenants_tell(coord->tenants, RG_TENANT_SAME, name, ring->copies, &ask->answer);
        break;
    case RG_ASK_VERSION:
        qf_strbuf_u64(&ask->answer.text, rg_tenants_version(coord->tenants));
        break;
    default: /* a character: no enum */
        (void)qf_err_set(&ask->answer.err, QF_EUNSUPPORTED,
                         "a question that this release does not know");
    }
}

struct qn_ask *rg_coord_question(enum rg_question question, struct qf_str name)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct qn_ask *ask = qn_ask_new(QN_QUESTION, QF_STR(QN_META));

    ask->operates = true;
    qf_strbuf_putc(&bytes, (char)question);
    qf_strbuf_str(&bytes, qf_str_sub(name, 0, QF_TENANT_MAX));
    qn_ask_add(ask, qf_strbuf_view(&bytes));
    return ask;
}

/* --- the application --- */

struct rg_coord *rg_coord_new(const struct rg_coord_options *options)
{
    struct rg_coord *coord = qf_xcalloc(1, sizeof(*coord));

    coord->options = *options;
    if (!coord->options.dead_ms)
        coord->options.dead_ms = RG_DEAD_MS;
    coord->board = rg_board_new();
    coord->tenants = rg_tenants_new();
    coord->state = rg_state_new();
    return coord;
}

struct rg_coord *rg_coord_free(struct rg_coord *coord)
{
    if (coord) {
        coord->board = rg_board_free(coord->board);
        coord->tenants = rg_tenants_free(coord->tenants);
        coord->state = rg_state_free(coord->state);
        free(coord);
    }
    return NULL;
}

struct rg_board *rg_coord_board(struct rg_coord *coord)
{
    return coord->board;
}

struct rg_tenants *rg_coord_tenants(struct rg_coord *coord)
{
    return coord->tenants;
}

struct qn_application rg_coord_application(struct rg_coord *coord)
{
    return (struct qn_application){ .ctx = coord,
                                    .restore = restore,
                                    .apply = apply,
                                    .save = save,
                                    .needed_from = needed_from,
                                    .lead = lead,
                                    .propose = propose,
                                    .ended = ended,
                                    .answer = answer };
}
