/* history.h - what clients were told, and whether a queue could have told them that.
 *
 * Every call returns NULL, or what is wrong:
 *   a stale read      a read that does not reach what was acknowledged, or read, before it began
 *   a lost write      an acknowledged record that a read which covers its offset does not return
 *   a resurrection    a record that was refused, or one below what an earlier read saw trimmed
 *   a changed record, a record that nobody offered, one record at two offsets, offsets out of order
 *   a consumer's offset that went back; one record handed out twice */
#ifndef TESTS_SIM_QUEUE_HISTORY_H
#define TESTS_SIM_QUEUE_HISTORY_H

#include <stddef.h>
#include <stdint.h>

struct history;

/* What was known when an operation began. */
struct history_begin {
    uint64_t acked, seen, first, position;
};

struct history_record {
    uint64_t offset, value;
};

struct history *history_new(void);
struct history *history_free(struct history *history); /* Returns NULL. */

struct history_begin history_begin(const struct history *history);

uint64_t history_offer(struct history *history); /* A value that was never offered before. */
const char *history_acked(struct history *history, uint64_t value, uint64_t offset);
/* It was refused: nobody may ever see it. Outcomes that nobody knows are not told at all. */
const char *history_refused(struct history *history, uint64_t value);

/* A confirmed read of all records from @first to @last. */
const char *history_read(struct history *history, const struct history_begin *begin, uint64_t first,
                         uint64_t last, const struct history_record *records, size_t count);
/* The same of those from @from on, while @kept is the first one that is left. */
const char *history_read_from(struct history *history, const struct history_begin *begin,
                              uint64_t kept, uint64_t from, uint64_t last,
                              const struct history_record *records, size_t count);
/* A consumer's offset as a confirmed read showed it; @acked: its last acknowledged move before. */
const char *history_offset(uint64_t shown, uint64_t acked);
/* Records from @from to @to were handed out. */
const char *history_consumed(struct history *history, uint64_t from, uint64_t to);

uint64_t history_acked_count(const struct history *history);

#endif
