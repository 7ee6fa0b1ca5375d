/* names.h - the blobs that the manifests of all partitions name, by slot: asked for anew when they are a second old.
 *
 * They come from the partitions' leaders, each of which confirms itself. Somebody who asks in between gets what was listed
 * last: what was named since then was put to old and new owners of its slot, and what was removed since then is asked for
 * in vain and once more. Blocks; any thread. */
#ifndef INGEST_RING_NAMES_H
#define INGEST_RING_NAMES_H

#include "queue/node/node.h"
#include "ring/coord/hands.h"
#include "ring/wire/listing.h"

struct in_names;

struct in_names *in_names_new(struct qn_node *node);
struct in_names *in_names_free(struct in_names *names); /* Accepts NULL, returns NULL. */

/* The names of @slot, and the least epoch that a partition had adopted. */
QF_MUST_CHECK qf_rc in_names_list(struct in_names *names, uint32_t slot, struct rg_listing *listing,
                                  struct qf_err *err);
/* Let @partition adopt the epoch of @ring, if it has not. */
QF_MUST_CHECK qf_rc in_names_adopt(struct in_names *names, uint32_t partition,
                                   const struct rg_ring *ring, struct qf_err *err);

#endif
