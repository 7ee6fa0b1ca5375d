/* quarantine.h - which data has cost workers, and is not read for a while. Pure: no clock, no I/O.
 *
 * A worker that dies may have died of what it read. One death makes what it was reading suspect: the
 * next query may read it, but that is its last chance (wc_api_item_spec.deaths). After deaths_max
 * deaths without a good end in between it is in quarantine: no work with it is given out until
 * time_ms have passed or an operator lifts it. A run that comes to a good end clears a suspect.
 *
 *                 BLAME                          CLEAR    LIFT     time passes
 *     clean       suspect, or quarantined if     clean    clean
 *                 deaths_max is 1
 *     suspect     suspect, quarantined at        clean    clean    clean
 *                 deaths_max
 *     quarantined quarantined, anew              stays    clean    clean
 *
 * The table is bounded: when it is full, what would be forgotten first makes room, suspects before
 * what is in quarantine. Keys are hashes of names: two names with one hash share their fate. */
#ifndef WORKCOORD_QUARANTINE_H
#define WORKCOORD_QUARANTINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/duration.h"

struct wc_quarantine; /* Opaque. Allocates in wc_quarantine_new() and never again. */

/* Zero means the default in the comment. */
struct wc_quarantine_limits {
    uint32_t entries_max; /* 4096 */
    uint32_t deaths_max;  /* 2 */
    qf_time_ms time_ms;   /* 10 minutes: how long, and how long a suspect is remembered */
};

enum wc_suspicion { WC_CLEAN, WC_SUSPECT, WC_QUARANTINED };

struct wc_quarantine_entry {
    uint64_t key;
    enum wc_suspicion suspicion; /* of WC_CLEAN the rest is 0 */
    uint32_t deaths;
    uint64_t death;   /* the last one it was blamed for */
    qf_time_ms until; /* forgotten then */
    uint32_t slot;    /* its place, less than entries_max: for what the caller keeps beside it */
};

/* NULL if out of memory. */
struct wc_quarantine *wc_quarantine_new(const struct wc_quarantine_limits *limits);
/* Accepts NULL, returns NULL. */
struct wc_quarantine *wc_quarantine_free(struct wc_quarantine *quarantine);

/* A worker died while it read @key. @death numbers the deaths: one that is told again does not count
 * again. What it is now. */
struct wc_quarantine_entry wc_quarantine_blame(struct wc_quarantine *quarantine, uint64_t key,
                                               uint64_t death, qf_time_ms now);
/* It was read to a good end. */
void wc_quarantine_clear(struct wc_quarantine *quarantine, uint64_t key);
/* Somebody says it is good. False: it was neither suspect nor in quarantine. */
bool wc_quarantine_lift(struct wc_quarantine *quarantine, uint64_t key);

struct wc_quarantine_entry wc_quarantine_find(const struct wc_quarantine *quarantine, uint64_t key,
                                              qf_time_ms now);
/* Everything in the table, what is over included until it makes room; 0: nothing can be suspect. */
uint32_t wc_quarantine_count(const struct wc_quarantine *quarantine);
/* How many are in quarantine. Looks at all entries. */
uint32_t wc_quarantine_held(const struct wc_quarantine *quarantine, qf_time_ms now);
/* The entry in place @slot, less than entries_max; WC_CLEAN: there is none. */
struct wc_quarantine_entry wc_quarantine_at(const struct wc_quarantine *quarantine, uint32_t slot,
                                            qf_time_ms now);

#endif
