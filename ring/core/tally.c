/* tally.c - counting answers. */
#include "ring/core/tally.h"

void rg_tally_begin(struct rg_tally *tally, const struct rg_ring *ring, uint32_t slot,
                    enum rg_level level)
{
    *tally = (struct rg_tally){ .slot = ring->slots[slot], .epoch = ring->epoch, .level = level };
}

void rg_tally_hear(struct rg_tally *tally, uint8_t node, enum rg_answer answer)
{
    if (!(rg_slot_everyone(&tally->slot) & RG_NODE(node)))
        return;
    switch (answer) {
    case RG_ANSWER_HAS:
        tally->has |= RG_NODE(node);
        break;
    case RG_ANSWER_FAILED:
        tally->failed |= RG_NODE(node);
        break;
    case RG_ANSWER_OLD:
        tally->old = true;
        break;
    case RG_ANSWER_HANDED:
        tally->failed |= RG_NODE(node);
        tally->handed |= RG_NODE(node);
        break;
    }
}

static bool is_enough(const struct rg_tally *tally, const struct rg_ring *ring, rg_nodes has)
{
    switch (tally->level) {
    case RG_LEVEL_ONE:
        return has != 0;
    case RG_LEVEL_QUORUM:
        return rg_slot_quorum(ring, &tally->slot, has);
    case RG_LEVEL_ALL:
        return (rg_slot_everyone(&tally->slot) & ~has) == 0;
    }
    return false;
}

enum rg_tally_state rg_tally_state(const struct rg_tally *tally, const struct rg_ring *ring)
{
    rg_nodes has = tally->has;

    if (ring->unsafe & RG_UNSAFE_HANDED_COUNTS)
        has |= tally->handed;
    if (is_enough(tally, ring, has))
        return RG_TALLY_ENOUGH;
    if (tally->old)
        return RG_TALLY_OLD;
    if (!is_enough(tally, ring, rg_slot_everyone(&tally->slot) & (~tally->failed | has)))
        return RG_TALLY_FAILED;
    return RG_TALLY_WAITS;
}

rg_nodes rg_tally_missing(const struct rg_tally *tally)
{
    return rg_slot_everyone(&tally->slot) & ~tally->has;
}
