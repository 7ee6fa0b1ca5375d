/* wire_series.c - one TimeSeries of remote write, of either version. */
#include "ingest/core/remote_write_int.h"

/* Numbers of fields. Labels and samples have the same ones in both versions. */
enum { SERIES_LABELS = 1, SERIES_SAMPLES = 2, V1_EXEMPLARS = 3, V1_HISTOGRAMS = 4 };
enum { V2_HISTOGRAMS = 3, V2_EXEMPLARS = 4, V2_METADATA = 5, V2_CREATED = 6, FIELDS = 7 };
enum { SAMPLE_VALUE = 1, SAMPLE_TIME = 2, SAMPLE_START = 3 };
enum { EXEMPLAR_LABELS = 1, EXEMPLAR_VALUE = 2, EXEMPLAR_TIME = 3 };
enum { LABEL_NAME = 1, LABEL_VALUE = 2 };
enum { METADATA_TYPE = 1, METADATA_HELP = 3, METADATA_UNIT = 4 };

/* --- labels --- */

static bool decode_label(struct qf_str bytes, struct qf_label *ret_label)
{
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;

    *ret_label = (struct qf_label){ { "", 0 }, { "", 0 } };
    while (in_wire_next(&wire, &field)) {
        if (field.number != LABEL_NAME && field.number != LABEL_VALUE)
            continue;
        if (field.type != IN_WIRE_BYTES)
            return false;
        if (field.number == LABEL_NAME)
            ret_label->name = field.bytes;
        else
            ret_label->value = field.bytes;
    }
    return !wire.bad;
}

/* Labels that are spelled out in the fields @number of @bytes, @count of them. */
static bool decode_spelled(struct qf_arena *arena, struct qf_str bytes, uint32_t number,
                           size_t count, struct qf_label **ret_labels, size_t *ret_count)
{
    struct qf_label *labels = QF_ARENA_ARRAY(arena, struct qf_label, count);
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;

    if (!labels)
        return false;
    *ret_labels = labels;
    *ret_count = 0;
    while (in_wire_next(&wire, &field)) {
        if (field.number != number)
            continue;
        if (field.type != IN_WIRE_BYTES || !decode_label(field.bytes, &labels[(*ret_count)++]))
            return false;
    }
    return true;
}

/* Numbers of symbols, packed or one to a field, as labels under construction. */
struct references {
    const struct in_decoder *decoder;
    struct qf_label *labels;
    size_t count;    /* of references so far: a name and a value each */
    const char *bad; /* why the labels cannot be read */
};

static void take_reference(struct references *refs, uint64_t reference)
{
    struct qf_label *label = &refs->labels[refs->count / 2];
    struct qf_str symbol = { "", 0 };

    if (reference < refs->decoder->symbol_count)
        symbol = refs->decoder->symbols[reference];
    else
        refs->bad = "a label refers to a symbol that is not there";
    if (refs->count++ % 2 == 0)
        *label = (struct qf_label){ symbol, { "", 0 } };
    else
        label->value = symbol;
}

static size_t count_references(struct qf_str bytes, uint32_t number)
{
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;
    size_t count = 0;

    while (in_wire_next(&wire, &field))
        if (field.number == number)
            count += field.type == IN_WIRE_BYTES ? in_wire_count_varints(field.bytes) : 1;
    return count;
}

