/* repair.h - named blobs that an owner lacks: what is to be fetched, bounded, and nothing forgotten. Pure.
 *
 * Readers, scrubs, dropped hand-off references and expired ones mark (node, blob). A mark waits, is tried, backs off and
 * goes when the node has the blob, when nothing names it any more, or when the node does not own it. When the table is
 * full, a mark becomes one of its whole slot: the node's names of it are compared with the manifest once. So marks cost a
 * bounded amount of memory, and what was marked is repaired. They are not durable: every owner is compared with the
 * manifest now and then anyway. */
#ifndef RING_CORE_REPAIR_H
#define RING_CORE_REPAIR_H

#include "base/pure/map.h"
#include "ring/core/entry.h"
#include "ring/core/manifest.h"

enum { RG_MARKS_MAX = 4096 };

struct rg_mark {
    char name[RG_BLOB_NAME_MAX + 1]; /* empty: the whole slot */
    uint32_t slot;
    uint8_t node;
    uint8_t tries;
    bool tried; /* it is under way */
    int64_t due_ms;
};

struct rg_repair_options {
    uint32_t marks_max;     /* 0: RG_MARKS_MAX */
    int64_t backoff_ms;     /* 0: 1 s; doubled with each try */
    int64_t backoff_max_ms; /* 0: 10 min */
};

struct rg_repair;

struct rg_repair *rg_repair_new(const struct rg_repair_options *options);
struct rg_repair *rg_repair_free(struct rg_repair *repair); /* Accepts NULL, returns NULL. */

/* @node lacks @name of @slot; an empty name: it is to be compared with the manifest. Marks that are there stay one. */
void rg_repair_mark(struct rg_repair *repair, uint8_t node, uint32_t slot, struct qf_str name,
                    int64_t now_ms);
/* The next mark to try at @now_ms, oldest due first; NULL: none. It is under way until rg_repair_end(). Valid until the next call. */
const struct rg_mark *rg_repair_next(struct rg_repair *repair, int64_t now_ms);
/* What came of it. @done: the mark goes (also if nothing names the blob any more); else it is tried again later. */
void rg_repair_end(struct rg_repair *repair, uint8_t node, uint32_t slot, struct qf_str name,
                   bool done, int64_t now_ms);
/* @node is back: what it lacks is due now, as if it had not been tried. */
void rg_repair_hurry(struct rg_repair *repair, uint8_t node, int64_t now_ms);
/* @node is no more. */
void rg_repair_forget(struct rg_repair *repair, uint8_t node);
bool rg_repair_has(const struct rg_repair *repair, uint8_t node); /* a mark */
size_t rg_repair_count(const struct rg_repair *repair);           /* marks and whole slots */

#endif
