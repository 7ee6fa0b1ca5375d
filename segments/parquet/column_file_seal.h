/* column_file_seal.h - the block of checksums between the last row group and the footer; its
 * layout is in column_file.h. */
#ifndef SEGMENTS_PARQUET_COLUMN_FILE_SEAL_H
#define SEGMENTS_PARQUET_COLUMN_FILE_SEAL_H

#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/slice.h"
#include "base/pure/strbuf.h"

/* -- Writing: add the hash of each chunk, then close ------------------------------------------ */

void colfile_seal_add_hash(struct qf_strbuf *out, uint64_t hash);
/* Append to @out, which holds @hash_count hashes, what makes it a seal at @offset in front of
 * @footer (with its length and magic). */
void colfile_seal_close(struct qf_strbuf *out, uint32_t hash_count, uint64_t offset,
                        struct qf_str footer);

/* -- Reading ---------------------------------------------------------------------------------- */

struct colfile_seal {
    const char *hashes; /* colfile_seal_hash() reads them */
    uint32_t hash_count;
    uint64_t offset;      /* where it starts, and the chunks end */
    uint64_t size;        /* of seal and footer together */
    struct qf_str footer; /* without length and magic */
};

/* Find and verify the seal of a file of @file_size bytes that ends in @tail; what is found borrows
 * from it. QF_ECORRUPT. QF_OK with *ret_need > 0: that many last bytes are needed. */
QF_MUST_CHECK qf_rc colfile_seal_open(struct qf_str tail, uint64_t file_size,
                                      struct colfile_seal *ret_seal, uint64_t *ret_need,
                                      struct qf_err *err);
uint64_t colfile_seal_hash(const struct colfile_seal *seal, size_t index);

#endif
