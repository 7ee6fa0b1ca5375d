/* check_life.c - the same for the life of queries. */
#include "tests/lib/core/check.h"

#include "life_int.h"

static bool holds_a_place(const struct wc_life_query *query)
{
    switch ((enum wc_query_state)query->state) {
    case WC_QUERY_PLANNING:
    case WC_QUERY_WORKING:
    case WC_QUERY_ANSWERING:
    case WC_QUERY_DROPPING:
        return true;
    case WC_QUERY_STOPPING:
        return query->place;
    case WC_QUERY_QUEUED:
    case WC_QUERY_PAUSED:
    case WC_QUERY_STREAMING:
    case WC_QUERY_ENDED:
    case WC_QUERY__COUNT:
        break;
    }
    return false;
}

static const char *check_query(const struct wc_life *life, const struct wc_life_query *query,
                               uint32_t slot)
{
    bool stopped = query->state == WC_QUERY_STOPPING || query->state == WC_QUERY_DROPPING;

    if (query->state >= WC_QUERY_ENDED)
        return "a query that ended is alive";
    if (query->place != holds_a_place(query))
        return "a query holds a place in the wrong state";
    if ((query->state == WC_QUERY_QUEUED) != (query->tenant != WC_NONE))
        return "a query is in line in the wrong state";
    if (stopped != (query->rc < 0))
        return "a query is stopped without a reason, or has one and goes on";
    if (stopped && life->timers.pos[slot])
        return "a stopped query has a deadline";
    if (query->replans > life->limits.replans_max)
        return "a query was planned too often";
    return NULL;
}

static const char *check_line(const struct wc_life *life)
{
    uint32_t queued = 0;

    for (uint32_t t = life->line.head; t != WC_NONE; t = life->line_links[t].next) {
        const struct wc_life_tenant *tenant = &life->tenants[t];

        if (!tenant->queued.count)
            return "a tenant without queued queries is in line";
        if (tenant->queued.count > life->limits.tenant_queue_max)
            return "a tenant has too many queued queries";
        for (uint32_t q = tenant->queued.head; q != WC_NONE; q = life->queued_links[q].next) {
            if (life->queries[q].tenant != t)
                return "a query is in line with another tenant";
            queued++;
        }
    }
    if (queued != life->stats.queries[WC_QUERY_QUEUED] || life->line.count != life->stats.tenants)
        return "the gauges of the line are wrong";
    if (life->line.count + life->tenant_pool.count != life->limits.queries_max)
        return "a tenant slot leaked";
    return NULL;
}

const char *core_check_life(const struct wc_life *life)
{
    uint32_t counts[WC_QUERY__COUNT] = { 0 }, active = 0;

    for (uint32_t q = life->alive.head; q != WC_NONE; q = life->alive_links[q].next) {
        const char *why = check_query(life, &life->queries[q], q);

        if (why)
            return why;
        counts[life->queries[q].state]++;
        active += life->queries[q].place;
    }
    for (int state = 0; state < WC_QUERY__COUNT; state++) {
        if (counts[state] != life->stats.queries[state])
            return "the gauges of queries are wrong";
    }
    if (active != life->stats.active || life->alive.count != life->stats.alive)
        return "the gauges of places are wrong";
    if (active > life->limits.active_max)
        return "more queries are active than may be";
    if (active < life->limits.active_max && life->line.count)
        return "a place is free although a query is queued";
    if (life->alive.count + life->query_pool.count != life->limits.queries_max)
        return "a query slot leaked";
    return check_line(life);
}
