/* route_extras.c - exemplars and metadata for the API. The leaders tell how far this node must have
 * applied; then it answers out of its own heads, which have all partitions. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/sys/clock.h"
#include "ingest/head/heads.h"
#include "ingest/http/heads_int.h"
#include "ingest/state/state.h"
#include "promql/parse.h"

/* How long a follower may take to apply what its leader has. */
#define BEHIND_MS 500
#define ANSWER_BYTES_MAX ((size_t)128 << 20)
enum { SELECTORS_MAX = 64 };

/* What was asked; everything in the arena. */
struct question {
    struct qf_arena *arena;
    struct qf_str metric; /* of metadata; empty: all */
    uint64_t limit;       /* of names or series; 0: none */
    struct in_exemplars_ask exemplars;
    const struct pq_matcher *matchers[SELECTORS_MAX];
    size_t matcher_counts[SELECTORS_MAX];
};

static void free_question(void *ctx)
{
    struct question *question = ctx;

    (void)qf_arena_free(question->arena);
    free(question);
}

static struct question *new_question(void)
{
    struct question *question = qf_xcalloc(1, sizeof(*question));

    question->arena = qf_arena_new(ANSWER_BYTES_MAX);
    return question;
}

static void fail(struct in_round *round, const struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    int status = qf_rc_http_status(err->rc);

    qf_strbuf_puts(&body, "{\"error\":");
    qf_strbuf_json(&body, qf_str_from(qf_rc_name(err->rc)));
    qf_strbuf_puts(&body, ",\"message\":");
    qf_strbuf_json(&body, qf_str_from(err->msg));
    qf_strbuf_puts(&body, "}\n");
    if (status == 503)
        qh_stream_header(round->stream, "Retry-After", "1");
    qh_stream_answer(round->stream, status, "application/json", qf_strbuf_view(&body));
}

/* The head of a partition, with everything applied that its leader had. */
static struct in_head *head_of(struct in_round *round, uint32_t partition, struct qf_err *err)
{
    struct in_head *head = in_heads_get(round->routes->heads, partition, NULL);
    const char *text = strstr(qf_strbuf_cstr(&round->parts[partition].text), "\"applied\":");
    uint64_t applied = text ? strtoull(text + 10, NULL, 10) : 0;
    int64_t deadline = qf_clock_mono_ms() + BEHIND_MS;

    while (head && in_head_applied(head) < applied && qf_clock_mono_ms() < deadline)
        (void)usleep(2000);
    if (head && in_head_applied(head) >= applied)
        return head;
    (void)qf_err_set(err, QF_EUNAVAILABLE, "partition %u: this node is behind: ask another one",
                     partition);
    return NULL;
}

/* --- metadata --- */

static void add_metadata(struct qf_strbuf *body, const struct in_found_metadata *found)
{
    const struct in_metadata *metadata = &found->is;

    qf_strbuf_json(body, metadata->name);
    qf_strbuf_puts(body, ":[{\"type\":\"");
    qf_strbuf_puts(body, qf_metric_type_text(metadata->type));
    qf_strbuf_puts(body, "\",\"help\":");
    qf_strbuf_json(body, metadata->help);
    qf_strbuf_puts(body, ",\"unit\":");
    qf_strbuf_json(body, metadata->unit);
    qf_strbuf_puts(body, ",\"generation\":");
    qf_strbuf_u64(body, found->generation);
    qf_strbuf_puts(body, "}]");
}

struct metadata_answer {
    struct qf_strbuf body;
    const struct question *question;
    uint64_t told;
};

static void tell_metadata(struct metadata_answer *answer, const struct in_found_metadata *found)
{
    if (answer->question->limit && answer->told >= answer->question->limit)
        return;
    if (answer->told++)
        qf_strbuf_putc(&answer->body, ',');
    add_metadata(&answer->body, found);
}

/* State maps that are info series. Nobody tells of them but their definitions, which are as of now. */
static void tell_map(void *ctx, struct qf_str metric, struct qf_str map)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf help = QF_STRBUF_INIT;
    struct metadata_answer *answer = ctx;
    struct in_found_metadata found = {
        .is = { .name = metric, .type = QF_METRIC_INFO, .unit = QF_STR("") },
        .generation = (uint64_t)qf_clock_wall_ms() * 1000
    };

    if (answer->question->metric.len && !qf_str_eq(answer->question->metric, metric))
        return;
    qf_strbuf_printf(&help, "Rows of the state map %.*s.", QF_STR_ARG(map));
    found.is.help = qf_strbuf_view(&help);
    tell_metadata(answer, &found);
}

