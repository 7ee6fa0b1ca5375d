/* segment_cursor.c - walk over the selected rows of one segment.
 *
 * A row group is looked at in three steps, each only if the one before leaves something: its
 * statistics; its series columns, where each matcher looks at each different value once; its
 * samples, of which the selected rows are decoded, and of these the selected times and what is later.
 * Whoever wants a row says where to (sg_cursor_decode()); only rows with start timestamps or histograms
 * are decoded all together, with these. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "promql/histogram/codec.h"
#include "segments/parquet/decimals.h"
#include "segments/parquet/seg_int.h"

void sg_cursor_init(struct sg_cursor *cursor, const struct sg_reader *reader,
                    const struct pq_select *select, struct sg_scratch *scratch)
{
    *cursor = (struct sg_cursor){ .reader = reader, .select = select, .scratch = scratch };
    cursor->arena = qf_arena_new(SIZE_MAX);
}

static void release_parts(struct sg_cursor *cursor)
{
    for (size_t i = 0; i < SG_PART__COUNT; i++) {
        sg_part_release(cursor->parts[i]);
        cursor->parts[i] = NULL;
    }
}

void sg_cursor_done(struct sg_cursor *cursor)
{
    (void)qf_arena_free(cursor->arena);
    release_parts(cursor);
    free(cursor->ts);
    free(cursor->values);
    *cursor = (struct sg_cursor){ 0 };
}

/* Row group @group, to be read within what the source has left. */
static struct colfile_group group_at(const struct sg_cursor *cursor, size_t group)
{
    const struct sg_scratch *scratch = cursor->scratch;
    uint64_t limit = scratch->memory_limit ? scratch->memory_limit : COLFILE_CHUNK_MEMORY_MAX;

    return (struct colfile_group){ cursor->reader->file, group,
                                   limit > scratch->memory ? limit - scratch->memory : 0 };
}

/* What the cursor holds, parts that others hold too included. */
static uint64_t memory_of(const struct sg_cursor *cursor)
{
    uint64_t memory = qf_arena_used(cursor->arena) + cursor->capacity * 16;

    for (size_t i = 0; i < SG_PART__COUNT; i++)
        memory += cursor->parts[i] ? cursor->parts[i]->memory : 0;
    return memory;
}

/* Count what the cursor holds and @more, and refuse to hold more than the source may. */
static qf_rc account(struct sg_cursor *cursor, uint64_t more, struct qf_err *err)
{
    struct sg_scratch *scratch = cursor->scratch;
    uint64_t now = memory_of(cursor) + more;

    scratch->memory = scratch->memory - cursor->memory + now;
    cursor->memory = now;
    if (scratch->memory > scratch->stats.memory_peak)
        scratch->stats.memory_peak = scratch->memory;
    if (scratch->memory_limit && scratch->memory > scratch->memory_limit)
        return qf_err_set(
            err, QF_ELIMIT, "%s: reading it takes more than the %llu bytes a scan may hold",
            colfile_name(cursor->reader->file), (unsigned long long)scratch->memory_limit);
    return QF_OK;
}

static uint64_t texts_memory(const struct colfile_texts *texts)
{
    uint64_t memory = texts->count * 4;

    for (size_t i = 0; i < texts->distinct_count; i++)
        memory += sizeof(*texts->distinct) + texts->distinct[i].len;
    return memory;
}

static uint64_t series_memory(const struct sg_series *s)
{
    return sizeof(struct sg_part) + s->rows * 40 + texts_memory(s->metric) +
           texts_memory(s->names) + texts_memory(s->values);
}

static struct sg_part *part_new(void)
{
    struct sg_part *part = qf_xcalloc(1, sizeof(*part));

    atomic_init(&part->refs, 1);
    return part;
}

