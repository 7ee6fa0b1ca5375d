/* fetch.h - open a segment of a store: where it is, or from a copy that has no name. */
#ifndef SEGMENTS_COMPACT_FETCH_H
#define SEGMENTS_COMPACT_FETCH_H

#include "segments/parquet/segment_reader.h"
#include "segments/store/store.h"

/* Copies go to the folder @dir; *@bytes (may be NULL) grows by the file's size. NULL and @err filled: errors of
 * sg_store_read_fd() and sg_reader_open_fd(), QF_ENOSPC, QF_EIO; QF_ECORRUPT if the name does not fit what the file says
 * of itself: queries go by either. */
struct sg_reader *sg_fetch(struct sg_store *store, struct qf_str name, const char *dir,
                           const struct sg_store_call *call, uint64_t *bytes, struct qf_err *err);

/* @err says that @name is damaged. If it was read from this keeper's own disk, that has it looked at, and it is QF_EIO: others
 * have it as well. Else as it was. */
QF_MUST_CHECK qf_rc sg_fetch_blame(struct sg_store *store, struct qf_str name, struct qf_err *err);

#endif
