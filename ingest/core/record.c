/* record.c - what the log of a partition says, as bytes.
 *
 *     record   version, kind, tenant, then
 *     SAMPLES  time, flags (key given, extras), [key, body], [extras], eight amounts, number of series,
 *              series...
 *     series   number (zigzag of the difference), flags, [labels], number of samples, samples...
 *     sample   time (zigzag of the difference), [start], value of 8 bytes or histogram
 *
 * Numbers are varints, texts have their length before them. */
#include "ingest/core/record.h"

#include <assert.h>

#include "base/pure/varint.h"
#include "ingest/core/extras.h"
#include "ingest/core/ha.h"
#include "promql/histogram/codec.h"
#include "ring/core/manifest.h"

/* A SEALED with a note. */
enum { SEALED_WITH_NOTE = 8 };

enum { SERIES_FRESH = 1, SERIES_STARTS = 2, SERIES_HISTOGRAMS = 4, SERIES_FLAGS = 7 };
enum { RECORD_KEYED = 1, RECORD_EXTRAS = 2, RECORD_FLAGS = 3 };
enum { VALUE_FLOAT, VALUE_HISTOGRAM };
#define LABELS_MEMORY ((size_t)1 << 20)

/* --- writing --- */

static void put_varint(struct qf_strbuf *buf, uint64_t value)
{
    unsigned char bytes[QF_VARINT_MAX];

    qf_strbuf_add(buf, bytes, qf_varint_put(bytes, value));
}

static void put_text(struct qf_strbuf *buf, struct qf_str text)
{
    put_varint(buf, text.len);
    qf_strbuf_str(buf, text);
}

