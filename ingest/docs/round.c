/* round.c - all owners of a document are asked at once, until there is enough. */
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "ingest/docs/replicas_int.h"

#define ROUNDS 5       /* with owners that changed meanwhile */
#define PAUSE_MS 200   /* between two */
#define ROUND_MS 5000  /* of one */
#define AWAY_MS 500    /* one that did not answer is not asked for so long */
#define QUICKER_MAX 16 /* times that somebody else may be quicker at a keeper */

/* --- one keeper --- */

static qf_rc get(struct sg_keep_client *client, const char *url, const struct rg_keep_query *query,
                 const struct sg_store_limit *limit, struct rg_sheet *ret_sheet,
                 struct rg_sum *ret_sum, struct qf_strbuf *bytes, int *ret_status,
                 struct qf_err *err)
{
    struct sg_keep_answer answer = { 0 };
    qf_rc rc;

    qf_strbuf_reset(bytes);
    *ret_sum = (struct rg_sum){ { 0 } };
    rc =
        sg_keep_ask(client, url, "GET", RG_KEEP_DOC, query, QF_STR(""), limit, bytes, &answer, err);
    *ret_status = answer.status;
    if (rc == QF_ENOTFOUND && answer.status == 404) {
        *err = (struct qf_err){ 0 };
        *ret_sheet = (struct rg_sheet){ 0 };
        return QF_OK;
    }
    if (rc == QF_OK && rg_sheet_decode(qf_strbuf_view(bytes), ret_sheet) != QF_OK)
        return qf_err_set(err, QF_ECORRUPT, "a document that cannot be read");
    if (rc == QF_OK)
        rc = sg_keep_sum(
            &(struct sg_store_bytes){ .data = bytes->data, .fd = -1, .size = bytes->len }, ret_sum,
            err);
    return rc;
}

/* QF_EEXIST: somebody was quicker. */
static qf_rc join_once(struct sg_keep_client *client, const char *url, struct rg_keep_query *query,
                       const struct rg_sheet *sheet, const struct sg_store_limit *limit,
                       int *ret_status, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf before = QF_STRBUF_INIT, after = QF_STRBUF_INIT;
    QF_CLEANUP(rg_sheet_done) struct rg_sheet there = { 0 };
    struct sg_keep_answer answer = { 0 };
    struct rg_sum sum;
    qf_rc rc;

    query->was = NULL;
    rc = get(client, url, query, limit, &there, &sum, &before, ret_status, err);
    if (rc)
        return rc;
    rg_sheet_join(&there, sheet);
    rg_sheet_encode(&after, &there);
    if (qf_str_eq(qf_strbuf_view(&before), qf_strbuf_view(&after)) || !there.document.count)
        return QF_OK;
    query->was = &sum;
    rc = sg_keep_ask(client, url, "PUT", RG_KEEP_DOC, query, qf_strbuf_view(&after), limit, NULL,
                     &answer, err);
    *ret_status = answer.status;
    query->was = NULL;
    return rc;
}

qf_rc in_replica_join(struct sg_keep_client *client, const char *url,
                      const struct rg_keep_query *of, const struct rg_sheet *sheet,
                      const struct sg_store_limit *limit, int *ret_status, struct qf_err *err)
{
    struct rg_keep_query query = *of;
    qf_rc rc = QF_EEXIST;

    for (int i = 0; i < QUICKER_MAX && rc == QF_EEXIST; i++) {
        *err = (struct qf_err){ 0 };
        rc = join_once(client, url, &query, sheet, limit, ret_status, err);
    }
    return rc == QF_EEXIST ? qf_err_set(err, QF_EBUSY, "others were quicker, again and again") : rc;
}

/* --- a round --- */

void in_round_free(struct in_round *round)
{
    for (size_t i = 0; i < round->count; i++)
        rg_sheet_done(&round->copies[i].sheet);
    rg_sheet_done(&round->sheet);
    (void)qf_lock_free(round->lock);
    free(round);
}

static bool is_away(struct in_replicas *replicas, uint8_t node)
{
    bool away;

    qf_lock_take(replicas->lock);
    away = qf_clock_mono_ms() < replicas->away_ms[node];
    qf_lock_drop(replicas->lock);
    return away;
}

static void note_answer(struct in_replicas *replicas, uint8_t node, bool answered)
{
    qf_lock_take(replicas->lock);
    replicas->away_ms[node] = answered ? 0 : qf_clock_mono_ms() + AWAY_MS;
    qf_lock_drop(replicas->lock);
}

