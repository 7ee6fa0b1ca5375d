/* api_message.c - messages from the API to a worker. */
#include <assert.h>
#include <ctype.h>

#include "control.pb-c.h"
#include "proto/codec/codec_int.h"
#include "proto/codec/control.h"

typedef Promfabric__Control__V1__ApiMessage api_msg;
typedef Promfabric__Control__V1__AssignWork assign_msg;
typedef Promfabric__Control__V1__Segment segment_msg;
typedef Promfabric__Control__V1__WorkLimits limits_msg;
typedef Promfabric__Control__V1__HeadRead heads_msg;
typedef Promfabric__Control__V1__HeadInput head_msg;
typedef Promfabric__Control__V1__MapRead maps_msg;
typedef Promfabric__Control__V1__MapInput map_msg;
typedef Promfabric__Control__V1__AssignJob job_msg;

static char **fill_names(struct qf_arena *arena, const struct qf_str *names, size_t count)
{
    char **out = QF_ARENA_ARRAY(arena, char *, count + 1);

    for (size_t i = 0; i < count; i++)
        out[i] = pb_cstr(arena, names[i]);
    return out;
}

static heads_msg *fill_heads(struct qf_arena *arena, const struct pb_heads *in)
{
    heads_msg *out = QF_ARENA_NEW(arena, heads_msg);
    head_msg *heads = QF_ARENA_ARRAY(arena, head_msg, in->count);

    promfabric__control__v1__head_read__init(out);
    out->match = pb_cstr(arena, in->match);
    out->min_ts = in->min_ts;
    out->max_ts = in->max_ts;
    out->n_inputs = in->count;
    out->inputs = QF_ARENA_ARRAY(arena, head_msg *, in->count);
    for (size_t i = 0; i < in->count; i++) {
        const struct pb_head *head = &in->inputs[i];

        promfabric__control__v1__head_input__init(&heads[i]);
        heads[i].partition = head->partition;
        heads[i].queue = pb_cstr(arena, head->queue);
        heads[i].generation = head->generation;
        heads[i].cut = head->cut;
        heads[i].shard = head->shard;
        heads[i].shard_count = head->shard_count;
        heads[i].n_replicas = head->replica_count;
        heads[i].replicas = fill_names(arena, head->replicas, head->replica_count);
        out->inputs[i] = &heads[i];
    }
    return out;
}

static maps_msg *fill_maps(struct qf_arena *arena, const struct pb_maps *in)
{
    maps_msg *out = QF_ARENA_NEW(arena, maps_msg);
    map_msg *maps = QF_ARENA_ARRAY(arena, map_msg, in->count);

    promfabric__control__v1__map_read__init(out);
    out->shard = in->shard;
    out->shard_count = in->shard_count;
    out->n_nodes = in->node_count;
    out->nodes = fill_names(arena, in->nodes, in->node_count);
    out->n_inputs = in->count;
    out->inputs = QF_ARENA_ARRAY(arena, map_msg *, in->count);
    for (size_t i = 0; i < in->count; i++) {
        const struct pb_map *map = &in->inputs[i];

        promfabric__control__v1__map_input__init(&maps[i]);
        maps[i].name = pb_cstr(arena, map->name);
        maps[i].kind = pb_cstr(arena, map->kind);
        maps[i].metric = pb_cstr(arena, map->metric);
        maps[i].short_keys = map->short_keys;
        maps[i].interval_ms = map->interval_ms;
        maps[i].created = map->created;
        maps[i].version = map->version;
        maps[i].bytes = map->bytes;
        out->inputs[i] = &maps[i];
    }
    return out;
}

