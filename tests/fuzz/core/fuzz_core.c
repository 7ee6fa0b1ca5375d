/* fuzz_core.c - any sequence of events: no crash, no undefined behaviour, invariants in every
 * state.
 *
 * The first byte chooses the machine; then four bytes make an event of small numbers, so that they
 * meet. */
#include "tests/fuzz/core/fuzz_core.h"

#include <stdio.h>
#include <stdlib.h>

#include "api_int.h"
#include "life_int.h"
#include "tests/lib/core/check.h"
#include "tests/lib/core/coretest.h"
#include "worker_int.h"

enum { EVENTS_MAX = 4000 };

static void require(const char *broken)
{
    if (!broken)
        return;
    fprintf(stderr, "invariant broken: %s\n", broken);
    abort();
}

static void api_event(const uint8_t *bytes, struct wc_api_event *event,
                      struct wc_api_item_spec *items)
{
    event->type = (enum wc_api_event_type)(bytes[0] % WC_API_EV__COUNT);
    event->worker.v = 1 + bytes[1] % 4;
    event->session.v = bytes[1] / 4 % 8;
    event->query.v = 1 + bytes[2] % 4;
    event->work.v = 1 + bytes[2] % 12;
    event->attempt = bytes[3] % 8;
    event->random = bytes[3];
    if (event->type == WC_API_EV_STATUS) {
        event->status.worker_key = core_worker_key(event->worker.v);
        event->status.accepting = bytes[3] & 1;
        event->status.draining = bytes[3] & 2;
    } else if (event->type == WC_API_EV_REJECTED) {
        event->reject = (enum wc_reject)(bytes[3] % WC_REJECT__COUNT);
    } else if (event->type == WC_API_EV_FETCH_FAILED) {
        event->fetch_error = (enum wc_fetch_error)(bytes[3] / 8 % WC_FETCH__COUNT);
    } else if (event->type == WC_API_EV_FAILED) {
        event->failure.rc = -(qf_rc)(bytes[3] % 19);
        event->failure.retryable = bytes[3] & 128;
    } else if (event->type == WC_API_EV_READY || event->type == WC_API_EV_FETCHED) {
        event->checksum.low = event->work.v + (bytes[3] & 128);
    } else if (event->type == WC_API_EV_HEARTBEAT) {
        event->sent_at = event->now - bytes[3];
    } else if (event->type == WC_API_EV_QUERY_CANCEL) {
        event->rc = -(qf_rc)(bytes[3] % 19);
    } else if (event->type == WC_API_EV_QUERY_BEGIN) {
        event->begin.items = items;
        event->begin.count = bytes[3] % 6;
        event->begin.tenant.v = 1 + bytes[1] % 2;
        event->begin.sent_max = bytes[1] / 4 % 3;
        for (size_t i = 0; i < event->begin.count; i++) {
            items[i] = (struct wc_api_item_spec){
                { 1 + (bytes[2] + i) % 12 }, { 1 }, bytes[2], bytes[3] & 32 ? 20 : 0
            };
            core_own(&items[i], bytes[1] >> 4);
        }
    }
}

static void fuzz_api(const uint8_t *bytes, size_t size)
{
    struct wc_api_limits limits = {
        .workers_max = 3,
        .queries_max = 3,
        .items_max = 8,
        .attempts_max = 3,
        .heartbeat_ms = 100,
        .dial_min_ms = 10,
        .dial_max_ms = 100,
        .retry_delay_ms = size & 1 ? 20 : 0,
        .worker_wait_ms = size & 2 ? 200 : 0,
        .hedge_after = size & 4 ? 1.5 : 0,
        .hedge_delay_ms = 10,
    };
    struct wc_api *wc = wc_api_new(&limits);
    qf_time_ms now = 0;

    for (int i = 0; i < EVENTS_MAX && size >= 4; i++, bytes += 4, size -= 4) {
        struct wc_api_event event = { .now = now += bytes[0] / 16 * 4 };
        struct wc_api_item_spec items[8];
        struct wc_api_effects effects;

        api_event(bytes, &event, items);
        if (wc_api_step(wc, &event, &effects) != QF_OK && effects.count)
            require("a refused step has effects");
        require(core_check_api(wc));
    }
    wc_api_free(wc);
}

