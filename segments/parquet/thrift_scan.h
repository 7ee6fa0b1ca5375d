/* thrift_scan.h - what a Thrift structure will cost in memory, before anybody builds it.
 *
 * A footer of a few bytes may announce a list of a million structures, for which Thrift's reader
 * takes memory before it looks whether they are there. So footers are walked first, in place and
 * without an allocation (compact protocol: field headers, varints, lengths), and what each list and
 * string will take is added up. */
#ifndef SEGMENTS_PARQUET_THRIFT_SCAN_H
#define SEGMENTS_PARQUET_THRIFT_SCAN_H

#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/slice.h"

/* QF_OK: @bytes are one structure that takes about *ret_cost bytes. QF_ECORRUPT: they are none.
 * QF_ELIMIT: it would take more than @cost_max. */
QF_MUST_CHECK qf_rc thrift_scan(struct qf_str bytes, uint64_t cost_max, uint64_t *ret_cost,
                                struct qf_err *err);

#endif