/* AssignWork is the only message with parts of its own; they live in the encoder's arena. */
static void fill_assign(struct qf_arena *arena, const struct pb_assign *in, assign_msg *out)
{
    segment_msg *segments = QF_ARENA_ARRAY(arena, segment_msg, in->segment_count);
    limits_msg *limits = QF_ARENA_NEW(arena, limits_msg);

    out->query_id = pb_cstr(arena, in->query_id);
    out->leaf_id = in->leaf_id;
    out->work_id = in->work_id;
    out->attempt = in->attempt;
    out->affinity_key = pb_cstr(arena, in->affinity_key);
    out->tenant = pb_cstr(arena, in->tenant);
    out->spec = (ProtobufCBinaryData){ in->spec.len, (uint8_t *)pb_cstr(arena, in->spec) };
    out->timeout_ms = in->timeout_ms;
    out->traceparent = pb_cstr(arena, in->traceparent);
    promfabric__control__v1__work_limits__init(limits);
    limits->samples_max = in->limits.samples_max;
    limits->memory_bytes_max = in->limits.memory_bytes_max;
    limits->artifact_bytes_max = in->limits.artifact_bytes_max;
    out->limits = limits;
    if (in->heads.count)
        out->heads = fill_heads(arena, &in->heads);
    if (in->maps.count)
        out->maps = fill_maps(arena, &in->maps);
    out->n_segments = in->segment_count;
    out->segments = QF_ARENA_ARRAY(arena, segment_msg *, in->segment_count);
    for (size_t i = 0; i < in->segment_count; i++) {
        const struct pb_segment *segment = &in->segments[i];

        promfabric__control__v1__segment__init(&segments[i]);
        segments[i].name = pb_cstr(arena, segment->name);
        segments[i].size_bytes = segment->size_bytes;
        segments[i].etag = pb_cstr(arena, segment->etag);
        segments[i].mtime_ms = segment->mtime_ms;
        segments[i].shard = segment->shard;
        segments[i].shard_count = segment->shard_count;
        segments[i].generation = segment->generation;
        out->segments[i] = &segments[i];
    }
}

static void fill_job(struct qf_arena *arena, const struct pb_job *in, job_msg *out)
{
    out->job_id = in->job_id;
    out->attempt = in->attempt;
    out->tenant = pb_cstr(arena, in->tenant);
    out->n_inputs = in->input_count;
    out->inputs = fill_names(arena, in->inputs, in->input_count);
    out->n_dead = in->dead_count;
    out->dead = fill_names(arena, in->dead, in->dead_count);
    out->window_ms = in->window_ms;
    out->shard = in->shard;
    out->shard_count = in->shard_count;
    out->generation = in->generation;
    out->input_bytes = in->input_bytes;
    out->memory_bytes = in->memory_bytes;
    out->file_bytes = in->file_bytes;
}

void pb_api_encode(struct qf_strbuf *buf, const struct pb_api_message *message)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    api_msg out = PROMFABRIC__CONTROL__V1__API_MESSAGE__INIT;
    Promfabric__Control__V1__Hello hello = PROMFABRIC__CONTROL__V1__HELLO__INIT;
    assign_msg assign = PROMFABRIC__CONTROL__V1__ASSIGN_WORK__INIT;
    Promfabric__Control__V1__CancelWork cancel = PROMFABRIC__CONTROL__V1__CANCEL_WORK__INIT;
    Promfabric__Control__V1__ArtifactAck ack = PROMFABRIC__CONTROL__V1__ARTIFACT_ACK__INIT;
    Promfabric__Control__V1__Heartbeat heartbeat = PROMFABRIC__CONTROL__V1__HEARTBEAT__INIT;
    job_msg job = PROMFABRIC__CONTROL__V1__ASSIGN_JOB__INIT;
    Promfabric__Control__V1__CancelJob job_cancel = PROMFABRIC__CONTROL__V1__CANCEL_JOB__INIT;

    switch (message->kind) {
    case PB_API_JOB:
        fill_job(arena, &message->u.job, &job);
        out.assign_job = &job;
        out.body_case = PROMFABRIC__CONTROL__V1__API_MESSAGE__BODY_ASSIGN_JOB;
        break;
    case PB_API_JOB_CANCEL:
        job_cancel.job_id = message->u.job_cancel.job_id;
        job_cancel.attempt = message->u.job_cancel.attempt;
        out.cancel_job = &job_cancel;
        out.body_case = PROMFABRIC__CONTROL__V1__API_MESSAGE__BODY_CANCEL_JOB;
        break;
    case PB_API_HELLO:
        hello.protocol_version = message->u.hello.protocol_version;
        hello.api_id = pb_cstr(arena, message->u.hello.api_id);
        hello.software = pb_cstr(arena, message->u.hello.software);
        hello.protocol_newest = message->u.hello.protocol_newest;
        out.hello = &hello;
        out.body_case = PROMFABRIC__CONTROL__V1__API_MESSAGE__BODY_HELLO;
        break;
    case PB_API_ASSIGN:
        fill_assign(arena, &message->u.assign, &assign);
        out.assign_work = &assign;
        out.body_case = PROMFABRIC__CONTROL__V1__API_MESSAGE__BODY_ASSIGN_WORK;
        break;
    case PB_API_CANCEL:
        cancel.work_id = message->u.cancel.work_id;
        cancel.attempt = message->u.cancel.attempt;
        cancel.reason = pb_cstr(arena, message->u.cancel.reason);
        out.cancel_work = &cancel;
        out.body_case = PROMFABRIC__CONTROL__V1__API_MESSAGE__BODY_CANCEL_WORK;
        break;
    case PB_API_ACK:
        ack.work_id = message->u.ack.work_id;
        ack.attempt = message->u.ack.attempt;
        ack.artifact_checksum = pb_cstr(arena, message->u.ack.artifact_checksum);
        out.artifact_ack = &ack;
        out.body_case = PROMFABRIC__CONTROL__V1__API_MESSAGE__BODY_ARTIFACT_ACK;
        break;
    case PB_API_HEARTBEAT:
        heartbeat.sent_us = message->u.heartbeat.sent_us;
        heartbeat.echo = message->u.heartbeat.echo;
        out.heartbeat = &heartbeat;
        out.body_case = PROMFABRIC__CONTROL__V1__API_MESSAGE__BODY_HEARTBEAT;
        break;
    case PB_API_UNKNOWN:
        assert(message->kind != PB_API_UNKNOWN); /* cannot be encoded */
        break;
    }
    pb_pack(buf, &out.base);
}

