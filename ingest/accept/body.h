/* body.h - bodies of requests as they were before they were compressed. Nothing they say of their own
 * size is believed. */
#ifndef INGEST_ACCEPT_BODY_H
#define INGEST_ACCEPT_BODY_H

#include "base/pure/err.h"
#include "base/pure/strbuf.h"

enum in_body_coding { IN_BODY_PLAIN, IN_BODY_SNAPPY, IN_BODY_GZIP, IN_BODY_ZSTD };

/* Bytes that @body says or may be expected to have; 0 if it cannot be told. */
uint64_t in_body_length(enum in_body_coding coding, struct qf_str body);

/* Append what @body holds to @buf. QF_EPARSE: it is damaged, or not in that coding; QF_ELIMIT: more than
 * @bytes_max. Snappy is the block format; gzip may have several members, zstd several
 * frames. */
QF_MUST_CHECK qf_rc in_body_decode(enum in_body_coding coding, struct qf_str body, size_t bytes_max,
                                   struct qf_strbuf *buf, struct qf_err *err);

#endif
