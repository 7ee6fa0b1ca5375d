/* verdicts.h - what came of the last entries of a log, by their index, for whoever waits to hear it. Pure. */
#ifndef RING_CORE_VERDICTS_H
#define RING_CORE_VERDICTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RG_VERDICTS_KEPT = 1024 }; /* of the last entries */

struct rg_verdicts {
    struct {
        uint64_t index;
        unsigned verdict;
    } kept[RG_VERDICTS_KEPT];
    size_t next;
};

static inline void rg_verdicts_keep(struct rg_verdicts *verdicts, uint64_t index, unsigned verdict)
{
    verdicts->kept[verdicts->next].index = index;
    verdicts->kept[verdicts->next].verdict = verdict;
    verdicts->next = (verdicts->next + 1) % RG_VERDICTS_KEPT;
}

/* False: forgotten, or there was none at @index. */
static inline bool rg_verdicts_find(const struct rg_verdicts *verdicts, uint64_t index,
                                    unsigned *ret_verdict)
{
    for (size_t i = 0; index && i < RG_VERDICTS_KEPT; i++) {
        if (verdicts->kept[i].index != index)
            continue;
        *ret_verdict = verdicts->kept[i].verdict;
        return true;
    }
    return false;
}

#endif
