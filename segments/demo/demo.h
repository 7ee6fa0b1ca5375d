/* demo.h - a data set to try things with: the same for the same options, down to the last bit.
 *
 * What a small service and its machines would expose, scraped at a steady step:
 *
 *     http_requests_total             counter; an instance's counters restart at 0 now and then
 *     http_request_duration_seconds   classic histogram: _bucket, _sum and _count
 *     node_cpu_seconds_total          counter in hundredths of seconds
 *     node_memory_available_bytes     gauge in whole pages
 *     node_temperature_celsius        gauge with one decimal
 *     process_load                    gauge with noise in every bit
 *     queue_depth                     gauge of small integers
 *     batch_progress_ratio            series that appear, grow to 1 and end with a stale marker
 *     up                              1, or 0 for a scrape that failed
 *
 * Pure: time and randomness come from the options. */
#ifndef SEGMENTS_DEMO_DEMO_H
#define SEGMENTS_DEMO_DEMO_H

#include <stddef.h>
#include <stdint.h>

#include "base/pure/labels.h"

struct demo_options {
    uint64_t seed;
    int64_t start, end; /* ms; samples in [start, end) */
    int64_t step;       /* ms, > 0 */
    size_t instances;   /* of the service, and as many machines; about 82 series for each */
};

struct demo;

struct demo *demo_new(const struct demo_options *options);
struct demo *demo_free(struct demo *demo); /* Accepts NULL, returns NULL. */

/* Series are sorted by qf_labels_cmp. */
size_t demo_series_count(const struct demo *demo);
struct qf_labels demo_labels(const struct demo *demo, size_t series);
/* Samples a series can have at most: the room demo_samples needs. */
size_t demo_samples_max(const struct demo *demo);
/* Fill in the samples of a series; returns their number, which may be 0. */
size_t demo_samples(const struct demo *demo, size_t series, int64_t *ts, double *values);

#endif
