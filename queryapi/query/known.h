/* known.h - lists of names out of the catalogue: what segments say of themselves, without a scan.
 *
 * Such a list has the names of every segment that reaches into the time range, which may be more than those with
 * samples inside it: enough for completion, and in the form of Prometheus's endpoints. Clients ask for it
 * ("scan":"0"); where the catalogue does not know enough, they get a scan. */
#ifndef QUERYAPI_QUERY_KNOWN_H
#define QUERYAPI_QUERY_KNOWN_H

#include "queryapi/query/query.h"

/* Answer the query from its snapshot, if that can be. *@ret_answered: it was, and is over. QF_ELIMIT. */
QF_MUST_CHECK qf_rc qa_answer_known(struct qa_query *query, bool *ret_answered, struct qf_err *err);

#endif
