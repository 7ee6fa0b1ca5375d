/* collect.h - samples in memory, by series, until there are enough for a run. */
#ifndef SEGMENTS_IMPORT_COLLECT_H
#define SEGMENTS_IMPORT_COLLECT_H

#include "base/pure/map.h"
#include "base/pure/vec.h"
#include "segments/import/run.h"

struct collect_series {
    struct qf_labels labels;
    uint32_t shard;
};

/* Samples are kept in the order they came; sorting happens when they leave. */
struct collect {
    uint32_t shard_count;
    int64_t window_ms;
    struct qf_arena *arena;  /* labels and keys */
    struct qf_map by_labels; /* canonical encoding -> series */
    struct qf_map by_text;   /* series as written in the input -> series */
    QF_VEC(struct collect_series) series;
    QF_VEC(uint32_t) sample_series;
    QF_VEC(int64_t) sample_ts;
    QF_VEC(double) sample_values;
};

void collect_init(struct collect *collect, uint32_t shard_count, int64_t window_ms);
void collect_done(struct collect *collect);

/* The number of a series, new or known. Labels are copied. */
uint32_t collect_series(struct collect *collect, struct qf_labels labels);
void collect_add(struct collect *collect, uint32_t series, int64_t ts, double value);

/* Bytes held, with what it takes to sort them. */
uint64_t collect_memory(const struct collect *collect);

/* Write everything as a run and forget it. Of equal timestamps the sample added last stays. */
QF_MUST_CHECK qf_rc collect_spill(struct collect *collect, const char *path, struct qf_err *err);

/* Sort by timestamp, keeping the last of equal ones; returns how many remain. */
size_t collect_sort(int64_t *ts, double *values, size_t count);

#endif
