/* url.h - which addresses the API will fetch from.
 *
 * A worker announces once where its artifacts are, on a stream that it was authenticated on; every
 * artifact must lie below that. A worker that was taken over can thus not make the API fetch what
 * it alone can reach. */
#ifndef QUERYAPI_FETCH_URL_H
#define QUERYAPI_FETCH_URL_H

#include <stdbool.h>

#include "base/pure/slice.h"

/* http://HOST[:PORT][/PATH], or https; @tls: https alone. No user, query or fragment. */
bool qa_artifact_base_valid(struct qf_str base, bool tls);

/* @url is @base and a path below it. */
bool qa_artifact_url_below(struct qf_str url, struct qf_str base);

#endif
