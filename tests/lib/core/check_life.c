/* check_life.c - the same for the life of queries. */
#include "tests/lib/core/check.h"

#include "life_int.h"

static bool holds_a_place(const struct wc_life_query *query)
{
    switch ((enum wc_query_state)query->state) {
    case WC_QUERY_PLANNING:
    case WC_QUERY_ASKING:
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
    if (query->tenant >= life->limits.queries_max || !life->tenants[query->tenant].alive)
        return "a query of no tenant";
    if (stopped != (query->rc < 0))
        return "a query is stopped without a reason, or has one and goes on";
    if (stopped && life->timers.pos[slot])
        return "a stopped query has a deadline";
    if (query->replans > life->limits.replans_max)
        return "a query was planned too often";
    return NULL;
}

struct tenant_count {
    uint32_t alive, active, streams, queued;
};

/* What the queries of the tenant in slot @t say that it has. */
static struct tenant_count count_of(const struct wc_life *life, uint32_t t)
{
    struct tenant_count has = { 0 };

    for (uint32_t q = life->alive.head; q != WC_NONE; q = life->alive_links[q].next) {
        const struct wc_life_query *query = &life->queries[q];

        if (query->tenant != t)
            continue;
        has.alive++;
        has.active += query->place;
        has.queued += query->state == WC_QUERY_QUEUED;
        has.streams += query->state != WC_QUERY_QUEUED && !query->place;
    }
    return has;
}

static const char *check_tenant(const struct wc_life *life, uint32_t t)
{
    const struct wc_life_tenant *tenant = &life->tenants[t];
    struct tenant_count has = count_of(life, t);
    bool within = has.active < tenant->share.active_max;

    if (has.alive != tenant->alive || has.active != tenant->active ||
        has.streams != tenant->streams || has.queued != tenant->queued.count)
        return "what a tenant has is wrong";
    if (has.queued && has.streams >= tenant->share.streams_max)
        return "queries wait for the slow readers of their tenant";
    if (tenant->in_line != (has.queued && within))
        return "a tenant is in line beyond its share or without queries, or within it and out";
    for (uint32_t q = tenant->queued.head; q != WC_NONE; q = life->queued_links[q].next) {
        if (life->queries[q].tenant != t)
            return "a query is in line with another tenant";
    }
    return NULL;
}

static const char *check_line(const struct wc_life *life)
{
    uint32_t in_line = 0, tenants = 0;

    for (uint32_t t = 0; t < life->limits.queries_max; t++) {
        const char *why;

        if (!life->tenants[t].alive)
            continue;
        why = check_tenant(life, t);
        if (why)
            return why;
        tenants++;
        in_line += life->tenants[t].in_line;
    }
    if (in_line != life->line.count || life->line.count != life->stats.tenants)
        return "the gauges of the line are wrong";
    if (tenants + life->tenant_pool.count != life->limits.queries_max)
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
        return "a place is free although a tenant is in line";
    if (life->alive.count + life->query_pool.count != life->limits.queries_max)
        return "a query slot leaked";
    return check_line(life);
}
