/* version.c - which versions of the control protocol this build speaks. A file of its own: a test links the
 * program with another one, and runs both in one fabric. */
#include "proto/codec/control.h"

const uint32_t pb_protocol_oldest = PB_PROTOCOL_VERSION - 1;
const uint32_t pb_protocol_newest = PB_PROTOCOL_VERSION;
