/* entry.h - what the log of all tenants' maps says: definitions, and the parts that are merged, in one order. Pure.
 *
 *     define    'D'  TENANT  expected (8)  the definition, as JSON
 *     drop      'X'  TENANT  expected (8)  the map's name
 *     rule      'R'  TENANT  expected (8)  a rule of enrichment, as JSON
 *     unrule    'U'  TENANT  expected (8)  its name
 *     piece     'P'  upload (8)  offset (8)  bytes of a part's file
 *     load      'L'  upload (8)  size (8)  sum (8)  TENANT
 *
 * TENANT is a length (1) and bytes, numbers are big-endian. A define or drop, rule or unrule counts only if the
 * definition or rule is of the expected version at that position. A part comes in pieces, in their order; with its load it counts, if all of it is there. */
#ifndef STATEMAP_CORE_ENTRY_H
#define STATEMAP_CORE_ENTRY_H

#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/strbuf.h"

enum sm_entry_kind {
    SM_ENTRY_DEFINE = 'D',
    SM_ENTRY_DROP = 'X',
    SM_ENTRY_RULE = 'R',
    SM_ENTRY_UNRULE = 'U',
    SM_ENTRY_PIECE = 'P',
    SM_ENTRY_LOAD = 'L'
};

/* Any version, none included. */
#define SM_EXPECT_ANY UINT64_MAX

enum { SM_PIECE_MAX = 1 << 20 };

struct sm_entry {
    enum sm_entry_kind kind;
    struct qf_str tenant; /* borrowed, as bytes */
    uint64_t expected;    /* of all but pieces and loads: 0: there must be none */
    uint64_t upload, offset, size, sum;
    struct qf_str bytes; /* the definition or rule, the name, the piece */
};

void sm_entry_encode(struct qf_strbuf *buf, const struct sm_entry *entry);
/* QF_EPROTO: it is none, or of a later release. */
QF_MUST_CHECK qf_rc sm_entry_decode(struct qf_str bytes, struct sm_entry *ret_entry);

#endif
