/* agree.h - ask ingest nodes up to which generation all segments of a tenant are there. Blocks.
 *
 * Ranges of ingest nodes have generations that were fixed when they opened, long before their segments are put. A compactor
 * has every partition settle first (BELOW, ingest/core/ledger.h): up to the generation that comes back nothing is left to
 * be sealed, and later ranges open above it. Asking again is harmless.
 *
 *     POST /v1/below {"tenant":"T","generation":G,"keep_ms":K}  ->  {"cluster":"HEX","generation":N}, N at most G
 *
 * Any number of threads may use one. */
#ifndef SEGMENTS_COMPACT_AGREE_H
#define SEGMENTS_COMPACT_AGREE_H

#include "segments/store/store.h"

struct sg_agree;

struct sg_agree_options {
    const char *const
        *nodes; /* HOST:PORT of their HTTP, one or more; any of them asks the others */
    size_t node_count;
    const char *key_file; /* a line with the operator's key, read with each question; or NULL */
    const char *ca_file;  /* PEM: they are asked over TLS; or NULL */
    /* Zero means the default. */
    int64_t timeout_ms; /* of a question, with all its tries: 30 s */
};

/* QF_EINVAL: no nodes, or one that is no HOST:PORT. */
QF_MUST_CHECK qf_rc sg_agree_new(const struct sg_agree_options *options,
                                 struct sg_agree **ret_agree, struct qf_err *err);
/* Those whose logs say what is on our own nodes: @store is one of these. */
QF_MUST_CHECK qf_rc sg_agree_of_ring(const struct sg_store *store, struct sg_agree **ret_agree,
                                     struct qf_err *err);
struct sg_agree *sg_agree_free(struct sg_agree *agree); /* Accepts NULL, returns NULL. */

/* Which cluster answered. */
struct sg_agreed {
    uint64_t generation; /* settled: 0 if nothing is */
    char cluster[17];
};

/* Settle up to @generation. Segments that were sealed longer than @keep_ms ago will be deleted before long: nodes stop telling
 * who asks what is fresh of them. Nodes that cannot answer, or that know of no leader, are asked again and in turn.
 * QF_EUNAVAILABLE: nobody could in time; QF_EDENIED: they do not accept the key; QF_EUNSUPPORTED: nodes of a release that
 * does not know the question; QF_EPROTO: an answer that is none; QF_EIO, QF_EINVAL: the file of the key; QF_ECANCELED. */
QF_MUST_CHECK qf_rc sg_agree_below(const struct sg_agree *agree, struct qf_str tenant,
                                   uint64_t generation, int64_t keep_ms, const atomic_bool *cancel,
                                   struct sg_agreed *ret_agreed, struct qf_err *err);

#endif
