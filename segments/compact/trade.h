/* trade.h - the outputs of a job for its inputs, on our own nodes: one entry of a log. Blocks.
 *
 * There are no turns and no grace here. Outputs lie with a majority of their owners first, without a name, so that nobody
 * sees them. Then one entry names them and takes the names of the inputs away; it counts only if all inputs are named
 * (ring/core/manifest.h). So each listing has either the inputs or the outputs, whoever dies when; of two that merge the same
 * inputs one counts; and what was removed meanwhile is not brought back. All inputs are of one partition's log
 * (segments/plan/plan.h: sources).
 *
 * An output that has the name of an input is not put: it is there, and stays named. */
#ifndef SEGMENTS_COMPACT_TRADE_H
#define SEGMENTS_COMPACT_TRADE_H

#include "segments/store/store.h"

struct sg_trade_output {
    const char *name, *path;
};

struct sg_trade {
    struct sg_store *store; /* of our own nodes */
    const struct qf_str *inputs;
    size_t input_count;
    const struct sg_trade_output *outputs;
    size_t output_count;
    const struct sg_store_call *call;
};

struct sg_traded {
    size_t put, present; /* outputs; present: that have the name of an input */
    uint64_t bytes;      /* of those put */
};

/* To do it again is harmless. QF_ENOTFOUND: an input is not named any more, and nothing was traded: plan again.
 * QF_ECORRUPT: an output cannot be read back. QF_EINVAL: inputs of several partitions. QF_EUNAVAILABLE: no majority of
 * the owners could be reached, or owners went on changing. Others: those of the store; it may have been traded, or not, or
 * will be. */
QF_MUST_CHECK qf_rc sg_trade(const struct sg_trade *trade, struct sg_traded *ret_traded,
                             struct qf_err *err);

#endif
