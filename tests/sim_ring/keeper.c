/* keeper.c - a disk and the rules of ring/core/keep.h. */
#include <string.h>

#include "tests/sim_ring/world.h"

static void answer(struct world *w, const struct message *m, struct message reply)
{
    reply.from = m->to;
    reply.to = m->from;
    reply.slot = m->slot;
    reply.op = m->op;
    reply.generation = m->generation;
    reply.blob = m->blob;
    reply.document = m->document;
    reply.purpose = m->purpose;
    reply.send = m->send;
    reply.life = m->life;
    reply.incarnation = w->keepers[m->to].incarnation;
    if (!reply.epoch)
        reply.epoch = m->epoch;
    send(w, &reply);
}

static void take(struct world *w, struct keeper *k, int blob)
{
    k->put_ms[blob] = rg_keep_renew(&k->keep, k->holds[blob] ? k->put_ms[blob] : INT64_MIN, w->now);
    k->holds[blob] = true;
    k->lost[blob] = false;
}

static void on_put(struct world *w, struct keeper *k, const struct message *m)
{
    struct message reply = { .kind = PUT_DONE, .answer = RG_ANSWER_HAS };

    if (!rg_keep_takes(&k->keep, m->slot, m->epoch))
        reply.answer = k->keep.told ? RG_ANSWER_OLD : RG_ANSWER_FAILED;
    else if (k->full && !k->holds[m->blob])
        reply.answer = RG_ANSWER_FAILED;
    else
        take(w, k, m->blob);
    answer(w, m, reply);
}

/* --- streams: one blob a step, then the documents --- */

static void on_stream(struct world *w, int at, const struct message *m)
{
    struct keeper *k = &w->keepers[at];
    struct stream *stream = &k->streams[m->slot];

    if (!k->keep.told || m->epoch < k->keep.epochs[m->slot])
        return;
    (void)rg_keep_hear(&k->keep, m->slot, m->epoch);
    if (stream->active && stream->epoch == m->epoch && stream->coordinator == m->from)
        return;
    if (!stream->active)
        alarm_at(w, at, STREAM_STEP, between(w, 5, 60), m->slot);
    *stream = (struct stream){ true, m->slot, m->epoch, m->sources, m->from };
}

/* A reachable keeper that has @blob; -1: none. */
static int holder(const struct world *w, int to, int blob)
{
    for (int k = 0; k < KEEPERS; k++)
        if (k != to && w->keepers[k].holds[blob] && reaches(w, to, k))
            return k;
    return -1;
}

static bool take_documents(struct world *w, int at, const struct stream *stream)
{
    for (int s = 0; s < KEEPERS; s++) {
        struct keeper *source = &w->keepers[s];

        if (!(stream->sources & RG_NODE(s)) || s == at)
            continue;
        if (!reaches(w, at, s))
            return false;
        if (source->keep.epochs[stream->slot] < stream->epoch &&
            !(w->rules.drive & RG_DRIVE_UNSAFE_NO_ACK))
            return false;
        for (int d = 0; d < DOCUMENTS; d++)
            if (w->document_slot[d] == stream->slot)
                (void)rg_document_join(&w->keepers[at].documents[d], &source->documents[d]);
    }
    return true;
}

static void stream_ends(struct world *w, int at, struct stream *stream, bool ok)
{
    struct message m = { .kind = STREAMED,
                         .from = at,
                         .to = stream->coordinator,
                         .slot = stream->slot,
                         .epoch = stream->epoch,
                         .ok = ok };

    stream->active = false;
    send(w, &m);
}

static void stream_step(struct world *w, int at, uint32_t slot)
{
    struct keeper *k = &w->keepers[at];
    struct stream *stream = &k->streams[slot];
    struct blob_set named = named_in(w, (int)slot);

    if (!stream->active)
        return;
    if (k->isolated) { /* it cannot ask what is named */
        stream_ends(w, at, stream, false);
        return;
    }
    for (int b = 0; b < w->blob_count; b++) {
        if (!in_set(&named, b) || k->holds[b])
            continue;
        if (k->full || holder(w, at, b) < 0) {
            stream_ends(w, at, stream, false);
            return;
        }
        take(w, k, b);
        alarm_at(w, at, STREAM_STEP, between(w, 5, 60), slot);
        return;
    }
    stream_ends(w, at, stream, take_documents(w, at, stream));
}

