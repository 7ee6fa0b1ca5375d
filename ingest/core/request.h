/* request.h - what a sender wants written, whatever protocol it spoke; and what of it may be. Pure.
 *
 * A decoder (remote_write.h) fills a request out of the bytes of a body and judges nothing but their
 * form. in_request_check() then looks at every series, sample, exemplar and piece of metadata: what
 * is not valid goes, is counted, and the first one is described for the sender; what is valid stays
 * and can be written.
 *
 * Everything is in the arena that the decoder was given, or borrowed from the body. */
#ifndef INGEST_CORE_REQUEST_H
#define INGEST_CORE_REQUEST_H

#include "base/pure/arena.h"
#include "base/pure/labels.h"
#include "base/pure/limits.h"
#include "base/pure/metric_type.h"
#include "promql/value.h"

struct in_sample {
    int64_t ts;                           /* milliseconds */
    int64_t start_ts;                     /* 0: not known */
    double value;                         /* exact bits, stale markers included */
    const struct pq_histogram *histogram; /* NULL: the sample is the float `value` */
    const char *bad;                      /* why its histogram cannot be read; NULL: it can */
};

struct in_exemplar {
    struct qf_label *labels;
    size_t label_count;
    double value;
    int64_t ts;
    bool bad; /* its labels cannot be read */
};

struct in_metadata {
    struct qf_str name;
    enum qf_metric_type type;
    struct qf_str help, unit;
};

struct in_series {
    struct qf_label *labels; /* after the check: sorted, each once, none empty */
    size_t label_count;
    struct in_sample *samples;
    size_t sample_count;
    struct in_exemplar *exemplars;
    size_t exemplar_count;
    const char *bad; /* why its labels cannot be read; NULL: they can */
};

/* How much of each kind. */
struct in_amounts {
    uint64_t series, samples, histograms, exemplars;
};

struct in_request {
    struct in_series *series;
    size_t series_count;
    struct in_metadata *metadata;
    size_t metadata_count;
    struct in_amounts accepted, refused; /* after the check */
    uint64_t
        limited_by[QF_WRITE_LIMITS]; /* samples refused for a limit, from QF_LIMIT_WRITE_FIRST on */
    char first[512]; /* what is wrong with the first thing refused; "" if nothing is */
};

struct in_check_limits {
    size_t labels_max;     /* of a series */
    size_t name_bytes_max; /* of a label or metric */
    size_t value_bytes_max;
    int64_t ts_min, ts_max; /* samples before and behind these are refused */
};

/* Remove what is not valid. A series that is left without samples and exemplars goes too. */
void in_request_check(struct in_request *request, const struct in_check_limits *limits);

static inline struct qf_labels in_series_labels(const struct in_series *series)
{
    return (struct qf_labels){ series->labels, series->label_count };
}

#endif
