/* version.c - which versions of the protocol this build speaks. A file of its own: a test links the
 * program with another one, and runs both in one cluster. */
#include "queue/peer/peer.h"

const uint32_t qp_protocol_oldest = 1, qp_protocol_newest = 1;
