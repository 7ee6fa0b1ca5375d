/* accept.c - requests: taken, decoded on the pool. */

#include <stdio.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/limits_file.h"
#include "ingest/accept/accept_int.h"
#include "ingest/accept/text.h"
#include "ingest/core/remote_write.h"
#include "ingest/otlp/json.h"
#include "ingest/otlp/otlp.h"

/* Memory of a request: what its message becomes, mostly and at most. All of it is counted. */
#define ARENA_RATIO 16
#define ARENA_RATIO_MAX 48
/* Of OTLP every bucket of a histogram, 16 bytes of a message, becomes a series with all its labels; of
 * Influx's lines every field. */
#define ARENA_RATIO_MANY 32
#define ARENA_RATIO_MANY_MAX 192
/* Not counted: few requests need so much. */
#define ARENA_LEAST ((size_t)1 << 20)
/* No tenant may have more: of labels those of a series are sorted one by one. */
#define LABELS_MAX UINT64_C(256)
#define LABEL_BYTES_MAX (UINT64_C(1) << 20)

struct in_accept *in_accept_new(const struct in_accept_options *options)
{
    struct in_accept *accept = qf_xcalloc(1, sizeof(*accept));

    accept->options = *options;
    accept->pool = qf_pool_new("accept", options->threads, options->queue_max);
    if (!accept->pool) {
        free(accept);
        return NULL;
    }
    accept->lock = qf_lock_new();
    return accept;
}

void in_accept_halt(struct in_accept *accept)
{
    if (!accept)
        return;
    qf_lock_take(accept->lock);
    accept->halted = true;
    qf_lock_drop(accept->lock);
    if (accept->pool)
        accept->pool = qf_pool_free(accept->pool);
}

struct in_accept *in_accept_free(struct in_accept *accept)
{
    in_accept_halt(accept);
    if (accept)
        (void)qf_lock_free(accept->lock);
    free(accept);
    return NULL;
}

const struct in_accept_figures *in_accept_figures(const struct in_accept *accept)
{
    return &accept->figures;
}

/* --- decoding, on the pool --- */

static qf_rc decode(struct in_job *job, struct qf_str bytes, struct qf_arena *arena,
                    struct in_request *request, struct qf_err *err)
{
    bool timeless = false;
    qf_rc rc = QF_OK;

    switch (job->protocol) {
    case IN_PROTOCOL_WRITE_1:
        return in_remote_write_decode(IN_REMOTE_WRITE_1, bytes, arena, request, err);
    case IN_PROTOCOL_WRITE_2:
        return in_remote_write_decode(IN_REMOTE_WRITE_2, bytes, arena, request, err);
    case IN_PROTOCOL_OTLP:
    case IN_PROTOCOL_OTLP_JSON: /* protobuf by now */
        return in_otlp_decode(bytes, arena, request, err);
    case IN_PROTOCOL_INFLUX:
        rc = in_influx_decode(bytes, job->precision, qf_clock_wall_ms(), arena, request, &timeless,
                              err);
        break;
    case IN_PROTOCOL_TEXT:
    case IN_PROTOCOL_OPEN_METRICS:
    case IN_PROTOCOL__COUNT:
        rc = in_text_decode(bytes, job->protocol == IN_PROTOCOL_OPEN_METRICS, qf_clock_wall_ms(),
                            arena, request, &timeless, err);
        break;
    }
    /* Sent twice it is two samples, unless the sender says otherwise. */
    if (timeless && !job->key.explicit_key)
        job->key.given = false;
    return rc;
}

/* Replicas that send the same, if the tenant has such. */
static qf_rc find_pairs(struct in_job *job, struct in_request *request, struct qf_arena *arena,
                        struct in_ha *ret_ha, struct qf_err *err)
{
    const struct in_accept_options *options = &job->accept->options;
    const struct qf_limits tenant = qf_limits_file_of(options->tenants, qf_str_from(job->tenant));

