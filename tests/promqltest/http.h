/* http.h - the other way to run a query: through a running API, over segments in its store.
 *
 * Whenever series changed they are imported (http_load.h) into a fresh tenant of the store; queries
 * are asked as Prometheus clients do, and the JSON answer is read back. */
#ifndef TESTS_PROMQLTEST_HTTP_H
#define TESTS_PROMQLTEST_HTTP_H

#include "promql/eval.h"
#include "tests/promqltest/storage.h"

struct http_engine;

/* @url of the API and of the store it reads; @binary is the promfabric that imports. Never NULL. */
struct http_engine *http_engine_new(const char *url, const char *store_url, const char *binary);
struct http_engine *http_engine_free(struct http_engine *engine);

/* The series changed: the next query needs another tenant. */
void http_engine_changed(struct http_engine *engine);

/* Ask; the answer lives in @arena. As pq_engine_run; QF_EIO and QF_EPROTO if the way there and back
 * is to blame. */
QF_MUST_CHECK qf_rc http_engine_run(struct http_engine *engine, struct storage *storage,
                                    size_t shard_count, struct qf_arena *arena, struct qf_str query,
                                    const struct pq_query_params *params,
                                    struct pq_result *ret_result, struct qf_err *err);

#endif
