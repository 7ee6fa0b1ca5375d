/* ha.h - pairs of senders: series of several replicas of one cluster. Pure.
 *
 * Two Prometheus servers (replicas) that scrape the same targets send every series twice, apart from one
 * label that names the replica. Of each cluster one replica is elected (intake.h), and only its samples
 * are written, without that label. A series that lacks the label of the cluster, or that of the
 * replica, belongs to no pair and is written as it is. */
#ifndef INGEST_CORE_HA_H
#define INGEST_CORE_HA_H

#include "ingest/core/request.h"

enum {
    IN_HA_PAIRS_MAX = 32,       /* in one request */
    IN_HA_NAME_BYTES_MAX = 256, /* of a cluster, and of a replica */
};

struct in_ha_labels {
    struct qf_str cluster, replica; /* names of the two labels */
};

/* A replica of a cluster, as a request has it. Strings are borrowed from the request. */
struct in_ha_pair {
    struct qf_str cluster, replica;
    int64_t newest_ts; /* of its samples; INT64_MIN: it has none */
};

struct in_ha {
    struct in_ha_pair pairs[IN_HA_PAIRS_MAX];
    size_t count;
    uint8_t *of; /* by series: 0, or 1 + its pair; NULL if there are no pairs. In the arena */
};

/* Which series of a request that was checked belong to which pair; the label of the replica is taken off
 * them. QF_ELIMIT: there are too many pairs, or a name is too long, or the arena is spent; the request as
 * a whole cannot be written. */
QF_MUST_CHECK qf_rc in_ha_find(struct in_request *request, const struct in_ha_labels *labels,
                               struct qf_arena *arena, struct in_ha *ret_ha, struct qf_err *err);

#endif