static bool hex_run(struct qf_str s, size_t at, size_t len)
{
    bool all_zero = true;

    for (size_t i = at; i < at + len; i++) {
        if (!isdigit((unsigned char)s.data[i]) && (s.data[i] < 'a' || s.data[i] > 'f'))
            return false;
        all_zero = all_zero && s.data[i] == '0';
    }
    return !all_zero || len == 2; /* flags may be zero, ids may not */
}

bool pb_traceparent_valid(struct qf_str s)
{
    return s.len == 55 && memcmp(s.data, "00-", 3) == 0 && s.data[35] == '-' && s.data[52] == '-' &&
           hex_run(s, 3, 32) && hex_run(s, 36, 16) && hex_run(s, 53, 2);
}

static qf_rc take_segments(struct qf_arena *arena, const assign_msg *in, struct pb_assign *out,
                           struct qf_err *err)
{
    if (in->n_segments > PB_SEGMENTS_MAX)
        return qf_err_set(err, QF_EPROTO, "%zu segments in one work", in->n_segments);
    out->segments = QF_ARENA_ARRAY(arena, struct pb_segment, in->n_segments + 1);
    if (!out->segments)
        return qf_err_set(err, QF_ELIMIT, "no memory for %zu segments", in->n_segments);
    out->segment_count = in->n_segments;
    for (size_t i = 0; i < in->n_segments; i++) {
        const segment_msg *segment = in->segments[i];

        out->segments[i] = (struct pb_segment){
            .name = qf_str_from(segment->name),
            .size_bytes = segment->size_bytes,
            .etag = qf_str_from(segment->etag),
            .mtime_ms = segment->mtime_ms,
            .shard = segment->shard,
            .shard_count = segment->shard_count,
            .generation = segment->generation,
        };
        if (out->segments[i].name.len == 0 || out->segments[i].name.len > PB_TEXT_BYTES_MAX ||
            out->segments[i].etag.len > PB_TEXT_BYTES_MAX)
            return qf_err_set(err, QF_EPROTO, "segment %zu has no usable name", i);
    }
    return QF_OK;
}

