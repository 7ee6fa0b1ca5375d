/* map.h - copies of state maps from ingest nodes: one of a version becomes a local file, and stays as long as there is room.
 *
 * GET /api/v1/state/maps/NAME/snapshot?version=V (docs/maps.md) is asked of the nodes in their order, as for heads (head.h). The sum
 * that the node tells must be that of the bytes: LMDB follows what stands in a file. A copy that no node has any more is QF_EGONE: the
 * query must be planned anew, with a newer one. */
#ifndef QUERYWORKER_CACHE_MAP_H
#define QUERYWORKER_CACHE_MAP_H

#include "proto/codec/control.h"
#include "queryworker/cache/download.h"

/* One copy, with who may be asked. */
struct qw_map_ask *qw_map_ask_new(struct qf_str tenant, const struct pb_maps *maps,
                                  const struct pb_map *map);
void qw_map_ask_free(struct qw_map_ask *ask); /* Accepts NULL. */
/* Which copy it is, in bytes: equal ones say the same, whoever they are from. */
struct qf_str qw_map_ask_text(const struct qw_map_ask *ask);

/* Fetch @download->map into the file @temp and rename it. QF_EGONE; QF_EUNAVAILABLE; QF_EDENIED; QF_ELIMIT: much more than was
 * announced; those of the disk; QF_ECANCELED. */
QF_MUST_CHECK qf_rc qw_map_fetch(struct qw_download *download, const char *temp);

#endif
