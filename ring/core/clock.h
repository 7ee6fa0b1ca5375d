/* clock.h - vector clocks, and documents that were written without agreement. Pure.
 *
 * A clock says of how many writes of each coordinator a value knows. Ids are incarnations: a coordinator that lost its
 * counters comes back under another id. Counters are durable before they are used (the caller's duty).
 *
 *   same         equal entries
 *   before       every entry of the one is at most the other's: the other was written by someone who had seen it
 *   concurrent   neither: both are kept, and the answer names the later one first
 *
 * Which of two concurrent values is the later is decided by time, then by coordinator: every reader decides alike. The
 * time of a write is above that of everything it has seen (rg_document_write), so that time never contradicts a clock.
 * That is also why a clock may be bounded: beyond RG_CLOCK_MAX entries the least counter goes; the value may then look
 * concurrent with what it replaced, and a sibling shows that once was gone, but the winner stays the winner. */
#ifndef RING_CORE_CLOCK_H
#define RING_CORE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RG_CLOCK_MAX = 16,   /* entries of a clock */
    RG_SIBLINGS_MAX = 8, /* values of a document that are kept beside each other */
};

struct rg_clock_entry {
    uint64_t coordinator; /* an incarnation, not 0 */
    uint64_t counter;     /* from 1 on */
};

/* Entries ascend by coordinator. All zero: the clock of nothing, before every other. */
struct rg_clock {
    uint8_t count;
    struct rg_clock_entry entries[RG_CLOCK_MAX];
};

enum rg_order { RG_SAME, RG_BEFORE, RG_AFTER, RG_CONCURRENT };

/* How @a stands to @b: RG_BEFORE if @b has seen @a. */
enum rg_order rg_clock_compare(const struct rg_clock *a, const struct rg_clock *b);

/* Which of two clocks stands first where nothing else decides: below 0, 0 if they are the same, above 0. It means nothing, but is
 * the same for everybody. */
int rg_clock_rank(const struct rg_clock *a, const struct rg_clock *b);

/* Make @clock know what @other knows. */
void rg_clock_join(struct rg_clock *clock, const struct rg_clock *other);

/* Say that @clock knows of @coordinator's write number @counter; less than it knows already changes nothing. */
void rg_clock_see(struct rg_clock *clock, uint64_t coordinator, uint64_t counter);

/* One value of a document; the bytes themselves lie elsewhere, under @content. */
struct rg_value {
    struct rg_clock clock;
    int64_t time_ms;      /* of the write, never below what it had seen */
    uint64_t coordinator; /* who wrote it */
    uint64_t content;     /* what it says: an id of bytes, or 0 for "deleted" */
};

/* What is known of a document: values none of which has seen another, the winner first. */
struct rg_document {
    uint8_t count;
    struct rg_value values[RG_SIBLINGS_MAX];
};

/* Add @value to what is known. What it has seen goes; if it was seen itself nothing changes. Of two values with the same
 * clock, which no honest coordinator makes, the later one stays. In whichever
 * order values come, the same document comes of it, up to RG_SIBLINGS_MAX; beyond that the earliest goes, so that the
 * winner is still the same. True if the document changed. */
bool rg_document_add(struct rg_document *document, const struct rg_value *value);

/* Add all values of @other: what a read makes of several replicas, and a newcomer of a majority of the old owners. True
 * if @document changed, that is, if who held it needs repair. */
bool rg_document_join(struct rg_document *document, const struct rg_document *other);

/* The value that write number @counter of @coordinator makes of @content, by someone who has read @seen. */
struct rg_value rg_document_write(const struct rg_document *seen, uint64_t coordinator,
                                  uint64_t counter, int64_t now_ms, uint64_t content);

#endif
