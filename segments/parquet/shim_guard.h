/* shim_guard.h - where C++ exceptions become errors (C++ only). */
#ifndef SEGMENTS_PARQUET_SHIM_GUARD_H
#define SEGMENTS_PARQUET_SHIM_GUARD_H

#include <exception>
#include <new>

#include "segments/parquet/column_file.h" /* qf_err with C linkage */

/* Run @fn; what it throws becomes @rc, or QF_ENOMEM. */
template <typename Fn> qf_rc shim_guard(qf_rc rc, struct qf_err *err, Fn fn) noexcept
{
    try {
        fn();
        return QF_OK;
    } catch (const std::bad_alloc &) {
        return qf_err_set(err, QF_ENOMEM, "out of memory");
    } catch (const std::exception &e) {
        return qf_err_set(err, rc, "%s", e.what());
    }
}

#endif