/* The difference of two numbers that a sender may have chosen: it wraps, and unwraps when read. */
static int64_t difference(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static int64_t plus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static void put_head(struct qf_strbuf *buf, enum in_record_kind kind, struct qf_str tenant)
{
    assert(tenant.len <= IN_TENANT_MAX);
    put_varint(buf, IN_RECORD_VERSION);
    put_varint(buf, kind);
    put_text(buf, tenant);
}

static void put_amounts(struct qf_strbuf *buf, const struct in_amounts *amounts)
{
    put_varint(buf, amounts->series);
    put_varint(buf, amounts->samples);
    put_varint(buf, amounts->histograms);
    put_varint(buf, amounts->exemplars);
}

/* What the samples of a series have besides time and value. */
static unsigned flags_of(const struct in_record_series *series)
{
    unsigned flags = series->fresh ? SERIES_FRESH : 0;

    for (size_t i = 0; i < series->sample_count; i++) {
        flags |= series->samples[i].start_ts ? SERIES_STARTS : 0;
        flags |= series->samples[i].histogram ? SERIES_HISTOGRAMS : 0;
    }
    return flags;
}

/* Where bytes that have room are written to. */
static char *write_varint(char *at, uint64_t value)
{
    return at + qf_varint_put((unsigned char *)at, value);
}

static char *write_bytes(char *at, const void *bytes, size_t len)
{
    if (len)
        memcpy(at, bytes, len);
    return at + len;
}

static char *write_text(char *at, struct qf_str text)
{
    return write_bytes(write_varint(at, text.len), text.data, text.len);
}

static size_t varint_len(uint64_t value)
{
    size_t len = 1;

    while (value >= 0x80) {
        value >>= 7;
        len++;
    }
    return len;
}

/* What qf_labels_encode() writes, behind its length, at once. */
static void put_labels(struct qf_strbuf *buf, struct qf_labels labels)
{
    size_t len = 0;
    char *at;

    for (size_t i = 0; i < labels.count; i++) {
        const struct qf_label *label = &labels.items[i];

        len += varint_len(label->name.len) + label->name.len + varint_len(label->value.len) +
               label->value.len;
    }
    at = qf_strbuf_reserve(buf, QF_VARINT_MAX + len);
    at = write_varint(at, len);
    for (size_t i = 0; i < labels.count; i++)
        at = write_text(write_text(at, labels.items[i].name), labels.items[i].value);
    buf->len = (size_t)(at - buf->data);
}

static void put_histogram(struct qf_strbuf *buf, const struct pq_histogram *histogram)
{
    struct qf_strbuf text = QF_STRBUF_INIT;

    pq_histogram_encode(&text, histogram);
    put_text(buf, qf_strbuf_view(&text));
    qf_strbuf_done(&text);
}

static void put_sample(struct qf_strbuf *buf, const struct in_sample *sample, unsigned flags)
{
    if (flags & SERIES_STARTS)
        put_varint(buf, qf_zigzag(sample->start_ts));
    if (flags & SERIES_HISTOGRAMS)
        put_varint(buf, sample->histogram ? VALUE_HISTOGRAM : VALUE_FLOAT);
    if (sample->histogram)
        put_histogram(buf, sample->histogram);
    else
        qf_strbuf_add(buf, &sample->value, sizeof(sample->value));
}

/* All that comes before the series. */
static void put_samples_head(struct qf_strbuf *buf, const struct in_record *record, size_t count)
{
    put_head(buf, IN_SAMPLES, record->tenant);
    put_varint(buf, qf_zigzag(record->time_ms));
    put_varint(buf,
               (record->key.given ? RECORD_KEYED : 0u) | (record->extras.len ? RECORD_EXTRAS : 0u));
    if (record->key.given) {
        qf_strbuf_add(buf, record->key.key, IN_HASH_BYTES);
        qf_strbuf_add(buf, record->key.body, IN_HASH_BYTES);
    }
    if (record->extras.len)
        put_text(buf, record->extras);
    put_amounts(buf, &record->accepted);
    put_amounts(buf, &record->refused);
    put_varint(buf, count);
}

void in_record_put_samples(struct qf_strbuf *buf, const struct in_record *record,
                           const struct in_record_series *series, size_t count)
{
    uint32_t number = 0;
    int64_t ts = 0;

    put_samples_head(buf, record, count);
    for (size_t i = 0; i < count; i++) {
        unsigned flags = flags_of(&series[i]);

        assert(series[i].number < IN_SERIES_MAX);
        put_varint(buf, qf_zigzag((int64_t)series[i].number - number));
        number = series[i].number;
        put_varint(buf, flags);
        if (series[i].fresh)
            put_labels(buf, series[i].labels);
        put_varint(buf, series[i].sample_count);
        for (size_t j = 0; j < series[i].sample_count; j++) {
            put_varint(buf, qf_zigzag(difference(series[i].samples[j].ts, ts)));
            ts = series[i].samples[j].ts;
            put_sample(buf, &series[i].samples[j], flags);
        }
    }
}

static unsigned raw_flags_of(const struct in_raw_series *series)
{
    unsigned flags = series->fresh ? SERIES_FRESH : 0;

    for (size_t i = 0; i < series->sample_count; i++) {
        flags |= series->samples[i].start_ts ? SERIES_STARTS : 0;
        flags |= series->samples[i].histogram ? SERIES_HISTOGRAMS : 0;
    }
    return flags;
}

static char *write_raw_sample(char *at, const struct in_raw_sample *sample, int64_t before,
                              unsigned flags)
{
    at = write_varint(at, qf_zigzag(difference(sample->ts, before)));
    if (flags & SERIES_STARTS)
        at = write_varint(at, qf_zigzag(sample->start_ts));
    if (flags & SERIES_HISTOGRAMS)
        at = write_varint(at, sample->histogram ? VALUE_HISTOGRAM : VALUE_FLOAT);
    if (sample->histogram)
        at = write_varint(at, sample->value.len);
    return write_bytes(at, sample->value.data, sample->value.len);
}

/* Before labels and values: four numbers at most. */
#define NUMBERS_BYTES ((size_t)4 * QF_VARINT_MAX)

static void put_raw_series(struct qf_strbuf *buf, const struct in_raw_series *series,
                           uint32_t number_before, int64_t *ts)
{
    unsigned flags = raw_flags_of(series);
    char *at = qf_strbuf_reserve(buf, NUMBERS_BYTES + series->labels.len);

    assert(series->number < IN_SERIES_MAX);
    at = write_varint(at, qf_zigzag((int64_t)series->number - number_before));
    at = write_varint(at, flags);
    if (series->fresh)
        at = write_text(at, series->labels);
    at = write_varint(at, series->sample_count);
    buf->len = (size_t)(at - buf->data);
    for (size_t i = 0; i < series->sample_count; i++) {
        const struct in_raw_sample *sample = &series->samples[i];

        at = qf_strbuf_reserve(buf, NUMBERS_BYTES + sample->value.len);
        at = write_raw_sample(at, sample, *ts, flags);
        *ts = sample->ts;
        buf->len = (size_t)(at - buf->data);
    }
}

void in_record_put_raw(struct qf_strbuf *buf, const struct in_record *record,
                       const struct in_raw_series *series, size_t count)
{
    uint32_t number = 0;
    int64_t ts = 0;

    put_samples_head(buf, record, count);
    for (size_t i = 0; i < count; i++) {
        put_raw_series(buf, &series[i], number, &ts);
        number = series[i].number;
    }
}

void in_record_put_seal(struct qf_strbuf *buf, struct qf_str tenant, uint64_t generation)
{
    put_head(buf, IN_SEAL, tenant);
    put_varint(buf, generation);
}

static void put_sealed(struct qf_strbuf *buf, enum in_record_kind kind, struct qf_str tenant,
                       uint64_t from, uint64_t to, const struct in_sealed_file *files, size_t count)
{
    assert(count <= IN_SEALED_FILES_MAX);
    put_head(buf, kind, tenant);
    put_varint(buf, from);
    put_varint(buf, to);
    put_varint(buf, count);
    for (size_t i = 0; i < count; i++) {
        put_text(buf, files[i].name);
        put_text(buf, files[i].etag);
        put_varint(buf, files[i].size);
    }
}

void in_record_put_sealed(struct qf_strbuf *buf, struct qf_str tenant, uint64_t from, uint64_t to,
                          const struct in_sealed_file *files, size_t count)
{
    put_sealed(buf, IN_SEALED, tenant, from, to, files, count);
}

void in_record_put_sealed_note(struct qf_strbuf *buf, struct qf_str tenant, uint64_t from,
                               uint64_t to, const struct in_sealed_file *files, size_t count,
                               struct qf_str note)
{
    put_sealed(buf, (enum in_record_kind)SEALED_WITH_NOTE, tenant, from, to, files, count);
    put_text(buf, note);
}

void in_record_put_note(struct qf_strbuf *buf, struct qf_str note)
{
    put_head(buf, IN_NOTE, QF_STR(""));
    put_text(buf, note);
}

void in_record_put_floor(struct qf_strbuf *buf, int64_t floor_ms)
{
    put_head(buf, IN_FLOOR, QF_STR(""));
    put_varint(buf, qf_zigzag(floor_ms));
}

void in_record_put_below(struct qf_strbuf *buf, struct qf_str tenant, uint64_t generation,
                         int64_t time_ms, uint64_t keep_ms)
{
    put_head(buf, IN_BELOW, tenant);
    put_varint(buf, generation);
    put_varint(buf, qf_zigzag(time_ms));
    put_varint(buf, keep_ms);
}

void in_record_put_elect(struct qf_strbuf *buf, const struct in_record *record)
{
    put_head(buf, IN_ELECT, record->tenant);
    put_varint(buf, qf_zigzag(record->time_ms));
    put_text(buf, record->cluster);
    put_text(buf, record->replica);
    put_varint(buf, qf_zigzag(record->newest_ts));
}

void in_record_put_pin(struct qf_strbuf *buf, const struct in_record *record)
{
    put_head(buf, IN_PIN, record->tenant);
    put_varint(buf, qf_zigzag(record->time_ms));
    qf_strbuf_add(buf, record->key.key, IN_HASH_BYTES);
    qf_strbuf_add(buf, record->key.body, IN_HASH_BYTES);
    put_varint(buf, record->position);
}

/* --- reading --- */

static bool get_varint(struct qf_str *rest, uint64_t max, uint64_t *ret_value)
{
    size_t used = qf_varint_get(*rest, ret_value);

    *rest = qf_str_sub(*rest, used, rest->len);
    return used && *ret_value <= max;
}

static bool get_signed(struct qf_str *rest, int64_t *ret_value)
{
    uint64_t value;

    if (!get_varint(rest, UINT64_MAX, &value))
        return false;
    *ret_value = qf_unzigzag(value);
    return true;
}

static bool get_bytes(struct qf_str *rest, void *ret_bytes, size_t len)
{
    if (rest->len < len)
        return false;
    memcpy(ret_bytes, rest->data, len);
    *rest = qf_str_sub(*rest, len, rest->len);
    return true;
}

static bool get_text(struct qf_str *rest, struct qf_str *ret_text)
{
    uint64_t len;

    if (!get_varint(rest, rest->len, &len) || len > rest->len)
        return false;
    *ret_text = qf_str_sub(*rest, 0, len);
    *rest = qf_str_sub(*rest, len, rest->len);
    return true;
}

static bool get_amounts(struct qf_str *rest, struct in_amounts *ret_amounts)
{
    return get_varint(rest, UINT64_MAX, &ret_amounts->series) &&
           get_varint(rest, UINT64_MAX, &ret_amounts->samples) &&
           get_varint(rest, UINT64_MAX, &ret_amounts->histograms) &&
           get_varint(rest, UINT64_MAX, &ret_amounts->exemplars);
}

struct in_record_cursor in_record_series_of(const struct in_record *record)
{
    return (struct in_record_cursor){ .rest = record->series, .series_left = record->series_count };
}

/* The head of a series; @ret_labels are its labels as bytes, empty unless it is fresh. */
static bool get_series(struct in_record_cursor *cursor, struct in_record_series *ret_series,
                       struct qf_str *ret_labels)
{
    uint64_t flags;
    int64_t step, number;

    if (!get_signed(&cursor->rest, &step) ||
        __builtin_add_overflow((int64_t)cursor->number, step, &number) || number < 0 ||
        number >= IN_SERIES_MAX || !get_varint(&cursor->rest, SERIES_FLAGS, &flags))
        return false;
    cursor->number = (uint32_t)number;
    cursor->starts = flags & SERIES_STARTS;
    cursor->histograms = flags & SERIES_HISTOGRAMS;
    *ret_series =
        (struct in_record_series){ .number = cursor->number, .fresh = flags & SERIES_FRESH };
    *ret_labels = QF_STR("");
    if (ret_series->fresh && !get_text(&cursor->rest, ret_labels))
        return false;
    return get_varint(&cursor->rest, cursor->rest.len, &cursor->samples_left);
}

/* A sample; @ret_histogram is its histogram as bytes, empty for a float. */
static bool get_sample(struct in_record_cursor *cursor, struct in_sample *ret_sample,
                       struct qf_str *ret_histogram)
{
    uint64_t kind = VALUE_FLOAT;
    int64_t step;

    *ret_sample = (struct in_sample){ 0 };
    *ret_histogram = QF_STR("");
    if (!get_signed(&cursor->rest, &step) ||
        (cursor->starts && !get_signed(&cursor->rest, &ret_sample->start_ts)) ||
        (cursor->histograms && !get_varint(&cursor->rest, VALUE_HISTOGRAM, &kind)))
        return false;
    cursor->ts = ret_sample->ts = plus(cursor->ts, step);
    cursor->samples_left--;
    return kind == VALUE_HISTOGRAM
               ? get_text(&cursor->rest, ret_histogram)
               : get_bytes(&cursor->rest, &ret_sample->value, sizeof(ret_sample->value));
}

/* Walk over everything: what is fine here is fine when the cursor comes to it. @arena is scratch. */
static bool check_series(struct in_record *record, struct qf_arena *arena)
{
    struct in_record_cursor cursor = in_record_series_of(record);
    struct in_record_series series;
    const struct pq_histogram *histogram;
    struct in_sample sample;
    struct qf_labels labels;
    struct qf_str bytes;

    for (; cursor.series_left; cursor.series_left--) {
        qf_arena_reset(arena);
        if (!get_series(&cursor, &series, &bytes) ||
            (series.fresh && qf_labels_decode(arena, bytes, &labels, NULL)))
            return false;
        record->numbers = QF_MAX(record->numbers, series.number + 1);
        while (cursor.samples_left) {
            qf_arena_reset(arena);
            if (!get_sample(&cursor, &sample, &bytes) ||
                (bytes.len && pq_histogram_decode(arena, bytes, &histogram, NULL)))
                return false;
            record->sample_count++;
            record->min_ts = QF_MIN(record->min_ts, sample.ts);
            record->max_ts = QF_MAX(record->max_ts, sample.ts);
        }
    }
    return cursor.rest.len == 0;
}

/* Up to the series. */
static bool decode_samples_head(struct qf_str *rest, struct in_record *record)
{
    uint64_t flags, count;

    if (!get_signed(rest, &record->time_ms) || !get_varint(rest, RECORD_FLAGS, &flags))
        return false;
    record->key.given = flags & RECORD_KEYED;
    if (record->key.given && (!get_bytes(rest, record->key.key, IN_HASH_BYTES) ||
                              !get_bytes(rest, record->key.body, IN_HASH_BYTES)))
        return false;
    if ((flags & RECORD_EXTRAS) && (!get_text(rest, &record->extras) || !record->extras.len))
        return false;
    if (!get_amounts(rest, &record->accepted) || !get_amounts(rest, &record->refused) ||
        !get_varint(rest, UINT32_MAX, &count))
        return false;
    record->series = *rest;
    record->series_count = (uint32_t)count;
    record->min_ts = INT64_MAX;
    record->max_ts = INT64_MIN;
    *rest = QF_STR("");
    return true;
}

static bool decode_samples(struct qf_str *rest, struct in_record *record)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = NULL;

    if (!decode_samples_head(rest, record))
        return false;
    arena = qf_arena_new(LABELS_MEMORY + 64 * record->series.len);
    return in_extras_valid(record->extras, arena) && check_series(record, arena);
}

