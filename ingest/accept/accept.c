/* accept.c - requests: taken, decoded on the pool, written to their partitions, answered. */
#include "ingest/accept/accept.h"

#include <stdio.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/pure/alloc.h"
#include "base/pure/tenant.h"
#include "base/sys/clock.h"
#include "base/sys/pool.h"
#include "ingest/accept/partition.h"
#include "ingest/accept/text.h"
#include "ingest/core/extras.h"
#include "ingest/core/record.h"
#include "ingest/core/remote_write.h"

/* Memory of a request: what its messages become, at most and as counted against all of them. */
#define ARENA_RATIO 48
#define ARENA_LEAST ((size_t)1 << 20)
#define COUNTED_RATIO 8
/* Of one partition of one request: what an ask may carry. */
#define BATCH_BYTES_MAX ((size_t)QN_RECORD_BYTES_MAX - 4096)

struct in_accept {
    struct in_accept_options options;
    struct in_accept_figures figures;
    struct qf_pool *pool;
};

/* What one partition answered. */
struct slot {
    struct job *job;
    bool asked;
    qf_rc rc;
    char why[QF_ERR_MSG_SIZE];
    struct in_outcome outcome;
};

/* One request from its arrival to its answer. */
struct job {
    struct in_accept *accept;
    enum in_protocol protocol;
    enum in_body_coding coding;
    char tenant[QF_TENANT_MAX + 1];
    struct in_request_key key;
    char *body;
    size_t body_len;
    uint64_t counted; /* bytes of memory_bytes */
    in_written_fn *done;
    void *ctx;
    struct in_outcome checked; /* what was refused before any partition was asked */
    struct slot *slots;
    uint32_t slot_count;
    atomic_uint_fast32_t open; /* partitions that have not answered, and whoever still asks them */
};

struct in_accept *in_accept_new(const struct in_accept_options *options)
{
    struct in_accept *accept = qf_xcalloc(1, sizeof(*accept));

    accept->options = *options;
    accept->pool = qf_pool_new("accept", options->threads, options->queue_max);
    if (!accept->pool) {
        free(accept);
        return NULL;
    }
    return accept;
}

void in_accept_halt(struct in_accept *accept)
{
    if (accept && accept->pool)
        accept->pool = qf_pool_free(accept->pool);
}

struct in_accept *in_accept_free(struct in_accept *accept)
{
    in_accept_halt(accept);
    free(accept);
    return NULL;
}

const struct in_accept_figures *in_accept_figures(const struct in_accept *accept)
{
    return &accept->figures;
}

static void add(atomic_uint_fast64_t *figure, uint64_t amount)
{
    atomic_fetch_add_explicit(figure, amount, memory_order_relaxed);
}

/* --- the end --- */

static void answer(struct job *job, const struct in_written *written)
{
    struct in_accept_figures *figures = &job->accept->figures;
    const struct in_outcome *outcome = &written->outcome;

    add(&figures->samples, outcome->accepted.samples);
    add(&figures->histograms, outcome->accepted.histograms);
    add(&figures->exemplars, outcome->accepted.exemplars);
    add(&figures->refused, outcome->refused.samples + outcome->refused.histograms);
    job->done(job->ctx, written);
    atomic_fetch_sub(&figures->memory_bytes, job->counted);
    free(job->slots);
    free(job->body);
    free(job);
}

static void fail(struct job *job, int status, const char *why)
{
    struct in_written written = { .status = status, .outcome = job->checked };

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

static void judge(struct in_written *written, const struct slot *slot)
{
    int status = status_of(slot->rc);

    if (status > written->status) {
        written->status = status;
        (void)snprintf(written->message, sizeof(written->message), "%s", slot->why);
    }
}

/* All partitions have answered. */
static void finish(struct job *job)
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
    if (written.status == 204 && written.outcome.limited)
        written.status = 429;
    if (written.status == 204 &&
        (refused->series || refused->samples || refused->histograms || refused->exemplars))
        written.status = 400;
    if (!written.message[0])
        (void)snprintf(written.message, sizeof(written.message), "%s", written.outcome.first);
    if (written.status != 204 && !written.message[0])
        (void)snprintf(written.message, sizeof(written.message), "something was refused");
    answer(job, &written);
}

static void release(struct job *job)
{
    if (atomic_fetch_sub(&job->open, 1) == 1)
        finish(job);
}

