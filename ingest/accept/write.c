/* write.c - requests: written to their partitions, answered. */
#include <stdio.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/sys/clock.h"
#include "ingest/accept/accept_int.h"
#include "ingest/accept/partition.h"
#include "ingest/core/extras.h"

/* Of one partition of one request: what an ask may carry. */
#define BATCH_BYTES_MAX ((size_t)QN_RECORD_BYTES_MAX - 4096)

/* --- the end --- */

/* What it holds is never asked: nobody knows which replica is elected. */
static void free_group(const struct in_job *job, struct in_group *group)
{
    for (uint32_t i = 0; i < job->partitions; i++)
        (void)qn_ask_free(group->held[i]);
    free(group->held);
}

static void answer(struct in_job *job, const struct in_written *written)
{
    struct in_accept_figures *figures = &job->accept->figures;
    const struct in_outcome *outcome = &written->outcome;

    in_count(&figures->samples, outcome->accepted.samples);
    in_count(&figures->histograms, outcome->accepted.histograms);
    in_count(&figures->exemplars, outcome->accepted.exemplars);
    in_count(&figures->refused, outcome->refused.samples + outcome->refused.histograms);
    for (size_t i = 0; i < QF_WRITE_LIMITS; i++)
        in_count(&figures->limited[i], job->checked.limited_by[i]);
    job->done(job->ctx, written);
    atomic_fetch_sub(&figures->memory_bytes, job->counted);
    for (uint32_t i = 0; i < job->group_count; i++)
        free_group(job, &job->groups[i]);
    free(job->groups);
    free(job->slots);
    (void)in_decoded_free(job->decoded);
    free(job->body);
    free(job);
}

void in_job_fail(struct in_job *job, int status, const char *why)
{
    struct in_written written = { .status = status, .whole = true, .outcome = job->checked };

    (void)snprintf(written.message, sizeof(written.message), "%s", why);
    answer(job, &written);
}

/* Whoever may try again must hear so: 5xx before everything else, then limits. */
static int status_of(qf_rc rc)
{
    switch (rc) {
    case QF_OK:
        return 204;
    case QF_ELIMIT:
        return 413;
    case QF_EEXIST:
        return 422;
    case QF_EPROTO:
    case QF_EINTERNAL:
        return 500;
    default: /* nobody knows, no leader, no space, too much at once, an old node */
        return 503;
    }
}

static void judge(struct in_written *written, const struct in_slot *slot)
{
    int status = status_of(slot->rc);

    if (status > written->status) {
        written->status = status;
        (void)snprintf(written->message, sizeof(written->message), "%s", slot->why);
    }
}

/* All partitions have answered. */
static void finish(struct in_job *job)
{
    struct in_written written = { .status = 204, .outcome = job->checked };
    const struct in_amounts *refused = &written.outcome.refused;

    for (uint32_t i = 0; i < job->slot_count; i++) {
        if (!job->slots[i].asked)
            continue;
        if (job->slots[i].rc == QF_OK)
            in_outcome_add(&written.outcome, &job->slots[i].outcome);
        judge(&written, &job->slots[i]);
    }
    if (written.status == 204 && written.outcome.limited) {
        written.status = 429;
        written.wait_ms = written.outcome.wait_ms;
        if (written.wait_ms)
            in_door_shut(&job->accept->door, qf_str_from(job->tenant), qf_clock_mono_ms(),
                         written.wait_ms);
    }
    if (written.status == 204 &&
        (refused->series || refused->samples || refused->histograms || refused->exemplars))
        written.status = 400;
    if (!written.message[0])
        (void)snprintf(written.message, sizeof(written.message), "%s", written.outcome.first);
    if (written.status != 204 && !written.message[0])
        (void)snprintf(written.message, sizeof(written.message), "something was refused");
    answer(job, &written);
}

static void release(struct in_job *job)
{
    if (atomic_fetch_sub(&job->open, 1) == 1)
        finish(job);
}

/* --- partitions --- */

