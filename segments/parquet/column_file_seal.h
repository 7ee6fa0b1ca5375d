/* column_file_seal.h - the block of checksums between the last row group and the footer; its
 * layout is in column_file.h. */
#ifndef SEGMENTS_PARQUET_COLUMN_FILE_SEAL_H
#define SEGMENTS_PARQUET_COLUMN_FILE_SEAL_H

#include "base/pure/err.h"
#include "base/pure/slice.h"
#include "base/pure/strbuf.h"

/* Append to @out, which holds the @hash_count hashes of the chunks, what makes it a seal at @offset
 * in front of @footer. */
void colfile_seal_close(struct qf_strbuf *out, uint32_t hash_count, uint64_t offset,
                        struct qf_str footer);
void colfile_seal_add_hash(struct qf_strbuf *out, uint64_t hash);

#endif