/* One URL at least, none too long. *ret_usable false: they are not so. */
static qf_rc take_urls(struct qf_arena *arena, char *const *in, size_t count,
                       const struct qf_str **ret_urls, bool *ret_usable, struct qf_err *err)
{
    struct qf_str *urls = QF_ARENA_ARRAY(arena, struct qf_str, count + 1);
    bool usable = count > 0 && count <= PB_REPLICAS_MAX;

    if (!urls)
        return qf_err_set(err, QF_ELIMIT, "no memory for %zu replicas", count);
    for (size_t i = 0; usable && i < count; i++) {
        urls[i] = qf_str_from(in[i]);
        usable = urls[i].len > 0 && urls[i].len <= PB_TEXT_BYTES_MAX;
    }
    *ret_urls = urls;
    *ret_usable = usable;
    return QF_OK;
}

static qf_rc take_head(struct qf_arena *arena, const head_msg *in, struct pb_head *out,
                       struct qf_err *err)
{
    const struct qf_str *replicas;
    bool usable;

    if (take_urls(arena, in->replicas, in->n_replicas, &replicas, &usable, err) != QF_OK)
        return QF_ELIMIT;
    *out = (struct pb_head){ .partition = in->partition,
                             .queue = qf_str_from(in->queue),
                             .generation = in->generation,
                             .cut = in->cut,
                             .shard = in->shard,
                             .shard_count = in->shard_count,
                             .replicas = replicas,
                             .replica_count = in->n_replicas };
    if (!usable || out->queue.len == 0 || out->queue.len > PB_ID_BYTES_MAX ||
        out->shard >= out->shard_count)
        return qf_err_set(err, QF_EPROTO, "a head input without a usable queue, shard or replica");
    return QF_OK;
}

static qf_rc take_heads(struct qf_arena *arena, const heads_msg *in, struct pb_heads *out,
                        struct qf_err *err)
{
    struct pb_head *inputs;
    qf_rc rc = QF_OK;

    if (!in || !in->n_inputs)
        return QF_OK;
    if (in->n_inputs > PB_HEADS_MAX)
        return qf_err_set(err, QF_EPROTO, "%zu head inputs in one work", in->n_inputs);
    inputs = QF_ARENA_ARRAY(arena, struct pb_head, in->n_inputs);
    if (!inputs)
        return qf_err_set(err, QF_ELIMIT, "no memory for %zu head inputs", in->n_inputs);
    *out = (struct pb_heads){ .inputs = inputs,
                              .count = in->n_inputs,
                              .match = qf_str_from(in->match),
                              .min_ts = in->min_ts,
                              .max_ts = in->max_ts };
    if (out->match.len == 0 || out->match.len > PB_SPEC_BYTES_MAX)
        return qf_err_set(err, QF_EPROTO, "head inputs without a usable selector");
    for (size_t i = 0; rc == QF_OK && i < in->n_inputs; i++)
        rc = take_head(arena, in->inputs[i], &inputs[i], err);
    return rc;
}

static bool is_usable(struct qf_str text)
{
    return text.len > 0 && text.len <= PB_TEXT_BYTES_MAX;
}

static qf_rc take_map(const map_msg *in, const struct pb_map *before, struct pb_map *out,
                      struct qf_err *err)
{
    *out = (struct pb_map){ .name = qf_str_from(in->name),
                            .kind = qf_str_from(in->kind),
                            .metric = qf_str_from(in->metric),
                            .short_keys = in->short_keys,
                            .interval_ms = in->interval_ms,
                            .created = in->created,
                            .version = in->version,
                            .bytes = in->bytes };
    if (!is_usable(out->name) || !is_usable(out->kind) || !is_usable(out->metric) ||
        (before && qf_str_cmp(before->name, out->name) >= 0))
        return qf_err_set(err, QF_EPROTO, "a state map without a usable name, kind or metric");
    if (out->interval_ms <= 0 || out->interval_ms > PB_MAP_INTERVAL_MS_MAX || !out->version ||
        !out->bytes || out->bytes > INT64_MAX)
        return qf_err_set(err, QF_EPROTO, "a state map without a usable interval or copy");
    return QF_OK;
}

static qf_rc take_maps(struct qf_arena *arena, const maps_msg *in, struct pb_maps *out,
                       struct qf_err *err)
{
    struct pb_map *inputs;
    bool usable;
    qf_rc rc;

