/* store_name.h - which store this API reads, for comparison with what workers say of theirs. */
#ifndef QUERYAPI_QUERY_STORE_NAME_H
#define QUERYAPI_QUERY_STORE_NAME_H

#include <stdatomic.h>

#include "base/pure/duration.h"
#include "segments/store/identity.h"

/* Written by one thread at a time, until it is known; read by the coordinator. */
struct qa_store_name {
    atomic_bool known;
    char id[SG_STORE_ID_LEN + 1];
    bool missed; /* it was asked for and could not be told */
    /* By the clock that only counts: when it got its name, as far as this API saw; 0: it had one. */
    qf_time_ms named_ms;
};

/* Find out the name of @store, and give it one if it has none. Does nothing once it is known. What does not
 * work is no error: then workers cannot be compared, and what one of them lacks another is asked for. */
void qa_store_name_learn(struct qa_store_name *name, struct sg_store *store,
                         const struct sg_store_call *call);

/* NULL if a worker may read the same store: it says so, or nobody knows. Else why not. A worker whose
 * store has no name is given a moment if this one got its name just now. */
const char *qa_store_name_refuses(const struct qa_store_name *name, struct qf_str worker_store,
                                  qf_time_ms now);

#endif
