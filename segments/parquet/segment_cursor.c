/* segment_cursor.c - walk over the selected rows of one segment.
 *
 * A row group is looked at in three steps, each only if the one before leaves something: its
 * statistics; its series columns, where each matcher looks at each different value once; its
 * samples, of which the cursor keeps what is selected. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "promql/histogram/codec.h"
#include "segments/parquet/seg_int.h"

void sg_cursor_init(struct sg_cursor *cursor, const struct sg_reader *reader,
                    const struct pq_select *select, struct sg_scratch *scratch)
{
    *cursor = (struct sg_cursor){ .reader = reader, .select = select, .scratch = scratch };
    cursor->arena = qf_arena_new(SIZE_MAX);
}

void sg_cursor_done(struct sg_cursor *cursor)
{
    (void)qf_arena_free(cursor->arena);
    sg_series_done(&cursor->series);
    free(cursor->ts);
    free(cursor->values);
    *cursor = (struct sg_cursor){ 0 };
}

static bool is_name_matcher(const struct pq_matcher *matcher)
{
    return qf_str_is(matcher->name, QF_METRIC_NAME);
}

/* Can the row group hold a selected series, by its statistics? */
static bool group_may_match(const struct sg_cursor *cursor, const struct sg_group *group)
{
    const struct pq_select *select = cursor->select;

    if (group->min_ts > select->max_ts || group->max_ts < select->min_ts)
        return false;
    for (size_t i = 0; i < select->matcher_count && group->has_range; i++) {
        const struct pq_matcher *matcher = &select->matchers[i];

        if (matcher->type == PQ_MATCH_EQUAL && is_name_matcher(matcher) &&
            (qf_str_cmp(matcher->value, group->metric_min) < 0 ||
             qf_str_cmp(matcher->value, group->metric_max) > 0))
            return false;
    }
    return true;
}

static bool name_accepted(const struct pq_select *select, struct qf_str metric)
{
    for (size_t i = 0; i < select->matcher_count; i++)
        if (is_name_matcher(&select->matchers[i]) &&
            !pq_matcher_matches(&select->matchers[i], metric))
            return false;
    return true;
}

/* The verdict of one matcher on the values of a row group, each asked once. */
struct verdicts {
    const struct pq_matcher *matcher;
    uint32_t name_index;  /* of the label's name in the row group; UINT32_MAX: nobody has it */
    bool absent;          /* verdict on series without the label */
    unsigned char *known; /* per distinct value: 0 not asked yet, 1 no, 2 yes */
};

struct matching {
    const struct sg_cursor *cursor;
    unsigned char *names; /* per distinct metric name: accepted */
    struct verdicts *labels;
    size_t label_count;
};

static bool no_name_accepted(void *ctx, const struct colfile_texts *metric)
{
    struct matching *m = ctx;
    bool any = false;

    m->names = qf_arena_calloc(m->cursor->arena, metric->distinct_count + 1, 1);
    for (size_t i = 0; i < metric->distinct_count; i++) {
        m->names[i] = name_accepted(m->cursor->select, metric->distinct[i]);
        any |= m->names[i];
    }
    return !any;
}

static void prepare_labels(struct matching *m, const struct sg_series *series)
{
    const struct pq_select *select = m->cursor->select;

    m->labels = QF_ARENA_ARRAY(m->cursor->arena, struct verdicts, select->matcher_count + 1);
    for (size_t i = 0; i < select->matcher_count; i++) {
        const struct pq_matcher *matcher = &select->matchers[i];
        struct verdicts *v = &m->labels[m->label_count];

        if (is_name_matcher(matcher))
            continue;
        m->label_count++;
        v->matcher = matcher;
        v->absent = pq_matcher_matches(matcher, QF_STR(""));
        v->name_index = UINT32_MAX;
        for (size_t n = 0; n < series->names->distinct_count; n++)
            if (qf_str_eq(series->names->distinct[n], matcher->name))
                v->name_index = (uint32_t)n;
        v->known = qf_arena_calloc(m->cursor->arena, series->values->distinct_count + 1, 1);
    }
}

static bool label_accepted(struct verdicts *v, const struct sg_series *series, size_t row)
{
    if (v->name_index == UINT32_MAX)
        return v->absent;
    for (size_t i = series->names->starts[row]; i < series->names->starts[row + 1]; i++) {
        uint32_t value = series->values->index[i];

        if (series->names->index[i] != v->name_index)
            continue;
        if (!v->known[value])
            v->known[value] =
                pq_matcher_matches(v->matcher, series->values->distinct[value]) ? 2 : 1;
        return v->known[value] == 2;
    }
    return v->absent;
}

static bool row_accepted(struct matching *m, const struct sg_series *series, size_t row)
{
    const struct pq_select *select = m->cursor->select;

    if (!m->names[series->metric->index[row]] || series->min_ts[row] > select->max_ts ||
        series->max_ts[row] < select->min_ts)
        return false;
    for (size_t i = 0; i < m->label_count; i++)
        if (!label_accepted(&m->labels[i], series, row))
            return false;
    return true;
}