    if (!in || !in->n_inputs)
        return QF_OK;
    if (in->n_inputs > PB_MAPS_MAX)
        return qf_err_set(err, QF_EPROTO, "%zu state maps in one work", in->n_inputs);
    inputs = QF_ARENA_ARRAY(arena, struct pb_map, in->n_inputs);
    if (!inputs)
        return qf_err_set(err, QF_ELIMIT, "no memory for %zu state maps", in->n_inputs);
    *out = (struct pb_maps){ .inputs = inputs,
                             .count = in->n_inputs,
                             .node_count = in->n_nodes,
                             .shard = in->shard,
                             .shard_count = in->shard_count };
    rc = take_urls(arena, in->nodes, in->n_nodes, &out->nodes, &usable, err);
    if (rc == QF_OK &&
        (!usable || out->shard >= out->shard_count || (out->shard_count & (out->shard_count - 1))))
        rc = qf_err_set(err, QF_EPROTO, "state maps without usable nodes or shard");
    for (size_t i = 0; rc == QF_OK && i < in->n_inputs; i++)
        rc = take_map(in->inputs[i], i ? &inputs[i - 1] : NULL, &inputs[i], err);
    return rc;
}

static qf_rc take_assign(struct qf_arena *arena, const assign_msg *in, struct pb_assign *out,
                         struct qf_err *err)
{
    qf_rc rc;

    *out = (struct pb_assign){
        .query_id = qf_str_from(in->query_id),
        .leaf_id = in->leaf_id,
        .work_id = in->work_id,
        .attempt = in->attempt,
        .affinity_key = qf_str_from(in->affinity_key),
        .tenant = qf_str_from(in->tenant),
        .spec = { (const char *)in->spec.data, in->spec.len },
        .timeout_ms = in->timeout_ms,
        .traceparent = qf_str_from(in->traceparent),
    };
    if (in->limits)
        out->limits = (struct pb_limits){
            .samples_max = in->limits->samples_max,
            .memory_bytes_max = in->limits->memory_bytes_max,
            .artifact_bytes_max = in->limits->artifact_bytes_max,
        };
    if (out->query_id.len == 0 || out->query_id.len > PB_ID_BYTES_MAX ||
        out->tenant.len > PB_ID_BYTES_MAX || out->affinity_key.len > PB_TEXT_BYTES_MAX)
        return qf_err_set(err, QF_EPROTO, "work without a usable query id, tenant or affinity key");
    if (out->spec.len > PB_SPEC_BYTES_MAX)
        return qf_err_set(err, QF_EPROTO, "leaf of %zu bytes", out->spec.len);
    if (!pb_traceparent_valid(out->traceparent))
        out->traceparent = QF_STR(""); /* W3C: a malformed one is as if there were none */
    rc = take_heads(arena, in->heads, &out->heads, err);
    if (rc == QF_OK)
        rc = take_maps(arena, in->maps, &out->maps, err);
    return rc ? rc : take_segments(arena, in, out, err);
}

static qf_rc take_names(struct qf_arena *arena, char *const *in, size_t count, size_t max,
                        const struct qf_str **ret_names, struct qf_err *err)
{
    struct qf_str *names;

    if (count > max)
        return qf_err_set(err, QF_EPROTO, "%zu files in one job", count);
    names = QF_ARENA_ARRAY(arena, struct qf_str, count + 1);
    if (!names)
        return qf_err_set(err, QF_ELIMIT, "no memory for %zu names", count);
    for (size_t i = 0; i < count; i++) {
        names[i] = qf_str_from(in[i]);
        if (names[i].len == 0 || names[i].len > PB_TEXT_BYTES_MAX)
            return qf_err_set(err, QF_EPROTO, "file %zu of a job has no usable name", i);
    }
    *ret_names = names;
    return QF_OK;
}

static qf_rc take_job(struct qf_arena *arena, const job_msg *in, struct pb_job *out,
                      struct qf_err *err)
{
    qf_rc rc;