/* --- partitions --- */

static void partition_answered(void *ctx, struct qn_ask *ask)
{
    struct slot *slot = ctx;

    slot->rc = ask->answer.err.rc;
    if (slot->rc == QF_OK &&
        in_outcome_decode(qf_strbuf_view(&ask->answer.text), &slot->outcome) != QF_OK)
        slot->rc = qf_err_set(&ask->answer.err, QF_EPROTO, "the leader's answer cannot be read");
    if (slot->rc != QF_OK)
        (void)snprintf(slot->why, sizeof(slot->why), "%s: %s", ask->queue, ask->answer.err.msg);
    (void)qn_ask_free(ask);
    release(slot->job);
}

static void ask_partition(struct job *job, uint32_t partition, struct qf_str batch)
{
    struct slot *slot = &job->slots[partition];
    struct qn_ask *ask;

    slot->job = job;
    slot->asked = true;
    if (batch.len > BATCH_BYTES_MAX) {
        slot->rc = QF_ELIMIT;
        (void)snprintf(slot->why, sizeof(slot->why),
                       "the request has too much for one record of the log: split it");
        return;
    }
    ask = in_partition_ask(partition, batch);
    ask->done = partition_answered;
    ask->ctx = slot;
    atomic_fetch_add(&job->open, 1);
    if (qn_ask(job->accept->options.node, ask))
        return;
    (void)qn_ask_free(ask);
    slot->rc = QF_EBUSY;
    (void)snprintf(slot->why, sizeof(slot->why), "too many requests are under way: try again");
    atomic_fetch_sub(&job->open, 1); /* not the last: whoever asks counts as one */
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

static void ask_all(struct job *job, struct batch *batches, uint32_t count)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf record = QF_STRBUF_INIT;

    for (uint32_t i = 0; i < count; i++) {
        const struct in_record head = { .tenant = qf_str_from(job->tenant),
                                        .key = job->key,
                                        .extras = qf_strbuf_view(&batches[i].extras),
                                        .accepted = batches[i].amounts };

        if (!batches[i].series.count && !batches[i].extras.len)
            continue;
        qf_strbuf_reset(&record);
        in_record_put_samples(&record, &head, batches[i].series.items, batches[i].series.count);
        ask_partition(job, i, qf_strbuf_view(&record));
    }
}

static void split(struct job *job, const struct in_request *request, uint32_t count)
{
    struct batch *batches = qf_xcalloc(count, sizeof(*batches));

    job->slots = qf_xcalloc(count, sizeof(*job->slots));
    job->slot_count = count;
    atomic_store(&job->open, 1);
    for (size_t i = 0; i < request->series_count; i++) {
        const struct in_series *series = &request->series[i];
        uint64_t hash = count > 1 ? qf_labels_shard_hash(in_series_labels(series)) : 0;

        add_series(&batches[hash & (count - 1)], series);
    }
    for (size_t i = 0; i < request->metadata_count; i++)
        add_metadata(batches, count, &request->metadata[i], i ? &request->metadata[i - 1] : NULL);
    ask_all(job, batches, count);
    for (uint32_t i = 0; i < count; i++) {
        QF_VEC_DONE(&batches[i].series);
        qf_strbuf_done(&batches[i].extras);
    }
    free(batches);
}

/* --- decoding, on the pool --- */

static qf_rc decode(struct job *job, struct qf_str bytes, struct qf_arena *arena,
                    struct in_request *request, struct qf_err *err)
{
    bool timeless = false;
    qf_rc rc;

    switch (job->protocol) {
    case IN_PROTOCOL_WRITE_1:
        return in_remote_write_decode(IN_REMOTE_WRITE_1, bytes, arena, request, err);
    case IN_PROTOCOL_WRITE_2:
        return in_remote_write_decode(IN_REMOTE_WRITE_2, bytes, arena, request, err);
    case IN_PROTOCOL_TEXT:
    case IN_PROTOCOL_OPEN_METRICS:
        break;
    }
    rc = in_text_decode(bytes, job->protocol == IN_PROTOCOL_OPEN_METRICS, qf_clock_wall_ms(), arena,
                        request, &timeless, err);
    /* Sent twice it is two samples, unless the sender says otherwise. */
    if (timeless && !job->key.explicit_key)
        job->key.given = false;
    return rc;
}