bool in_record_next_file(struct qf_str *rest, struct in_sealed_file *ret_file)
{
    return rest->len && get_text(rest, &ret_file->name) && get_text(rest, &ret_file->etag) &&
           get_varint(rest, UINT64_MAX, &ret_file->size);
}

static bool decode_sealed(struct qf_str *rest, struct in_record *record)
{
    struct in_sealed_file file;
    uint64_t count;

    if (!get_varint(rest, UINT64_MAX, &record->from) ||
        !get_varint(rest, UINT64_MAX, &record->to) || record->from > record->to ||
        !get_varint(rest, IN_SEALED_FILES_MAX, &count))
        return false;
    record->files = *rest;
    record->file_count = (uint32_t)count;
    for (uint32_t i = 0; i < record->file_count; i++)
        if (!in_record_next_file(rest, &file) || file.name.len == 0)
            return false;
    return true;
}

/* A name of 1 to IN_HA_NAME_BYTES_MAX bytes of text: the ledger keeps it as a string of C. */
static bool get_name(struct qf_str *rest, struct qf_str *ret_name)
{
    return get_text(rest, ret_name) && ret_name->len > 0 && ret_name->len <= IN_HA_NAME_BYTES_MAX &&
           !memchr(ret_name->data, 0, ret_name->len);
}

