/* version_next.c - takes the place of queue/peer/version.c in promfabric_next: the release after this one. */
#include "queue/peer/peer.h"

const uint32_t qp_protocol_oldest = 1, qp_protocol_newest = 2;
