/* memory.h - the samples of one range in memory, compact, each with its position in the log.
 *
 * One thread (the queue's) adds; any number of threads read at the same time, without a lock: nothing
 * that was written ever moves or changes, and what a reader may look at is said by counters that the
 * writer raises last. A series is a label set and a stream of bytes in blocks of 64; samples are in the
 * order of the log, so that a reader stops at the first one behind its cut.
 *
 *     sample   flags, [position: difference], [time: difference of the step], [start: difference], value
 *     value    nothing (the same bits as before) | difference of whole numbers | bytes that differ |
 *              a histogram with its length
 *
 * A label and its value are stored once for all series of the range; series name them by number. Typical
 * scrapes take 5 bytes a sample and some 150 a series besides. */
#ifndef INGEST_HEAD_MEMORY_H
#define INGEST_HEAD_MEMORY_H

#include <stdatomic.h>

#include "ingest/core/record.h"

struct in_memory;

/* With one reference. */
struct in_memory *in_memory_new(void);
struct in_memory *in_memory_ref(struct in_memory *memory);
struct in_memory *in_memory_drop(struct in_memory *memory); /* Accepts NULL, returns NULL. */

/* --- the writer --- */

/* From now on @number means the series with @labels. The same series may have several numbers. */
void in_memory_define(struct in_memory *memory, uint32_t number, struct qf_labels labels);
/* Add a sample of the log's record at @position, not below any before. False: nobody defined the
 * number. */
bool in_memory_add(struct in_memory *memory, uint32_t number, uint64_t position,
                   const struct in_sample *sample);

/* What the range says besides samples (annex.h), empty at first. The writer's, until the range is closed; then it
 * belongs to whoever makes its files. */
struct sg_annex;
struct sg_annex *in_memory_annex(struct in_memory *memory);
bool in_memory_has_annex(const struct in_memory *memory); /* it was asked for before */

/* --- anyone --- */

/* What it takes, as of now. */
uint64_t in_memory_bytes(const struct in_memory *memory);
uint64_t in_memory_samples(const struct in_memory *memory);

struct in_pair {
    const char *text; /* the name, then the value */
    uint32_t name_len, value_len;
    uint32_t hash;
};
static inline struct qf_str in_pair_name(const struct in_pair *pair)
{
    return (struct qf_str){ pair->text, pair->name_len };
}
static inline struct qf_str in_pair_value(const struct in_pair *pair)
{
    return (struct qf_str){ pair->text + pair->name_len, pair->value_len };
}

/* What some sample of a series has. */
enum { IN_HAS_STARTS = 1, IN_HAS_HISTOGRAMS = 2 };

struct in_block;

struct in_memory_series {
    const unsigned char *labels; /* how many, then numbers of pairs, by name; varints */
    struct in_block *first;
    atomic_uint len; /* bytes of the stream that may be read */
    uint32_t shard_hash;
    atomic_uchar has;
    unsigned char is_whole; /* the last value is a whole number: the writer's */
    uint32_t ordinal;       /* in which they were defined; what follows is the writer's as well: */
    struct in_block *last;
    int64_t ts, step, start_ts;
    uint64_t value, position;
};

/* Series and pairs as they are when it is taken; samples may still be added to the series. */
struct in_memory_view {
    void *const *series, *const *pairs; /* in pieces of IN_PIECE */
    uint32_t series_count, pair_count;
};
enum { IN_PIECE = 32 };

struct in_memory_view in_memory_view(const struct in_memory *memory);
static inline struct in_memory_series *in_view_series(const struct in_memory_view *view, uint32_t i)
{
    return (struct in_memory_series *)view->series[i / IN_PIECE] + i % IN_PIECE;
}
static inline const struct in_pair *in_view_pair(const struct in_memory_view *view, uint32_t i)
{
    return (const struct in_pair *)view->pairs[i / IN_PIECE] + i % IN_PIECE;
}

/* A number out of series->labels; *@at moves on. */
static inline uint32_t in_labels_next(const unsigned char **at)
{
    uint32_t value = 0;

    for (unsigned shift = 0;; shift += 7) {
        unsigned char byte = *(*at)++;

        value |= (uint32_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
}

/* The labels of @series, @items having room for as many as it has (at most IN_LABELS_MAX). */
enum { IN_LABELS_MAX = 1 << 16 };
struct qf_labels in_view_labels(const struct in_memory_view *view,
                                const struct in_memory_series *series, struct qf_label *items);
uint32_t in_series_label_count(const struct in_memory_series *series);
/* qf_labels_cmp() of two series of one view. */
int in_view_cmp(const struct in_memory_view *view, const struct in_memory_series *a,
                const struct in_memory_series *b);

/* A walk over the samples of a series. */
struct in_stream {
    const struct in_block *block;
    uint32_t at, left; /* in the block; in the stream */
    int64_t ts, step, start_ts;
    uint64_t value, position;
};
struct in_stream in_stream_of(const struct in_memory_series *series);
/* The next sample; a histogram's bytes are appended to @histograms, and *ret_histogram_len is how
 * many: 0 for a float. False at the end. */
bool in_stream_next(struct in_stream *stream, struct qf_strbuf *histograms,
                    size_t *ret_histogram_len);
static inline double in_stream_value(const struct in_stream *stream)
{
    double value;

    memcpy(&value, &stream->value, sizeof(value));
    return value;
}

#endif
