/* route_queues.c - records in and out, and consumers' offsets. */
#include <stdio.h>

#include "ingest/http/routes_int.h"

#define MAX_STANDARD 100

static bool too_large(struct qh_visit *visit, size_t len)
{
    struct qf_err err = { 0 };
    uint64_t max = in_routes_of(visit)->record_bytes_max;

    if (len <= max)
        return false;
    (void)qf_err_set(&err, QF_ELIMIT, "a record of %zu bytes; at most %llu", len,
                     (unsigned long long)max);
    in_fail(visit, &err);
    return true;
}

/* One record per line that is not empty. False: answered. */
static bool add_lines(struct qh_visit *visit, struct qn_ask *ask, struct qf_str text)
{
    struct qf_err err = { 0 };

    while (text.len) {
        const char *end = memchr(text.data, '\n', text.len);
        size_t len = end ? (size_t)(end - text.data) : text.len;
        struct qf_str line = qf_str_sub(text, 0, len);

        text = qf_str_sub(text, len + 1, text.len);
        if (line.len && line.data[line.len - 1] == '\r')
            line.len--;
        if (!line.len)
            continue;
        if (too_large(visit, line.len))
            return false;
        if (ask->records.count >= QN_BATCH_MAX) {
            (void)qf_err_set(&err, QF_ELIMIT, "at most %d records in one request", QN_BATCH_MAX);
            in_fail(visit, &err);
            return false;
        }
        qn_ask_add(ask, line);
    }
    return true;
}

static bool is_lines(const struct qh_request *request)
{
    return qf_str_is(request->content_type, "application/x-ndjson") ||
           qf_str_is(request->content_type, "application/jsonl");
}

static void handle_offer(struct qh_visit *visit)
{
    const struct qh_request *request = visit->request;
    struct qn_ask *ask = in_visit_ask(visit, QN_OFFER, visit->rest);
    bool ok = ask != NULL;

    /* A body that was sent as a form is a record, not parameters. */
    if (ok && !qh_request_has_form(request))
        ok = in_param_level(visit, &ask->level_set, &ask->level);
    if (ok && is_lines(request)) {
        ok = add_lines(visit, ask, request->body);
    } else if (ok) {
        ok = !too_large(visit, request->body.len);
        if (ok)
            qn_ask_add(ask, request->body);
    }
    if (ok)
        in_visit_submit(visit, ask);
    else
        (void)qn_ask_free(ask);
}

/* Consumer, from, max, wait: of all that read. */
static void submit_read(struct qh_visit *visit, enum qn_verb verb, uint64_t max_standard)
{
    struct qn_ask *ask = in_visit_ask(visit, verb, visit->rest);
    uint64_t max;

    if (ask && in_param_text(visit, "consumer", ask->consumer, sizeof(ask->consumer)) &&
        in_param_u64(visit, "from", 0, UINT64_MAX, &ask->from) &&
        in_param_u64(visit, "max", max_standard, QN_POLL_MAX, &max) &&
        in_param_duration(visit, "wait", 0, &ask->wait_ms)) {
        ask->max = max ? (uint32_t)max : 1;
        if (ask->wait_ms < 0 || ask->wait_ms > QN_WAIT_MS_MAX)
            ask->wait_ms = ask->wait_ms < 0 ? 0 : QN_WAIT_MS_MAX;
        in_visit_submit(visit, ask);
    } else {
        (void)qn_ask_free(ask);
    }
}

static void handle_take(struct qh_visit *visit)
{
    submit_read(visit, QN_TAKE, MAX_STANDARD);
}

static void handle_peek(struct qh_visit *visit)
{
    submit_read(visit, QN_PEEK, 1);
}

