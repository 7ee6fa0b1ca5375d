/* otlp_int.h - what the files of the decoder share. Every function that returns bool returns false for
 * bytes that are no such message and when the arena is spent; which of the two, the arena knows. */
#ifndef INGEST_OTLP_OTLP_INT_H
#define INGEST_OTLP_OTLP_INT_H

#include "base/pure/number.h"
#include "ingest/core/wire.h"
#include "ingest/otlp/otlp.h"
#include "ingest/otlp/schema.h"

/* Labels under construction; room for two more than there are: a name, and "le" or "quantile". */
struct in_otlp_labels {
    struct qf_label *items;
    size_t count;
};

struct in_otlp {
    struct qf_arena *arena;
    struct in_request *request;
    size_t series_room, metadata_room;
    /* Of the resource. */
    struct qf_str job, instance; /* empty: none */
    const char *why;    /* these are not known, so its points are refused; NULL: they are */
    uint64_t newest_ns; /* of its points that were taken */
    /* Of the metric. */
    struct qf_str metric, name; /* as it was sent; translated */
};

/* What points of all kinds have. */
struct in_otlp_point {
    uint64_t start_ns, time_ns;
    bool stale;
    struct in_otlp_labels labels; /* without a name */
    struct in_exemplar *exemplars;
    size_t exemplar_count;
};
/* Which numbers their fields have. */
struct in_otlp_numbers {
    uint32_t attributes, flags, exemplars;
};

/* attributes.c: text of an AnyValue. @ret_text borrows from @bytes or lives in the arena. *@ret_why: it is too large to be a
 * label's value; else NULL. */
bool in_otlp_value_text(struct in_otlp *otlp, struct qf_str bytes, struct qf_str *ret_text,
                        const char **ret_why);
/* Labels out of the fields @number of @bytes, by translated name, values of equal ones joined with ';',
 * then job and instance. *@ret_why: why they cannot be had; else NULL. With @info: without what job and
 * instance are made of; of resources. */
bool in_otlp_labels(struct in_otlp *otlp, struct qf_str bytes, uint32_t number, bool info,
                    struct in_otlp_labels *ret_labels, const char **ret_why);
/* Attributes as they are, behind what @labels has already. *@ret_why as above. */
bool in_otlp_plain_labels(struct in_otlp *otlp, struct qf_str bytes, uint32_t number,
                          struct qf_label *labels, size_t *count, const char **ret_why);
/* Set otlp->job, ->instance and ->why out of a Resource. *@ret_others: how many attributes are neither. */
bool in_otlp_identify(struct in_otlp *otlp, struct qf_str resource, size_t *ret_others);

/* points.c: the points of one metric's data; @field says of which kind. */
bool in_otlp_points(struct in_otlp *otlp, const struct in_field *field);
/* What all kinds have, out of the message @bytes. *@ret_why: it is refused. */
bool in_otlp_point(struct in_otlp *otlp, struct qf_str bytes, const struct in_otlp_numbers *numbers,
                   struct in_otlp_point *ret_point, const char **ret_why);
/* A series of its own, NAME + @suffix, with the label @key if it is not empty. NULL: spent. */
struct in_series *in_otlp_add(struct in_otlp *otlp, const struct in_otlp_point *point,
                              const char *suffix, struct qf_label extra, struct in_sample sample);
struct in_sample in_otlp_sample(const struct in_otlp_point *point, double value);
/* Numbers of the fields @number of @bytes, packed or not, of 64 bits or variable. */
bool in_otlp_numbers(struct in_otlp *otlp, struct qf_str bytes, uint32_t number,
                     enum in_wire_type type, uint64_t **ret_items, size_t *ret_count);

/* exponential.c: one ExponentialHistogramDataPoint. */
bool in_otlp_exponential(struct in_otlp *otlp, struct qf_str bytes);
/* histogram.c: one HistogramDataPoint, one SummaryDataPoint. */
bool in_otlp_histogram(struct in_otlp *otlp, struct qf_str bytes);
bool in_otlp_summary(struct in_otlp *otlp, struct qf_str bytes);

/* otlp.c: @points of the metric are not taken. */
void in_otlp_refuse(struct in_otlp *otlp, uint64_t points, const char *why);

#endif
