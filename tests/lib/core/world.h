/* world.h - one API core in a test: short ways to feed events, and the last step as text. */
#ifndef TESTS_LIB_CORE_WORLD_H
#define TESTS_LIB_CORE_WORLD_H

#include "tests/lib/core/coretest.h"
#include "workcoord/api.h"

enum { WORLD_WORKERS = 4 }; /* among which core_affinity_to() places */

struct world {
    struct wc_api *wc;
    qf_time_ms now;
    uint64_t random;
    qf_rc rc;                      /* of the last step */
    struct wc_api_effects effects; /* of the last step */
    char trace[WC_TRACE_MAX + 64];
    const char *did; /* the effects in trace, "" if there were none */
};

/* Small tables, no delays; @limits NULL for that. */
struct world *world_new(const struct wc_api_limits *limits);
void world_freep(struct world **world);

void world_step(struct world *world, const struct wc_api_event *event); /* now, random filled in */
void world_tick(struct world *world, qf_time_ms now);
/* DISCOVERED, REMOVED, CONNECTED, DISCONNECTED, HEARTBEAT (sent now) */
void world_peer(struct world *world, enum wc_api_event_type type, uint64_t w, uint64_t s);
void world_status(struct world *world, uint64_t w, uint64_t s, bool accepting, bool draining);
/* Worker @w discovered, connected as session @w and accepting. */
void world_up(struct world *world, uint64_t w);
/* One query @q whose items are works first..first+count-1, all leading to worker @home. */
void world_begin(struct world *world, uint64_t q, uint64_t first, size_t count, uint64_t home);
/* The same, of @tenant, which may have @share items with workers at once. */
void world_begin_share(struct world *world, uint64_t q, uint64_t first, size_t count,
                       struct wc_tenant_id tenant, uint32_t share);
/* The same, of items that are expected to take @expect_ms. */
void world_begin_expecting(struct world *world, uint64_t q, uint64_t first, size_t count,
                           uint64_t home, qf_time_ms expect_ms);
/* The same, of items that the workers of the bits of @owners keep: 1 << w for worker w. */
void world_begin_owned(struct world *world, uint64_t q, uint64_t first, size_t count, uint64_t home,
                       unsigned owners);
void world_cancel(struct world *world, uint64_t q);
/* ACCEPTED, REJECTED, READY (checksum low = work) on session @s of worker @s. */
void world_say(struct world *world, enum wc_api_event_type type, uint64_t s, uint64_t k,
               uint32_t a);
void world_failed(struct world *world, uint64_t s, uint64_t k, uint32_t a, qf_rc rc,
                  bool retryable);
void world_fetched(struct world *world, uint64_t k, uint32_t a, uint64_t checksum);
void world_fetch_failed(struct world *world, uint64_t k, uint32_t a, enum wc_fetch_error error);
/* Take a pending or assigned item of one attempt @a on worker @s to fetched. */
void world_finish(struct world *world, uint64_t s, uint64_t k, uint32_t a);

enum wc_item_state world_item(struct world *world, uint64_t k);
const char *world_item_text(struct world *world, uint64_t k); /* "accepted w1 #2", "gone" */

#endif