static void put_offset(struct qh_visit *visit)
{
    struct qn_ask *ask = in_visit_ask(visit, QN_OFFSET, visit->rest);
    struct qf_err err = { 0 };

    if (!ask || !in_param_text(visit, "consumer", ask->consumer, sizeof(ask->consumer)) ||
        !in_param_u64(visit, "offset", 0, UINT64_MAX / 2, &ask->from)) {
        (void)qn_ask_free(ask);
    } else if (!ask->consumer[0] || !ask->from) {
        (void)qf_err_set(&err, QF_EINVAL,
                         "\"consumer\" and \"offset\" are needed: the first offset not read");
        in_fail(visit, &err);
        (void)qn_ask_free(ask);
    } else {
        in_visit_submit(visit, ask);
    }
}

static void handle_offsets(struct qh_visit *visit)
{
    struct qn_ask *ask;

    if (visit->request->method == QH_METHOD_PUT) {
        put_offset(visit);
        return;
    }
    ask = in_visit_ask(visit, QN_OFFSETS, visit->rest);
    if (ask)
        in_visit_submit(visit, ask);
}

static bool param_bool(struct qh_visit *visit, const char *name, bool *ret_value)
{
    struct qf_str text = qh_visit_param(visit, name);
    struct qf_err err = { 0 };

    *ret_value = qf_str_is(text, "true") || qf_str_is(text, "1");
    if (!text.len || *ret_value || qf_str_is(text, "false") || qf_str_is(text, "0"))
        return true;
    (void)qf_err_set(&err, QF_EINVAL, "invalid parameter \"%s\": expected true or false", name);
    in_fail(visit, &err);
    return false;
}

static void handle_create(struct qh_visit *visit)
{
    struct qn_ask *ask = in_visit_ask(visit, QN_CREATE, visit->rest);
    struct qn_queue_options *options = ask ? &ask->options : NULL;
    bool level_set;

    if (ask && param_bool(visit, "delete_on_consume", &options->delete_on_consume) &&
        in_param_duration(visit, "retention", 0, &options->retention_ms) &&
        in_param_duration(visit, "consumer_expiry", 0, &options->consumer_expiry_ms) &&
        in_param_u64(visit, "retention_bytes", 0, INT64_MAX, &options->retention_bytes) &&
        in_param_level(visit, &level_set, &options->level))
        in_visit_submit(visit, ask);
    else
        (void)qn_ask_free(ask);
}

static void handle_delete(struct qh_visit *visit)
{
    struct qn_ask *ask = in_visit_ask(visit, QN_DELETE, visit->rest);

    if (ask)
        in_visit_submit(visit, ask);
}

static void handle_queue(struct qh_visit *visit)
{
    switch (visit->request->method) {
    case QH_METHOD_POST:
        handle_offer(visit);
        break;
    case QH_METHOD_PUT:
        handle_create(visit);
        break;
    case QH_METHOD_DELETE:
        handle_delete(visit);
        break;
    case QH_METHOD_GET:
    case QH_METHOD_HEAD:
    case QH_METHOD_OPTIONS:
    case QH_METHOD_OTHER:
        submit_read(visit, QN_POLL, MAX_STANDARD);
        break;
    }
}

static const struct qh_route routes[] = {
    { "/v1/queues/*/poll", QH_METHOD_POST, false, handle_take, in_fail },
    { "/v1/queues/*/peek", QH_METHOD_GET, false, handle_peek, in_fail },
    { "/v1/queues/*/offsets", QH_METHOD_GET | QH_METHOD_PUT, false, handle_offsets, in_fail },
};
const struct qh_routes in_queue_routes = { routes, QF_COUNT_OF(routes) };

/* A queue itself comes after all other families: its pattern fits their paths as well. */
static const struct qh_route whole[] = {
    { "/v1/queues/*", QH_METHOD_GET | QH_METHOD_POST | QH_METHOD_PUT | QH_METHOD_DELETE, false,
      handle_queue, in_fail },
};
const struct qh_routes in_whole_queue_routes = { whole, QF_COUNT_OF(whole) };