static void partition_answered(void *ctx, struct qn_ask *ask)
{
    struct in_slot *slot = ctx;

    slot->rc = ask->answer.err.rc;
    if (slot->rc == QF_OK &&
        in_outcome_decode(qf_strbuf_view(&ask->answer.text), &slot->outcome) != QF_OK)
        slot->rc = qf_err_set(&ask->answer.err, QF_EPROTO, "the leader's answer cannot be read");
    if (slot->rc != QF_OK)
        (void)snprintf(slot->why, sizeof(slot->why), "%s: %s", ask->queue, ask->answer.err.msg);
    (void)qn_ask_free(ask);
    release(slot->job);
}

static void send(struct in_slot *slot, struct qn_ask *ask)
{
    struct in_job *job = slot->job;

    ask->ctx = slot;
    atomic_fetch_add(&job->open, 1);
    if (qn_ask(job->accept->options.node, ask))
        return;
    (void)qn_ask_free(ask);
    slot->rc = QF_EBUSY;
    (void)snprintf(slot->why, sizeof(slot->why), "too many requests are under way: try again");
    atomic_fetch_sub(&job->open, 1); /* not the last: whoever asks counts as one */
}

/* --- replicas --- */

/* The samples of a group are those of the elected replica, or are dropped, which its sender does not
 * notice: it goes on, and its samples count from the moment that it is elected. */
static void judge_group(struct in_slot *slot, bool elected)
{
    struct in_job *job = slot->job;
    struct in_group *group = slot->group;
    size_t first = (size_t)(group - job->groups) * job->partitions;

    for (uint32_t i = 0; i < job->partitions; i++) {
        struct qn_ask *ask = group->held[i];

        group->held[i] = NULL;
        if (ask && elected)
            send(&job->slots[first + i], ask);
        else
            (void)qn_ask_free(ask);
        job->slots[first + i].asked &= elected;
    }
    if (elected)
        return;
    slot->outcome.accepted = group->amounts;
    in_count(&job->accept->figures.ha_dropped, group->amounts.samples + group->amounts.histograms);
}

/* On the node's thread. */
static void election_answered(void *ctx, struct qn_ask *ask)
{
    struct in_slot *slot = ctx;
    struct qf_str text = qf_strbuf_view(&ask->answer.text);

    slot->rc = ask->answer.err.rc;
    if (slot->rc == QF_OK && !qf_str_is(text, "0") && !qf_str_is(text, "1"))
        slot->rc = qf_err_set(&ask->answer.err, QF_EPROTO, "the leader's answer cannot be read");
    if (slot->rc == QF_OK)
        judge_group(slot, qf_str_is(text, "1"));
    else
        (void)snprintf(slot->why, sizeof(slot->why), "%s: %s", ask->queue, ask->answer.err.msg);
    (void)qn_ask_free(ask);
    release(slot->job);
}

/* All elections of a cluster are those of one partition, whichever the series are in: a histogram whose
 * buckets are of two replicas would be none. */
static void ask_elected(struct in_job *job, const struct in_ha_pair *pair, uint32_t number)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    const struct in_record record = { .tenant = qf_str_from(job->tenant),
                                      .cluster = pair->cluster,
                                      .replica = pair->replica,
                                      .newest_ts = pair->newest_ts };
    struct in_slot *slot = &job->slots[job->group_count * job->partitions + number];
    uint64_t hash = XXH3_64bits_withSeed(pair->cluster.data, pair->cluster.len,
                                         XXH3_64bits(job->tenant, strlen(job->tenant)));
    struct qn_ask *ask;

    in_record_put_elect(&bytes, &record);
    ask = in_partition_ask((uint32_t)hash & (job->partitions - 1), qf_strbuf_view(&bytes));
    ask->done = election_answered;
    slot->asked = true;
    slot->group = &job->groups[number];
    send(slot, ask);
}

/* --- enrichment --- */