static void answer_metadata(struct in_round *round)
{
    struct question *question = round->ctx;
    struct metadata_answer answer = { .body = QF_STRBUF_INIT, .question = question };
    struct in_found_metadata *items;
    struct qf_err err = { 0 };
    size_t count;

    qf_strbuf_puts(&answer.body, "{\"data\":{");
    for (uint32_t i = 0; i < round->count && !err.rc; i++) {
        struct in_head *head = head_of(round, i, &err);

        if (!head ||
            in_extras_metadata(in_head_extras(head), question->exemplars.tenant, question->metric,
                               question->arena, &items, &count, &err) != QF_OK)
            continue;
        for (size_t j = 0; j < count; j++)
            tell_metadata(&answer, &items[j]);
    }
    if (!err.rc)
        err.rc = in_state_metrics(round->routes->state, question->exemplars.tenant, tell_map,
                                  &answer, &err);
    qf_strbuf_puts(&answer.body, "}}\n");
    if (err.rc)
        fail(round, &err);
    else
        qh_stream_answer(round->stream, 200, "application/json", qf_strbuf_view(&answer.body));
    qf_strbuf_done(&answer.body);
}

static void handle_metadata(struct qh_visit *visit)
{
    struct in_status_ask ask = { 0 };
    json_t *root = in_body_read(visit);
    struct question *question;
    const json_t *metric;

    if (!root)
        return;
    metric = json_object_get(root, "metric");
    if (!in_body_tenant(root, &ask.tenant) || (metric && !json_is_string(metric))) {
        in_body_refuse(visit, QF_EINVAL,
                       "expected \"tenant\" and perhaps \"metric\" and \"limit\"");
    } else {
        question = new_question();
        question->exemplars.tenant = qf_arena_str(question->arena, ask.tenant);
        question->metric =
            qf_arena_str(question->arena, metric ? (struct qf_str){ json_string_value(metric),
                                                                    json_string_length(metric) }
                                                 : QF_STR(""));
        (void)in_body_number(root, "limit", INT64_MAX, &question->limit);
        ask.min_ts = 1; /* no range is asked for */
        in_round_begin(visit, &ask, NULL, answer_metadata, question, free_question);
    }
    json_decref(root);
}

/* --- exemplars --- */

static void answer_exemplars(struct in_round *round)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    struct question *question = round->ctx;
    struct sg_found found = { 0 };
    struct qf_err err = { 0 };
    qf_rc rc = QF_OK;

    for (uint32_t i = 0; i < round->count && rc == QF_OK; i++) {
        struct in_head *head = head_of(round, i, &err);

        rc = head ? in_extras_exemplars(in_head_extras(head), &question->exemplars, question->arena,
                                        &found, &err)
                  : err.rc;
    }
    if (rc != QF_OK) {
        fail(round, &err);
        return;
    }
    sg_found_sort(&found);
    qf_strbuf_puts(&body, "{\"data\":");
    sg_found_print(&body, &found, question->limit);
    qf_strbuf_puts(&body, "}\n");
    qh_stream_answer(round->stream, 200, "application/json", qf_strbuf_view(&body));
}

static qf_rc parse_selectors(const json_t *match, struct question *question, struct qf_err *err)
{
    struct in_exemplars_ask *ask = &question->exemplars;
    size_t count = json_array_size(match);
    qf_rc rc = QF_OK;

    if (!count || count > SELECTORS_MAX)
        return qf_err_set(err, QF_EINVAL, "\"match\" is not a list of 1 to %d selectors",
                          SELECTORS_MAX);
    for (size_t i = 0; i < count && rc == QF_OK; i++) {
        const json_t *item = json_array_get(match, i);
        struct qf_str text = { json_string_value(item), json_string_length(item) };

        if (!text.data)
            return qf_err_set(err, QF_EINVAL, "\"match\" has something that is no selector");
        text = qf_arena_str(question->arena, text);
        rc = pq_parse_selector(question->arena, text, NULL, &question->matchers[i],
                               &question->matcher_counts[i], err);
    }
    ask->matchers = question->matchers;
    ask->matcher_counts = question->matcher_counts;
    ask->selector_count = count;
    return rc;
}

static void handle_exemplars(struct qh_visit *visit)
{
    struct in_status_ask ask = { 0 };
    json_t *root = in_body_read(visit);
    struct question *question;
    struct qf_err err = { 0 };
    qf_rc rc = QF_OK;

    if (!root)
        return;
    question = new_question();
    if (!in_body_tenant(root, &ask.tenant) ||
        !in_body_int(root, "min_ts", &question->exemplars.min_ts) ||
        !in_body_int(root, "max_ts", &question->exemplars.max_ts))
        rc = qf_err_set(
            &err, QF_EINVAL,
            "expected \"tenant\", \"min_ts\", \"max_ts\", \"match\" and perhaps \"limit\"");
    if (rc == QF_OK)
        rc = parse_selectors(json_object_get(root, "match"), question, &err);
    if (rc == QF_OK) {
        question->exemplars.tenant = qf_arena_str(question->arena, ask.tenant);
        (void)in_body_number(root, "limit", INT64_MAX, &question->limit);
        ask.min_ts = 1;
        in_round_begin(visit, &ask, NULL, answer_exemplars, question, free_question);
    } else {
        in_fail(visit, &err);
        free_question(question);
    }
    json_decref(root);
}

static const struct qh_route routes[] = {
    { "/v1/heads/metadata", QH_METHOD_POST, false, handle_metadata, in_fail },
    { "/v1/heads/exemplars", QH_METHOD_POST, false, handle_exemplars, in_fail },
};
const struct qh_routes in_extra_routes = { routes, QF_COUNT_OF(routes) };
