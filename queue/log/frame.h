/* frame.h - the bytes of a log file: a header, then frames, one per batch of entries.
 *
 *     file    magic 8  version 8  generation 8  number 8  first frame 8  chain 16  check 8
 *     frame   magic 4  count 4  number 8  synced 8  body 8  check 8  chain 16, then the body
 *     entry   term 8  index 8  length 4  type 4  check 8, then the data; padded to 8
 *
 * All integers are little-endian. `chain` of a frame is the hash of the frame before it, of its own
 * header and of its body: a frame is whole and in its place, or the chain breaks. `synced` is the
 * sync mark: all frames up to that number were durable before this one was written. `check` covers
 * the fields before it under the log's salt, so that a frame can be known for one behind damage,
 * and so that no client can put one into a record. */
#ifndef QUEUE_LOG_FRAME_H
#define QUEUE_LOG_FRAME_H

#include "base/pure/err.h"
#include "base/pure/slice.h"
#include "base/pure/strbuf.h"
#include "queue/log/bytes.h"

enum {
    QL_LOG_VERSION = 1,
    QL_FILE_HEADER = 64,
    QL_FRAME_HEADER = 56,
    QL_ENTRY_HEADER = 32,
    QL_ALIGN = 8
};

enum ql_type {
    QL_NOOP = 1,   /* a leader's first entry */
    QL_CHANGE = 2, /* a configuration */
    QL_COMMAND = 3 /* anything else; see queue/core/command.h */
};

struct ql_entry {
    uint64_t index, term;
    enum ql_type type;
    struct qf_str data; /* borrowed */
};

struct ql_file_header {
    uint64_t generation;
    uint64_t number;      /* of the file, from 1 */
    uint64_t first_frame; /* number of the first frame in it */
    struct ql_chain chain;
};

struct ql_frame {
    uint64_t number;
    uint64_t synced;
    uint64_t body;
    uint32_t count;
    struct ql_chain chain;
};

void ql_file_header_put(unsigned char out[QL_FILE_HEADER], const struct ql_file_header *header,
                        uint64_t salt);
/* QF_ECORRUPT, or QF_EUNSUPPORTED for a newer version. */
QF_MUST_CHECK qf_rc ql_file_header_get(const unsigned char in[QL_FILE_HEADER], uint64_t salt,
                                       struct ql_file_header *ret_header);

/* Append a frame of @count entries to @buf; returns its chain. */
struct ql_chain ql_frame_put(struct qf_strbuf *buf, uint64_t number, uint64_t synced,
                             const struct ql_entry *entries, size_t count, struct ql_chain before,
                             uint64_t salt);

/* A frame header whose check is right at the start of @bytes. */
bool ql_frame_peek(struct qf_str bytes, uint64_t salt, struct ql_frame *ret_frame);
/* The same with its whole body there and the chain unbroken. */
bool ql_frame_get(struct qf_str bytes, struct ql_chain before, uint64_t salt,
                  struct ql_frame *ret_frame);

/* Append an entry with header and padding to @buf. */
void ql_entry_put(struct qf_strbuf *buf, const struct ql_entry *entry);
/* The entry at @at of a frame's @body; returns the position behind it, 0 if it is not one. */
size_t ql_entry_get(struct qf_str body, size_t at, struct ql_entry *ret_entry);
size_t ql_entry_bytes(size_t data_len); /* with header and padding */

#endif
