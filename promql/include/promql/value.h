/* value.h - what samples and results are: floats or native histograms, and what was noted on the
 * way.
 *
 * A value is a float or a histogram (struct pq_value). Many values stand in columns: an array of
 * floats and, beside it, an array of histograms that is NULL as long as no value of the column is
 * one. Where there is a histogram the float beside it means nothing.
 *
 * Who owns a histogram: an arena, never a column. From the moment it stands in a column a histogram
 * is immutable, and it lives for as long as the column does:
 *
 *     struct pq_series       until the source's next series
 *     struct pq_lane         until the leaf runs its next series    (the chain's scope)
 *     struct pq_rows         until the reader's next batch
 *     struct pq_merge_block  until the same node's next block       (a scope of the merge)
 *     struct pq_batch        until the node's next block            (the node's scope)
 *     struct pq_result       as long as the caller's arena
 *
 * A scope is scratch memory that is reset before each series or block. Every step of a query asks
 * for its input again only when its own column is done with. So it
 *   - borrows a histogram that it passes on: it puts the pointer into its own column;
 *   - makes a new histogram, and its column's array of histograms, in its own scope;
 *   - copies a histogram that it keeps any longer (pq_value_copy). */
#ifndef PROMQL_VALUE_H
#define PROMQL_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/arena.h"
#include "base/pure/labels.h"
#include "promql/ast.h"

enum pq_reset_hint {
    PQ_RESET_UNKNOWN,
    PQ_RESET_YES,
    PQ_RESET_NO,
    PQ_RESET_GAUGE,
};

struct pq_span {
    int32_t offset; /* gap to the previous span; the first: index of its first bucket */
    uint32_t length;
};

#define PQ_SCHEMA_CUSTOM (-53)

/* A float native histogram; immutable once shared. Buckets are absolute counts. */
struct pq_histogram {
    enum pq_reset_hint reset_hint;
    bool reset_hint_given; /* a test literal spelled it out */
    int32_t schema;
    double zero_threshold, zero_count, count, sum;
    const struct pq_span *positive_spans, *negative_spans;
    size_t positive_span_count, negative_span_count;
    const double *positive_buckets, *negative_buckets;
    size_t positive_bucket_count, negative_bucket_count;
    const double *custom_values; /* upper bounds, schema PQ_SCHEMA_CUSTOM */
    size_t custom_value_count;
};

struct pq_value {
    double number;
    const struct pq_histogram *histogram; /* NULL: a float */
};

static inline struct pq_value pq_number(double number)
{
    return (struct pq_value){ number, NULL };
}

/* The histogram at @i of a column, NULL for a float; the value there. */
static inline const struct pq_histogram *
pq_histogram_at(const struct pq_histogram *const *histograms, size_t i)
{
    return histograms ? histograms[i] : NULL;
}
static inline struct pq_value pq_value_at(const double *values,
                                          const struct pq_histogram *const *histograms, size_t i)
{
    return (struct pq_value){ values[i], pq_histogram_at(histograms, i) };
}

/* Make the array of histograms of a column of @count values if it has none. False: budget spent. */
QF_MUST_CHECK bool pq_histograms_make(struct qf_arena *scope,
                                      const struct pq_histogram ***histograms, size_t count);
/* Put @value to @i of a column of @count; the array of histograms is made in @scope when the first
 * one comes. False: budget spent. */
QF_MUST_CHECK static inline bool pq_value_put(struct qf_arena *scope, double *values,
                                              const struct pq_histogram ***histograms, size_t count,
                                              size_t i, struct pq_value value)
{
    values[i] = value.histogram ? 0 : value.number;
    if (!value.histogram && !*histograms)
        return true;
    if (!pq_histograms_make(scope, histograms, count))
        return false;
    (*histograms)[i] = value.histogram;
    return true;
}

/* A value that lives as long as @arena. False: budget spent. */
QF_MUST_CHECK bool pq_value_copy(struct qf_arena *arena, struct pq_value value,
                                 struct pq_value *ret_value);

/* A value as the label count_values() makes of it; lives in @buf, which is empty before. */
struct qf_strbuf;
struct qf_str pq_value_text(struct qf_strbuf *buf, struct pq_value value);

/* How notes and messages call a value: "float", "histogram". */
static inline const char *pq_value_kind(struct pq_value value)
{
    return value.histogram ? "histogram" : "float";
}

/* Warnings and infos; printed as "PromQL warning: TEXT (1:5)". */
enum pq_note_level { PQ_NOTE_WARNING, PQ_NOTE_INFO };

struct pq_note {
    enum pq_note_level level;
    struct qf_str text; /* without prefix and position */
    struct pq_pos pos;
};

/* A set of notes, deduplicated by level and text; of several places the last one is kept, as
 * Prometheus does. Bounded by PQ_NOTES_MAX, further ones are counted. */
#define PQ_NOTES_MAX 256
struct pq_notes {
    struct qf_arena *arena; /* where texts are kept; set before first use */
    struct pq_note *items;
    size_t count;
    size_t capacity;
    uint64_t omitted;
};

void pq_note_add(struct pq_notes *notes, enum pq_note_level level, struct pq_pos pos,
                 const char *fmt, ...) QF_PRINTF(4, 5);
void pq_notes_merge(struct pq_notes *into, const struct pq_notes *from);
/* "PromQL info: ... (1:5)"; line and column are counted in @query. */
void pq_note_print(struct qf_strbuf *buf, const struct pq_note *note, struct qf_str query);

#endif
