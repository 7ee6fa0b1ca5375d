/* definition.h - what is said of a map before it has rows. Pure. */
#ifndef STATEMAP_CORE_DEFINITION_H
#define STATEMAP_CORE_DEFINITION_H

#include "statemap/core/keep.h"

#define SM_MAP_BYTES_MIN (UINT64_C(1) << 20)
#define SM_MAP_BYTES_MAX (UINT64_C(1) << 40)
enum { SM_MAP_READERS_MAX = 10000, SM_METRIC_MAX = 200 };
#define SM_INTERVAL_MS_DEFAULT 60000

struct sm_definition {
    char name[SM_NAME_MAX + 1];
    struct sm_layout layout; /* stays as it is */
    enum sm_type type;       /* of all values; SM_ANY: each has its own */
    int64_t condense_ms;     /* what is older is condensed; 0: nothing is */
    int64_t retention_ms;    /* what is older goes; 0: nothing does */
    int64_t timeout_ms;      /* how long a session without an end lasts; 0: it must have one */
    uint64_t map_bytes;      /* 0: 10 GiB */
    uint64_t readers;        /* 0: 126 */
    /* The info series that the map is selectable as, of keyed kinds; "": none. */
    char metric[SM_METRIC_MAX + 1];
    int64_t interval_ms; /* how often it would have been scraped; 0: SM_INTERVAL_MS_DEFAULT */
    /* Positions in the log of definitions and parts: of the last change, of the first. Rows from before `created` are another
     * map's. 0: there is no log. */
    uint64_t version, created;
};

/* QF_EINVAL says what does not fit: condensation and retention want times, a timeout wants sessions, sessions have no values,
 * ranges have no keys. */
QF_MUST_CHECK qf_rc sm_definition_check(const struct sm_definition *definition, struct qf_err *err);

struct sm_cutoffs sm_definition_cutoffs(const struct sm_definition *definition, int64_t now_ms);

#endif
