/* remote_write.c - bodies of remote write as requests: the outermost message of both versions. */
#include "ingest/core/remote_write.h"

#include <string.h>

#include "ingest/core/remote_write_int.h"

/* Numbers of fields. */
enum { V1_SERIES = 1, V1_METADATA = 3, V2_SYMBOLS = 4, V2_SERIES = 5, FIELDS = 6 };
enum { METADATA_TYPE = 1, METADATA_NAME = 2, METADATA_HELP = 4, METADATA_UNIT = 5 };

bool in_count_fields(struct qf_str bytes, size_t counts[], size_t count)
{
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;

    memset(counts, 0, count * sizeof(*counts));
    while (in_wire_next(&wire, &field))
        if (field.number < count)
            counts[field.number]++;
    return !wire.bad;
}

static bool decode_metadata(struct qf_str bytes, struct in_metadata *ret_metadata)
{
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;

    *ret_metadata = (struct in_metadata){ 0 };
    while (in_wire_next(&wire, &field)) {
        bool is_type = field.number == METADATA_TYPE;
        bool is_text = field.number == METADATA_NAME || field.number == METADATA_HELP ||
                       field.number == METADATA_UNIT;

        if ((is_type && field.type != IN_WIRE_VARINT) || (is_text && field.type != IN_WIRE_BYTES))
            return false;
        if (is_type && field.value < QF_METRIC_TYPE__COUNT)
            ret_metadata->type = (enum qf_metric_type)field.value;
        if (field.number == METADATA_NAME)
            ret_metadata->name = field.bytes;
        if (field.number == METADATA_HELP)
            ret_metadata->help = field.bytes;
        if (field.number == METADATA_UNIT)
            ret_metadata->unit = field.bytes;
    }
    return !wire.bad;
}

/* Room for what the body has of everything. */
static bool make_room(struct qf_arena *arena, size_t series, size_t metadata,
                      struct in_request *request)
{
    request->series = QF_ARENA_ARRAY(arena, struct in_series, series);
    request->metadata = QF_ARENA_ARRAY(arena, struct in_metadata, metadata);
    return !qf_arena_failed(arena);
}

static bool decode_v1(struct qf_str body, const size_t counts[], struct qf_arena *arena,
                      struct in_request *request)
{
    struct in_decoder decoder = { .labels = IN_LABELS_SPELLED, .arena = arena };
    struct in_wire wire = in_wire_of(body);
    struct in_field field;
    bool has;

    if (!make_room(arena, counts[V1_SERIES], counts[V1_METADATA], request))
        return false;
    while (in_wire_next(&wire, &field)) {
        if (field.number != V1_SERIES && field.number != V1_METADATA)
            continue;
        if (field.type != IN_WIRE_BYTES)
            return false;
        if (field.number == V1_SERIES
                ? !in_decode_series(&decoder, field.bytes,
                                    &request->series[request->series_count++], NULL, &has)
                : !decode_metadata(field.bytes, &request->metadata[request->metadata_count++]))
            return false;
    }
    return true;
}

/* Symbols may come behind the series that use them: all of them first. */
static bool collect_symbols(struct qf_str body, size_t count, struct in_decoder *decoder)
{
    struct qf_str *symbols = QF_ARENA_ARRAY(decoder->arena, struct qf_str, count);
    struct in_wire wire = in_wire_of(body);
    struct in_field field;

    if (!symbols)
        return false;
    while (in_wire_next(&wire, &field)) {
        if (field.number != V2_SYMBOLS)
            continue;
        if (field.type != IN_WIRE_BYTES)
            return false;
        symbols[decoder->symbol_count++] = field.bytes;
    }
    decoder->symbols = symbols;
    return true;
}

static bool decode_v2(struct qf_str body, const size_t counts[], struct qf_arena *arena,
                      struct in_request *request)
{
    struct in_decoder decoder = { .labels = IN_LABELS_BY_SYMBOL, .arena = arena };
    struct in_wire wire = in_wire_of(body);
    struct in_field field;
    bool has;

    if (!make_room(arena, counts[V2_SERIES], counts[V2_SERIES], request) ||
        !collect_symbols(body, counts[V2_SYMBOLS], &decoder))
        return false;
    while (in_wire_next(&wire, &field)) {
        if (field.number != V2_SERIES)
            continue;
        if (field.type != IN_WIRE_BYTES ||
            !in_decode_series(&decoder, field.bytes, &request->series[request->series_count++],
                              &request->metadata[request->metadata_count], &has))
            return false;
        request->metadata_count += has;
    }
    return true;
}

qf_rc in_remote_write_decode(enum in_remote_write version, struct qf_str body,
                             struct qf_arena *arena, struct in_request *ret_request,
                             struct qf_err *err)
{
    size_t counts[FIELDS];
    bool ok = in_count_fields(body, counts, FIELDS);

    *ret_request = (struct in_request){ 0 };
    if (ok)
        ok = version == IN_REMOTE_WRITE_1 ? decode_v1(body, counts, arena, ret_request)
                                          : decode_v2(body, counts, arena, ret_request);
    if (!ok && qf_arena_failed(arena))
        return qf_err_set(err, QF_ELIMIT, "the request needs more memory than it may have");
    if (!ok)
        return qf_err_set(err, QF_EPARSE, "the body is no remote write %s message",
                          version == IN_REMOTE_WRITE_1 ? "1.0" : "2.0");
    return QF_OK;
}
