/* annex.h - exemplars and metadata of a range, on their way into the store (segments/annex/annex.h).
 *
 * A range collects what its records say besides samples, in its memory. When its files are made, so are its annexes. Of
 * metadata, which senders tell again in every range, an annex has what is new that day: what this process
 * has made an annex of before, on the same day by the clock of generations, and which says the same, is left out. So
 * whoever seals, the first range of a day that tells something has it in the store: ranges are made in the order of the
 * log, and a process that did not make the one before, for whatever reason, leaves nothing out. */
#ifndef INGEST_HEAD_ANNEX_H
#define INGEST_HEAD_ANNEX_H

#include "base/pure/arena.h"
#include "base/pure/map.h"
#include "base/sys/thread.h"
#include "ingest/head/memory.h"

/* What a range collects at most; the rest is counted and not kept. */
#define IN_ANNEX_BYTES_MAX ((size_t)64 << 20)
/* Names that are remembered as told; with more than these it forgets, and they are told again. */
#define IN_TOLD_MAX 400000

/* What was told. A zeroed one with a lock has heard of nothing. */
struct in_told {
    struct qf_lock *lock;
    struct qf_map hashes; /* tenant, 0, name: to the hash of what was said, and when */
    struct qf_arena *arena;
    uint64_t epoch; /* of in_head.told_epoch */
};
void in_told_init(struct in_told *told);
void in_told_done(struct in_told *told);

/* Everything in @extras, of a record of the range of @generation. Returns how many found no room. */
uint64_t in_annex_add(struct in_memory *memory, uint64_t generation, struct qf_str extras);

struct in_build;
/* Write the annexes of a closed range; to be called last. QF_ENOSPC, QF_EIO. */
QF_MUST_CHECK qf_rc in_build_annexes(const struct in_build *build, struct qf_err *err);

#endif