    *ret_ha = (struct in_ha){ 0 };
    if (tenant.of[QF_LIMIT_HA_PAIRS] != QF_SWITCH_ON)
        return QF_OK;
    return in_ha_find(request, &options->ha, arena, ret_ha, err);
}

static void check(struct in_job *job, struct in_request *request)
{
    const struct qf_limits tenant =
        qf_limits_file_of(job->accept->options.tenants, qf_str_from(job->tenant));
    const struct in_check_limits limits = {
        .labels_max = QF_MIN(tenant.of[QF_LIMIT_LABELS], LABELS_MAX),
        .name_bytes_max = QF_MIN(tenant.of[QF_LIMIT_NAME_BYTES], LABEL_BYTES_MAX),
        .value_bytes_max = QF_MIN(tenant.of[QF_LIMIT_VALUE_BYTES], LABEL_BYTES_MAX),
        .ts_min = INT64_MIN,
        .ts_max = INT64_MAX
    };

    in_request_check(request, &limits);
    job->checked.refused = request->refused;
    memcpy(job->checked.limited_by, request->limited_by, sizeof(job->checked.limited_by));
    memcpy(job->checked.first, request->first, sizeof(job->checked.first));
}

/* Half of what all requests may use together is the most for one. */
static uint64_t most_of_one(const struct in_accept *accept, uint64_t wanted)
{
    return QF_MIN(wanted, accept->options.memory_bytes_max / 2);
}

/* From now on the request uses @wanted bytes in all, if it did not use more. */
static qf_rc count_more(struct in_job *job, uint64_t wanted, struct qf_err *err)
{
    struct in_accept *accept = job->accept;
    uint64_t more = wanted > job->counted ? wanted - job->counted : 0;

    job->counted += more;
    if (atomic_fetch_add(&accept->figures.memory_bytes, more) + more <=
            accept->options.memory_bytes_max ||
        !more)
        return QF_OK;
    return qf_err_set(err, QF_EBUSY, "too many bytes of requests are being worked on: try again");
}

static void fail_decoding(struct in_job *job, const struct qf_err *err)
{
    in_job_fail(job,
                err->rc == QF_ELIMIT      ? 413
                : err->rc == QF_EBUSY     ? 503
                : err->rc == QF_EINTERNAL ? 500
                                          : 400,
                err->msg);
}

/* The body as a message or text, in @bytes. */
static qf_rc open_body(struct in_job *job, struct qf_strbuf *bytes, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf json = QF_STRBUF_INIT;
    size_t bytes_max = job->accept->options.request_bytes_max;
    struct qf_str body = { job->body, job->body_len };
    bool is_json = job->protocol == IN_PROTOCOL_OTLP_JSON;
    qf_rc rc = in_body_decode(job->coding, body, bytes_max, is_json ? &json : bytes, err);

    if (rc != QF_OK)
        return rc;
    in_count(&job->accept->figures.decoded_bytes, is_json ? json.len : bytes->len);
    return is_json ? in_otlp_json_decode(qf_strbuf_view(&json), bytes_max, bytes, err) : QF_OK;
}

/* Whether a few bytes may become a series with all labels of others. */
static bool multiplies(const struct in_job *job)
{
    return job->protocol == IN_PROTOCOL_OTLP || job->protocol == IN_PROTOCOL_OTLP_JSON ||
           job->protocol == IN_PROTOCOL_INFLUX;
}

/* Decode with what such messages mostly need; again with what they may need at most if that was too little. */
static qf_rc decode_within(struct in_job *job, struct qf_str bytes, struct qf_arena **ret_arena,
                           struct in_request *request, struct qf_err *err)
{
    const struct in_accept *accept = job->accept;
    uint64_t most = most_of_one(accept, (multiplies(job) ? ARENA_RATIO_MANY_MAX : ARENA_RATIO_MAX) *
                                            (uint64_t)bytes.len);
    uint64_t budget =
        QF_MIN(most, (multiplies(job) ? ARENA_RATIO_MANY : ARENA_RATIO) * (uint64_t)bytes.len);
    qf_rc rc;

