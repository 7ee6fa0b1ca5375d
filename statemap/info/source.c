/* source.c - copies of maps as a source of series: rows are gathered, sorted by their labels, and told one series after the
 * other. Samples are made when their series is told. */
#include "statemap/info/source.h"

#include <assert.h>
#include <stdlib.h>

#include "base/pure/number.h"
#include "base/pure/vec.h"
#include "statemap/core/info.h"
#include "statemap/info/members.h"
#include "statemap/store/env.h"

/* Rows between two looks at whether somebody still waits. */
#define ROWS_PER_LOOK 1024
#define MEMORY_MAX (UINT64_C(1) << 40)

/* A row that is a series for a while. */
struct entry {
    struct qf_labels labels;
    size_t map;
    struct sm_info_span span;
};

struct source {
    struct pq_source base; /* first member */
    struct sm_info_options options;
    struct qf_arena *arena;       /* labels that are kept */
    struct qf_arena *scratch;     /* of the row at hand */
    QF_VEC(struct entry) entries; /* sorted once they are all there */
    size_t next;                  /* the first entry that was not told */
    bool gathered;
    QF_VEC(struct sm_info_span) spans; /* of the series at hand, as its samples */
    int64_t *ts;
    double *values;
    size_t capacity;
};

/* The map at hand, as it is walked. */
struct walk {
    struct source *source;
    size_t map;
    struct sm_rows rows;
    uint64_t looked;
    /* What the row before was kept as: a confirmation of it is the same series. */
    struct qf_labels labels;
    struct sm_row before;
    bool kept;
};

static qf_rc spent(const struct source *source, struct qf_err *err)
{
    return qf_err_set(err, QF_ELIMIT,
                      "info series of state maps need more than the %llu bytes they may have",
                      (unsigned long long)source->options.memory_max);
}

static bool canceled(const struct source *source)
{
    return source->options.cancel &&
           atomic_load_explicit(source->options.cancel, memory_order_relaxed);
}

/* --- rows --- */

/* Of the matchers those that concern the key: without them most rows would be read in vain. */
static bool key_matches(const struct pq_select *select, struct qf_str key)
{
    for (size_t i = 0; i < select->matcher_count; i++)
        if (qf_str_is(select->matchers[i].name, SM_INFO_KEY) &&
            !pq_matcher_matches(&select->matchers[i], key))
            return false;
    return true;
}

static bool is_wanted(const struct source *source, struct qf_labels labels)
{
    const struct sm_info_options *options = &source->options;

    return (uint32_t)(qf_labels_shard_hash(labels) & (options->shard_count - 1)) ==
               options->shard &&
           pq_matchers_match(options->select->matchers, options->select->matcher_count, labels);
}

/* The labels of @row in @walk->labels, if its series is wanted. */
static qf_rc label(struct walk *walk, const struct sm_row *row, struct qf_err *err)
{
    struct source *source = walk->source;
    struct qf_label *members;
    struct qf_labels labels;
    size_t count;
    qf_rc rc;

    qf_arena_reset(source->scratch);
    rc = sm_members(source->scratch, row->value, &members, &count, err);
    if (rc != QF_OK)
        return rc;
    labels = sm_info_labels(qf_str_from(source->options.maps[walk->map].metric), row->key, members,
                            count);
    walk->kept = is_wanted(source, labels);
    if (walk->kept && !qf_labels_copy(source->arena, labels, &walk->labels))
        return spent(source, err);
    return QF_OK;
}

/* @row, behind which there is @next of the same key, or none. */
static qf_rc take(struct walk *walk, const struct sm_row *row, const struct sm_row *next,
                  struct qf_err *err)
{
    struct source *source = walk->source;
    const struct pq_select *select = source->options.select;
    struct sm_info_span span = sm_info_span(source->options.maps[walk->map].layout.kind, row, next);
    bool again = walk->before.key.data && qf_str_eq(walk->before.key, row->key) &&
                 sm_value_same(walk->before.value, row->value);
    qf_rc rc = QF_OK;

