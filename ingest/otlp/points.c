/* points.c - points of metrics: what they have in common, and numbers. */
#include "ingest/otlp/otlp_int.h"

#define NS_PER_MS 1000000

static int64_t to_ms(uint64_t ns)
{
    return (int64_t)(ns / NS_PER_MS);
}

bool in_otlp_numbers(struct in_otlp *otlp, struct qf_str bytes, uint32_t number,
                     enum in_wire_type type, uint64_t **ret_items, size_t *ret_count)
{
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;
    size_t room = 0;

    while (in_wire_next(&wire, &field))
        if (field.number == number)
            room += field.type != IN_WIRE_BYTES ? 1
                    : type == IN_WIRE_VARINT    ? in_wire_count_varints(field.bytes)
                                                : field.bytes.len / sizeof(uint64_t);
    *ret_items = QF_ARENA_ARRAY(otlp->arena, uint64_t, room);
    *ret_count = 0;
    if (wire.bad || !*ret_items)
        return false;
    wire = in_wire_of(bytes);
    while (in_wire_next(&wire, &field)) {
        struct in_wire packed = in_wire_of(field.bytes);

        if (field.number != number)
            continue;
        if (field.type == type)
            (*ret_items)[(*ret_count)++] = field.value;
        else if (field.type != IN_WIRE_BYTES)
            return false;
        else
            while (type == IN_WIRE_VARINT ? in_wire_varint(&packed, &(*ret_items)[*ret_count])
                                          : in_wire_fixed64(&packed, &(*ret_items)[*ret_count]))
                ++*ret_count;
        if (packed.bad)
            return false;
    }
    return true;
}

/* --- exemplars --- */

static struct qf_str to_hex(struct in_otlp *otlp, struct qf_str bytes)
{
    static const char digits[] = "0123456789abcdef";
    char *text = qf_arena_alloc(otlp->arena, 2 * bytes.len + 1);

    for (size_t i = 0; text && i < bytes.len; i++) {
        text[2 * i] = digits[(unsigned char)bytes.data[i] >> 4];
        text[2 * i + 1] = digits[(unsigned char)bytes.data[i] & 15];
    }
    return (struct qf_str){ text, text ? 2 * bytes.len : 0 };
}

/* An id of zeros is none. */
static bool is_id(struct qf_str bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        if (bytes.data[i])
            return true;
    return false;
}

static bool take_exemplar_field(struct in_otlp *otlp, const struct in_field *field,
                                struct in_exemplar *exemplar)
{
    bool is_text = field->number == EXEMPLAR_SPAN || field->number == EXEMPLAR_TRACE;

    if (field->number > EXEMPLAR_INT || field->number < EXEMPLAR_TIME)
        return true;
    if (field->type != (is_text ? IN_WIRE_BYTES : IN_WIRE_FIXED64))
        return false;
    if (field->number == EXEMPLAR_TIME)
        exemplar->ts = to_ms(field->value);
    if (field->number == EXEMPLAR_DOUBLE)
        exemplar->value = in_wire_double(field->value);
    if (field->number == EXEMPLAR_INT)
        exemplar->value = (double)(int64_t)field->value;
    if (is_text && is_id(field->bytes))
        exemplar->labels[exemplar->label_count++] =
            (struct qf_label){ field->number == EXEMPLAR_SPAN ? QF_STR("span_id")
                                                              : QF_STR("trace_id"),
                               to_hex(otlp, field->bytes) };
    return !qf_arena_failed(otlp->arena);
}

static bool decode_exemplar(struct in_otlp *otlp, struct qf_str bytes, struct in_exemplar *exemplar)
{
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;
    const char *why;
    size_t room = 0;

    while (in_wire_next(&wire, &field))
        room += field.number >= EXEMPLAR_SPAN;
    *exemplar = (struct in_exemplar){ 0 };
    exemplar->labels = QF_ARENA_ARRAY(otlp->arena, struct qf_label, room);
    if (wire.bad || !exemplar->labels)
        return false;
    wire = in_wire_of(bytes);
    while (in_wire_next(&wire, &field))
        if (!take_exemplar_field(otlp, &field, exemplar))
            return false;
    if (!in_otlp_plain_labels(otlp, bytes, EXEMPLAR_ATTRIBUTES, exemplar->labels,
                              &exemplar->label_count, &why))
        return false;
    exemplar->bad = why != NULL;
    return true;
}

/* --- what all points have --- */

static bool take_common(struct in_otlp *otlp, const struct in_field *field,
                        const struct in_otlp_numbers *numbers, struct in_otlp_point *point)
{
    if (field->number == POINT_START || field->number == POINT_TIME) {
        if (field->type != IN_WIRE_FIXED64)
            return false;
        if (field->number == POINT_START)
            point->start_ns = field->value;
        else
            point->time_ns = field->value;
    }
    if (field->number == numbers->flags) {
        if (field->type != IN_WIRE_VARINT)
            return false;
        point->stale = field->value & FLAG_NO_RECORDED_VALUE;
    }
    if (numbers->exemplars && field->number == numbers->exemplars)
        return field->type == IN_WIRE_BYTES &&
               decode_exemplar(otlp, field->bytes, &point->exemplars[point->exemplar_count++]);
    return true;
}

bool in_otlp_point(struct in_otlp *otlp, struct qf_str bytes, const struct in_otlp_numbers *numbers,
                   struct in_otlp_point *ret_point, const char **ret_why)
{
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;
    size_t exemplars = 0;

