/* query_int.h - the parts of a query's life, between the files of this folder. */
#ifndef QUERYAPI_QUERY_QUERY_INT_H
#define QUERYAPI_QUERY_QUERY_INT_H

#include "queryapi/query/query.h"

/* plan.c: parse, plan, look up segments, make work items. Sets next to WORK, also when there is
 * nothing to read. */
QF_MUST_CHECK qf_rc qa_query_plan(struct qa_query *query, struct qf_err *err);

/* answer.c: there will be an answer. Events begin with that, so that a client sees progress;
 * documents begin with their first piece, so that until then an error has a status of its own. */
void qa_answer_begin(struct qa_query *query);
/* answer.c: evaluate and write until the stream is full (next ROOM) or all is said (next OVER). */
QF_MUST_CHECK qf_rc qa_query_answer(struct qa_query *query, struct qf_err *err);
void qa_answer_done(struct qa_query *query);

/* What a leaf of this query is called in env->costs. */
uint64_t qa_leaf_key(const struct qa_query *query, uint32_t part, uint32_t leaf);

#endif
