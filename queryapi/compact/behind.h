/* behind.h - what compaction has to do still, by the catalogue: no I/O. */
#ifndef QUERYAPI_COMPACT_BEHIND_H
#define QUERYAPI_COMPACT_BEHIND_H

#include "base/pure/vec.h"
#include "segments/catalog/catalog.h"
#include "segments/compact/pass.h"

struct qa_behind_tenant {
    char *name;        /* owned */
    uint64_t segments; /* that could be merged now */
    uint64_t jobs;     /* that they would take */
    int64_t since_ms;  /* when the first of them could have been; 0: there are none */
};

struct qa_behind {
    QF_VEC(struct qa_behind_tenant) tenants; /* that have segments */
};

/* @options: how a pass plans; @now_ms: of the day. Nothing before the first listing. */
struct qa_behind qa_behind_make(struct sg_catalog *catalog, const struct sg_pass_options *options,
                                int64_t now_ms);
void qa_behind_done(struct qa_behind *behind);

#endif