    while ((rc = count_more(job, job->body_len + budget, err)) == QF_OK) {
        *ret_arena = qf_arena_new(ARENA_LEAST + budget);
        rc = decode(job, bytes, *ret_arena, request, err);
        if (rc != QF_ELIMIT || !qf_arena_failed(*ret_arena) || budget == most)
            break;
        *ret_arena = qf_arena_free(*ret_arena);
        budget = most;
    }
    return rc;
}

/* Labels that a message names by reference, once for many series, are spelled out for each: whatever looks
 * at them or writes them, the log too, has that many bytes to do with. */
static qf_rc count_labels(struct in_job *job, const struct in_request *request, struct qf_err *err)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < request->series_count; i++)
        for (size_t j = 0; j < request->series[i].label_count; j++)
            bytes += request->series[i].labels[j].name.len + request->series[i].labels[j].value.len;
    if (most_of_one(job->accept, bytes) < bytes)
        return qf_err_set(err, QF_ELIMIT,
                          "the labels of all series together are too long: split the request");
    return count_more(job, job->counted + bytes, err);
}

struct in_decoded *in_decoded_free(struct in_decoded *decoded)
{
    if (!decoded)
        return NULL;
    qf_strbuf_done(&decoded->bytes);
    (void)qf_arena_free(decoded->arena);
    (void)qf_arena_free(decoded->added);
    free(decoded);
    return NULL;
}

static void freep_decoded(struct in_decoded **decoded)
{
    *decoded = in_decoded_free(*decoded);
}

/* By the tenant's rules, with as much memory again as the request became. */
static qf_rc enrich(struct in_job *job, struct in_decoded *decoded, struct qf_err *err)
{
    const struct in_enricher *enricher = &job->accept->options.enricher;
    uint64_t budget = most_of_one(job->accept, job->counted);
    qf_rc rc;

    if (!decoded->position)
        return QF_OK;
    rc = count_more(job, job->counted + budget, err);
    if (rc != QF_OK)
        return rc;
    decoded->added = qf_arena_new(ARENA_LEAST + budget);
    return enricher->enrich(enricher->ctx, qf_str_from(job->tenant), decoded->position,
                            &decoded->request, decoded->added, err);
}

/* What is left once it is known as of which position it is enriched. */
static void write_decoded(struct in_job *job, struct in_decoded *decoded)
{
    struct qf_err err = { 0 };
    struct in_ha ha;

    if (enrich(job, decoded, &err) != QF_OK) {
        in_job_fail(job, err.rc == QF_ELIMIT ? 413 : 503, err.msg);
        return;
    }
    if (count_labels(job, &decoded->request, &err) != QF_OK) {
        fail_decoding(job, &err);
        return;
    }
    check(job, &decoded->request);
    if (find_pairs(job, &decoded->request, decoded->arena, &ha, &err) != QF_OK)
        fail_decoding(job, &err);
    else
        in_job_write(job, &decoded->request, &ha, decoded->partitions);
}

static void run_on(void *arg)
{
    struct in_job *job = arg;
    QF_CLEANUP(freep_decoded) struct in_decoded *decoded = QF_TAKE(job->decoded);

    write_decoded(job, decoded);
}

void in_job_go_on(struct in_job *job, uint64_t position)
{
    struct in_accept *accept = job->accept;
    bool submitted;

    job->decoded->position = position;
    qf_lock_take(accept->lock);
    submitted = !accept->halted && qf_pool_submit(accept->pool, run_on, job);
    qf_lock_drop(accept->lock);
    if (!submitted)
        in_job_fail(job, 503, "too many requests are being worked on: try again");
}

/* Where the request as it was sent, and its key, are in one partition, a repetition is known whatever labels it has. */
static bool needs_pin(const struct in_job *job, const struct in_decoded *decoded)
{
    return decoded->position && decoded->partitions > 1 && job->key.given;
}