    if (!sm_info_concerns(span, select->min_ts, select->max_ts) || !key_matches(select, row->key))
        return QF_OK;
    if (!again)
        rc = label(walk, row, err);
    walk->before = *row;
    if (rc != QF_OK || !walk->kept)
        return rc;
    if (!qf_arena_charge(source->arena, sizeof(struct entry)))
        return spent(source, err);
    QF_VEC_PUSH(&source->entries, (struct entry){ walk->labels, walk->map, span });
    return QF_OK;
}

/* The key that a matcher asks for; nothing if none does. */
static struct qf_str asked_key(const struct pq_select *select)
{
    for (size_t i = 0; i < select->matcher_count; i++) {
        const struct pq_matcher *matcher = &select->matchers[i];

        if (matcher->type == PQ_MATCH_EQUAL && matcher->value.len &&
            qf_str_is(matcher->name, SM_INFO_KEY))
            return matcher->value;
    }
    return QF_STR("");
}

/* The first row that is looked at: that of a key if one is asked for, else of all. */
static qf_rc first_row(struct walk *walk, struct qf_str key, bool *ret_found,
                       struct sm_row *ret_row, struct qf_err *err)
{
    return key.len ? sm_rows_of(&walk->rows, key, ret_found, ret_row, err)
                   : sm_rows_next(&walk->rows, ret_found, ret_row, err);
}

/* Rows of a key lie one behind the other, in the order of their times. */
static qf_rc walk_rows(struct walk *walk, struct qf_err *err)
{
    struct qf_str key = asked_key(walk->source->options.select);
    struct sm_row row, next;
    bool found, more = false;
    qf_rc rc = first_row(walk, key, &found, &row, err);

    for (; rc == QF_OK && found; row = next, found = more) {
        bool same;

        if (walk->looked++ % ROWS_PER_LOOK == 0 && canceled(walk->source))
            return qf_err_set(err, QF_ECANCELED, "canceled");
        rc = sm_rows_next(&walk->rows, &more, &next, err);
        if (rc != QF_OK)
            return rc;
        same = more && qf_str_eq(next.key, row.key);
        rc = take(walk, &row, same ? &next : NULL, err);
        more = more && (!key.len || same);
    }
    return rc;
}

static qf_rc gather_map(struct source *source, size_t index, struct qf_err *err)
{
    const struct sm_info_map *map = &source->options.maps[index];
    struct sm_env_options options = {
        .file = map->file, .name = map->name, .layout = map->layout, .fixed = true
    };
    struct walk walk = { .source = source, .map = index };
    struct sm_txn *txn = NULL;
    struct sm_env *env;
    qf_rc rc = sm_env_open(&options, &env, err);

    if (rc != QF_OK)
        return rc;
    rc = sm_read_begin(env, &txn, err);
    if (rc == QF_OK && sm_about(txn).version != map->version)
        rc = qf_err_set(err, QF_ECORRUPT, "map %s: the copy is of another version", map->name);
    walk.rows = (struct sm_rows){ .txn = txn };
    if (rc == QF_OK)
        rc = walk_rows(&walk, err);
    (void)sm_end(txn);
    (void)sm_env_close(env);
    return rc;
}

static int by_labels(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = qf_labels_cmp(x->labels, y->labels);

    return order ? order : (x->map > y->map) - (x->map < y->map);
}

static qf_rc gather(struct source *source, struct qf_err *err)
{
    for (size_t i = 0; i < source->options.count; i++) {
        qf_rc rc = gather_map(source, i, err);

        if (rc != QF_OK) {
            qf_err_about(err, source->options.about + i);
            return rc;
        }
    }
    if (source->entries.count > 1)
        qsort(source->entries.items, source->entries.count, sizeof(struct entry), by_labels);
    source->gathered = true;
    return QF_OK;
}

/* --- series --- */