static qf_rc ask(struct in_round_copy *copy, struct rg_sheet *ret_sheet, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    const struct in_round *round = copy->round;
    struct in_replicas *replicas = round->replicas;
    const struct rg_keep_query query = { .name = qf_str_from(round->place.name),
                                         .slot = round->place.slot,
                                         .epoch = round->epoch };
    struct rg_sum sum;
    int status = 0;
    qf_rc rc;

    if (is_away(replicas, copy->node))
        return qf_err_set(err, QF_EUNAVAILABLE, "it did not answer a moment ago");
    if (round->wish.kind == IN_ROUND_READ)
        rc = get(replicas->client, copy->url, &query, &round->limit, ret_sheet, &sum, &bytes,
                 &status, err);
    else
        rc = in_replica_join(replicas->client, copy->url, &query, &round->sheet, &round->limit,
                             &status, err);
    note_answer(replicas, copy->node, status != 0 || rc == QF_ECANCELED);
    return rc;
}

static bool all_equal(const struct in_round *round)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf first = QF_STRBUF_INIT, next = QF_STRBUF_INIT;
    bool any = false, equal = true;

    for (size_t i = 0; i < round->count && equal; i++) {
        struct rg_sheet *sheet = (struct rg_sheet *)&round->copies[i].sheet;

        if (!round->copies[i].said.ok)
            continue;
        qf_strbuf_reset(&next);
        rg_sheet_encode(any ? &next : &first, sheet);
        equal = !any || qf_str_eq(qf_strbuf_view(&first), qf_strbuf_view(&next));
        any = true;
    }
    return equal;
}

static bool somebody_failed(const struct in_round *round)
{
    for (size_t i = 0; i < round->count; i++)
        if (!round->copies[i].said.ok)
            return true;
    return false;
}

/* Everybody has ended: what is uneven is handed off, or repaired. */
static void close_round(struct in_round *round)
{
    static const struct rg_ring rules; /* none is switched off in it */
    bool reads = round->wish.kind == IN_ROUND_READ;
    bool uneven = reads ? !all_equal(round) : round->tally.has && somebody_failed(round);

    if (uneven && !round->wish.mends && !atomic_load(&round->replicas->stopping)) {
        if (!reads && rg_tally_state(&round->tally, &rules) == RG_TALLY_ENOUGH) {
            in_round_hand_off(round);
            return;
        }
        in_replicas_note(round->replicas, &round->place);
    }
    in_round_free(round);
}

static void end_copy(struct in_round_copy *copy, qf_rc rc, struct rg_sheet *sheet,
                     const struct qf_err *err)
{
    struct in_round *round = copy->round;
    bool last;

    qf_lock_take(round->lock);
    copy->sheet = *sheet;
    copy->said.ok = rc == QF_OK;
    copy->said.rc = rc;
    (void)snprintf(copy->said.text, sizeof(copy->said.text), "%s", rc ? err->msg : "");
    rg_tally_hear(&round->tally, copy->node,
                  rc == QF_OK      ? RG_ANSWER_HAS
                  : rc == QF_EGONE ? RG_ANSWER_OLD
                                   : RG_ANSWER_FAILED);
    round->left--;
    last = round->left == 0 && !round->waited;
    qf_lock_wake_all(round->lock);
    qf_lock_drop(round->lock);
    if (last)
        close_round(round);
}

static void run_copy(void *arg)
{
    struct rg_sheet sheet = { 0 };
    struct qf_err err = { 0 };
    qf_rc rc = ask(arg, &sheet, &err);

    end_copy(arg, rc, &sheet, &err);
}

/* --- who is asked --- */

/* With the lock. */
static bool follow(struct in_replicas *replicas)
{
    struct rg_ring *ring = rg_board_ring(replicas->board, &replicas->applied);

    if (ring) {
        (void)rg_ring_free(replicas->ring);
        replicas->ring = ring;
    }
    return replicas->ring && replicas->ring->founded && replicas->ring->slot_count == RG_SLOTS;
}

/* A read at level one asks those before a move, who have everything. */
static rg_nodes who(const struct in_round *round)
{
    if (round->wish.kind == IN_ROUND_READ && round->wish.level == RG_LEVEL_ONE)
        return rg_owners_set(&round->tally.slot.owners);
    return rg_slot_everyone(&round->tally.slot);
}

/* With the lock. */
static void choose(struct in_round *round, const struct rg_ring *ring)
{
    rg_nodes nodes;

    rg_tally_begin(&round->tally, ring, round->place.slot, round->wish.level);
    round->epoch = round->tally.slot.epoch;
    nodes = who(round);
    for (uint8_t n = 0; n < RG_NODES_MAX && round->count < IN_REPLICAS_MAX; n++) {
        struct in_round_copy *copy = &round->copies[round->count];

        if (!(nodes & RG_NODE(n)))
            continue;
        copy->round = round;
        copy->node = n;
        memcpy(copy->url, ring->nodes[n].url, sizeof(copy->url));
        memcpy(copy->said.node, ring->nodes[n].name, sizeof(copy->said.node));
        (void)snprintf(copy->said.text, sizeof(copy->said.text), "it did not answer in time");
        copy->said.rc = QF_ETIMEOUT;
        round->count++;
    }
}

