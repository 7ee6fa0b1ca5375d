/* otlp.c - requests of OpenTelemetry's protocol: resources, scopes and metrics. */
#include "ingest/otlp/otlp.h"

#include <stdio.h>

#include "ingest/otlp/names.h"
#include "ingest/otlp/otlp_int.h"

/* What a message shows of a metric's name. */
#define SHOWN_BYTES_MAX 120

void in_otlp_refuse(struct in_otlp *otlp, uint64_t points, const char *why)
{
    struct in_request *request = otlp->request;
    struct qf_str name = qf_str_sub(otlp->metric, 0, SHOWN_BYTES_MAX);
    char shown[SHOWN_BYTES_MAX + 1];

    request->refused.samples += points;
    if (!points || request->first[0])
        return;
    for (size_t i = 0; i < name.len; i++)
        shown[i] = name.data[i] >= ' ' && name.data[i] < 0x7f ? name.data[i] : '?';
    shown[name.len] = 0;
    (void)snprintf(request->first, sizeof(request->first), "%s: metric %s", why, shown);
}

/* --- metrics --- */

/* Of a metric's data: what decides whether it is taken, and as what. */
struct data {
    struct in_field field; /* number 0: it has none */
    uint64_t points, temporality;
    bool monotonic;
};

static bool look_at_data(struct data *data)
{
    struct in_wire wire = in_wire_of(data->field.bytes);
    struct in_field field;

    if (data->field.type != IN_WIRE_BYTES)
        return false;
    while (in_wire_next(&wire, &field)) {
        if (field.number != DATA_POINTS && field.number <= DATA_MONOTONIC &&
            field.type != IN_WIRE_VARINT)
            return false;
        data->points += field.number == DATA_POINTS;
        if (field.number == DATA_TEMPORALITY)
            data->temporality = field.value;
        if (field.number == DATA_MONOTONIC)
            data->monotonic = field.value != 0;
    }
    return !wire.bad;
}

static bool is_data(uint32_t number)
{
    return number == METRIC_GAUGE || number == METRIC_SUM || number == METRIC_HISTOGRAM ||
           number == METRIC_EXPONENTIAL || number == METRIC_SUMMARY;
}

static enum qf_metric_type type_of(const struct data *data)
{
    switch (data->field.number) {
    case METRIC_SUM:
        return data->monotonic ? QF_METRIC_COUNTER : QF_METRIC_GAUGE;
    case METRIC_HISTOGRAM:
    case METRIC_EXPONENTIAL:
        return QF_METRIC_HISTOGRAM;
    case METRIC_SUMMARY:
        return QF_METRIC_SUMMARY;
    default:
        return QF_METRIC_GAUGE;
    }
}

static const char *why_not(const struct data *data)
{
    bool has_temporality = data->field.number == METRIC_SUM ||
                           data->field.number == METRIC_HISTOGRAM ||
                           data->field.number == METRIC_EXPONENTIAL;

    if (!has_temporality || data->temporality == TEMPORALITY_CUMULATIVE)
        return NULL;
    return data->temporality == 1
               ? "delta temporality is not supported: let the exporter send cumulative values"
               : "a metric does not say that its values are cumulative";
}

static bool add_metadata(struct in_otlp *otlp, const struct in_metadata *metadata)
{
    struct in_request *request = otlp->request;

    if (request->metadata_count == otlp->metadata_room) {
        size_t room = otlp->metadata_room ? 2 * otlp->metadata_room : 64;

        request->metadata = qf_arena_grow(otlp->arena, request->metadata, otlp->metadata_room, room,
                                          sizeof(*request->metadata));
        if (!request->metadata) {
            request->metadata_count = 0;
            return false;
        }
        otlp->metadata_room = room;
    }
    request->metadata[request->metadata_count++] = *metadata;
    return true;
}