/* The spans of the next series; its interval. */
static int64_t take_spans(struct source *source)
{
    const struct entry *first = &source->entries.items[source->next], *at = first;
    const struct entry *end = source->entries.items + source->entries.count;

    source->spans.count = 0;
    for (; at < end && qf_labels_eq(at->labels, first->labels); at++)
        if (at->map == first->map)
            QF_VEC_PUSH(&source->spans, at->span);
    source->next = (size_t)(at - source->entries.items);
    source->spans.count = sm_info_join(source->spans.items, source->spans.count);
    return source->options.maps[first->map].interval_ms;
}

static bool reserve(struct source *source, uint64_t count)
{
    uint64_t bytes = count * (sizeof(*source->ts) + sizeof(*source->values));

    if (source->options.memory_max && bytes > source->options.memory_max)
        return false;
    if (count <= source->capacity)
        return true;
    source->ts = qf_xrealloc(source->ts, count * sizeof(*source->ts));
    source->values = qf_xrealloc(source->values, count * sizeof(*source->values));
    source->capacity = count;
    return true;
}

/* Just one sample of the series, that is no marker: *ret_count, 0 if there is none. */
static void show_presence(struct source *source, int64_t interval, size_t *ret_count)
{
    const struct pq_select *select = source->options.select;

    *ret_count = 0;
    for (size_t i = 0; i < source->spans.count && !*ret_count; i++) {
        const struct sm_info_span *span = &source->spans.items[i];
        int64_t from = QF_MAX(span->start, select->min_ts), until = select->max_ts;
        bool stale;

        /* No more than one multiple lies there. */
        if (from < INT64_MAX - interval)
            until = QF_MIN(select->max_ts, from + interval - 1);
        (void)reserve(source, 2);
        if (!sm_info_count(span, 1, interval, from, until))
            continue;
        sm_info_fill(span, 1, interval, from, until, source->ts, source->values, &stale);
        *ret_count = !qf_is_stale(source->values[0]);
    }
}

static qf_rc make_samples(struct source *source, struct pq_series *series, struct qf_err *err)
{
    const struct pq_select *select = source->options.select;
    int64_t interval = take_spans(source);
    bool stale = false;
    uint64_t count;

    if (source->options.presence) {
        show_presence(source, interval, &series->count);
    } else {
        count = sm_info_count(source->spans.items, source->spans.count, interval, select->min_ts,
                              select->max_ts);
        if (!reserve(source, count))
            return spent(source, err);
        sm_info_fill(source->spans.items, source->spans.count, interval, select->min_ts,
                     select->max_ts, source->ts, source->values, &stale);
        series->count = count;
    }
    series->ts = source->ts;
    series->values = source->values;
    series->no_stale = !stale;
    return QF_OK;
}

static qf_rc next(struct pq_source *base, struct pq_series *ret_series, bool *ret_more,
                  struct qf_err *err)
{
    struct source *source = (struct source *)base;
    qf_rc rc = source->gathered ? QF_OK : gather(source, err);

    *ret_more = false;
    while (rc == QF_OK && source->next < source->entries.count) {
        struct pq_series series = { .labels = source->entries.items[source->next].labels };

        if (canceled(source))
            return qf_err_set(err, QF_ECANCELED, "canceled");
        rc = make_samples(source, &series, err);
        if (rc == QF_OK && series.count) {
            *ret_series = series;
            *ret_more = true;
            break;
        }
    }
    return rc;
}

static void close_source(struct pq_source *base)
{
    struct source *source = (struct source *)base;

    QF_VEC_DONE(&source->entries);
    QF_VEC_DONE(&source->spans);
    (void)qf_arena_free(source->arena);
    (void)qf_arena_free(source->scratch);
    free(source->ts);
    free(source->values);
    free(source);
}

struct pq_source *sm_info_source_new(const struct sm_info_options *options)
{
    struct source *source = qf_xcalloc(1, sizeof(*source));
    uint64_t memory = options->memory_max ? QF_MIN(options->memory_max, MEMORY_MAX) : MEMORY_MAX;

    assert(options->shard_count && options->shard < options->shard_count);
    source->base = (struct pq_source){ next, close_source };
    source->options = *options;
    source->arena = qf_arena_new(memory);
    source->scratch = qf_arena_new(memory);
    return &source->base;
}