static struct in_round *begin(struct in_replicas *replicas, const struct in_doc_place *place,
                              const struct in_round_wish *wish)
{
    struct in_round *round = qf_xcalloc(1, sizeof(*round));
    bool known;

    round->replicas = replicas;
    round->place = *place;
    round->wish = *wish;
    round->lock = qf_lock_new();
    round->waited = true;
    round->limit = (struct sg_store_limit){ .cancel = &replicas->stopping,
                                            .deadline_ms = qf_clock_mono_ms() + ROUND_MS };
    if (wish->sheet)
        rg_sheet_join(&round->sheet, wish->sheet);
    round->wish.sheet = NULL;
    qf_lock_take(replicas->lock);
    known = follow(replicas);
    if (known)
        choose(round, replicas->ring);
    qf_lock_drop(replicas->lock);
    if (known)
        return round;
    in_round_free(round);
    return NULL;
}

static void start(struct in_round *round)
{
    size_t count = round->count;

    round->left = count;
    for (size_t i = 0; i < count; i++) {
        struct rg_sheet nothing = { 0 };
        struct qf_err err = { 0 };

        if (qf_pool_submit(round->replicas->callers, run_copy, &round->copies[i]))
            continue;
        (void)qf_err_set(&err, QF_EBUSY, "too many requests of documents are under way here");
        end_copy(&round->copies[i], QF_EBUSY, &nothing, &err);
    }
}

/* With the round's lock: until there is enough. If there cannot be, everybody is heard, since the answer says what each said;
 * so does a repair. */
static enum rg_tally_state wait_for(struct in_round *round, const struct rg_ring *rules)
{
    for (;;) {
        enum rg_tally_state state = rg_tally_state(&round->tally, rules);

        if (round->left == 0 || state == RG_TALLY_OLD ||
            (!round->wish.mends && state == RG_TALLY_ENOUGH) ||
            qf_clock_mono_ms() >= round->limit.deadline_ms ||
            atomic_load(&round->replicas->stopping))
            return state;
        (void)qf_lock_wait(round->lock, 50);
    }
}

/* With the round's lock: what was heard so far. */
static void gather(struct in_round *round, enum rg_tally_state state, struct rg_sheet *sheet,
                   struct in_round_of *ret)
{
    *ret = (struct in_round_of){ .met = state == RG_TALLY_ENOUGH,
                                 .have = rg_nodes_count(round->tally.has),
                                 .owners = (unsigned)round->count,
                                 .count = round->count };
    for (size_t i = 0; i < round->count; i++) {
        ret->replicas[i] = round->copies[i].said;
        if (sheet && round->copies[i].said.ok)
            rg_sheet_join(sheet, &round->copies[i].sheet);
    }
}

static enum rg_tally_state run(struct in_round *round, struct rg_sheet *sheet,
                               struct in_round_of *ret)
{
    static const struct rg_ring rules; /* none is switched off in it */
    enum rg_tally_state state;
    bool last;

    start(round);
    qf_lock_take(round->lock);
    state = wait_for(round, &rules);
    gather(round, state, sheet, ret);
    round->waited = false;
    last = round->left == 0;
    qf_lock_drop(round->lock);
    if (last)
        close_round(round);
    return state;
}

qf_rc in_replicas_round(struct in_replicas *replicas, const struct in_doc_place *place,
                        const struct in_round_wish *wish, struct rg_sheet *ret_sheet,
                        struct in_round_of *ret_round, struct qf_err *err)
{
    for (int i = 0; i < ROUNDS && !atomic_load(&replicas->stopping); i++) {
        QF_CLEANUP(rg_sheet_done) struct rg_sheet sheet = { 0 };
        struct in_round *round = begin(replicas, place, wish);

        if (!round)
            return qf_err_set(err, QF_EUNAVAILABLE,
                              "there are no storage nodes, or this node does not know them yet");
        if (run(round, ret_sheet ? &sheet : NULL, ret_round) != RG_TALLY_OLD) {
            if (ret_sheet) {
                *ret_sheet = sheet;
                sheet = (struct rg_sheet){ 0 };
            }
            return QF_OK;
        }
        qf_lock_take(replicas->lock);
        (void)qf_lock_wait(replicas->lock, PAUSE_MS);
        qf_lock_drop(replicas->lock);
    }
    return qf_err_set(err, QF_EUNAVAILABLE, "the owners of this document are changing: try again");
}
