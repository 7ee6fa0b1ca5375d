/* summary.h - a few kilobytes that tell which label values a segment does not have.
 *
 * The writer feeds every series of a segment to a builder and keeps the text it gives in the
 * file's key/value metadata under SG_SUMMARY_KEY. The catalogue reads it from the footer and leaves
 * out segments in which a selector can match nothing. It is a Bloom filter over label names and
 * (name, value) pairs: it may say "maybe" wrongly (about 1 %), never "no". */
#ifndef SEGMENTS_PARQUET_SUMMARY_H
#define SEGMENTS_PARQUET_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/labels.h"
#include "base/pure/slice.h"
#include "base/pure/strbuf.h"
#include "promql/ast.h"

#define SG_SUMMARY_KEY "promfabric.summary"
/* Bytes of one decoded summary at most. A label with more different values than fit keeps only its
 * name, the most diverse labels first. */
#define SG_SUMMARY_BYTES_MAX 16384

struct sg_summary_builder;
struct sg_summary_builder *sg_summary_builder_new(void);
struct sg_summary_builder *sg_summary_builder_free(struct sg_summary_builder *builder);
/* Add one series; its strings are copied. Bounded: past a million pairs values stop counting. */
void sg_summary_builder_add(struct sg_summary_builder *builder, struct qf_labels labels);
/* Append the summary as text (base64 with a version in front), fit for key/value metadata. The
 * same series in any order give the same text. The last call on a builder but free. */
void sg_summary_builder_print(struct sg_summary_builder *builder, struct qf_strbuf *buf);

struct sg_summary; /* Immutable, safe to share. */
/* NULL if @text is not a summary of a version this code reads: then nothing is known. */
struct sg_summary *sg_summary_parse(struct qf_str text);
struct sg_summary *sg_summary_free(struct sg_summary *summary); /* Accepts NULL, returns NULL. */
size_t sg_summary_bytes(const struct sg_summary *summary);      /* memory it takes */

/* What a set of matchers asks of a summary, worked out once for many of them. Strings of the
 * matchers are not kept. */
struct sg_summary_probe;
struct sg_summary_probe *sg_summary_probe_new(const struct pq_matcher *matchers,
                                              size_t matcher_count);
struct sg_summary_probe *sg_summary_probe_free(struct sg_summary_probe *probe); /* Accepts NULL. */

/* False only if no series of the segment can satisfy all matchers. Equality counts, and regular
 * expressions that are a plain list of alternatives ("a|b|c"); others are taken as satisfied. A
 * NULL summary may match anything. */
bool sg_summary_probe_may_match(const struct sg_summary_probe *probe,
                                const struct sg_summary *summary);
/* The same for a single summary. */
bool sg_summary_may_match(const struct sg_summary *summary, const struct pq_matcher *matchers,
                          size_t matcher_count);

#endif