/* The series of a row group. *ret_skipped: none has a selected name, and they may be unread. */
static qf_rc need_series(struct sg_cursor *cursor, size_t group, struct sg_matching *matching,
                         bool *ret_skipped, struct qf_err *err)
{
    struct sg_part *part = sg_hot_find(cursor->reader, group, SG_PART_SERIES);
    struct colfile_group at = group_at(cursor, group);
    qf_rc rc;

    cursor->parts[SG_PART_SERIES] = part;
    if (part) {
        *ret_skipped = sg_matching_no_name(matching, part->series.metric);
        return QF_OK;
    }
    part = part_new();
    rc = sg_series_read(cursor->reader, &at, sg_matching_no_name, matching, &part->series,
                        ret_skipped, err);
    if (rc || *ret_skipped) {
        sg_part_release(part);
        return rc;
    }
    part->memory = series_memory(&part->series);
    cursor->parts[SG_PART_SERIES] = part;
    sg_hot_keep(cursor->reader, group, SG_PART_SERIES, part);
    return QF_OK;
}

/* A column of @count numbers. */
static qf_rc need_numbers(struct sg_cursor *cursor, size_t group, enum sg_part_kind kind,
                          size_t count, struct qf_err *err)
{
    static const size_t columns[SG_PART__COUNT] = {
        [SG_PART_TS] = SG_COL_TS, [SG_PART_VALUE] = SG_COL_VALUE, [SG_PART_DIGITS] = SG_COL_DIGITS
    };
    struct sg_part *part = sg_hot_find(cursor->reader, group, kind);
    struct colfile_group at = group_at(cursor, group);

    if (!part) {
        part = part_new();
        part->numbers = colfile_load_numbers(&at, columns[kind], count, err);
        if (!part->numbers) {
            sg_part_release(part);
            return err->rc;
        }
        part->memory = sizeof(*part) + colfile_numbers_memory(part->numbers);
        cursor->scratch->stats.bytes +=
            colfile_chunk_bytes(cursor->reader->file, group, columns[kind]);
        sg_hot_keep(cursor->reader, group, kind, part);
    }
    cursor->parts[kind] = part;
    return account(cursor, 0, err);
}

