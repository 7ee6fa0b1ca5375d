/* version_next.c - takes the place of queue/peer/version.c and proto/codec/version.c in promfabric_next: the
 * release after this one. */
#include "proto/codec/control.h"
#include "queue/peer/peer.h"

const uint32_t qp_protocol_oldest = 1, qp_protocol_newest = 2;
const uint32_t pb_protocol_oldest = PB_PROTOCOL_VERSION;
const uint32_t pb_protocol_newest = PB_PROTOCOL_VERSION + 1;
