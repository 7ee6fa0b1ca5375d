/* block.h - blocks of snappy, as remote read has them. */
#ifndef QUERYAPI_ENCODE_BLOCK_H
#define QUERYAPI_ENCODE_BLOCK_H

#include <stddef.h>

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/strbuf.h"

/* QF_EINVAL: it is no block; QF_ELIMIT: more than @bytes_max are in it, or than the arena has. */
QF_MUST_CHECK qf_rc qa_block_unpack(struct qf_arena *arena, struct qf_str block, size_t bytes_max,
                                    struct qf_str *ret_bytes, struct qf_err *err);
/* Add @bytes, fewer than 2^32, as a block to @buf. */
void qa_block_pack(struct qf_strbuf *buf, struct qf_str bytes);

#endif