static void check(struct job *job, struct in_request *request)
{
    const struct in_accept_options *options = &job->accept->options;
    const struct in_check_limits limits = { .labels_max = options->labels_max,
                                            .name_bytes_max = options->name_bytes_max,
                                            .value_bytes_max = options->value_bytes_max,
                                            .ts_min = INT64_MIN,
                                            .ts_max = INT64_MAX };

    in_request_check(request, &limits);
    job->checked.refused = request->refused;
    memcpy(job->checked.first, request->first, sizeof(job->checked.first));
}

static void fail_decoding(struct job *job, const struct qf_err *err)
{
    fail(job, err->rc == QF_ELIMIT ? 413 : err->rc == QF_EINTERNAL ? 500 : 400, err->msg);
}

static void run(void *arg)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = NULL;
    struct job *job = arg;
    const struct in_accept_options *options = &job->accept->options;
    uint32_t partitions = qn_partitions(options->node);
    struct qf_str body = { job->body, job->body_len };
    struct in_request request;
    struct qf_err err = { 0 };

    if (!partitions) {
        fail(job, 503, "this node does not know the partitions yet: try again");
        return;
    }
    if (in_body_decode(job->coding, body, options->request_bytes_max, &bytes, &err) != QF_OK) {
        fail_decoding(job, &err);
        return;
    }
    add(&job->accept->figures.decoded_bytes, bytes.len);
    arena = qf_arena_new(ARENA_LEAST + ARENA_RATIO * bytes.len);
    if (decode(job, qf_strbuf_view(&bytes), arena, &request, &err) != QF_OK) {
        fail_decoding(job, &err);
        return;
    }
    check(job, &request);
    split(job, &request, partitions);
    release(job);
}

/* --- the beginning --- */

static void hash(struct qf_str tenant, struct qf_str bytes, const char *kind,
                 uint8_t ret_hash[IN_HASH_BYTES])
{
    XXH3_state_t state;
    XXH128_canonical_t canonical;

    XXH3_INITSTATE(&state);
    (void)XXH3_128bits_reset(&state);
    (void)XXH3_128bits_update(&state, tenant.data, tenant.len + 1); /* with its NUL */
    (void)XXH3_128bits_update(&state, kind, strlen(kind) + 1);
    (void)XXH3_128bits_update(&state, bytes.data, bytes.len);
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state));
    memcpy(ret_hash, canonical.digest, IN_HASH_BYTES);
}

static struct in_request_key key_of(const struct job *job, struct qf_str given)
{
    struct qf_str tenant = qf_str_from(job->tenant), body = { job->body, job->body_len };
    struct in_request_key key = { .given = true, .explicit_key = given.len > 0 };

    /* The same bytes mean something else in another protocol. */
    hash(tenant, body, (const char *[]){ "1", "2", "t", "o" }[job->protocol], key.body);
    if (given.len)
        hash(tenant, given, "key", key.key);
    else
        memcpy(key.key, key.body, IN_HASH_BYTES);
    return key;
}

void in_accept_write(struct in_accept *accept, const struct in_write *write, in_written_fn *done,
                     void *ctx)
{
    struct job *job = qf_xcalloc(1, sizeof(*job));
    uint64_t expected = in_body_length(write->coding, write->body);

    *job = (struct job){ .accept = accept,
                         .protocol = write->protocol,
                         .coding = write->coding,
                         .body = qf_xmemdup0(write->body.data, write->body.len),
                         .body_len = write->body.len,
                         .done = done,
                         .ctx = ctx };
    (void)snprintf(job->tenant, sizeof(job->tenant), "%.*s", QF_STR_ARG(write->tenant));
    job->key = key_of(job, write->key);
    add(&accept->figures.requests[write->protocol], 1);
    add(&accept->figures.body_bytes, write->body.len);
    if (expected > accept->options.request_bytes_max) {
        fail(job, 413, "the body is too long, decompressed: split the request");
        return;
    }
    job->counted = write->body.len + COUNTED_RATIO * expected;
    if (atomic_fetch_add(&accept->figures.memory_bytes, job->counted) + job->counted >
        accept->options.memory_bytes_max)
        fail(job, 503, "too many bytes of requests are being worked on: try again");
    else if (!qf_pool_submit(accept->pool, run, job))
        fail(job, 503, "too many requests are being worked on: try again");
}
