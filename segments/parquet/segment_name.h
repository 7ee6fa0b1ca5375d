/* segment_name.h - what a segment's name says of it, so that a listing alone can prune.
 *
 *     tenant=T/date=YYYY-MM-DD/MIN_MAX_sSHARDofCOUNT_gGENERATION_ID.parquet
 *     tenant=default/date=2026-01-31/1769817600000_1769824799999_s3of8_g1769900000000000_9f3a....
 *
 * MIN and MAX are the timestamps of the first and last sample (ms, inclusive), padded to 13 digits
 * so that names sort by time; the date is MIN's, in UTC. Where two segments hold the same series
 * and timestamp, the one with the larger GENERATION wins, and the larger ID among equal ones.
 * Writers take the wall clock in microseconds as generation. ID is 16 hex digits that make the
 * name unique, a hash of the content as a rule. A name never changes its content. */
#ifndef SEGMENTS_PARQUET_SEGMENT_NAME_H
#define SEGMENTS_PARQUET_SEGMENT_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/slice.h"
#include "base/pure/strbuf.h"
#include "base/pure/tenant.h"

#define SG_SHARDS_MAX (1u << 16)
/* Times of samples are no further from the epoch: millions of years, and their sums and differences
 * still fit int64. Who reads a name or a file may calculate with what is in it. */
#define SG_TIME_MAX ((int64_t)1 << 58)

static inline bool sg_times_fit(int64_t min_ts, int64_t max_ts)
{
    return min_ts >= -SG_TIME_MAX && min_ts <= max_ts && max_ts <= SG_TIME_MAX;
}

struct sg_segment_name {
    struct qf_str tenant;
    int64_t min_ts, max_ts;
    uint32_t shard, shard_count; /* a power of two up to SG_SHARDS_MAX */
    uint64_t generation;
    uint64_t id;
};

/* Append the name. The fields must be valid: a valid tenant, min <= max, shard < shard_count. */
void sg_segment_name_print(struct qf_strbuf *buf, const struct sg_segment_name *name);
/* Append "tenant=T/date=YYYY-MM-DD/" of a segment that starts at @min_ts. */
void sg_segment_name_print_folder(struct qf_strbuf *buf, struct qf_str tenant, int64_t min_ts);

/* Read a name back, the tenant borrowed from @text. False if @text is not the name of a segment but
 * of some other file in the store. */
bool sg_segment_name_parse(struct qf_str text, struct sg_segment_name *ret_name);

#endif
