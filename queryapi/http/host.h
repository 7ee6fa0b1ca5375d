/* host.h - whether a request's Host is one that this API goes by.
 *
 * A page of any site may have a name of its own point to 127.0.0.1, and then the browser takes this API for
 * that site: it could ask everything and read the answers. The browser still says the name it asked for.
 * An API that only this machine reaches therefore answers to names of this machine alone. */
#ifndef QUERYAPI_HTTP_HOST_H
#define QUERYAPI_HTTP_HOST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/pure/slice.h"

/* @host: the value of the header, with or without a port. True for an empty one, an address, localhost and
 * what is below it, and the @names, in any case. */
bool qa_host_is_ours(struct qf_str host, const char *const *names, size_t name_count);

#endif