    *ret_point = (struct in_otlp_point){ 0 };
    while (in_wire_next(&wire, &field))
        exemplars += numbers->exemplars && field.number == numbers->exemplars;
    ret_point->exemplars = QF_ARENA_ARRAY(otlp->arena, struct in_exemplar, exemplars);
    if (wire.bad || !ret_point->exemplars ||
        !in_otlp_labels(otlp, bytes, numbers->attributes, false, &ret_point->labels, ret_why))
        return false;
    wire = in_wire_of(bytes);
    while (in_wire_next(&wire, &field))
        if (!take_common(otlp, &field, numbers, ret_point))
            return false;
    if (!ret_point->time_ns && !*ret_why)
        *ret_why = "a point has no time";
    if (!*ret_why && ret_point->time_ns > otlp->newest_ns)
        otlp->newest_ns = ret_point->time_ns;
    return true;
}

struct in_sample in_otlp_sample(const struct in_otlp_point *point, double value)
{
    return (struct in_sample){ .ts = to_ms(point->time_ns),
                               .start_ts = to_ms(point->start_ns),
                               .value =
                                   point->stale ? qf_double_from_bits(QF_STALE_NAN_BITS) : value };
}

static struct qf_str with_suffix(struct in_otlp *otlp, const char *suffix)
{
    const char *text;

    if (!*suffix)
        return otlp->name;
    text = qf_arena_printf(otlp->arena, "%.*s%s", QF_STR_ARG(otlp->name), suffix);
    return (struct qf_str){ text, text ? otlp->name.len + strlen(suffix) : 0 };
}

/* The next place among the request's series; NULL: the arena is spent. */
static struct in_series *make_series(struct in_otlp *otlp)
{
    struct in_request *request = otlp->request;

    if (request->series_count == otlp->series_room) {
        size_t room = otlp->series_room ? 2 * otlp->series_room : 64;

        request->series = qf_arena_grow(otlp->arena, request->series, otlp->series_room, room,
                                        sizeof(*request->series));
        if (!request->series) {
            request->series_count = 0;
            return NULL;
        }
        otlp->series_room = room;
    }
    return &request->series[request->series_count++];
}

struct in_series *in_otlp_add(struct in_otlp *otlp, const struct in_otlp_point *point,
                              const char *suffix, struct qf_label extra, struct in_sample sample)
{
    const struct in_otlp_labels *labels = &point->labels;
    struct in_sample *own = QF_ARENA_NEW(otlp->arena, struct in_sample);
    struct qf_label *items = QF_ARENA_ARRAY(otlp->arena, struct qf_label, labels->count + 2);
    struct qf_str name = with_suffix(otlp, suffix);
    struct in_series *series = own && items && name.data ? make_series(otlp) : NULL;
    size_t count = 0;

    if (!series)
        return NULL;
    *own = sample;
    for (size_t i = 0; i < labels->count; i++)
        if (!extra.name.len || !qf_str_eq(labels->items[i].name, extra.name))
            items[count++] = labels->items[i];
    items[count++] = (struct qf_label){ QF_STR(QF_METRIC_NAME), name };
    if (extra.name.len)
        items[count++] = extra;
    *series = (struct in_series){
        .labels = items, .label_count = count, .samples = own, .sample_count = 1
    };
    return series;
}

/* --- numbers --- */

static bool take_number(struct qf_str bytes, bool *ret_has, double *ret_value)
{
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;

    *ret_has = false;
    while (in_wire_next(&wire, &field)) {
        if (field.number != NUMBER_DOUBLE && field.number != NUMBER_INT)
            continue;
        if (field.type != IN_WIRE_FIXED64)
            return false;
        *ret_has = true;
        *ret_value = field.number == NUMBER_DOUBLE ? in_wire_double(field.value)
                                                   : (double)(int64_t)field.value;
    }
    return true;
}

static bool decode_number(struct in_otlp *otlp, struct qf_str bytes)
{
    static const struct in_otlp_numbers numbers = { NUMBER_ATTRIBUTES, NUMBER_FLAGS,
                                                    NUMBER_EXEMPLARS };
    struct in_otlp_point point;
    struct in_series *series;
    const char *why;
    double value = 0;
    bool has;

    if (!in_otlp_point(otlp, bytes, &numbers, &point, &why) || !take_number(bytes, &has, &value))
        return false;
    if (!why && !has && !point.stale)
        why = "a point has no value";
    if (why) {
        in_otlp_refuse(otlp, 1, why);
        return true;
    }
    series = in_otlp_add(otlp, &point, "", (struct qf_label){ 0 }, in_otlp_sample(&point, value));
    if (!series)
        return false;
    series->exemplars = point.exemplars;
    series->exemplar_count = point.exemplar_count;
    return true;
}

static bool decode_point(struct in_otlp *otlp, uint32_t kind, struct qf_str bytes)
{
    if (kind == METRIC_HISTOGRAM)
        return in_otlp_histogram(otlp, bytes);
    if (kind == METRIC_EXPONENTIAL)
        return in_otlp_exponential(otlp, bytes);
    if (kind == METRIC_SUMMARY)
        return in_otlp_summary(otlp, bytes);
    return decode_number(otlp, bytes);
}

bool in_otlp_points(struct in_otlp *otlp, const struct in_field *field)
{
    struct in_wire wire = in_wire_of(field->bytes);
    struct in_field point;

    while (in_wire_next(&wire, &point)) {
        if (point.number != DATA_POINTS)
            continue;
        if (point.type != IN_WIRE_BYTES || !decode_point(otlp, field->number, point.bytes))
            return false;
    }
    return !wire.bad;
}
