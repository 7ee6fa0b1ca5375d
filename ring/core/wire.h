/* wire.h - how keepers, workers, APIs and sealers follow the ring: a request to any ingest node.
 *
 *     GET /v1/ring                 the ring as this node knows it
 *     GET /v1/ring?from=EPOCH      the same, as soon as its epoch is above EPOCH, or after `wait`
 *                 &wait=20s        at most a minute
 *
 * The answer is 200 with what rg_ring_encode() writes (application/octet-stream): rg_ring_decode() reads it, and
 * nodes[N].url says where node N is asked. A ring that is not founded yet has the epoch 0. Whoever is answered
 * because `wait` was over compares what it got by `applied`: nodes go down, come up and move to other URLs
 * without a new epoch. 503: this node cannot say, ask another one; 429: too many wait here. With keys it takes one
 * for all tenants.
 *
 * A ring that is behind does no harm: keepers refuse what was counted in an older epoch than they know, and tell
 * so; whoever hears that asks for the ring again. It never goes back but with another ingest node: keep the one with
 * the greater `applied`. */
#ifndef RING_CORE_WIRE_H
#define RING_CORE_WIRE_H

#define RG_RING_PATH "/v1/ring"
#define RG_RING_TYPE "application/octet-stream"

enum {
    RG_RING_WAIT_MS = 20 * 1000,     /* unless `wait` says otherwise */
    RG_RING_WAIT_MAX_MS = 60 * 1000, /* a client waits a few seconds longer */
    RG_RING_BYTES_MAX = 256 << 10    /* of an answer */
};

#endif
