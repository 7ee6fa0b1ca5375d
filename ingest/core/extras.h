/* extras.h - what a request says besides samples, as bytes of a SAMPLES record. Pure.
 *
 *     exemplar   labels of its series, its own labels, value, time
 *     metadata   of a metric: name, type, help, unit
 *
 * Labels are as qf_labels_encode() writes them. Each is bounded by its request; what is kept of them, and
 * how long, is up to whoever reads them. */
#ifndef INGEST_CORE_EXTRAS_H
#define INGEST_CORE_EXTRAS_H

#include "base/pure/err.h"
#include "base/pure/strbuf.h"
#include "ingest/core/request.h"

enum in_extra_kind { IN_EXTRA_EXEMPLAR = 1, IN_EXTRA_METADATA = 2 };

struct in_extra {
    enum in_extra_kind kind;
    struct qf_str bytes; /* all of it, its kind included */
    /* EXEMPLAR */
    struct qf_str series, labels;
    double value;
    int64_t ts;
    /* METADATA */
    struct in_metadata metadata;
};

void in_extra_put_exemplar(struct qf_strbuf *buf, struct qf_labels series,
                           const struct in_exemplar *exemplar);
void in_extra_put_metadata(struct qf_strbuf *buf, const struct in_metadata *metadata);

/* The next one out of *@rest; false at the end, and if the bytes are malformed, which then are left. */
bool in_extra_next(struct qf_str *rest, struct in_extra *ret_extra);
/* Whether all of @bytes can be read, labels included. @arena is scratch. */
bool in_extras_valid(struct qf_str bytes, struct qf_arena *arena);

#endif
