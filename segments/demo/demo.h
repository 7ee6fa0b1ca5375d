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
 * and a state map that says whose each job is, as info series `team_info{key, job, team, pager}`.
 *
 * Pure: time and randomness come from the options. */
#ifndef SEGMENTS_DEMO_DEMO_H
#define SEGMENTS_DEMO_DEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/labels.h"
#include "base/pure/strbuf.h"

struct sg_demo_options {
    uint64_t seed;
    int64_t start, end; /* ms; samples in [start, end) */
    int64_t step;       /* ms, > 0 */
    size_t instances;   /* of the service, and as many machines; about 82 series for each */
};

struct sg_demo;

struct sg_demo *sg_demo_new(const struct sg_demo_options *options);
struct sg_demo *sg_demo_free(struct sg_demo *demo); /* Accepts NULL, returns NULL. */

/* Series are sorted by qf_labels_cmp. */
size_t sg_demo_series_count(const struct sg_demo *demo);
struct qf_labels sg_demo_labels(const struct sg_demo *demo, size_t series);
/* Samples a series can have at most: the room sg_demo_samples needs. */
size_t sg_demo_samples_max(const struct sg_demo *demo);
/* Fill in the samples of a series; returns their number, which may be 0. */
size_t sg_demo_samples(const struct sg_demo *demo, size_t series, int64_t *ts, double *values);

/* The map: its name, the metric of its definition (a state), and its rows as lines of JSON, without the map's name. */
#define SG_DEMO_MAP "demo_team"
#define SG_DEMO_MAP_METRIC "team_info"
void sg_demo_map_rows(struct qf_strbuf *rows);

/* The same series from the end on, as if time went by: what has a sample in the last step goes on, and
 * the values follow those of sg_demo_samples(). */
struct sg_demo_live;

struct sg_demo_live *sg_demo_live_new(const struct sg_demo *demo); /* borrowed */
struct sg_demo_live *sg_demo_live_free(struct sg_demo_live *live); /* Accepts NULL, returns NULL. */
/* The next sample of @series, if it is due by @now (ms). False: it is not, or the series has ended. */
bool sg_demo_live_next(struct sg_demo_live *live, size_t series, int64_t now, int64_t *ret_ts,
                       double *ret_value);

#endif
