#include <stdbool.h>

#include "base/pure/vec.h"
#include "tests/sim_queue/history.h"

struct offered {
    uint64_t offset; /* where it was acknowledged or seen; 0: nowhere yet */
    bool acked, refused;
};

struct place {
    uint64_t value; /* at this offset; 0: none known */
    bool acked, consumed;
};

struct history {
    QF_VEC(struct offered) values; /* by value - 1 */
    QF_VEC(struct place) places;   /* by offset */
    uint64_t acked;                /* greatest acknowledged offset */
    uint64_t seen;                 /* greatest end of a read */
    uint64_t first;                /* greatest beginning of a read */
    uint64_t position;             /* end of what was consumed */
    uint64_t acked_count;
};

struct history *history_new(void)
{
    return qf_xcalloc(1, sizeof(struct history));
}

struct history *history_free(struct history *history)
{
    if (history) {
        QF_VEC_DONE(&history->values);
        QF_VEC_DONE(&history->places);
        free(history);
    }
    return NULL;
}

struct history_begin history_begin(const struct history *history)
{
    return (struct history_begin){ history->acked, history->seen, history->first,
                                   history->position };
}

uint64_t history_offer(struct history *history)
{
    QF_VEC_PUSH(&history->values, (struct offered){ 0 });
    return history->values.count;
}

static struct place *place_at(struct history *history, uint64_t offset)
{
    while (history->places.count <= offset)
        QF_VEC_PUSH(&history->places, (struct place){ 0 });
    return &history->places.items[offset];
}

/* Record @value is at @offset, and nothing else ever was. */
static const char *put(struct history *history, uint64_t offset, uint64_t value)
{
    struct place *place = place_at(history, offset);
    struct offered *offered;

    if (!value || value > history->values.count)
        return "a record that nobody offered";
    offered = &history->values.items[value - 1];
    if (offered->refused)
        return "resurrection: a record that was refused";
    if (place->value && place->value != value)
        return "a record changed";
    if (offered->offset && offered->offset != offset)
        return "one record at two offsets";
    place->value = value;
    offered->offset = offset;
    return NULL;
}

const char *history_acked(struct history *history, uint64_t value, uint64_t offset)
{
    const char *wrong = put(history, offset, value);

    if (wrong)
        return wrong;
    place_at(history, offset)->acked = true;
    history->values.items[value - 1].acked = true;
    history->acked_count++;
    if (offset > history->acked)
        history->acked = offset;
    return NULL;
}

const char *history_refused(struct history *history, uint64_t value)
{
    struct offered *offered = &history->values.items[value - 1];

    offered->refused = true;
    return offered->offset ? "a record was refused that is there" : NULL;
}

static const char *check_bounds(const struct history_begin *begin, uint64_t first, uint64_t last)
{
    if (last < begin->acked)
        return "stale read: it does not reach what was acknowledged before";
    if (last < begin->seen)
        return "stale read: it does not reach what was read before";
    if (first < begin->first)
        return "resurrection: records below what was trimmed before";
    return NULL;
}

const char *history_read(struct history *history, const struct history_begin *begin, uint64_t first,
                         uint64_t last, const struct history_record *records, size_t count)
{
    return history_read_from(history, begin, first, first, last, records, count);
}

const char *history_read_from(struct history *history, const struct history_begin *begin,
                              uint64_t kept, uint64_t from, uint64_t last,
                              const struct history_record *records, size_t count)
{
    const char *wrong = check_bounds(begin, kept, last);
    size_t next = 0;

    for (uint64_t offset = from; !wrong && offset <= last; offset++) {
        bool there = next < count && records[next].offset == offset;

        if (there)
            wrong = put(history, offset, records[next++].value);
        else if (place_at(history, offset)->acked)
            wrong = "lost write: an acknowledged record is not there";
    }
    if (!wrong && next < count)
        wrong = "records out of order or out of bounds";
    if (last > history->seen)
        history->seen = last;
    if (kept > history->first)
        history->first = kept;
    return wrong;
}

const char *history_offset(uint64_t shown, uint64_t acked)
{
    return shown < acked ? "a consumer's offset went back" : NULL;
}

const char *history_consumed(struct history *history, uint64_t from, uint64_t to)
{
    for (uint64_t offset = from; offset <= to; offset++) {
        struct place *place = place_at(history, offset);

        if (place->consumed)
            return "a record was handed out twice";
        place->consumed = true;
    }
    return NULL;
}

uint64_t history_acked_count(const struct history *history)
{
    return history->acked_count;
}
