/* budget.c - one disk budget for the spool and the segment cache. */
#include "queryworker/budget/budget.h"

#include "base/pure/macros.h"

struct state {
    struct qw_budget_usage usage;
    enum qw_budget_user user;
    uint64_t limit, high, low, floor;
    uint64_t need;
};

static uint64_t percent_of(uint64_t bytes, unsigned percent)
{
    return bytes / 100 * percent + bytes % 100 * percent / 100;
}

/* Sizes are what a peer says: sums end at the largest number, they do not begin again. */
static uint64_t plus(uint64_t a, uint64_t b)
{
    return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

uint64_t qw_budget_limit(const struct qw_budget_limits *limits, const struct qw_budget_usage *usage)
{
    uint64_t used = plus(usage->cache_bytes, usage->spool_bytes);

    return QF_MIN(limits->limit_bytes, plus(used, usage->disk_free_bytes));
}

static uint64_t total(const struct state *s)
{
    return plus(plus(s->usage.cache_bytes, s->usage.spool_bytes), s->need);
}

/* Do cached segments leave the floor alone? */
static bool floor_kept(const struct state *s)
{
    uint64_t cache = plus(s->usage.cache_bytes, s->user == QW_BUDGET_CACHE ? s->need : 0);
    uint64_t spool = plus(s->usage.spool_bytes, s->user == QW_BUDGET_SPOOL ? s->need : 0);

    return cache == 0 || plus(cache, QF_MAX(spool, s->floor)) <= s->limit;
}

static bool evict_until(struct state *s, enum qw_eviction kind, uint64_t target,
                        qw_budget_evict_fn *evict, void *ctx)
{
    uint64_t *pool = kind == QW_EVICT_CACHE ? &s->usage.cache_bytes : &s->usage.spool_bytes;

    while (total(s) > target || (kind == QW_EVICT_CACHE && !floor_kept(s))) {
        uint64_t freed = evict(ctx, kind);

        if (!freed)
            return false;
        *pool -= QF_MIN(*pool, freed);
    }
    return true;
}

bool qw_budget_make_room(const struct qw_budget_limits *limits, struct qw_budget_usage usage,
                         enum qw_budget_user user, uint64_t need, qw_budget_evict_fn *evict,
                         void *ctx)
{
    struct state s = { .usage = usage, .user = user, .need = need };

    s.limit = qw_budget_limit(limits, &usage);
    s.floor = QF_MIN(limits->floor_bytes, s.limit / 2);
    s.high = percent_of(s.limit, limits->high_percent);
    s.low = percent_of(s.limit, limits->low_percent);
    if (need > s.limit)
        return false; /* whatever goes for it, it will not fit */
    if (total(&s) > s.high || !floor_kept(&s)) {
        bool done = evict_until(&s, QW_EVICT_CACHE, s.low, evict, ctx) ||
                    evict_until(&s, QW_EVICT_ACKED, s.low, evict, ctx) ||
                    evict_until(&s, QW_EVICT_EXPIRED, s.low, evict, ctx);

        if (!done && user == QW_BUDGET_SPOOL)
            (void)evict_until(&s, QW_EVICT_UNACKED, s.high, evict, ctx);
    }
    return total(&s) <= s.limit && (user == QW_BUDGET_SPOOL || floor_kept(&s));
}
