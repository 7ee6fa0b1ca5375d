/* outcome.h - what came of a request in one partition, for whoever sent it. Pure. */
#ifndef INGEST_CORE_OUTCOME_H
#define INGEST_CORE_OUTCOME_H

#include "base/pure/err.h"
#include "base/pure/limits.h"
#include "base/pure/strbuf.h"
#include "ingest/core/request.h"

struct in_outcome {
    struct in_amounts accepted, refused;
    bool limited;    /* something was refused because the tenant has too much of it: may pass */
    int64_t wait_ms; /* limited: it may pass after this; 0: nobody knows */
    /* Samples refused, by limit from QF_LIMIT_WRITE_FIRST on. Counted where it is decided: other nodes do
     * not hear of it. */
    uint64_t limited_by[QF_WRITE_LIMITS];
    char first[512]; /* what is wrong with the first thing refused; "" if nothing is */
};

/* Count @more to @sum; the first text stays. */
void in_outcome_add(struct in_outcome *sum, const struct in_outcome *more);

/* Between nodes. Decoding is strict: QF_ECORRUPT. */
void in_outcome_encode(struct qf_strbuf *buf, const struct in_outcome *outcome);
QF_MUST_CHECK qf_rc in_outcome_decode(struct qf_str bytes, struct in_outcome *ret_outcome);

#endif
