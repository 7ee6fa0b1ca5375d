/* maps.h - which state maps of a tenant are info series, and where the copies of them are that workers read: one answer of
 * POST /v1/state/info (docs/PROTOCOL.md).
 *
 * What ingest nodes know of maps grows old: whoever uses it asks how old it is by now. */
#ifndef QUERYAPI_FRESH_MAPS_H
#define QUERYAPI_FRESH_MAPS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/slice.h"

/* Bounds of an answer; names and kinds are as long as those of the protocol between API and worker. */
#define QA_MAPS_MAX 10000
#define QA_MAPS_BYTES_MAX ((size_t)16 << 20)
#define QA_MAPS_NODES_MAX 16

struct qa_map {
    struct qf_str name, kind, metric;
    bool short_keys;
    int64_t interval_ms;
    uint64_t created;
    uint64_t version, bytes; /* of the copy; 0: there is none yet */
    int64_t behind_ms;       /* the map may have had other rows for so long */
};

struct qa_maps {
    atomic_uint refs;
    struct qf_arena *arena;
    int64_t age_ms;             /* since the node knew that it had all, when it answered */
    int64_t heard_ms;           /* monotonic: when that was */
    const struct qa_map *items; /* by name */
    size_t count;
    const struct qf_str *nodes; /* base URLs; the first one has the copies */
    size_t node_count;
};

/* Read an answer that came at @now_ms. NULL and @err filled: QF_EPROTO, QF_ELIMIT. */
struct qa_maps *qa_maps_parse(struct qf_str json, int64_t now_ms, struct qf_err *err);
/* That there are none. */
struct qa_maps *qa_maps_none(int64_t now_ms);
struct qa_maps *qa_maps_ref(struct qa_maps *maps);  /* Accepts NULL. */
struct qa_maps *qa_maps_drop(struct qa_maps *maps); /* Accepts NULL, returns NULL. */

/* How old what they say of @map is at @now_ms. */
int64_t qa_maps_age(const struct qa_maps *maps, const struct qa_map *map, int64_t now_ms);

#endif
