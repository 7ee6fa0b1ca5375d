/* door.h - tenants that are over their rates wait outside.
 *
 * Leaders decide about rates, when a request is decoded and on its way. A tenant that is told to wait
 * sends on nevertheless, often ten times as much: until the time is over its requests are turned away
 * unread, so that decoding them takes nothing from others.
 *
 * Tenants are told apart by a hash of 64 bits, without a lock: two of one place may forget each other, which
 * costs a look at a request, never a refusal. Any thread. */
#ifndef INGEST_ACCEPT_DOOR_H
#define INGEST_ACCEPT_DOOR_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/pure/slice.h"

enum { IN_DOOR_PLACES = 4096 };
/* No tenant waits longer without being looked at again. */
#define IN_DOOR_WAIT_MS_MAX INT64_C(1000)

/* A zeroed one is open to all. */
struct in_door {
    struct {
        atomic_uint_fast64_t tenant;
        atomic_int_fast64_t until_ms;
    } places[IN_DOOR_PLACES];
};

/* @tenant was told at @mono_ms to wait for @wait_ms. */
void in_door_shut(struct in_door *door, struct qf_str tenant, int64_t mono_ms, int64_t wait_ms);
/* How long @tenant has to wait still; 0: it may come in. */
int64_t in_door_wait(const struct in_door *door, struct qf_str tenant, int64_t mono_ms);

#endif