/* On the node's thread. */
static void pin_answered(void *ctx, struct qn_ask *ask)
{
    struct in_job *job = ctx;
    qf_rc rc = ask->answer.err.rc;
    uint64_t position = 0;

    if (rc == QF_OK &&
        (!qf_parse_u64(qf_strbuf_view(&ask->answer.text), &position) || position == 0))
        rc = qf_err_set(&ask->answer.err, QF_EPROTO, "the leader's answer cannot be read");
    if (rc == QF_OK)
        in_job_go_on(job, position);
    else
        in_job_fail(job, status_of(rc), ask->answer.err.msg);
    (void)qn_ask_free(ask);
}

/* Which partition knows is said by the key alone: whatever labels its series get. */
void in_job_pin(struct in_job *job, uint32_t partitions, uint64_t position)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct in_record record = { .tenant = qf_str_from(job->tenant),
                                .key = job->key,
                                .position = position };
    XXH128_canonical_t canonical;
    XXH3_state_t state;
    struct qn_ask *ask;
    uint32_t hash;

    /* Another key than that of its samples, which may be written to the same partition. */
    XXH3_INITSTATE(&state);
    (void)XXH3_128bits_reset(&state);
    (void)XXH3_128bits_update(&state, "pin", sizeof("pin"));
    (void)XXH3_128bits_update(&state, job->key.key, IN_HASH_BYTES);
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state));
    memcpy(record.key.key, canonical.digest, IN_HASH_BYTES);
    memcpy(&hash, record.key.key + IN_HASH_BYTES - sizeof(hash), sizeof(hash));
    in_record_put_pin(&bytes, &record);
    ask = in_partition_ask(hash & (partitions - 1), qf_strbuf_view(&bytes));
    ask->done = pin_answered;
    ask->ctx = job;
    if (qn_ask(job->accept->options.node, ask))
        return;
    (void)qn_ask_free(ask);
    in_job_fail(job, 503, "too many requests are under way: try again");
}

/* --- splitting --- */

static void ask_partition(struct in_job *job, uint32_t group, uint32_t partition,
                          struct qf_str batch)
{
    struct in_slot *slot = &job->slots[group * job->partitions + partition];
    struct qn_ask *ask;

    slot->asked = true;
    if (batch.len > BATCH_BYTES_MAX) {
        slot->rc = QF_ELIMIT;
        (void)snprintf(slot->why, sizeof(slot->why),
                       "the request has too much for one record of the log: split it");
        return;
    }
    ask = in_partition_ask(partition, batch);
    ask->done = partition_answered;
    if (group)
        job->groups[group].held[partition] = ask;
    else
        send(slot, ask);
}

/* What a request wants of one partition, as the record that its leader reads. */
struct batch {
    QF_VEC(struct in_record_series) series;
    struct qf_strbuf extras;
    struct in_amounts amounts;
};

static void add_series(struct batch *batch, const struct in_series *series)
{
    const struct in_record_series own = { .number = (uint32_t)batch->series.count,
                                          .fresh = true,
                                          .labels = in_series_labels(series),
                                          .samples = series->samples,
                                          .sample_count = series->sample_count };

    for (size_t i = 0; i < series->exemplar_count; i++)
        in_extra_put_exemplar(&batch->extras, in_series_labels(series), &series->exemplars[i]);
    batch->amounts.exemplars += series->exemplar_count;
    if (!series->sample_count)
        return;
    for (size_t i = 0; i < series->sample_count; i++) {
        batch->amounts.samples += series->samples[i].histogram == NULL;
        batch->amounts.histograms += series->samples[i].histogram != NULL;
    }
    QF_VEC_PUSH(&batch->series, own);
}

/* Metadata of a metric are in the partition that its name says. Version 2.0 has them with each series:
 * those of neighbours are mostly the same. */
static void add_metadata(struct batch *batches, uint32_t count, const struct in_metadata *metadata,
                         const struct in_metadata *before)
{
    uint64_t hash;

    if (!metadata->type && !metadata->help.len && !metadata->unit.len)
        return;
    if (before && qf_str_eq(before->name, metadata->name) && before->type == metadata->type &&
        qf_str_eq(before->help, metadata->help) && qf_str_eq(before->unit, metadata->unit))
        return;
    hash = count > 1 ? XXH3_64bits(metadata->name.data, metadata->name.len) : 0;
    in_extra_put_metadata(&batches[hash & (count - 1)].extras, metadata);
}

