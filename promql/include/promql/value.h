/* value.h - what samples and results are: floats or native histograms, and what was noted on the
 * way.
 *
 * Both kinds are carried everywhere; where a column of floats has a histogram instead, the parallel
 * histogram pointer is not NULL. */
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