static void worker_event(const uint8_t *bytes, struct wc_worker_event *event)
{
    event->type = (enum wc_worker_event_type)(bytes[0] % WC_WORKER_EV__COUNT);
    event->session.v = 1 + bytes[1] % 4;
    event->work.v = 1 + bytes[2] % 8;
    event->attempt = bytes[1] / 64;
    event->run.v = bytes[3];
    if (event->type == WC_WORKER_EV_ASSIGN) {
        event->assign.query.v = bytes[3] % 4;
        event->assign.bytes = bytes[3];
        event->assign.deadline = bytes[3] & 64 ? event->now + bytes[3] : 0;
    } else if (event->type == WC_WORKER_EV_RUN_FAILED) {
        event->failure.retryable = bytes[2] & 1;
    } else if (event->type == WC_WORKER_EV_ACCEPTING) {
        event->accepting = bytes[3] & 3;
    } else if (event->type == WC_WORKER_EV_DRAIN) {
        event->drain_deadline = bytes[3] & 1 ? event->now + bytes[3] : QF_TIME_NEVER;
    }
}

static void fuzz_worker(const uint8_t *bytes, size_t size)
{
    struct wc_worker_limits limits = {
        .sessions_max = 3,
        .runs_max = 6,
        .spec_bytes_max = 1000,
        .slots = 1 + (uint32_t)(size & 1),
        .heartbeat_ms = 100,
        .artifact_ms = 500,
        .artifact_ack_ms = 50,
    };
    struct wc_worker *wc = wc_worker_new(&limits);
    qf_time_ms now = 0;

    for (int i = 0; i < EVENTS_MAX && size >= 4; i++, bytes += 4, size -= 4) {
        struct wc_worker_event event = { .now = now += bytes[0] / 16 * 2 };
        struct wc_worker_effects effects;

        worker_event(bytes, &event);
        if (wc_worker_step(wc, &event, &effects) != QF_OK && effects.count)
            require("a refused step has effects");
        require(core_check_worker(wc));
    }
    wc_worker_free(wc);
}

static void fuzz_life(const uint8_t *bytes, size_t size)
{
    struct wc_life_limits limits = { .queries_max = 5, .active_max = 2, .tenant_queue_max = 2 };
    struct wc_life *life = wc_life_new(&limits);
    qf_time_ms now = 0;

    for (int i = 0; i < EVENTS_MAX && size >= 4; i++, bytes += 4, size -= 4) {
        struct wc_life_event event = { .now = now += bytes[0] / 16 * 4 };
        struct wc_life_effects effects;

        event.type = (enum wc_life_event_type)(bytes[0] % WC_LIFE_EV__COUNT);
        /* A drain is the end of all that is worth looking at. */
        if (event.type >= WC_LIFE_EV_DRAIN && bytes[3] < 250)
            event.type = WC_LIFE_EV_SUBMIT;
        event.query.v = 1 + bytes[1] % 8;
        if (event.type == WC_LIFE_EV_SUBMIT) {
            event.submit.tenant.v = 1 + bytes[2] % 3;
            event.submit.deadline = bytes[3] & 1 ? now + bytes[3] : QF_TIME_NEVER;
            event.submit.share =
                (struct wc_tenant_share){ bytes[3] / 2 % 3, bytes[3] / 8 % 4, bytes[3] / 32 % 3 };
        } else {
            event.rc = bytes[3] & 64 ? QF_ENOTFOUND : -(qf_rc)(bytes[3] % 19);
        }
        if (wc_life_step(life, &event, &effects) != QF_OK && effects.count)
            require("a refused step has effects");
        require(core_check_life(life));
    }
    wc_life_free(life);
}

void fuzz_core(const uint8_t *bytes, size_t size)
{
    if (!size)
        return;
    if (bytes[0] % 3 == 0)
        fuzz_api(bytes + 1, size - 1);
    else if (bytes[0] % 3 == 1)
        fuzz_worker(bytes + 1, size - 1);
    else
        fuzz_life(bytes + 1, size - 1);
}
