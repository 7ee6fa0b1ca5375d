/* world.c - one API core in a test. */
#include "tests/lib/core/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"

static void on_trace(void *ctx, const char *line, size_t len)
{
    struct world *world = ctx;
    const char *arrow;

    memcpy(world->trace, line, len);
    world->trace[len] = '\0';
    arrow = strstr(world->trace, " -> ");
    world->did = arrow ? arrow + 4 : "";
}

struct world *world_new(const struct wc_api_limits *limits)
{
    struct wc_api_limits standard = { .workers_max = 16, .queries_max = 8, .items_max = 16 };
    struct world *world = qf_xcalloc(1, sizeof(*world));

    world->wc = wc_api_new(limits ? limits : &standard);
    world->did = "";
    wc_api_trace(world->wc, on_trace, world);
    return world;
}

void world_freep(struct world **world)
{
    if (*world)
        wc_api_free((*world)->wc);
    free(*world);
}

void world_step(struct world *world, const struct wc_api_event *event)
{
    struct wc_api_event timed = *event;

    timed.now = world->now;
    timed.random = world->random;
    world->rc = wc_api_step(world->wc, &timed, &world->effects);
}

void world_tick(struct world *world, qf_time_ms now)
{
    struct wc_api_event event = { .type = WC_API_EV_TICK };

    world->now = now;
    world_step(world, &event);
}

void world_peer(struct world *world, enum wc_api_event_type type, uint64_t w, uint64_t s)
{
    struct wc_api_event event = { .type = type, .worker = { w }, .session = { s } };

    if (type == WC_API_EV_HEARTBEAT)
        event.sent_at = world->now;
    world_step(world, &event);
}

void world_status(struct world *world, uint64_t w, uint64_t s, bool accepting, bool draining)
{
    struct wc_api_event event = { .type = WC_API_EV_STATUS, .worker = { w }, .session = { s } };

    event.status.worker_key = core_worker_key(w);
    event.status.accepting = accepting;
    event.status.draining = draining;
    world_step(world, &event);
}

void world_up(struct world *world, uint64_t w)
{
    world_peer(world, WC_API_EV_DISCOVERED, w, 0);
    world_peer(world, WC_API_EV_CONNECTED, w, w);
    world_status(world, w, w, true, false);
}

static void begin(struct world *world, struct wc_api_event *event, uint64_t first, uint64_t home,
                  qf_time_ms expect_ms)
{
    struct wc_api_item_spec items[32];
    uint64_t affinity = core_affinity_to(home, WORLD_WORKERS);

    for (size_t i = 0; i < event->begin.count; i++)
        items[i] = (struct wc_api_item_spec){ { first + i }, { 1 }, affinity, expect_ms };
    event->begin.items = items;
    world_step(world, event);
}

void world_begin_expecting(struct world *world, uint64_t q, uint64_t first, size_t count,
                           uint64_t home, qf_time_ms expect_ms)
{
    struct wc_api_event event = { .type = WC_API_EV_QUERY_BEGIN, .query = { q } };

    event.begin.count = count;
    begin(world, &event, first, home, expect_ms);
}

void world_begin_share(struct world *world, uint64_t q, uint64_t first, size_t count,
                       struct wc_tenant_id tenant, uint32_t share)
{
    struct wc_api_event event = { .type = WC_API_EV_QUERY_BEGIN, .query = { q } };

    event.begin.count = count;
    event.begin.tenant = tenant;
    event.begin.sent_max = share;
    begin(world, &event, first, 1, 0);
}

void world_begin_owned(struct world *world, uint64_t q, uint64_t first, size_t count, uint64_t home,
                       unsigned owners)
{
    struct wc_api_event event = { .type = WC_API_EV_QUERY_BEGIN, .query = { q } };
    struct wc_api_item_spec items[32];

    for (size_t i = 0; i < count; i++) {
        items[i] = (struct wc_api_item_spec){ { first + i },
                                              { 1 },
                                              core_affinity_to(home, WORLD_WORKERS) };
        core_own(&items[i], owners);
    }
    event.begin.items = items;
    event.begin.count = count;
    world_step(world, &event);
}

void world_begin(struct world *world, uint64_t q, uint64_t first, size_t count, uint64_t home)
{
    world_begin_expecting(world, q, first, count, home, 0);
}

void world_cancel(struct world *world, uint64_t q)
{
    struct wc_api_event event = { .type = WC_API_EV_QUERY_CANCEL, .query = { q } };

    world_step(world, &event);
}

void world_say(struct world *world, enum wc_api_event_type type, uint64_t s, uint64_t k, uint32_t a)
{
    struct wc_api_event event = {
        .type = type,
        .worker = { s },
        .session = { s },
        .work = { k },
        .attempt = a,
    };

    if (type == WC_API_EV_READY)
        event.checksum.low = k;
    world_step(world, &event);
}

void world_failed(struct world *world, uint64_t s, uint64_t k, uint32_t a, qf_rc rc, bool retryable)
{
    struct wc_api_event event = {
        .type = WC_API_EV_FAILED,
        .worker = { s },
        .session = { s },
        .work = { k },
        .attempt = a,
        .failure = { rc, retryable },
    };

    world_step(world, &event);
}

void world_fetched(struct world *world, uint64_t k, uint32_t a, uint64_t checksum)
{
    struct wc_api_event event = { .type = WC_API_EV_FETCHED, .work = { k }, .attempt = a };

    event.checksum.low = checksum;
    world_step(world, &event);
}

void world_fetch_failed(struct world *world, uint64_t k, uint32_t a, enum wc_fetch_error error)
{
    struct wc_api_event event = { .type = WC_API_EV_FETCH_FAILED, .work = { k }, .attempt = a };

    event.fetch_error = error;
    world_step(world, &event);
}

void world_finish(struct world *world, uint64_t s, uint64_t k, uint32_t a)
{
    world_say(world, WC_API_EV_ACCEPTED, s, k, a);
    world_say(world, WC_API_EV_READY, s, k, a);
    world_fetched(world, k, a, k);
}

enum wc_item_state world_item(struct world *world, uint64_t k)
{
    struct wc_api_item_view view;

    return wc_api_item(world->wc, (struct wc_work_id){ k }, &view) ? view.state : WC_ITEM__COUNT;
}

const char *world_item_text(struct world *world, uint64_t k)
{
    static char text[64];
    struct wc_api_item_view view;

    if (!wc_api_item(world->wc, (struct wc_work_id){ k }, &view))
        return "gone";
    if (view.worker.v)
        snprintf(text, sizeof(text), "%s w%" PRIu64 " #%" PRIu32, wc_item_state_name(view.state),
                 view.worker.v, view.attempt);
    else
        snprintf(text, sizeof(text), "%s #%" PRIu32, wc_item_state_name(view.state), view.attempt);
    return text;
}
