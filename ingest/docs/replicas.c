/* replicas.c - begun and ended; what is repaired, and when. */
#include "ingest/docs/replicas.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "ingest/docs/replicas_int.h"

#define CALLERS 24
#define CALLS_MAX 1024
#define MEND_LOOK_MS 250
#define MEND_FIRST_MS 500
#define MEND_REST_MS INT64_C(60000)

static void mend(void *arg);

static struct in_doc_place place_of(struct qf_str tenant, struct qf_str key)
{
    struct in_doc_place place;

    rg_doc_name(tenant, key, place.name);
    place.slot = rg_doc_slot(tenant, key, RG_SLOTS);
    return place;
}

qf_rc in_replicas_read(struct in_replicas *replicas, struct qf_str tenant, struct qf_str key,
                       enum rg_level level, struct rg_sheet *ret_sheet,
                       struct in_round_of *ret_round, struct qf_err *err)
{
    const struct in_doc_place place = place_of(tenant, key);

    return in_replicas_round(replicas, &place,
                             &(struct in_round_wish){ .kind = IN_ROUND_READ, .level = level },
                             ret_sheet, ret_round, err);
}

qf_rc in_replicas_join(struct in_replicas *replicas, struct qf_str tenant, struct qf_str key,
                       enum rg_level level, const struct rg_sheet *sheet,
                       struct in_round_of *ret_round, struct qf_err *err)
{
    const struct in_doc_place place = place_of(tenant, key);
    const struct in_round_wish wish = { .kind = IN_ROUND_JOIN, .level = level, .sheet = sheet };

    return in_replicas_round(replicas, &place, &wish, NULL, ret_round, err);
}

/* --- beginning and end --- */

struct in_replicas *in_replicas_new(const struct sg_keep_client_options *options,
                                    const struct sg_ring_handoff *handoff, struct rg_board *board,
                                    struct qf_err *err)
{
    struct in_replicas *replicas = qf_xcalloc(1, sizeof(*replicas));

    replicas->board = board;
    replicas->handoff = handoff;
    replicas->lock = qf_lock_new();
    replicas->client = sg_keep_client_new(options, err);
    if (!replicas->client)
        return in_replicas_free(replicas);
    replicas->callers = qf_pool_new("documents", CALLERS, CALLS_MAX);
    replicas->handing = qf_pool_new("doc-handoff", 1, IN_HANDING_MAX);
    if (replicas->callers && replicas->handing)
        replicas->mender = qf_thread_start("doc-mend", mend, replicas);
    if (replicas->mender)
        return replicas;
    (void)qf_err_set(err, QF_EUNAVAILABLE, "cannot start threads");
    return in_replicas_free(replicas);
}

void in_replicas_halt(struct in_replicas *replicas)
{
    if (!replicas)
        return;
    atomic_store(&replicas->stopping, true);
    qf_lock_take(replicas->lock);
    qf_lock_wake_all(replicas->lock);
    qf_lock_drop(replicas->lock);
}

struct in_replicas *in_replicas_free(struct in_replicas *replicas)
{
    if (replicas) {
        in_replicas_halt(replicas);
        replicas->mender = qf_thread_join(replicas->mender);
        if (replicas->callers)
            replicas->callers = qf_pool_free(replicas->callers);
        if (replicas->handing) /* what callers left to it is kept before it ends */
            replicas->handing = qf_pool_free(replicas->handing);
        replicas->client = sg_keep_client_free(replicas->client);
        replicas->ring = rg_ring_free(replicas->ring);
        QF_VEC_DONE(&replicas->repairs);
        replicas->lock = qf_lock_free(replicas->lock);
        free(replicas);
    }
    return NULL;
}

void in_replicas_figures(struct in_replicas *replicas, struct in_replicas_figures *ret_figures)
{
    qf_lock_take(replicas->lock);
    *ret_figures = replicas->figures;
    ret_figures->waiting = replicas->repairs.count;
    qf_lock_drop(replicas->lock);
}

/* --- repairs --- */

/* With the lock. */
static void note_again(struct in_replicas *replicas, const struct in_doc_repair *repair)
{
    for (size_t i = 0; i < replicas->repairs.count; i++)
        if (memcmp(replicas->repairs.items[i].place.name, repair->place.name,
                   sizeof(repair->place.name)) == 0)
            return; /* it reads what is there by then */
    if (replicas->repairs.count == IN_REPAIRS_MAX || repair->tries == IN_REPAIR_TRIES)
        replicas->figures.dropped++;
    else
        QF_VEC_PUSH(&replicas->repairs, *repair);
}

void in_replicas_note(struct in_replicas *replicas, const struct in_doc_place *place)
{
    const struct in_doc_repair repair = { .place = *place,
                                          .due_ms = qf_clock_mono_ms() + MEND_FIRST_MS };

    qf_lock_take(replicas->lock);
    note_again(replicas, &repair);
    qf_lock_drop(replicas->lock);
}

void in_replicas_lacking(struct in_replicas *replicas, uint32_t slot, const char *name)
{
    struct in_doc_place place = { .slot = slot };

    memcpy(place.name, name, RG_DOC_NAME_TEXT);
    in_replicas_note(replicas, &place);
}

/* With the lock: the one that is due longest. */
static bool take_due(struct in_replicas *replicas, struct in_doc_repair *ret_repair)
{
    size_t at = replicas->repairs.count;
    int64_t first_ms = qf_clock_mono_ms();

    for (size_t i = 0; i < replicas->repairs.count; i++) {
        if (replicas->repairs.items[i].due_ms > first_ms)
            continue;
        at = i;
        first_ms = replicas->repairs.items[i].due_ms;
    }
    if (at == replicas->repairs.count)
        return false;
    *ret_repair = replicas->repairs.items[at];
    replicas->repairs.items[at] = replicas->repairs.items[--replicas->repairs.count];
    return true;
}

/* True: every owner was read, and has what all of them had. */
static bool mend_one(struct in_replicas *replicas, const struct in_doc_place *place)
{
    QF_CLEANUP(rg_sheet_done) struct rg_sheet sheet = { 0 };
    struct in_round_wish wish = { .kind = IN_ROUND_READ, .level = RG_LEVEL_ALL, .mends = true };
    struct in_round_of round;
    struct qf_err err = { 0 };
    bool whole;

    if (in_replicas_round(replicas, place, &wish, &sheet, &round, &err) != QF_OK)
        return false;
    whole = round.met;
    wish.kind = IN_ROUND_JOIN;
    wish.sheet = &sheet;
    return in_replicas_round(replicas, place, &wish, NULL, &round, &err) == QF_OK && round.met &&
           whole;
}

static int64_t rest_ms(unsigned tries)
{
    return QF_MIN(MEND_REST_MS, INT64_C(1) * MEND_FIRST_MS << tries); /* at most IN_REPAIR_TRIES */
}

static void mend(void *arg)
{
    struct in_replicas *replicas = arg;
    struct in_doc_repair repair;

    qf_lock_take(replicas->lock);
    while (!atomic_load(&replicas->stopping)) {
        bool ok;

        if (!take_due(replicas, &repair)) {
            (void)qf_lock_wait(replicas->lock, MEND_LOOK_MS);
            continue;
        }
        qf_lock_drop(replicas->lock);
        ok = mend_one(replicas, &repair.place);
        qf_lock_take(replicas->lock);
        if (ok) {
            replicas->figures.repairs++;
            continue;
        }
        replicas->figures.failed++;
        repair.due_ms = qf_clock_mono_ms() + rest_ms(repair.tries);
        repair.tries++;
        note_again(replicas, &repair);
    }
    qf_lock_drop(replicas->lock);
}
