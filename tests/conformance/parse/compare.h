/* compare.h - hold syntax trees and histograms against what Prometheus built for the same text. */
#ifndef TESTS_CONFORMANCE_PARSE_COMPARE_H
#define TESTS_CONFORMANCE_PARSE_COMPARE_H

#include <jansson.h>
#include <stdbool.h>

#include "promql/ast.h"
#include "promql/parse.h"
#include "promql/value.h"

/* Where two trees differ, in words. */
struct mismatch {
    char text[512];
};

/* True if @node is the tree described by @want. */
bool compare_node(const struct pq_expr *node, const json_t *want, struct mismatch *mismatch);
bool compare_histogram(const struct pq_histogram *histogram, const json_t *want,
                       struct mismatch *mismatch);
bool compare_labels(struct qf_labels labels, const json_t *want, struct mismatch *mismatch);
/* The bytes of a JSON string, or of {"_hex": ...}; in @arena. */
struct qf_str json_bytes(struct qf_arena *arena, const json_t *value);
/* A number, or "NaN", "+Inf", "-Inf" as a string; absent is 0. */
double json_double(const json_t *value);

#endif