static bool decode_references(const struct in_decoder *decoder, struct qf_str bytes,
                              uint32_t number, struct qf_label **ret_labels, size_t *ret_count,
                              const char **ret_bad)
{
    struct references refs = { .decoder = decoder };
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;
    uint64_t reference;

    refs.labels =
        QF_ARENA_ARRAY(decoder->arena, struct qf_label, count_references(bytes, number) / 2 + 1);
    if (!refs.labels)
        return false;
    while (in_wire_next(&wire, &field)) {
        struct in_wire packed = in_wire_of(field.bytes);

        if (field.number != number)
            continue;
        if (field.type == IN_WIRE_VARINT)
            take_reference(&refs, field.value);
        else if (field.type != IN_WIRE_BYTES)
            return false;
        else
            while (in_wire_varint(&packed, &reference))
                take_reference(&refs, reference);
        if (field.type == IN_WIRE_BYTES && packed.bad)
            return false;
    }
    if (refs.count % 2)
        refs.bad = "a label has a name and no value";
    *ret_labels = refs.labels;
    *ret_count = refs.count / 2;
    *ret_bad = refs.bad;
    return true;
}

/* The labels in fields @number of the message @bytes, which has @count such fields. */
static bool decode_labels(const struct in_decoder *decoder, struct qf_str bytes, uint32_t number,
                          size_t count, struct qf_label **ret_labels, size_t *ret_count,
                          const char **ret_bad)
{
    if (decoder->labels == IN_LABELS_BY_SYMBOL)
        return decode_references(decoder, bytes, number, ret_labels, ret_count, ret_bad);
    return decode_spelled(decoder->arena, bytes, number, count, ret_labels, ret_count);
}

/* --- samples, exemplars, metadata --- */

/* Times and values have fixed types. */
static bool field_fits(const struct in_field *field, uint32_t value_number, uint32_t time_number)
{
    if (field->number == value_number)
        return field->type == IN_WIRE_FIXED64;
    return field->number != time_number || field->type == IN_WIRE_VARINT;
}

static bool decode_sample(struct qf_str bytes, struct in_sample *ret_sample)
{
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;

    *ret_sample = (struct in_sample){ 0 };
    while (in_wire_next(&wire, &field)) {
        if (!field_fits(&field, SAMPLE_VALUE, SAMPLE_TIME))
            return false;
        if (field.number == SAMPLE_VALUE)
            ret_sample->value = in_wire_double(field.value);
        if (field.number == SAMPLE_TIME)
            ret_sample->ts = (int64_t)field.value;
        if (field.number == SAMPLE_START && field.type == IN_WIRE_VARINT)
            ret_sample->start_ts = (int64_t)field.value;
    }
    return !wire.bad;
}

static bool decode_exemplar(const struct in_decoder *decoder, struct qf_str bytes,
                            struct in_exemplar *ret_exemplar)
{
    struct in_wire wire = in_wire_of(bytes);
    size_t counts[EXEMPLAR_TIME + 1];
    struct in_field field;
    const char *bad = NULL;

    *ret_exemplar = (struct in_exemplar){ 0 };
    if (!in_count_fields(bytes, counts, EXEMPLAR_TIME + 1) ||
        !decode_labels(decoder, bytes, EXEMPLAR_LABELS, counts[EXEMPLAR_LABELS],
                       &ret_exemplar->labels, &ret_exemplar->label_count, &bad))
        return false;
    ret_exemplar->bad = bad != NULL;
    while (in_wire_next(&wire, &field)) {
        if (!field_fits(&field, EXEMPLAR_VALUE, EXEMPLAR_TIME))
            return false;
        if (field.number == EXEMPLAR_VALUE)
            ret_exemplar->value = in_wire_double(field.value);
        if (field.number == EXEMPLAR_TIME)
            ret_exemplar->ts = (int64_t)field.value;
    }
    return true;
}

static struct qf_str symbol_at(const struct in_decoder *decoder, uint64_t reference)
{
    return reference < decoder->symbol_count ? decoder->symbols[reference] : QF_STR("");
}

