/* contents.h - the names in a segment, in a few kilobytes: metrics with how much there is of each, labels, and the
 * values of those that have few.
 *
 * The writer feeds every series to a builder and keeps the text it gives in the file's key/value metadata
 * under SG_CONTENTS_KEY. The catalogue reads it from the footer, together with the summary, so that lists of
 * names need no look into columns. Where names would take more than SG_CONTENTS_BYTES_MAX there is no text,
 * and a list takes a scan. */
#ifndef SEGMENTS_PARQUET_CONTENTS_H
#define SEGMENTS_PARQUET_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/labels.h"
#include "base/pure/slice.h"
#include "base/pure/strbuf.h"

#define SG_CONTENTS_KEY "promfabric.contents"
/* Bytes of one set of contents before it is made text. Values of labels go first, the most diverse labels'. */
#define SG_CONTENTS_BYTES_MAX 8192

struct sg_contents_builder;
struct sg_contents_builder *sg_contents_builder_new(void);
struct sg_contents_builder *sg_contents_builder_free(struct sg_contents_builder *builder);
/* One more series; its strings are copied. Bounded, however many there are. */
void sg_contents_builder_add(struct sg_contents_builder *builder, struct qf_labels labels);
/* Samples of the series that was added last. */
void sg_contents_builder_count(struct sg_contents_builder *builder, uint64_t samples);
/* Append the contents as text (base64 with a version in front); nothing if they do not fit. The same series in
 * any order give the same text. The last call on a builder but free. */
void sg_contents_builder_print(struct sg_contents_builder *builder, struct qf_strbuf *buf);

struct sg_contents_metric {
    struct qf_str name; /* empty: series without one */
    uint64_t samples;
};
struct sg_contents_label {
    struct qf_str name; /* of any label but the metric's name */
    const struct qf_str *values;
    size_t value_count;
    bool open; /* it has more values than are told here, which are none */
};

/* Immutable, safe to share. */
struct sg_contents {
    const struct sg_contents_metric *metrics; /* by name */
    size_t metric_count;
    const struct sg_contents_label *labels; /* by name */
    size_t label_count;
    uint64_t samples; /* of all metrics */
    struct qf_arena *arena;
};
/* NULL if @text is not one of a version this code reads: then nothing is known. */
struct sg_contents *sg_contents_parse(struct qf_str text);
struct sg_contents *
sg_contents_free(struct sg_contents *contents);               /* Accepts NULL, returns NULL. */
size_t sg_contents_bytes(const struct sg_contents *contents); /* memory it takes */

#endif
