/* ahead.h - a part of a large document as text, made by several threads at once.
 *
 * Writing numbers is most of what a large answer costs, and series do not depend on each other: a
 * window of them is cut into chunks, which the thread of the query and whoever of the pool is idle
 * take one by one. The texts are then sent in order, so the document is the same however many
 * helped. Nobody is waited for but threads that are writing a chunk already: a busy pool only means
 * that the query's thread writes them all itself. */
#ifndef QUERYAPI_QUERY_AHEAD_H
#define QUERYAPI_QUERY_AHEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/pure/slice.h"
#include "base/sys/pool.h"
#include "promql/eval.h"

/* Text of a window, give or take a series, and of a chunk. */
#define QA_AHEAD_WINDOW_BYTES ((size_t)1 << 20)
#define QA_AHEAD_CHUNK_BYTES ((size_t)128 << 10)

struct qa_ahead;

/* Write the series of a matrix from @series[@first] on, as many of @count as make a window, with a
 * comma in front of all but number 0. None of them may have histograms. *ret_end: the first one that is
 * not in it. @pool: who may help; NULL: nobody. Returns when all is written. Never NULL. */
struct qa_ahead *qa_ahead_new(const struct pq_result_series *series, size_t first, size_t count,
                              struct qf_pool *pool, size_t *ret_end);
struct qa_ahead *qa_ahead_free(struct qa_ahead *ahead); /* Accepts NULL, returns NULL. */

/* Up to @most bytes of what is not taken yet; empty at the end. */
struct qf_str qa_ahead_text(const struct qa_ahead *ahead, size_t most);
/* @bytes of them were sent. */
void qa_ahead_take(struct qa_ahead *ahead, size_t bytes);

#endif
