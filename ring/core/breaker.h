/* breaker.h - a circuit breaker: whoever did not answer several times in a row is left alone for a while. Pure.
 *
 *   closed --RG_BREAKER_MISSES in a row--> open for a while --over--> asked again: an answer closes it, another miss
 *   opens it for twice as long, at most RG_BREAKER_MOST_MS
 *
 * An answer is any: one that refuses, too. */
#ifndef RING_CORE_BREAKER_H
#define RING_CORE_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

enum { RG_BREAKER_MISSES = 3, RG_BREAKER_FIRST_MS = 1000, RG_BREAKER_MOST_MS = 16000 };

struct rg_breaker { /* zero: closed */
    unsigned misses;
    int64_t open_ms; /* how long it was opened last */
    int64_t until_ms;
};

static inline bool rg_breaker_open(const struct rg_breaker *breaker, int64_t now_ms)
{
    return now_ms < breaker->until_ms;
}

/* True: it is another one than before, closed or open. */
static inline bool rg_breaker_hear(struct rg_breaker *breaker, bool answered, int64_t now_ms)
{
    bool was_open = breaker->open_ms != 0;

    if (answered) {
        *breaker = (struct rg_breaker){ 0 };
        return was_open;
    }
    /* Several that were asked at once miss together: that is one miss more, not several. */
    if (rg_breaker_open(breaker, now_ms) || ++breaker->misses < RG_BREAKER_MISSES)
        return false;
    breaker->open_ms = was_open ? 2 * breaker->open_ms : RG_BREAKER_FIRST_MS;
    if (breaker->open_ms > RG_BREAKER_MOST_MS)
        breaker->open_ms = RG_BREAKER_MOST_MS;
    breaker->until_ms = now_ms + breaker->open_ms;
    return !was_open;
}

#endif
