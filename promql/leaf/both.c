/* both.c - two sources as one. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "promql/source.h"

struct side {
    struct pq_source *source;
    struct pq_series series; /* the next one */
    bool more;               /* there is one */
};

struct both {
    struct pq_source base; /* first member */
    struct side first, second;
    bool first_used, second_used; /* what they had was told: they are to go on */
    /* A series of both. */
    int64_t *ts, *start_ts;
    double *values;
    const struct pq_histogram **histograms;
    size_t capacity;
};

static qf_rc advance(struct side *side, bool *used, struct qf_err *err)
{
    qf_rc rc;

    if (!*used)
        return QF_OK;
    rc = side->source->next(side->source, &side->series, &side->more, err);
    *used = false;
    return rc;
}

static void reserve(struct both *both, size_t count)
{
    if (count <= both->capacity)
        return;
    both->ts = qf_xrealloc(both->ts, count * sizeof(*both->ts));
    both->start_ts = qf_xrealloc(both->start_ts, count * sizeof(*both->start_ts));
    both->values = qf_xrealloc(both->values, count * sizeof(*both->values));
    both->histograms = qf_xrealloc(both->histograms, count * sizeof(*both->histograms));
    both->capacity = count;
}

static void put(struct both *both, size_t at, const struct pq_series *from, size_t index)
{
    both->ts[at] = from->ts[index];
    both->values[at] = from->values[index];
    both->start_ts[at] = from->start_ts ? from->start_ts[index] : 0;
    both->histograms[at] = from->histograms ? from->histograms[index] : NULL;
}

/* A series that both have. */
static struct pq_series merge(struct both *both)
{
    const struct pq_series *a = &both->first.series, *b = &both->second.series;
    size_t i = 0, k = 0, count = 0;

    reserve(both, a->count + b->count);
    while (i < a->count || k < b->count) {
        if (i < a->count && (k == b->count || a->ts[i] <= b->ts[k])) {
            k += k < b->count && a->ts[i] == b->ts[k];
            put(both, count++, a, i++);
        } else {
            put(both, count++, b, k++);
        }
    }
    return (struct pq_series){ .labels = a->labels,
                               .ts = both->ts,
                               .values = both->values,
                               .histograms =
                                   a->histograms || b->histograms ? both->histograms : NULL,
                               .start_ts = a->start_ts || b->start_ts ? both->start_ts : NULL,
                               .count = count,
                               .no_stale = a->no_stale && b->no_stale };
}

static qf_rc next(struct pq_source *base, struct pq_series *ret_series, bool *ret_more,
                  struct qf_err *err)
{
    struct both *both = (struct both *)base;
    qf_rc rc = advance(&both->first, &both->first_used, err);
    int order = 0;

    if (rc == QF_OK)
        rc = advance(&both->second, &both->second_used, err);
    if (rc != QF_OK)
        return rc;
    *ret_more = both->first.more || both->second.more;
    if (!*ret_more)
        return QF_OK;
    if (both->first.more && both->second.more)
        order = qf_labels_cmp(both->first.series.labels, both->second.series.labels);
    else
        order = both->first.more ? -1 : 1;
    both->first_used = order <= 0;
    both->second_used = order >= 0;
    *ret_series = order < 0 ? both->first.series : order > 0 ? both->second.series : merge(both);
    return QF_OK;
}

static void close_both(struct pq_source *base)
{
    struct both *both = (struct both *)base;

    both->first.source->close(both->first.source);
    both->second.source->close(both->second.source);
    free(both->ts);
    free(both->start_ts);
    free(both->values);
    free(both->histograms);
    free(both);
}

struct pq_source *pq_source_both(struct pq_source *first, struct pq_source *second)
{
    struct both *both = qf_xcalloc(1, sizeof(*both));

    both->base = (struct pq_source){ next, close_both };
    both->first = (struct side){ .source = first };
    both->second = (struct side){ .source = second };
    both->first_used = both->second_used = true; /* nothing is known of them */
    return &both->base;
}
