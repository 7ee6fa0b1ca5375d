/* counter.h - who this coordinator is in vector clocks, and how many writes it has numbered.
 *
 * A folder keeps "INCARNATION LIMIT": a random id, and a number that no write has reached yet. Numbers are given out below
 * the limit alone, and it is raised, durably, before: a restart goes on at the limit, so that no number is given twice. A
 * folder that is lost begins another incarnation. One that is brought back from a copy would repeat numbers: whoever does
 * that removes the file `clock` in it. Any thread. */
#ifndef INGEST_DOCS_COUNTER_H
#define INGEST_DOCS_COUNTER_H

#include <stdint.h>

#include "base/pure/err.h"

struct in_counter;

enum { IN_COUNTER_BLOCK = 1024 }; /* numbers that one sync is for */

/* Begin, or go on, in @dir, which is made. QF_EIO, QF_EDENIED; QF_ECORRUPT: the file says something else. */
QF_MUST_CHECK qf_rc in_counter_open(const char *dir, struct in_counter **ret_counter,
                                    struct qf_err *err);
struct in_counter *in_counter_free(struct in_counter *counter); /* Accepts NULL, returns NULL. */

uint64_t in_counter_incarnation(const struct in_counter *counter);
/* No number above this was given out. */
uint64_t in_counter_last(struct in_counter *counter);
/* The next number, from 1 on. QF_EIO, QF_ENOSPC: it could not be made durable; none was given. */
QF_MUST_CHECK qf_rc in_counter_next(struct in_counter *counter, uint64_t *ret_number,
                                    struct qf_err *err);

#endif
