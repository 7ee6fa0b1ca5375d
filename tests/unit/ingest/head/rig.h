/* rig.h - a ledger, a head and a log for tests: records in, answers of the head out. */
#ifndef TESTS_UNIT_INGEST_HEAD_RIG_H
#define TESTS_UNIT_INGEST_HEAD_RIG_H

#include "base/pure/vec.h"
#include "ingest/head/head.h"
#include "promql/source.h"
#include "segments/parquet/segment_reader.h"

enum { RIG_KEEP_MS = 1000 };

struct rig {
    char dir[64];
    struct in_ledger *ledger;
    struct in_head *head;
    uint32_t shards;
    uint64_t index;
    QF_VEC(char *) log; /* entry i is of index i + 1; each with its length before it */
    QF_VEC(size_t) lengths;
    int reads;
};

extern _Atomic int64_t rig_now; /* the clock of all heads */

void rig_begin(struct rig *rig, uint32_t shards);
void rig_end(struct rig *rig);

/* Append a record, apply it to ledger and head; returns what the ledger said. */
enum in_verdict rig_append(struct rig *rig, struct qf_str record);
enum in_verdict rig_samples(struct rig *rig, const char *tenant,
                            const struct in_record_series *series, size_t count);
/* One sample of series @number, labels {__name__="m", s="<number>"}; @fresh: with them. */
enum in_verdict rig_sample(struct rig *rig, const char *tenant, uint32_t number, bool fresh,
                           int64_t ts, double value);
enum in_verdict rig_seal(struct rig *rig, const char *tenant);
enum in_verdict rig_sealed(struct rig *rig, const char *tenant);
/* As after a restart: another ledger out of the bytes of this one, another head from the log. */
void rig_restart(struct rig *rig);
/* As after a snapshot of a peer: the same head begins again. */
void rig_install(struct rig *rig);

/* The generation of the tenant's last range. */
uint64_t rig_generation(const struct rig *rig, const char *tenant);

/* Ask for all of a range up to @cut, in one shard; answers as text, a line a series:
 * {labels} ts:value ts:value...; or the name of the error. free() it. */
char *rig_read(struct rig *rig, const char *tenant, uint64_t generation, uint64_t cut);
/* The same with everything given but the path. */
char *rig_ask(struct rig *rig, struct in_head_ask ask);
/* The lines of a segment file. */
void rig_print_segment(const char *path, struct qf_strbuf *buf);

#define CHECK_READ(rig, tenant, generation, cut, want)                                             \
    do {                                                                                           \
        char *rig_text_ = rig_read(rig, tenant, generation, cut);                                  \
        CHECK_STR(rig_text_, want);                                                                \
        free(rig_text_);                                                                           \
    } while (0)

#endif