/* The metadata of the metric that @labels name. */
static bool decode_metadata(const struct in_decoder *decoder, struct qf_str bytes,
                            const struct in_series *series, struct in_metadata *ret_metadata)
{
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;

    *ret_metadata = (struct in_metadata){ .help = QF_STR(""), .unit = QF_STR("") };
    for (size_t i = 0; i < series->label_count; i++)
        if (qf_str_is(series->labels[i].name, QF_METRIC_NAME))
            ret_metadata->name = series->labels[i].value;
    while (in_wire_next(&wire, &field)) {
        if (field.number <= METADATA_UNIT && field.type != IN_WIRE_VARINT)
            return false;
        if (field.number == METADATA_TYPE && field.value < QF_METRIC_TYPE__COUNT)
            ret_metadata->type = (enum qf_metric_type)field.value;
        if (field.number == METADATA_HELP)
            ret_metadata->help = symbol_at(decoder, field.value);
        if (field.number == METADATA_UNIT)
            ret_metadata->unit = symbol_at(decoder, field.value);
    }
    return !wire.bad;
}

/* A series that says nothing of its metadata has an empty message, as often as not. */
static bool says_something(const struct in_metadata *metadata)
{
    return metadata->type != QF_METRIC_UNKNOWN || metadata->help.len || metadata->unit.len;
}

/* --- a series --- */

struct numbers {
    uint32_t exemplars, histograms;
};

static bool decode_part(const struct in_decoder *decoder, const struct in_field *field,
                        struct numbers numbers, struct in_series *series)
{
    if (field->number == SERIES_SAMPLES)
        return field->type == IN_WIRE_BYTES &&
               decode_sample(field->bytes, &series->samples[series->sample_count++]);
    if (field->number == numbers.histograms)
        return field->type == IN_WIRE_BYTES &&
               in_decode_histogram(decoder->arena, field->bytes,
                                   &series->samples[series->sample_count++]);
    if (field->number == numbers.exemplars)
        return field->type == IN_WIRE_BYTES &&
               decode_exemplar(decoder, field->bytes, &series->exemplars[series->exemplar_count++]);
    return true;
}

/* Samples that do not say when they began to count began when their series was made. */
static void set_starts(struct in_series *series, int64_t created)
{
    for (size_t i = 0; created && i < series->sample_count; i++)
        if (!series->samples[i].start_ts)
            series->samples[i].start_ts = created;
}

bool in_decode_series(struct in_decoder *decoder, struct qf_str bytes, struct in_series *ret_series,
                      struct in_metadata *ret_metadata, bool *ret_has)
{
    bool v2 = decoder->labels == IN_LABELS_BY_SYMBOL;
    struct numbers numbers = { v2 ? V2_EXEMPLARS : V1_EXEMPLARS,
                               v2 ? V2_HISTOGRAMS : V1_HISTOGRAMS };
    struct in_wire wire = in_wire_of(bytes);
    size_t counts[FIELDS];
    struct in_field field;
    int64_t created = 0;

    *ret_series = (struct in_series){ 0 };
    *ret_has = false;
    if (!in_count_fields(bytes, counts, FIELDS) ||
        !decode_labels(decoder, bytes, SERIES_LABELS, counts[SERIES_LABELS], &ret_series->labels,
                       &ret_series->label_count, &ret_series->bad))
        return false;
    ret_series->samples = QF_ARENA_ARRAY(decoder->arena, struct in_sample,
                                         counts[SERIES_SAMPLES] + counts[numbers.histograms]);
    ret_series->exemplars =
        QF_ARENA_ARRAY(decoder->arena, struct in_exemplar, counts[numbers.exemplars]);
    if (qf_arena_failed(decoder->arena))
        return false;
    while (in_wire_next(&wire, &field)) {
        if (!decode_part(decoder, &field, numbers, ret_series))
            return false;
        if (v2 && field.number == V2_CREATED && field.type == IN_WIRE_VARINT)
            created = (int64_t)field.value;
        if (v2 && field.number == V2_METADATA) {
            if (field.type != IN_WIRE_BYTES ||
                !decode_metadata(decoder, field.bytes, ret_series, ret_metadata))
                return false;
            *ret_has = says_something(ret_metadata);
        }
    }
    set_starts(ret_series, created);
    return true;
}
