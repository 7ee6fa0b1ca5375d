/* collect.h - samples in memory, by series, until there are enough for a run. */
#ifndef SEGMENTS_WRITE_COLLECT_H
#define SEGMENTS_WRITE_COLLECT_H

#include "base/pure/map.h"
#include "base/pure/vec.h"
#include "segments/write/needs.h"
#include "segments/write/run.h"

struct collect_series {
    struct qf_labels labels;
    uint32_t shard;
    uint32_t samples;
    int64_t last_ts;
    int64_t window; /* of the last sample */
    bool unsorted;  /* some sample is older than the one before */
};

struct collect_sample {
    int64_t ts, start_ts;
    double value;
    struct qf_str histogram; /* encoded; empty for a float */
};

/* Samples side by side; the last two may be NULL. */
struct collect_columns {
    int64_t *ts;
    double *values;
    int64_t *start_ts;
    struct qf_str *histograms;
};

/* Samples are kept in the order they came; sorting happens when they leave. The last two lists are
 * empty until there is something to keep in them. */
struct collect {
    uint32_t shard_count;
    int64_t window_ms;
    struct qf_arena *arena;  /* labels, keys and histograms */
    struct qf_map by_labels; /* canonical encoding -> series */
    QF_VEC(struct collect_series) series;
    QF_VEC(uint32_t) sample_series;
    QF_VEC(int64_t) sample_ts;
    QF_VEC(double) sample_values;
    QF_VEC(int64_t) sample_starts;
    QF_VEC(struct qf_str) sample_histograms;
    size_t labels_bytes_max; /* of a label set as written to a run */
    uint64_t held_bytes;     /* that somebody else holds and gives back before the spill */
    /* How much there will be to sort, or more: pieces of a series in a window, and samples of the
     * longest series that is not in order. */
    size_t slices_max, unsorted_max;
};

void collect_init(struct collect *collect, uint32_t shard_count, int64_t window_ms);
void collect_done(struct collect *collect);

/* The number of a series, new or known. Labels are copied. */
uint32_t collect_series(struct collect *collect, struct qf_labels labels);
/* The histogram is copied. */
void collect_add(struct collect *collect, uint32_t series, const struct collect_sample *sample);

/* Bytes held at most from now until they are on disk, with what it takes to sort them. */
uint64_t collect_memory(const struct collect *collect);

/* Write everything as a run and forget it. Of equal timestamps the sample added last stays. What
 * the segments to come need is added to @needs. */
QF_MUST_CHECK qf_rc collect_spill(struct collect *collect, const char *path, struct needs *needs,
                                  struct qf_err *err);

/* Sort by timestamp, keeping the last of equal ones; returns how many remain. */
size_t collect_sort(struct collect_columns columns, size_t count);

#endif