/* Parts of one request in the same partition are requests of their own: each may be written when others
 * are not. */
static struct in_request_key key_of_group(const struct in_job *job, const struct in_ha_pair *pair)
{
    struct in_request_key key = job->key;
    XXH128_canonical_t canonical;
    XXH3_state_t state;

    if (!pair || !key.given)
        return key;
    XXH3_INITSTATE(&state);
    (void)XXH3_128bits_reset(&state);
    (void)XXH3_128bits_update(&state, key.key, IN_HASH_BYTES);
    (void)XXH3_128bits_update(&state, &pair->cluster.len, sizeof(pair->cluster.len));
    (void)XXH3_128bits_update(&state, pair->cluster.data, pair->cluster.len);
    (void)XXH3_128bits_update(&state, pair->replica.data, pair->replica.len);
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state));
    memcpy(key.key, canonical.digest, IN_HASH_BYTES);
    return key;
}

static void ask_all(struct in_job *job, struct batch *batches, uint32_t group,
                    const struct in_ha_pair *pair)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf record = QF_STRBUF_INIT;

    for (uint32_t i = 0; i < job->partitions; i++) {
        const struct in_record head = { .tenant = qf_str_from(job->tenant),
                                        .key = key_of_group(job, pair),
                                        .extras = qf_strbuf_view(&batches[i].extras),
                                        .accepted = batches[i].amounts };

        if (!batches[i].series.count && !batches[i].extras.len)
            continue;
        job->groups[group].amounts.samples += batches[i].amounts.samples;
        job->groups[group].amounts.histograms += batches[i].amounts.histograms;
        job->groups[group].amounts.exemplars += batches[i].amounts.exemplars;
        qf_strbuf_reset(&record);
        in_record_put_samples(&record, &head, batches[i].series.items, batches[i].series.count);
        ask_partition(job, group, i, qf_strbuf_view(&record));
    }
    if (pair)
        ask_elected(job, pair, group);
}

static void make_slots(struct in_job *job, uint32_t groups, uint32_t partitions)
{
    job->partitions = partitions;
    job->group_count = groups;
    job->groups = qf_xcalloc(groups, sizeof(*job->groups));
    job->slot_count = groups * partitions + groups;
    job->slots = qf_xcalloc(job->slot_count, sizeof(*job->slots));
    for (uint32_t i = 0; i < job->slot_count; i++)
        job->slots[i].job = job;
    for (uint32_t i = 0; i < groups; i++)
        job->groups[i].held = qf_xcalloc(partitions, sizeof(struct qn_ask *));
    atomic_store(&job->open, 1);
}

void in_job_write(struct in_job *job, const struct in_request *request, const struct in_ha *ha,
                  uint32_t count)
{
    uint32_t groups = 1 + (uint32_t)ha->count;
    struct batch *batches = qf_xcalloc((size_t)groups * count, sizeof(*batches));

    make_slots(job, groups, count);
    for (size_t i = 0; i < request->series_count; i++) {
        const struct in_series *series = &request->series[i];
        uint64_t hash = count > 1 ? qf_labels_shard_hash(in_series_labels(series)) : 0;
        uint32_t group = ha->of ? ha->of[i] : 0;

        add_series(&batches[group * count + (hash & (count - 1))], series);
    }
    for (size_t i = 0; i < request->metadata_count; i++)
        add_metadata(batches, count, &request->metadata[i], i ? &request->metadata[i - 1] : NULL);
    for (uint32_t i = 0; i < groups; i++)
        ask_all(job, batches + (size_t)i * count, i, i ? &ha->pairs[i - 1] : NULL);
    for (uint32_t i = 0; i < groups * count; i++) {
        QF_VEC_DONE(&batches[i].series);
        qf_strbuf_done(&batches[i].extras);
    }
    free(batches);
    release(job);
}
