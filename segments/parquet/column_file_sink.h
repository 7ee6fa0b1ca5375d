/* column_file_sink.h - where Arrow's bytes go: a file or memory, hashed on the way.
 *
 * A GIO stream, since those Arrow GLib can write to. From colfile_sink_hold() on what Arrow writes
 * is kept back, so that the seal can be put in front of the footer. */
#ifndef SEGMENTS_PARQUET_COLUMN_FILE_SINK_H
#define SEGMENTS_PARQUET_COLUMN_FILE_SINK_H

#include <xxhash.h>

#include "base/pure/err.h"
#include "base/pure/strbuf.h"
#include "segments/parquet/arrow_glib.h"

struct colfile_sink {
    GOutputStream base;
    int fd;          /* not owned; -1: memory */
    int error;       /* errno of the first write that failed */
    bool holding;    /* what comes is kept in tail */
    bool discarding; /* what comes is not wanted any more */
    uint64_t written;
    XXH3_state_t *chunk, *whole; /* hashes since colfile_sink_begin_chunk(), and of everything */
    struct qf_strbuf buffer, tail;
};

struct colfile_sink *colfile_sink_new(int fd); /* g_object_unref() it */

void colfile_sink_begin_chunk(struct colfile_sink *sink);
void colfile_sink_hold(struct colfile_sink *sink);
/* Bytes that are not Arrow's. False: sink->error says why. */
QF_MUST_CHECK bool colfile_sink_append(struct colfile_sink *sink, const void *data, size_t size);
QF_MUST_CHECK bool colfile_sink_flush(struct colfile_sink *sink);

#endif
