/* seal.h - one closed range into the store. Blocks on the store.
 *
 * Its annexes and files are put, a few at a time, under their names, which hold generation and content: a name that the store has
 * already is not put again, whoever put it. Notes of changes follow (segments/catalog/changes.h). What
 * comes out is the SEALED record with sizes and etags as the store has them: only when that is applied
 * does the range count as sealed. Two nodes may seal the same range; the log hears one of them. */
#ifndef INGEST_SEAL_SEAL_H
#define INGEST_SEAL_SEAL_H

#include "ingest/head/head.h"
#include "segments/store/store.h"

struct in_seal_result {
    uint64_t put, present, bytes; /* files put, files found; bytes put */
};

/* Append the SEALED record to @record. @cluster is that of the node. Errors of store.h and QF_EIO for local files: what was put
 * stays, and is found by the next try. */
QF_MUST_CHECK qf_rc in_seal(const struct in_head_sealable *range, struct sg_store *store,
                            uint64_t cluster, const struct sg_store_call *call,
                            struct qf_strbuf *record, struct in_seal_result *ret_result,
                            struct qf_err *err);

#endif