/* Row group @group, to be read within what the source has left. */
static struct colfile_group group_at(const struct sg_cursor *cursor, size_t group)
{
    const struct sg_scratch *scratch = cursor->scratch;
    uint64_t limit = scratch->memory_limit ? scratch->memory_limit : COLFILE_CHUNK_MEMORY_MAX;

    return (struct colfile_group){ cursor->reader->file, group,
                                   limit > scratch->memory ? limit - scratch->memory : 0 };
}

/* Count what the cursor holds, and refuse to hold more than the source may. */
static qf_rc account(struct sg_cursor *cursor, uint64_t *held, uint64_t now, struct qf_err *err)
{
    struct sg_scratch *scratch = cursor->scratch;

    scratch->memory = scratch->memory - *held + now;
    *held = now;
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

static uint64_t series_memory(const struct sg_cursor *cursor)
{
    const struct sg_series *s = &cursor->series;
    uint64_t memory = qf_arena_used(cursor->arena) + s->rows * 24;

    if (!s->metric)
        return memory;
    return memory + texts_memory(s->metric) + texts_memory(s->names) + texts_memory(s->values);
}

static qf_rc reserve_scratch(struct sg_cursor *cursor, size_t samples, struct qf_err *err)
{
    struct sg_scratch *scratch = cursor->scratch;
    uint64_t held = scratch->capacity * 16;

    if (samples <= scratch->capacity)
        return QF_OK;
    free(scratch->ts);
    free(scratch->values);
    scratch->ts = qf_xmalloc(samples * sizeof(*scratch->ts));
    scratch->values = qf_xmalloc(samples * sizeof(*scratch->values));
    scratch->capacity = samples;
    return account(cursor, &held, samples * 16, err);
}

/* The cursor keeps the decoded group if it wants most of it, else a copy of what it wants. */
static qf_rc keep_samples(struct sg_cursor *cursor, size_t wanted, size_t total, struct qf_err *err)
{
    struct sg_scratch *scratch = cursor->scratch;
    uint64_t held = cursor->capacity * 16;
    size_t at = 0;

    if (wanted * 2 >= total) {
        int64_t *ts = cursor->ts;
        double *values = cursor->values;
        size_t capacity = cursor->capacity;

        cursor->ts = scratch->ts;
        cursor->values = scratch->values;
        cursor->capacity = scratch->capacity;
        scratch->ts = ts;
        scratch->values = values;
        scratch->capacity = capacity;
        return QF_OK;
    }
    if (wanted > cursor->capacity || wanted * 4 < cursor->capacity) {
        free(cursor->ts);
        free(cursor->values);
        cursor->ts = qf_xmalloc(wanted * sizeof(*cursor->ts));
        cursor->values = qf_xmalloc(wanted * sizeof(*cursor->values));
        cursor->capacity = wanted;
    }
    for (size_t i = 0; i < cursor->row_count; i++) {
        struct sg_row *row = &cursor->rows[i];

        memcpy(cursor->ts + at, row->ts, row->count * sizeof(*row->ts));
        memcpy(cursor->values + at, row->values, row->count * sizeof(*row->values));
        row->ts = cursor->ts + at;
        row->values = cursor->values + at;
        at += row->count;
    }
    return account(cursor, &held, cursor->capacity * 16, err);
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

/* Cut every row to the selected times and drop those that are empty then. */
static qf_rc trim_rows(struct sg_cursor *cursor, struct qf_err *err)
{
    const struct pq_select *select = cursor->select;
    size_t kept = 0;

    for (size_t i = 0; i < cursor->row_count; i++) {
        struct sg_row row = cursor->rows[i];
        size_t start = lower_bound(row.ts, row.count, select->min_ts);
        size_t end = select->max_ts == INT64_MAX
                         ? row.count
                         : lower_bound(row.ts, row.count, select->max_ts + 1);

        if (end <= start)
            continue;
        row.ts += start;
        row.values += start;
        row.count = end - start;
        if (!times_good(row.ts, row.count))
            return sg_corrupt(cursor->reader, "samples are out of order", err);
        cursor->rows[kept++] = row;
    }
    cursor->row_count = kept;
    return QF_OK;
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

/* Start timestamps and histograms of the selected rows, which still point into the scratch. */
static qf_rc read_extras(struct sg_cursor *cursor, size_t group, struct qf_err *err)
{
    const struct sg_reader *reader = cursor->reader;
    const struct sg_group *info = &reader->groups[group];
    QF_CLEANUP(sg_extras_done) struct sg_extras extras = { 0 };
    bool histograms = info->histograms && !cursor->scratch->skip_histograms;
    struct colfile_group at_group;
    uint64_t held = 0;
    qf_rc rc;

    if (!info->start_ts && !histograms)
        return QF_OK;
    at_group = group_at(cursor, group);
    rc = sg_extras_read(reader, &at_group, histograms, &extras, err);
    if (rc == QF_OK)
        rc = account(cursor, &held, extras_memory(&extras, info->samples), err);
    if (info->start_ts)
        cursor->scratch->stats.bytes +=
            colfile_chunk_bytes(reader->file, group, reader->schema.start_column);
    if (histograms)
        cursor->scratch->stats.bytes +=
            colfile_chunk_bytes(reader->file, group, reader->schema.histogram_column);
    for (size_t i = 0; i < cursor->row_count && rc == QF_OK; i++) {
        struct sg_row *row = &cursor->rows[i];
        size_t at = (size_t)(row->ts - cursor->scratch->ts), size = row->count * sizeof(int64_t);

        if (extras.start_ts && any_start(extras.start_ts + at, row->count))
            row->start_ts = memcpy(qf_arena_alloc(cursor->arena, size), extras.start_ts + at, size);
        if (extras.histograms)
            rc = take_histograms(cursor, &extras, at, row, err);
    }
    if (rc == QF_OK)
        rc = account(cursor, &cursor->series_memory, series_memory(cursor), err);
    return rc == QF_OK ? account(cursor, &held, 0, err) : rc;
}

static qf_rc read_samples(struct sg_cursor *cursor, size_t group, const size_t *starts,
                          struct qf_err *err)
{
    struct sg_scratch *scratch = cursor->scratch;
    size_t total = cursor->reader->groups[group].samples, wanted = 0;
    const struct colfile *file = cursor->reader->file;
    qf_rc rc = reserve_scratch(cursor, total, err);
    struct colfile_group at = group_at(cursor, group);

    if (rc == QF_OK)
        rc = colfile_read_numbers(&at, SG_COL_TS, scratch->ts, total, err);
    if (rc == QF_OK)
        rc = colfile_read_numbers(&at, SG_COL_VALUE, scratch->values, total, err);
    if (rc != QF_OK)
        return rc;
    scratch->stats.bytes += colfile_chunk_bytes(file, group, SG_COL_TS) +
                            colfile_chunk_bytes(file, group, SG_COL_VALUE);
    for (size_t i = 0; i < cursor->row_count; i++) {
        cursor->rows[i].ts = scratch->ts + starts[i];
        cursor->rows[i].values = scratch->values + starts[i];
        scratch->stats.samples += cursor->rows[i].count;
    }
    rc = trim_rows(cursor, err);
    if (rc != QF_OK)
        return rc;
    for (size_t i = 0; i < cursor->row_count; i++)
        wanted += cursor->rows[i].count;
    rc = wanted ? read_extras(cursor, group, err) : QF_OK;
    return rc == QF_OK && wanted ? keep_samples(cursor, wanted, total, err) : rc;
}

/* List the accepted rows with their labels; starts: where their samples begin. */
static qf_rc choose_rows(struct sg_cursor *cursor, struct matching *m, size_t *starts,
                         struct qf_err *err)
{
    const struct sg_series *series = &cursor->series;
    size_t start = 0;

    for (size_t i = 0; i < series->rows; i++) {
        size_t count = (size_t)series->samples[i];
        struct sg_row *row = &cursor->rows[cursor->row_count];
        qf_rc rc;

        start += count;
        if (!row_accepted(m, series, i))
            continue;
        rc = sg_series_labels(cursor->reader, series, i, cursor->arena, &row->labels, err);
        if (rc != QF_OK)
            return rc;
        if (cursor->row_count && qf_labels_cmp(row[-1].labels, row->labels) > 0)
            return sg_corrupt(cursor->reader, "series are out of order", err);
        row->count = count;
        row->may_continue = i + 1 == series->rows;
        starts[cursor->row_count++] = start - count;
    }
    return QF_OK;
}

/* Decode what is selected of a row group. */
static qf_rc load_group(struct sg_cursor *cursor, size_t group, struct qf_err *err)
{
    struct matching m = { .cursor = cursor };
    struct colfile_group at;
    size_t *starts;
    bool skipped;
    size_t rows = cursor->reader->groups[group].rows;
    qf_rc rc;

    sg_series_done(&cursor->series);
    qf_arena_reset(cursor->arena);
    cursor->row = cursor->row_count = 0;
    at = group_at(cursor, group);
    rc = sg_series_read(cursor->reader, &at, no_name_accepted, &m, &cursor->series, &skipped, err);
    if (rc != QF_OK)
        return rc;
    cursor->scratch->stats.row_groups_read++;
    if (skipped)
        return account(cursor, &cursor->series_memory, 0, err);
    prepare_labels(&m, &cursor->series);
    cursor->rows = QF_ARENA_ARRAY(cursor->arena, struct sg_row, rows);
    starts = QF_ARENA_ARRAY(cursor->arena, size_t, rows);
    rc = choose_rows(cursor, &m, starts, err);
    if (rc == QF_OK)
        rc = account(cursor, &cursor->series_memory, series_memory(cursor), err);
    if (rc == QF_OK && cursor->row_count)
        rc = read_samples(cursor, group, starts, err);
    return rc;
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
        if (!group_may_match(cursor, &cursor->reader->groups[group])) {
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