static void on_verify(struct world *w, struct keeper *k, const struct message *m)
{
    struct message reply = { .kind = VERIFIED, .ok = true, .listed = m->listed };

    if (!k->keep.told)
        return;
    (void)rg_keep_hear(&k->keep, m->slot, m->epoch);
    for (int b = 0; b < w->blob_count; b++)
        reply.ok &= !in_set(&m->set, b) || k->holds[b];
    answer(w, m, reply);
}

static void on_compare(struct world *w, struct keeper *k, const struct message *m)
{
    struct message reply = { .kind = COMPARED };

    if (!k->keep.told)
        return;
    for (int b = 0; b < w->blob_count; b++)
        if (in_set(&m->set, b) && !k->holds[b])
            set_add(&reply.set, b);
    answer(w, m, reply);
}

static void on_clean(struct world *w, struct keeper *k, const struct message *m)
{
    if (!rg_keep_cleans(&k->keep, m->slot, m->epoch))
        return;
    say(w, "%s cleans slot %u of epoch %d", k->name, m->slot, (int)m->epoch);
    for (int b = 0; b < w->blob_count; b++)
        if (w->blobs[b].slot == m->slot)
            k->holds[b] = k->lost[b] = false;
    for (int d = 0; d < DOCUMENTS; d++)
        if (w->document_slot[d] == m->slot)
            k->documents[d] = (struct rg_document){ 0 };
    w->figures.cleaned++;
    answer(w, m, (struct message){ .kind = CLEANED });
}

/* It asked, it is told, it drops: the answer is as of when it was given, not of when it is used. */
static void garbage(struct world *w, int at, const struct message *m)
{
    struct keeper *k = &w->keepers[at];
    struct message next = {
        .kind = GARBAGE, .from = at, .to = at, .ok = true, .sent_ms = w->now, .set = named_in(w, -1)
    };

    if (!m->ok) { /* now it is asked */
        if (!k->isolated)
            send(w, &next);
        alarm_at(w, at, GARBAGE, between(w, 300, 900), 0);
        return;
    }
    for (int b = 0; b < w->blob_count; b++)
        if (k->holds[b] && !in_set(&m->set, b) &&
            rg_keep_drops(k->put_ms[b], m->sent_ms, w->now, BLOB_GRACE_MS)) {
            k->holds[b] = k->lost[b] = false;
            w->figures.garbage++;
            say(w, "%s drops %s, which nothing named at %d", k->name, w->blobs[b].name,
                (int)m->sent_ms);
        }
}

static void on_document(struct world *w, struct keeper *k, const struct message *m)
{
    struct message reply = { .kind = m->kind == TO_READ ? READ : WRITTEN, .answer = RG_ANSWER_HAS };

    if (!rg_keep_takes(&k->keep, m->slot, m->epoch))
        reply.answer = k->keep.told ? RG_ANSWER_OLD : RG_ANSWER_FAILED;
    else if (m->kind == TO_WRITE)
        (void)rg_document_join(&k->documents[m->document], &m->value);
    else
        reply.value = k->documents[m->document];
    answer(w, m, reply);
}

static void on_tell(struct world *w, struct keeper *k, const struct message *m)
{
    if (m->incarnation != k->incarnation)
        return; /* it was meant for the disk before */
    (void)rg_keep_tell(&k->keep, m->epochs);
    answer(w, m, (struct message){ .kind = TOLD });
}

void keeper_start(struct world *w, int k)
{
    w->keepers[k].alive = true;
    w->keepers[k].life++;
    memset(w->keepers[k].streams, 0, sizeof(w->keepers[k].streams));
    alarm_at(w, k, GARBAGE, between(w, 1, 900), 0);
}

void keeper_hear(struct world *w, int at, const struct message *m)
{
    struct keeper *k = &w->keepers[at];

    if (m->kind == TO_PUT)
        on_put(w, k, m);
    else if (m->kind == TO_TELL)
        on_tell(w, k, m);
    else if (m->kind == TO_STREAM)
        on_stream(w, at, m);
    else if (m->kind == STREAM_STEP)
        stream_step(w, at, m->slot);
    else if (m->kind == TO_VERIFY)
        on_verify(w, k, m);
    else if (m->kind == TO_COMPARE)
        on_compare(w, k, m);
    else if (m->kind == TO_CLEAN)
        on_clean(w, k, m);
    else if (m->kind == GARBAGE)
        garbage(w, at, m);
    else if (m->kind == TO_WRITE || m->kind == TO_READ)
        on_document(w, k, m);
}