static bool decode_elect(struct qf_str *rest, struct in_record *record)
{
    return get_signed(rest, &record->time_ms) && get_name(rest, &record->cluster) &&
           get_name(rest, &record->replica) && get_signed(rest, &record->newest_ts);
}

static bool decode_pin(struct qf_str *rest, struct in_record *record)
{
    record->key.given = true;
    return get_signed(rest, &record->time_ms) && get_bytes(rest, record->key.key, IN_HASH_BYTES) &&
           get_bytes(rest, record->key.body, IN_HASH_BYTES) &&
           get_varint(rest, UINT64_MAX, &record->position) && record->position;
}

static bool decode_note(struct qf_str *rest, bool of_sealed, struct in_record *record)
{
    struct rg_note note;
    bool fits;

    if (!get_text(rest, &record->note) || rg_note_decode(record->note, &note) != QF_OK)
        return false;
    fits = (note.kind == RG_NOTE_SEALED) == of_sealed;
    rg_note_done(&note);
    return fits;
}

/* What follows the head. */
static bool decode_rest(struct qf_str *rest, bool own, struct in_record *record)
{
    bool for_all = record->kind == IN_FLOOR || record->kind == IN_NOTE;

    if (for_all != (record->tenant.len == 0) || record->tenant.len > IN_TENANT_MAX)
        return false;
    switch (record->kind) {
    case IN_SAMPLES:
        return own ? decode_samples_head(rest, record) : decode_samples(rest, record);
    case IN_SEAL:
        return get_varint(rest, UINT64_MAX, &record->generation);
    case IN_SEALED:
        return decode_sealed(rest, record);
    case IN_FLOOR:
        return get_signed(rest, &record->floor_ms);
    case IN_BELOW:
        return get_varint(rest, UINT64_MAX, &record->generation) &&
               get_signed(rest, &record->time_ms) && get_varint(rest, UINT64_MAX, &record->keep_ms);
    case IN_ELECT:
        return decode_elect(rest, record);
    case IN_NOTE:
        return decode_note(rest, false, record);
    case IN_PIN:
        return decode_pin(rest, record);
    }
    return false;
}

