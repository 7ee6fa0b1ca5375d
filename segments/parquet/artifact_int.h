/* artifact_int.h - what writing and reading artifacts share: keys of the metadata, and columns. */
#ifndef SEGMENTS_PARQUET_ARTIFACT_INT_H
#define SEGMENTS_PARQUET_ARTIFACT_INT_H

#include "promql/leaf_result.h"
#include "segments/parquet/artifact.h"
#include "segments/parquet/column_file.h"

#define ARTIFACT_KEY_VERSION "promfabric.artifact_version"
#define ARTIFACT_KEY_KIND "promfabric.kind"
#define ARTIFACT_KEY_SAMPLES_READ "promfabric.samples_read"
#define ARTIFACT_KEY_POINTS "promfabric.points"
#define ARTIFACT_KEY_SERIES "promfabric.series"
#define ARTIFACT_KEY_NOTES "promfabric.notes"

/* ts, series, values, histogram. */
#define ARTIFACT_COLUMNS_MAX (2 + PQ_LEAF_COLUMNS_MAX + 1)

struct artifact_schema {
    struct colfile_column columns[ARTIFACT_COLUMNS_MAX];
    struct colfile_schema file;
};

/* The columns of a kind, in their order. */
void artifact_schema_init(struct artifact_schema *schema, const struct pq_leaf_kind *kind,
                          bool histograms);

#endif