    *out = (struct pb_job){ .job_id = in->job_id,
                            .attempt = in->attempt,
                            .tenant = qf_str_from(in->tenant),
                            .input_count = in->n_inputs,
                            .dead_count = in->n_dead,
                            .window_ms = in->window_ms,
                            .shard = in->shard,
                            .shard_count = in->shard_count,
                            .generation = in->generation,
                            .input_bytes = in->input_bytes,
                            .memory_bytes = in->memory_bytes,
                            .file_bytes = in->file_bytes };
    if (out->tenant.len == 0 || out->tenant.len > PB_ID_BYTES_MAX || in->n_inputs == 0 ||
        in->window_ms <= 0 || in->shard >= in->shard_count)
        return qf_err_set(err, QF_EPROTO, "a job without usable tenant, inputs, window or shard");
    rc = take_names(arena, in->inputs, in->n_inputs, PB_JOB_INPUTS_MAX, &out->inputs, err);
    return rc ? rc : take_names(arena, in->dead, in->n_dead, PB_JOB_DEAD_MAX, &out->dead, err);
}

qf_rc pb_api_decode(struct qf_arena *arena, struct qf_str bytes, struct pb_api_message *ret_message,
                    struct qf_err *err)
{
    struct pb_api_message message = { .kind = PB_API_UNKNOWN };
    ProtobufCMessage *unpacked;
    const api_msg *in;
    qf_rc rc =
        pb_unpack(arena, bytes, &promfabric__control__v1__api_message__descriptor, &unpacked, err);

    if (rc)
        return rc;
    in = (const api_msg *)unpacked;
    switch (in->body_case) {
    case PROMFABRIC__CONTROL__V1__API_MESSAGE__BODY_HELLO:
        message.kind = PB_API_HELLO;
        message.u.hello =
            (struct pb_hello){ in->hello->protocol_version, qf_str_from(in->hello->api_id),
                               qf_str_from(in->hello->software), in->hello->protocol_newest };
        if (message.u.hello.api_id.len > PB_ID_BYTES_MAX ||
            message.u.hello.software.len > PB_TEXT_BYTES_MAX)
            rc = qf_err_set(err, QF_EPROTO, "Hello with an overlong name");
        break;
    case PROMFABRIC__CONTROL__V1__API_MESSAGE__BODY_ASSIGN_WORK:
        message.kind = PB_API_ASSIGN;
        rc = take_assign(arena, in->assign_work, &message.u.assign, err);
        break;
    case PROMFABRIC__CONTROL__V1__API_MESSAGE__BODY_CANCEL_WORK:
        message.kind = PB_API_CANCEL;
        message.u.cancel = (struct pb_cancel){ in->cancel_work->work_id, in->cancel_work->attempt,
                                               qf_str_from(in->cancel_work->reason) };
        message.u.cancel.reason = qf_str_sub(message.u.cancel.reason, 0, PB_TEXT_BYTES_MAX);
        break;
    case PROMFABRIC__CONTROL__V1__API_MESSAGE__BODY_ARTIFACT_ACK:
        message.kind = PB_API_ACK;
        message.u.ack = (struct pb_ack){ in->artifact_ack->work_id, in->artifact_ack->attempt,
                                         qf_str_from(in->artifact_ack->artifact_checksum) };
        if (message.u.ack.artifact_checksum.len > PB_ID_BYTES_MAX)
            rc = qf_err_set(err, QF_EPROTO, "ArtifactAck with an overlong checksum");
        break;
    case PROMFABRIC__CONTROL__V1__API_MESSAGE__BODY_HEARTBEAT:
        message.kind = PB_API_HEARTBEAT;
        message.u.heartbeat = (struct pb_heartbeat){ in->heartbeat->sent_us, in->heartbeat->echo };
        break;
    case PROMFABRIC__CONTROL__V1__API_MESSAGE__BODY_ASSIGN_JOB:
        message.kind = PB_API_JOB;
        rc = take_job(arena, in->assign_job, &message.u.job, err);
        break;
    case PROMFABRIC__CONTROL__V1__API_MESSAGE__BODY_CANCEL_JOB:
        message.kind = PB_API_JOB_CANCEL;
        message.u.job_cancel =
            (struct pb_job_cancel){ in->cancel_job->job_id, in->cancel_job->attempt };
        break;
    case PROMFABRIC__CONTROL__V1__API_MESSAGE__BODY__NOT_SET:
    default:
        break;
    }
    if (rc == QF_OK)
        *ret_message = message;
    return rc;
}
