/* show.h - a ring as JSON, for operators. Pure. */
#ifndef RING_STATE_SHOW_H
#define RING_STATE_SHOW_H

#include "ring/core/ring.h"

/* {"nodes":[...],"ring":{...}}: all nodes, and how the ring is at @now_ms. A node that has not answered for @dead_ms is
 * counted as dead. */
void rg_show_nodes(struct qf_strbuf *buf, const struct rg_ring *ring, int64_t now_ms,
                   int64_t dead_ms);
/* One of them. */
void rg_show_node(struct qf_strbuf *buf, const struct rg_ring *ring, uint8_t node);
/* {"migrations":[...]}, the latest last. */
void rg_show_changes(struct qf_strbuf *buf, const struct rg_ring *ring, int64_t now_ms);
/* One of them. */
void rg_show_change(struct qf_strbuf *buf, const struct rg_ring *ring,
                    const struct rg_change *change, int64_t now_ms);

#endif