static bool take_metric(struct in_otlp *otlp, struct data *data, struct in_metadata *about)
{
    enum in_otlp_kind kind = data->field.number == METRIC_GAUGE ? IN_OTLP_GAUGE
                             : data->monotonic                  ? IN_OTLP_COUNTER
                                                                : IN_OTLP_OTHER;
    const char *why = otlp->why ? otlp->why : why_not(data);

    if (why) {
        in_otlp_refuse(otlp, data->points, why);
        return true;
    }
    otlp->name = in_otlp_metric_name(otlp->arena, otlp->metric, about->unit, kind);
    if (!otlp->name.data)
        return false;
    if (!otlp->name.len) {
        in_otlp_refuse(otlp, data->points, "a name without a letter or digit");
        return true;
    }
    about->name = otlp->name;
    about->type = type_of(data);
    return add_metadata(otlp, about) && in_otlp_points(otlp, &data->field);
}

static bool decode_metric(struct in_otlp *otlp, struct qf_str bytes)
{
    struct in_metadata about = { .help = QF_STR(""), .unit = QF_STR("") };
    struct in_wire wire = in_wire_of(bytes);
    struct data data = { 0 };
    struct in_field field;

    otlp->metric = QF_STR("");
    while (in_wire_next(&wire, &field)) {
        if (is_data(field.number))
            data.field = field;
        if (field.number > METRIC_UNIT)
            continue;
        if (field.type != IN_WIRE_BYTES)
            return false;
        if (field.number == METRIC_NAME)
            otlp->metric = field.bytes;
        if (field.number == METRIC_DESCRIPTION)
            about.help = field.bytes;
        if (field.number == METRIC_UNIT)
            about.unit = field.bytes;
    }
    if (wire.bad)
        return false;
    return !data.field.number || (look_at_data(&data) && take_metric(otlp, &data, &about));
}

/* --- resources --- */

/* Fields @number of the message @bytes, one after the other. */
static bool each(struct in_otlp *otlp, struct qf_str bytes, uint32_t number,
                 bool (*decode)(struct in_otlp *otlp, struct qf_str bytes))
{
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;

    while (in_wire_next(&wire, &field)) {
        if (field.number != number)
            continue;
        if (field.type != IN_WIRE_BYTES || !decode(otlp, field.bytes))
            return false;
    }
    return !wire.bad;
}

static bool decode_scope(struct in_otlp *otlp, struct qf_str bytes)
{
    return each(otlp, bytes, SCOPE_METRICS_METRICS, decode_metric);
}

/* What a resource is, beside its job and instance, once it has points. */
static bool add_target_info(struct in_otlp *otlp, struct qf_str resource, size_t others)
{
    struct in_otlp_point point = { .time_ns = otlp->newest_ns };
    const char *why;

    if (!otlp->newest_ns || !others || (!otlp->job.len && !otlp->instance.len))
        return true;
    if (!in_otlp_labels(otlp, resource, RESOURCE_ATTRIBUTES, true, &point.labels, &why))
        return false;
    otlp->metric = otlp->name = QF_STR("target_info");
    if (why)
        in_otlp_refuse(otlp, 1, why);
    return why || in_otlp_add(otlp, &point, "", (struct qf_label){ 0 }, in_otlp_sample(&point, 1));
}

static bool decode_resource(struct in_otlp *otlp, struct qf_str bytes)
{
    struct in_wire wire = in_wire_of(bytes);
    struct qf_str resource = { "", 0 };
    struct in_field field;
    size_t others;

    while (in_wire_next(&wire, &field)) {
        if (field.number != RESOURCE_METRICS_RESOURCE)
            continue;
        if (field.type != IN_WIRE_BYTES)
            return false;
        resource = field.bytes;
    }
    otlp->newest_ns = 0;
    return !wire.bad && in_otlp_identify(otlp, resource, &others) &&
           each(otlp, bytes, RESOURCE_METRICS_SCOPES, decode_scope) &&
           add_target_info(otlp, resource, others);
}

qf_rc in_otlp_decode(struct qf_str body, struct qf_arena *arena, struct in_request *ret_request,
                     struct qf_err *err)
{
    struct in_otlp otlp = { .arena = arena, .request = ret_request };
    bool ok;

    *ret_request = (struct in_request){ 0 };
    ok = each(&otlp, body, REQUEST_RESOURCES, decode_resource);
    if (qf_arena_failed(arena))
        return qf_err_set(err, QF_ELIMIT, "the request needs more memory than it may have");
    if (!ok)
        return qf_err_set(err, QF_EPARSE, "the body is no OTLP request for metrics");
    return QF_OK;
}
