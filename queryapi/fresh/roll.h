/* roll.h - what every ingest node says of itself, called up for who wants to see it.
 *
 * Each node is asked for GET /v1/node, once; who wants to know while that is under way gets the same
 * answer. It is a JSON array with an object for each node, in the order in which they are known: what
 * the node said, with its `address` and `state` (alive, drains), or of one that did not answer address,
 * state `away` and `error`.
 *
 * The asker's thread owns it. */
#ifndef QUERYAPI_FRESH_ROLL_H
#define QUERYAPI_FRESH_ROLL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/pure/slice.h"

struct qa_question;
struct qa_roll;

/* @nodes: empty if there is no answer, as too many wait or the asker ends. */
typedef void qa_roll_heard(void *ctx, struct qf_str nodes);

/* @ask has a question asked, which it takes over; it comes back through its `done`. */
struct qa_roll *qa_roll_new(void (*ask)(void *ctx, struct qa_question *question), void *ctx);
/* Who waits hears that there is no answer. No question may be under way any more that will come back.
 * Accepts NULL, returns NULL. */
struct qa_roll *qa_roll_free(struct qa_roll *roll);

/* Have @heard called once: with what @addresses say, or with what those of the roll under way do. */
void qa_roll_call(struct qa_roll *roll, char *const *addresses, size_t count, qa_roll_heard *heard,
                  void *ctx);

#endif
