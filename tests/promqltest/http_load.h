/* http_load.h - the series of a storage into a store, as a user would do it: written as text and
 * handed to `promfabric import`. */
#ifndef TESTS_PROMQLTEST_HTTP_LOAD_H
#define TESTS_PROMQLTEST_HTTP_LOAD_H

#include "tests/promqltest/storage.h"

struct http_load_options {
    const char *binary; /* promfabric */
    const char *store_url;
    const char *tenant;
    size_t shard_count;
};

/* Import everything @storage holds; nothing happens if that is nothing. The samples are in the
 * store when this returns. QF_EIO with the last words of the import if it fails. */
QF_MUST_CHECK qf_rc http_load(struct storage *storage, const struct http_load_options *options,
                              struct qf_err *err);

#endif