static qf_rc decode(struct qf_str bytes, bool own, struct in_record *ret_record, struct qf_err *err)
{
    struct qf_str rest = bytes;
    uint64_t version, kind;
    bool read, noted;

    *ret_record = (struct in_record){ 0 };
    if (!get_varint(&rest, UINT64_MAX, &version))
        return qf_err_set(err, QF_ECORRUPT, "a record of the log is empty");
    if (version != IN_RECORD_VERSION)
        return qf_err_set(err, QF_EUNSUPPORTED,
                          "a record of the log has version %llu, this is a node for version %d",
                          (unsigned long long)version, IN_RECORD_VERSION);
    read = get_varint(&rest, UINT64_MAX, &kind);
    noted = read && kind == SEALED_WITH_NOTE;
    if (noted)
        kind = IN_SEALED;
    if (read && kind > IN_PIN)
        return qf_err_set(err, QF_EUNSUPPORTED,
                          "a record of the log is of kind %llu, which this version does not know: "
                          "start a newer one",
                          (unsigned long long)kind);
    if (!read || kind < IN_SAMPLES || !get_text(&rest, &ret_record->tenant))
        return qf_err_set(err, QF_ECORRUPT, "a record of the log is malformed");
    ret_record->kind = (enum in_record_kind)kind;
    if (!decode_rest(&rest, own, ret_record) || (noted && !decode_note(&rest, true, ret_record)) ||
        rest.len)
        return qf_err_set(err, QF_ECORRUPT, "a record of the log is malformed");
    return QF_OK;
}

