/* clock.c - comparing, joining, and what of several values stays. */
#include "ring/core/clock.h"

#include <string.h>

static uint64_t counter_of(const struct rg_clock *clock, uint64_t coordinator)
{
    for (unsigned i = 0; i < clock->count; i++)
        if (clock->entries[i].coordinator == coordinator)
            return clock->entries[i].counter;
    return 0;
}

/* Does @b know everything that @a knows? */
static bool is_within(const struct rg_clock *a, const struct rg_clock *b)
{
    for (unsigned i = 0; i < a->count; i++)
        if (counter_of(b, a->entries[i].coordinator) < a->entries[i].counter)
            return false;
    return true;
}

enum rg_order rg_clock_compare(const struct rg_clock *a, const struct rg_clock *b)
{
    bool known = is_within(a, b), knows = is_within(b, a);

    if (known)
        return knows ? RG_SAME : RG_BEFORE;
    return knows ? RG_AFTER : RG_CONCURRENT;
}

static int rank_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

int rg_clock_rank(const struct rg_clock *a, const struct rg_clock *b)
{
    int order = rank_numbers(a->count, b->count);

    for (unsigned i = 0; i < a->count && !order; i++) {
        order = rank_numbers(a->entries[i].coordinator, b->entries[i].coordinator);
        if (!order)
            order = rank_numbers(a->entries[i].counter, b->entries[i].counter);
    }
    return order;
}

static void forget(struct rg_clock *clock, unsigned at)
{
    clock->count--;
    memmove(&clock->entries[at], &clock->entries[at + 1],
            (clock->count - at) * sizeof(clock->entries[0]));
    clock->entries[clock->count] = (struct rg_clock_entry){ 0 };
}

static unsigned least(const struct rg_clock *clock)
{
    unsigned at = 0;

    for (unsigned i = 1; i < clock->count; i++)
        if (clock->entries[i].counter < clock->entries[at].counter)
            at = i;
    return at;
}

void rg_clock_see(struct rg_clock *clock, uint64_t coordinator, uint64_t counter)
{
    unsigned at = 0;

    while (at < clock->count && clock->entries[at].coordinator < coordinator)
        at++;
    if (at < clock->count && clock->entries[at].coordinator == coordinator) {
        if (clock->entries[at].counter < counter)
            clock->entries[at].counter = counter;
        return;
    }
    if (clock->count == RG_CLOCK_MAX) {
        unsigned gone = least(clock);

        forget(clock, gone);
        at -= gone < at;
    }
    memmove(&clock->entries[at + 1], &clock->entries[at],
            (clock->count - at) * sizeof(clock->entries[0]));
    clock->entries[at] = (struct rg_clock_entry){ coordinator, counter };
    clock->count++;
}

void rg_clock_join(struct rg_clock *clock, const struct rg_clock *other)
{
    for (unsigned i = 0; i < other->count; i++)
        rg_clock_see(clock, other->entries[i].coordinator, other->entries[i].counter);
}

/* A total order. Two writes of one coordinator in one millisecond may say the same, and know of different ones before. */
static bool is_later(const struct rg_value *a, const struct rg_value *b)
{
    if (a->time_ms != b->time_ms)
        return a->time_ms > b->time_ms;
    if (a->coordinator != b->coordinator)
        return a->coordinator > b->coordinator;
    if (a->content != b->content)
        return a->content > b->content;
    return rg_clock_rank(&a->clock, &b->clock) > 0;
}

static void take_out(struct rg_document *document, unsigned at)
{
    document->count--;
    memmove(&document->values[at], &document->values[at + 1],
            (document->count - at) * sizeof(document->values[0]));
    memset(&document->values[document->count], 0, sizeof(document->values[0]));
}

static void put_in(struct rg_document *document, const struct rg_value *value)
{
    unsigned at = 0;

    while (at < document->count && is_later(&document->values[at], value))
        at++;
    memmove(&document->values[at + 1], &document->values[at],
            (document->count - at) * sizeof(document->values[0]));
    document->values[at] = *value;
    document->count++;
}

bool rg_document_add(struct rg_document *document, const struct rg_value *value)
{
    for (unsigned i = 0; i < document->count;) {
        enum rg_order order = rg_clock_compare(&document->values[i].clock, &value->clock);

        if (order == RG_AFTER || (order == RG_SAME && !is_later(value, &document->values[i])))
            return false;
        if (order != RG_CONCURRENT)
            take_out(document, i);
        else
            i++;
    }
    if (document->count == RG_SIBLINGS_MAX) {
        if (is_later(&document->values[RG_SIBLINGS_MAX - 1], value))
            return false;
        take_out(document, RG_SIBLINGS_MAX - 1);
    }
    put_in(document, value);
    return true;
}

bool rg_document_join(struct rg_document *document, const struct rg_document *other)
{
    bool changed = false;

    for (unsigned i = 0; i < other->count; i++)
        changed |= rg_document_add(document, &other->values[i]);
    return changed;
}

struct rg_value rg_document_write(const struct rg_document *seen, uint64_t coordinator,
                                  uint64_t counter, int64_t now_ms, uint64_t content)
{
    struct rg_value value = { .time_ms = now_ms, .coordinator = coordinator, .content = content };

    for (unsigned i = 0; i < seen->count; i++) {
        rg_clock_join(&value.clock, &seen->values[i].clock);
        if (value.time_ms <= seen->values[i].time_ms)
            value.time_ms = seen->values[i].time_ms + 1;
    }
    rg_clock_see(&value.clock, coordinator, counter);
    return value;
}
