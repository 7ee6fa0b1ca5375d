/* segment_match.c - which rows of a row group a selection wants. */
#include "segments/parquet/seg_int.h"

static bool is_name_matcher(const struct pq_matcher *matcher)
{
    return qf_str_is(matcher->name, QF_METRIC_NAME);
}

bool sg_group_may_match(const struct sg_group *group, const struct pq_select *select)
{
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

struct sg_matching {
    const struct pq_select *select;
    struct qf_arena *arena;
    unsigned char *names; /* per distinct metric name: accepted */
    struct verdicts *labels;
    size_t label_count;
};

struct sg_matching *sg_matching_new(const struct pq_select *select, struct qf_arena *arena)
{
    struct sg_matching *m = QF_ARENA_ARRAY(arena, struct sg_matching, 1);

    m->select = select;
    m->arena = arena;
    return m;
}

bool sg_matching_no_name(void *matching, const struct colfile_texts *metric)
{
    struct sg_matching *m = matching;
    bool any = false;

    m->names = qf_arena_calloc(m->arena, metric->distinct_count + 1, 1);
    for (size_t i = 0; i < metric->distinct_count; i++) {
        m->names[i] = name_accepted(m->select, metric->distinct[i]);
        any |= m->names[i];
    }
    return !any;
}

void sg_matching_begin(struct sg_matching *m, const struct sg_series *series)
{
    const struct pq_select *select = m->select;

    m->labels = QF_ARENA_ARRAY(m->arena, struct verdicts, select->matcher_count + 1);
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
        v->known = qf_arena_calloc(m->arena, series->values->distinct_count + 1, 1);
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

bool sg_matching_row(struct sg_matching *m, const struct sg_series *series, size_t row)
{
    const struct pq_select *select = m->select;

    if (!m->names[series->metric->index[row]] || series->min_ts[row] > select->max_ts ||
        series->max_ts[row] < select->min_ts)
        return false;
    for (size_t i = 0; i < m->label_count; i++)
        if (!label_accepted(&m->labels[i], series, row))
            return false;
    return true;
}
