/* http.h - the other way to run a query: through a running API, over segments in its store.
 *
 * Series go to a fresh tenant of the store whenever they changed; queries are asked as Prometheus
 * clients do, and the JSON answer is read back. */
#ifndef TESTS_PROMQLTEST_HTTP_H
#define TESTS_PROMQLTEST_HTTP_H

#include "promql/eval.h"
#include "tests/promqltest/storage.h"

struct http_engine;

/* @url of the API and of the store it reads. NULL and @err filled on failure. */
struct http_engine *http_engine_new(const char *url, const char *store_url, struct qf_err *err);
struct http_engine *http_engine_free(struct http_engine *engine);

/* The series changed: the next query needs another tenant. */
void http_engine_changed(struct http_engine *engine);

/* Ask; the answer lives in @arena. @ret_supported false: segments cannot hold what the storage has
 * (native histograms, start timestamps), nothing was asked. Otherwise as pq_engine_run. */
QF_MUST_CHECK qf_rc http_engine_run(struct http_engine *engine, struct storage *storage,
                                    size_t shard_count, struct qf_arena *arena, struct qf_str query,
                                    const struct pq_query_params *params,
                                    struct pq_result *ret_result, bool *ret_supported,
                                    struct qf_err *err);

#endif