/* The first index whose timestamp is >= @ts. */
static size_t lower_bound(const int64_t *times, size_t count, int64_t ts)
{
    size_t low = 0;

    while (count > 0) {
        size_t half = count / 2;

        if (times[low + half] < ts) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low;
}

/* What a file says of its times is not believed: whoever calculates with them relies on their order
 * and on their being near the epoch. */
static bool times_good(const int64_t *ts, size_t count)
{
    bool good = sg_times_fit(ts[0], ts[count - 1]);

    for (size_t i = 1; i < count; i++)
        good &= ts[i - 1] < ts[i];
    return good;
}

static bool any_start(const int64_t *start_ts, size_t count)
{
    int64_t any = 0;

    for (size_t i = 0; i < count; i++)
        any |= start_ts[i];
    return any != 0;
}

/* The histograms of a row, whose samples begin at @at in the group. */
static qf_rc take_histograms(struct sg_cursor *cursor, const struct sg_extras *extras, size_t at,
                             struct sg_row *row, struct qf_err *err)
{
    const struct pq_histogram **histograms = NULL;

    for (size_t i = 0; i < row->count; i++) {
        struct qf_str bytes = sg_extras_histogram(extras, at + i);
        qf_rc rc;

        if (!bytes.len)
            continue;
        if (!histograms)
            histograms = QF_ARENA_ARRAY(cursor->arena, const struct pq_histogram *, row->count);
        rc = pq_histogram_decode(cursor->arena, bytes, &histograms[i], err);
        if (rc != QF_OK)
            return qf_err_prefix(err, rc, "%s: corrupt", colfile_name(cursor->reader->file));
    }
    row->histograms = histograms;
    return QF_OK;
}

/* What the undecoded columns of a row group take, while they are there. */
static uint64_t extras_memory(const struct sg_extras *extras, size_t samples)
{
    const struct colfile_texts *texts = extras->histograms;
    uint64_t memory = extras->start_ts ? samples * sizeof(*extras->start_ts) : 0;

    for (size_t i = 0; texts && i < texts->distinct_count; i++)
        memory += sizeof(*texts->distinct) + sizeof(*texts->index) + texts->distinct[i].len;
    return memory;
}

/* Start timestamps and histograms of the selected rows; @firsts: where they begin in the group. */
static qf_rc read_extras(struct sg_cursor *cursor, size_t group, const size_t *firsts,
                         struct qf_err *err)
{
    const struct sg_reader *reader = cursor->reader;
    const struct sg_group *info = &reader->groups[group];
    QF_CLEANUP(sg_extras_done) struct sg_extras extras = { 0 };
    bool histograms = info->histograms;
    struct colfile_group at_group;
    qf_rc rc;

    if (!info->start_ts && !histograms)
        return QF_OK;
    at_group = group_at(cursor, group);
    rc = sg_extras_read(reader, &at_group, histograms, &extras, err);
    if (rc == QF_OK)
        rc = account(cursor, extras_memory(&extras, info->samples), err);
    if (info->start_ts)
        cursor->scratch->stats.bytes +=
            colfile_chunk_bytes(reader->file, group, reader->schema.start_column);
    if (histograms)
        cursor->scratch->stats.bytes +=
            colfile_chunk_bytes(reader->file, group, reader->schema.histogram_column);
    for (size_t i = 0; i < cursor->row_count && rc == QF_OK; i++) {
        struct sg_row *row = &cursor->rows[i];
        size_t at = firsts[i], size = row->count * sizeof(int64_t);

        if (extras.start_ts && any_start(extras.start_ts + at, row->count))
            row->start_ts = memcpy(qf_arena_alloc(cursor->arena, size), extras.start_ts + at, size);
        if (extras.histograms)
            rc = take_histograms(cursor, &extras, at, row, err);
    }
    if (rc == QF_OK) /* with what was decoded, while what it was decoded from is there */
        rc = account(cursor, extras_memory(&extras, info->samples), err);
    return rc == QF_OK ? account(cursor, 0, err) : rc;
}

/* -- Samples ---------------------------------------------------------------------------------- */

/* A selected row of the group, and where its samples are. */
struct sg_pick {
    size_t row, count;
    size_t first; /* in the group; the timestamps' place */
    size_t value; /* in its column: digits or doubles */
};

struct picks {
    struct sg_pick *items;
    size_t count;
    size_t samples, digits, doubles;
    size_t *firsts; /* of what is left after trimming */
};

static qf_rc reserve(struct sg_cursor *cursor, size_t samples, struct qf_err *err)
{
    if (samples > cursor->capacity || samples * 4 < cursor->capacity) {
        free(cursor->ts);
        free(cursor->values);
        cursor->ts = NULL;
        cursor->values = NULL;
        cursor->capacity = samples;
    }
    if (account(cursor, 0, err)) {
        cursor->capacity = cursor->ts ? cursor->capacity : 0;
        return err->rc;
    }
    if (!cursor->ts) {
        cursor->ts = qf_xmalloc(samples * sizeof(*cursor->ts));
        cursor->values = qf_xmalloc(samples * sizeof(*cursor->values));
    }
    return QF_OK;
}

/* Values of a row from its sample @from on. */
static void decode_values(const struct sg_cursor *cursor, const struct sg_pick *pick, size_t from,
                          double *out)
{
    const struct sg_series *series = &cursor->parts[SG_PART_SERIES]->series;
    size_t at = pick->value + from, count = pick->count - from;

    if (!sg_series_decimal(series, pick->row)) {
        colfile_numbers_read(cursor->parts[SG_PART_VALUE]->numbers, at, count, out);
        return;
    }
    colfile_numbers_read_back(cursor->parts[SG_PART_DIGITS]->numbers, at, count,
                              series->last[pick->row], (int64_t *)(void *)out);
    decimals_decode((const int64_t *)(const void *)out, count, series->scale[pick->row], out);
}

/* How many samples at the end of a row are probably not before @min_ts, and some. */
static size_t guess_tail(const struct sg_series *series, const struct sg_pick *pick, int64_t min_ts)
{
    int64_t first = series->min_ts[pick->row], last = series->max_ts[pick->row];
    double part;

    if (min_ts <= first || last <= first || pick->count < 64)
        return pick->count;
    part = ((double)last - (double)min_ts) / ((double)last - (double)first);
    return QF_MIN(pick->count, (size_t)(part * 1.1 * (double)pick->count) + 8);
}

/* Decode the timestamps of a row from its end, as far as they may be selected. How many there are in
 * @ts; 0: they are malformed. */
static size_t decode_times(const struct sg_cursor *cursor, const struct sg_pick *pick, int64_t *ts)
{
    const struct sg_series *series = &cursor->parts[SG_PART_SERIES]->series;
    int64_t min_ts = cursor->select->min_ts;
    size_t tail = guess_tail(series, pick, min_ts);

    for (;;) {
        colfile_numbers_read_back(cursor->parts[SG_PART_TS]->numbers,
                                  pick->first + pick->count - tail, tail, series->max_ts[pick->row],
                                  ts);
        if (tail == pick->count || ts[0] < min_ts)
            break;
        tail = QF_MIN(pick->count, tail * 2);
    }
    if (!times_good(ts, tail) || (tail == pick->count && ts[0] != series->min_ts[pick->row]))
        return 0;
    return tail;
}

/* The selected times of a row, at the beginning of @ts; @ret_first: which sample of the row is the
 * first of them. */
static qf_rc decode_times_selected(const struct sg_cursor *cursor, const struct sg_pick *pick,
                                   int64_t *ts, struct sg_row *row, size_t *ret_first,
                                   struct qf_err *err)
{
    const struct pq_select *select = cursor->select;
    size_t tail = decode_times(cursor, pick, ts), start, end;

    if (!tail)
        return sg_corrupt(cursor->reader, "samples are out of order", err);
    start = lower_bound(ts, tail, select->min_ts);
    end = select->max_ts == INT64_MAX ? tail : lower_bound(ts, tail, select->max_ts + 1);
    row->count = end > start ? end - start : 0;
    if (start && row->count)
        memmove(ts, ts + start, row->count * sizeof(*ts));
    row->ts = ts;
    *ret_first = pick->count - tail + start;
    return QF_OK;
}

/* Decode a row and cut it to the selected times. */
static qf_rc decode_row(const struct sg_cursor *cursor, const struct sg_pick *pick, int64_t *ts,
                        double *values, struct sg_row *row, size_t *ret_first, struct qf_err *err)
{
    size_t first = 0;
    qf_rc rc = decode_times_selected(cursor, pick, ts, row, &first, err);

    if (rc != QF_OK || !row->count)
        return rc;
    decode_values(cursor, pick, first, values);
    row->values = values;
    *ret_first = pick->first + first;
    return QF_OK;
}

qf_rc sg_cursor_decode(const struct sg_cursor *cursor, const struct sg_row *row, int64_t *ts,
                       double *values, struct sg_decoded *ret_decoded, struct qf_err *err)
{
    struct sg_row decoded = *row;
    size_t first;
    qf_rc rc = decode_row(cursor, row->pick, ts, values, &decoded, &first, err);

    *ret_decoded = (struct sg_decoded){
        .count = decoded.count,
        /* Decimals are numbers. */
        .no_stale = sg_series_decimal(&cursor->parts[SG_PART_SERIES]->series, row->pick->row),
    };
    return rc;
}

/* Decode the picked rows and drop those that have no selected sample. */
static qf_rc decode_rows(struct sg_cursor *cursor, const struct picks *picks, struct qf_err *err)
{
    size_t kept = 0, at = 0;

    for (size_t i = 0; i < picks->count; i++) {
        struct sg_row row = cursor->rows[i];
        qf_rc rc = decode_row(cursor, &picks->items[i], cursor->ts + at, cursor->values + at, &row,
                              &picks->firsts[kept], err);

        if (rc)
            return rc;
        if (!row.count)
            continue;
        at += row.count;
        cursor->rows[kept++] = row;
    }
    cursor->row_count = kept;
    return QF_OK;
}

/* Decode all picked rows now, with what else their samples have. */
static qf_rc read_with_extras(struct sg_cursor *cursor, size_t group, const struct picks *picks,
                              struct qf_err *err)
{
    qf_rc rc = reserve(cursor, picks->samples, err);

    if (rc == QF_OK)
        rc = decode_rows(cursor, picks, err);
    return rc == QF_OK && cursor->row_count ? read_extras(cursor, group, picks->firsts, err) : rc;
}

static qf_rc read_samples(struct sg_cursor *cursor, size_t group, const struct picks *picks,
                          struct qf_err *err)
{
    const struct sg_series *series = &cursor->parts[SG_PART_SERIES]->series;
    const struct sg_group *info = &cursor->reader->groups[group];
    qf_rc rc = need_numbers(cursor, group, SG_PART_TS, info->samples, err);

    if (rc == QF_OK && picks->digits)
        rc = need_numbers(cursor, group, SG_PART_DIGITS, series->digits, err);
    if (rc == QF_OK && picks->doubles)
        rc = need_numbers(cursor, group, SG_PART_VALUE, series->doubles, err);
    if (rc != QF_OK)
        return rc;
    cursor->scratch->stats.samples += picks->samples;
    if (info->start_ts || info->histograms)
        return read_with_extras(cursor, group, picks, err);
    for (size_t i = 0; i < picks->count; i++) {
        cursor->rows[i].pick = &picks->items[i];
        cursor->rows[i].count = picks->items[i].count;
    }
    cursor->row_count = picks->count;
    return account(cursor, 0, err);
}

/* -- Presence --------------------------------------------------------------------------------- */

enum presence { ABSENT, PRESENT, UNCERTAIN };

/* Whether the row has a selected sample, by its first and last time; one that it has. */
static enum presence presence_of(const struct sg_cursor *cursor, size_t row, int64_t *ret_ts)
{
    const struct sg_series *series = &cursor->parts[SG_PART_SERIES]->series;
    const struct pq_select *select = cursor->select;
    int64_t first = series->min_ts[row], last = series->max_ts[row];

    if (last < select->min_ts || first > select->max_ts)
        return ABSENT;
    *ret_ts = last <= select->max_ts ? last : first;
    return last > select->max_ts && first < select->min_ts ? UNCERTAIN : PRESENT;
}

/* The row begins before the selected time and ends after it: look for a sample in between. */
static qf_rc look_between(struct sg_cursor *cursor, size_t group, const struct sg_pick *pick,
                          struct sg_row *row, struct qf_err *err)
{
    size_t first, total = cursor->reader->groups[group].samples;
    qf_rc rc = QF_OK;

    if (!cursor->parts[SG_PART_TS])
        rc = need_numbers(cursor, group, SG_PART_TS, total, err);
    if (rc == QF_OK)
        rc = reserve(cursor, QF_MAX(pick->count, cursor->capacity), err);
    if (rc == QF_OK)
        rc = decode_times_selected(cursor, pick, cursor->ts, row, &first, err);
    cursor->scratch->stats.samples += pick->count;
    return rc;
}

/* One sample of each picked row that has any; the others are dropped. */
static qf_rc read_presence(struct sg_cursor *cursor, size_t group, const struct picks *picks,
                           struct qf_err *err)
{
    const struct sg_series *series = &cursor->parts[SG_PART_SERIES]->series;
    int64_t *times = QF_ARENA_ARRAY(cursor->arena, int64_t, picks->count);
    double *values = QF_ARENA_ARRAY(cursor->arena, double, picks->count);
    size_t kept = 0;

    for (size_t i = 0; i < picks->count; i++) {
        const struct sg_pick *pick = &picks->items[i];
        struct sg_row row = cursor->rows[i];
        enum presence presence = presence_of(cursor, pick->row, &times[kept]);

        if (!sg_times_fit(series->min_ts[pick->row], series->max_ts[pick->row]))
            return sg_corrupt(cursor->reader, "times are out of range", err);
        row.count = presence != ABSENT;
        if (presence == UNCERTAIN && look_between(cursor, group, pick, &row, err) != QF_OK)
            return err->rc;
        if (!row.count)
            continue;
        times[kept] = presence == UNCERTAIN ? row.ts[0] : times[kept];
        row.ts = &times[kept];
        row.values = &values[kept];
        row.count = 1;
        cursor->rows[kept++] = row;
    }
    cursor->row_count = kept;
    cursor->scratch->stats.samples += kept;
    return account(cursor, 0, err);
}

/* List the accepted rows with their labels. */
static qf_rc choose_rows(struct sg_cursor *cursor, struct sg_matching *m, struct picks *picks,
                         struct qf_err *err)
{
    const struct sg_series *series = &cursor->parts[SG_PART_SERIES]->series;
    size_t first = 0, places[2] = { 0, 0 };

    for (size_t i = 0; i < series->rows; i++) {
        size_t count = (size_t)series->samples[i], decimal = sg_series_decimal(series, i);
        struct sg_pick pick = { i, count, first, places[decimal] };
        struct sg_row *row = &cursor->rows[picks->count];
        qf_rc rc;

        first += count;
        places[decimal] += count;
        if (!sg_matching_row(m, series, i))
            continue;
        rc = sg_series_labels(cursor->reader, series, i, cursor->arena, &row->labels, err);
        if (rc != QF_OK)
            return rc;
        if (picks->count && qf_labels_cmp(row[-1].labels, row->labels) > 0)
            return sg_corrupt(cursor->reader, "series are out of order", err);
        row->may_continue = i + 1 == series->rows;
        picks->items[picks->count++] = pick;
        picks->samples += count;
        *(decimal ? &picks->digits : &picks->doubles) += count;
    }
    return QF_OK;
}

/* Decode what is selected of a row group. */
static qf_rc load_group(struct sg_cursor *cursor, size_t group, struct qf_err *err)
{
    size_t rows = cursor->reader->groups[group].rows;
    struct sg_matching *m;
    struct picks picks = { 0 };
    bool skipped = false;
    qf_rc rc;

    release_parts(cursor);
    qf_arena_reset(cursor->arena);
    cursor->row = cursor->row_count = 0;
    m = sg_matching_new(cursor->select, cursor->arena);
    rc = need_series(cursor, group, m, &skipped, err);
    if (rc != QF_OK)
        return rc;
    cursor->scratch->stats.row_groups_read++;
    if (skipped)
        return account(cursor, 0, err);
    sg_matching_begin(m, &cursor->parts[SG_PART_SERIES]->series);
    cursor->rows = QF_ARENA_ARRAY(cursor->arena, struct sg_row, rows);
    picks.items = QF_ARENA_ARRAY(cursor->arena, struct sg_pick, rows);
    picks.firsts = QF_ARENA_ARRAY(cursor->arena, size_t, rows);
    rc = choose_rows(cursor, m, &picks, err);
    if (rc == QF_OK)
        rc = account(cursor, 0, err);
    if (rc != QF_OK || !picks.count)
        return rc;
    return cursor->scratch->presence ? read_presence(cursor, group, &picks, err)
                                     : read_samples(cursor, group, &picks, err);
}

qf_rc sg_cursor_next(struct sg_cursor *cursor, const struct sg_row **ret_row, struct qf_err *err)
{
    struct sg_scratch *scratch = cursor->scratch;

    if (cursor->row + 1 < cursor->row_count) {
        *ret_row = &cursor->rows[++cursor->row];
        return QF_OK;
    }
    while (cursor->next_group < cursor->reader->group_count) {
        size_t group = cursor->next_group++;
        qf_rc rc;

        if (scratch->cancel && atomic_load_explicit(scratch->cancel, memory_order_relaxed))
            return qf_err_set(err, QF_ECANCELED, "canceled");
        if (!sg_group_may_match(&cursor->reader->groups[group], cursor->select)) {
            scratch->stats.row_groups_pruned++;
            continue;
        }
        rc = load_group(cursor, group, err);
        if (rc != QF_OK)
            return rc;
        if (cursor->row_count) {
            *ret_row = &cursor->rows[0];
            return QF_OK;
        }
    }
    cursor->row = cursor->row_count = 0;
    *ret_row = NULL;
    return QF_OK;
}

const struct sg_row *sg_cursor_peek(const struct sg_cursor *cursor)
{
    return cursor->row + 1 < cursor->row_count ? &cursor->rows[cursor->row + 1] : NULL;
}