qf_rc in_record_decode(struct qf_str bytes, struct in_record *ret_record, struct qf_err *err)
{
    return decode(bytes, false, ret_record, err);
}

qf_rc in_record_decode_own(struct qf_str bytes, struct in_record *ret_record, struct qf_err *err)
{
    return decode(bytes, true, ret_record, err);
}

/* Pass over what the caller did not read of the series before, then read the next one's head. */
static bool next_series(struct in_record_cursor *cursor, struct in_record_series *ret_series,
                        struct qf_str *ret_labels)
{
    struct in_sample sample;
    struct qf_str bytes;
    bool whole = true;

    while (whole && cursor->samples_left)
        whole = get_sample(cursor, &sample, &bytes);
    if (!whole || cursor->series_left == 0)
        return false;
    cursor->series_left--;
    return get_series(cursor, ret_series, ret_labels);
}

bool in_record_next_series(struct in_record_cursor *cursor, struct qf_arena *arena,
                           struct in_record_series *ret_series)
{
    struct qf_str bytes;

    return next_series(cursor, ret_series, &bytes) &&
           (!ret_series->fresh ||
            qf_labels_decode(arena, bytes, &ret_series->labels, NULL) == QF_OK);
}

bool in_record_next_raw_series(struct in_record_cursor *cursor, struct in_raw_series *ret_series)
{
    struct in_record_series head;
    struct qf_str labels;

    if (!next_series(cursor, &head, &labels))
        return false;
    *ret_series = (struct in_raw_series){ .number = head.number,
                                          .fresh = head.fresh,
                                          .labels = labels,
                                          .sample_count = cursor->samples_left };
    return true;
}

bool in_record_next_raw_sample(struct in_record_cursor *cursor, struct in_raw_sample *ret_sample)
{
    struct in_sample sample;
    const char *value;
    struct qf_str histogram;

    if (!cursor->samples_left || !get_sample(cursor, &sample, &histogram))
        return false;
    value = cursor->rest.data - sizeof(sample.value);
    *ret_sample = (struct in_raw_sample){
        .ts = sample.ts,
        .start_ts = sample.start_ts,
        .value = histogram.len ? histogram : (struct qf_str){ value, sizeof(sample.value) },
        .histogram = histogram.len > 0
    };
    return true;
}

bool in_record_next_sample(struct in_record_cursor *cursor, struct qf_arena *arena,
                           struct in_sample *ret_sample)
{
    struct qf_str bytes;

    return cursor->samples_left && get_sample(cursor, ret_sample, &bytes) &&
           (!bytes.len || pq_histogram_decode(arena, bytes, &ret_sample->histogram, NULL) == QF_OK);
}
