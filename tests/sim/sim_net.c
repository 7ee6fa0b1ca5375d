/* sim_net.c - streams that delay, break, fall silent and repeat themselves; and the faults. */
#include "tests/sim/sim_int.h"

/* In order per stream and direction, as gRPC delivers; a repeated copy comes whenever it likes. */
static void send(struct sim *sim, uint64_t id, int direction, struct sim_event *event)
{
    struct sim_session *session = &sim->sessions.items[id - 1];
    qf_time_ms at = QF_MAX(sim->now + sim_delay(sim), session->arrival[direction]);

    if (!session->open && !event->closing)
        return;
    session->arrival[direction] = at;
    event->kind = direction ? SIM_TO_WORKER : SIM_TO_API;
    event->api = session->api;
    event->worker = session->worker;
    event->session = id;
    event->api_life = sim->apis[session->api].life_number;
    event->worker_life = sim->workers[session->worker].life;
    sim_post(sim, at - sim->now, event);
    if (!event->closing && sim_chance(sim, 0.01)) {
        sim->result.repeated++;
        sim_post(sim, at - sim->now + (qf_time_ms)sim_below(sim, 300), event);
    }
}

void sim_send_api(struct sim *sim, uint64_t id, const struct wc_api_event *api_event)
{
    struct sim_event event = { .api_event = *api_event };

    event.api_event.worker.v = sim->sessions.items[id - 1].worker + 1;
    event.api_event.session.v = id;
    event.closing = api_event->type == WC_API_EV_DISCONNECTED;
    send(sim, id, 0, &event);
}

void sim_send_worker(struct sim *sim, uint64_t id, const struct wc_worker_event *worker_event)
{
    struct sim_event event = { .worker_event = *worker_event };

    event.worker_event.session.v = id;
    event.closing = worker_event->type == WC_WORKER_EV_SESSION_CLOSED;
    send(sim, id, 1, &event);
}

void sim_close(struct sim *sim, uint64_t id, bool tell_api, bool tell_worker)
{
    struct sim_session *session = &sim->sessions.items[id - 1];
    struct wc_api_event to_api = { .type = WC_API_EV_DISCONNECTED, .died = true };
    struct wc_worker_event to_worker = { .type = WC_WORKER_EV_SESSION_CLOSED };

    if (!session->open)
        return;
    session->open = false;
    session->lossy = true;
    /* Nobody hears the end of a stream that is half open: heartbeats must find out. */
    if (tell_api && !session->deaf[0])
        sim_send_api(sim, id, &to_api);
    if (tell_worker && !session->deaf[1])
        sim_send_worker(sim, id, &to_worker);
}

static uint64_t any_open_session(struct sim *sim)
{
    for (int tries = 0; sim->sessions.count && tries < 8; tries++) {
        /* The youngest are the likeliest to be open. */
        uint64_t back = sim_below(sim, QF_MIN(sim->sessions.count, (size_t)64));
        uint64_t id = sim->sessions.count - back;

        if (sim->sessions.items[id - 1].open)
            return id;
    }
    return 0;
}

static void break_stream(struct sim *sim)
{
    uint64_t id = any_open_session(sim);

    if (!id)
        return;
    sim->result.breaks++;
    sim_close(sim, id, true, true);
}

static void half_open(struct sim *sim)
{
    uint64_t id = any_open_session(sim);
    uint64_t which = 1 + sim_below(sim, 3);

    if (!id)
        return;
    sim->result.half_open++;
    sim->sessions.items[id - 1].deaf[0] = which & 1;
    sim->sessions.items[id - 1].deaf[1] = which & 2;
}

static void evict(struct sim *sim, uint32_t worker)
{
    struct sim_worker *node = &sim->workers[worker];

    for (size_t i = 0; i < node->runs.count; i++) {
        struct wc_worker_event event = { .type = WC_WORKER_EV_EVICTED, .run = { i + 1 } };

        if (!node->runs.items[i].artifact)
            continue;
        node->runs.items[i].artifact = false;
        sim->result.evicted++;
        sim_worker_step(sim, worker, &event);
        return;
    }
}

static void crash_api(struct sim *sim)
{
    uint32_t api = (uint32_t)sim_below(sim, sim->api_count);

    if (sim->api_count > 1 && sim->apis[api].core && sim_chance(sim, 0.2)) {
        struct sim_event start = { .kind = SIM_START_API, .api = api };

        sim->result.crashes++;
        sim_api_stop(sim, api);
        sim_post(sim, (qf_time_ms)sim_below(sim, 3000), &start);
    }
}

static void remove_or_discover(struct sim *sim, uint32_t worker)
{
    uint32_t api = (uint32_t)sim_below(sim, sim->api_count);
    struct wc_api_event event = { .type = WC_API_EV_REMOVED, .worker = { worker + 1 } };
    struct sim_event again = { .kind = SIM_TO_API, .api = api, .closing = true };

    if (!sim->apis[api].core)
        return;
    sim_api_step(sim, api, &event);
    again.api_event =
        (struct wc_api_event){ .type = WC_API_EV_DISCOVERED, .worker = { worker + 1 } };
    again.api_life = sim->apis[api].life_number;
    again.worker_life = sim->workers[worker].life;
    sim_post(sim, (qf_time_ms)sim_below(sim, 2000), &again);
}

/* One fault of the many. */
void sim_chaos(struct sim *sim)
{
    uint32_t worker = (uint32_t)sim_below(sim, sim->worker_count);
    struct sim_worker *node = &sim->workers[worker];
    struct wc_worker_event event = { .type = WC_WORKER_EV_DRAIN };
    uint64_t fault = sim_below(sim, 10);

    if (fault <= 1) {
        break_stream(sim);
    } else if (fault == 2) {
        half_open(sim);
    } else if (fault == 3) {
        crash_api(sim);
    } else if (fault == 4) {
        remove_or_discover(sim, worker);
    } else if (node->core && fault == 5) {
        sim->result.crashes++;
        if (sim_chance(sim, 0.2))
            sim_worker_end(sim, worker);
        else
            sim_worker_stop(sim, worker, sim_chance(sim, 0.3));
    } else if (node->core && fault == 6) {
        sim->result.drains++;
        event.drain_deadline = sim_chance(sim, 0.5) ? sim->now + 2000 : QF_TIME_NEVER;
        sim_worker_step(sim, worker, &event);
    } else if (node->core && fault == 7) {
        event.type = WC_WORKER_EV_ACCEPTING;
        event.accepting = sim_chance(sim, 0.5);
        sim_worker_step(sim, worker, &event);
    } else if (node->core && fault == 8) {
        evict(sim, worker);
    } else {
        node->slow = sim_chance(sim, 0.3);
    }
}