static void run(void *arg)
{
    QF_CLEANUP(freep_decoded)
    struct in_decoded *decoded = qf_xcalloc(1, sizeof(*decoded));
    struct in_job *job = arg;
    const struct in_enricher *enricher = &job->accept->options.enricher;
    uint64_t position;
    struct qf_err err = { 0 };

    decoded->partitions = qn_partitions(job->accept->options.node);
    if (!decoded->partitions) {
        in_job_fail(job, 503, "this node does not know the partitions yet: try again");
        return;
    }
    if (open_body(job, &decoded->bytes, &err) != QF_OK) {
        fail_decoding(job, &err);
        return;
    }
    if (decode_within(job, qf_strbuf_view(&decoded->bytes), &decoded->arena, &decoded->request,
                      &err) != QF_OK) {
        fail_decoding(job, &err);
        return;
    }
    if (enricher->position && enricher->position(enricher->ctx, qf_str_from(job->tenant),
                                                 &decoded->position, &err) != QF_OK) {
        in_job_fail(job, 503, err.msg);
        return;
    }
    if (!needs_pin(job, decoded)) {
        write_decoded(job, decoded);
        return;
    }
    position = decoded->position;
    job->decoded = decoded;
    in_job_pin(job, QF_TAKE(decoded)->partitions, position);
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

static struct in_request_key key_of(const struct in_job *job, struct qf_str given)
{
    struct qf_str tenant = qf_str_from(job->tenant), body = { job->body, job->body_len };
    struct in_request_key key = { .given = true, .explicit_key = given.len > 0 };
    /* The same bytes mean something else in another protocol, or with other times. */
    static const char *const kinds[] = { "1", "2", "t", "o", "p", "j" };
    char lines[] = { 'i', (char)('0' + job->precision), 0 };

    hash(tenant, body, job->protocol == IN_PROTOCOL_INFLUX ? lines : kinds[job->protocol],
         key.body);
    if (given.len)
        hash(tenant, given, "key", key.key);
    else
        memcpy(key.key, key.body, IN_HASH_BYTES);
    return key;
}

/* True: the tenant was told to wait, and is told so again. */
static bool turn_away(struct in_accept *accept, const struct in_write *write, in_written_fn *done,
                      void *ctx)
{
    struct in_written written = { .status = 429, .whole = true };

    written.wait_ms = in_door_wait(&accept->door, write->tenant, qf_clock_mono_ms());
    if (!written.wait_ms)
        return false;
    (void)snprintf(written.message, sizeof(written.message),
                   "the tenant sends more a second than it may, and was told to wait");
    in_count(&accept->figures.turned_away, 1);
    done(ctx, &written);
    return true;
}

void in_accept_write(struct in_accept *accept, const struct in_write *write, in_written_fn *done,
                     void *ctx)
{
    struct in_job *job;
    uint64_t expected = in_body_length(write->coding, write->body);

    in_count(&accept->figures.requests[write->protocol], 1);
    in_count(&accept->figures.body_bytes, write->body.len);
    if (turn_away(accept, write, done, ctx))
        return;
    job = qf_xcalloc(1, sizeof(*job));
    *job = (struct in_job){ .accept = accept,
                            .protocol = write->protocol,
                            .coding = write->coding,
                            .precision = write->precision,
                            .body = qf_xmemdup0(write->body.data, write->body.len),
                            .body_len = write->body.len,
                            .done = done,
                            .ctx = ctx };
    (void)snprintf(job->tenant, sizeof(job->tenant), "%.*s", QF_STR_ARG(write->tenant));
    job->key = key_of(job, write->key);
    if (expected > accept->options.request_bytes_max) {
        in_job_fail(job, 413, "the body is too long, decompressed: split the request");
        return;
    }
    job->counted = write->body.len + most_of_one(accept, ARENA_RATIO * expected);
    if (atomic_fetch_add(&accept->figures.memory_bytes, job->counted) + job->counted >
        accept->options.memory_bytes_max)
        in_job_fail(job, 503, "too many bytes of requests are being worked on: try again");
    else if (!qf_pool_submit(accept->pool, run, job))
        in_job_fail(job, 503, "too many requests are being worked on: try again");
}
