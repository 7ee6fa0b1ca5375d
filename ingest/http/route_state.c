/* route_state.c - state maps: what is said of them, their rows, copies for those who read them elsewhere.
 *
 * Everything here looks at disks: it is done by a pool of its own, whose queue is bounded. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/http/range.h"
#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "ingest/http/routes_int.h"
#include "ingest/http/state_int.h"
#include "statemap/store/definition_text.h"

/* --- tasks --- */

struct in_state_task *in_state_task_free(struct in_state_task *task)
{
    (void)qh_stream_drop(task->stream);
    qf_strbuf_done(&task->body);
    qf_strbuf_done(&task->key);
    qf_strbuf_done(&task->prefix);
    qf_strbuf_done(&task->cursor);
    free(task);
    return NULL;
}

static void run_task(void *arg)
{
    struct in_state_task *task = arg;
    struct qf_err err = { 0 };

    if (task->run(task, &err) != QF_OK)
        in_fail_to(task->stream, &err);
    (void)in_state_task_free(task);
}

struct in_state_task *in_state_task_new(struct qh_visit *visit, in_state_run *run)
{
    struct in_state_task *task = qf_xcalloc(1, sizeof(*task));

    task->run = run;
    task->routes = in_routes_of(visit);
    task->state = task->routes->state;
    task->stream = qh_stream_ref(visit->stream);
    (void)snprintf(task->tenant, sizeof(task->tenant), "%.*s", QF_STR_ARG(visit->tenant));
    qf_strbuf_str(&task->body, visit->request->body);
    return task;
}

void in_state_task_submit(struct qh_visit *visit, struct in_state_task *task, struct qf_pool *pool)
{
    struct qf_err err = { 0 };

    if (atomic_load(&task->routes->draining))
        (void)qf_err_set(&err, QF_EUNAVAILABLE, "this node is stopping: ask another one");
    else if (qf_pool_submit(pool, run_task, task))
        return;
    else
        (void)qf_err_set(&err, QF_EBUSY, "too many requests about maps are under way: try again");
    in_fail(visit, &err);
    (void)in_state_task_free(task);
}

bool in_state_map_name(struct qh_visit *visit, struct qf_str name, char out[SM_NAME_MAX + 1])
{
    struct qf_err err = { 0 };

    if (sm_name_fold(name, out))
        return true;
    (void)qf_err_set(&err, QF_EINVAL,
                     "not the name of a map: letters, digits and underscores, no digit first, at "
                     "most %d",
                     SM_NAME_MAX);
    in_fail(visit, &err);
    return false;
}

void in_state_answer(struct in_state_task *task, struct qf_str data)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;

    qf_strbuf_puts(&body, "{\"status\":\"success\",\"data\":");
    qf_strbuf_str(&body, data);
    qf_strbuf_puts(&body, "}\n");
    qh_stream_answer(task->stream, 200, "application/json", qf_strbuf_view(&body));
}

/* --- definitions --- */

static qf_rc answer_maps(struct in_state_task *task, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf data = QF_STRBUF_INIT;
    qf_rc rc =
        in_state_maps(task->state, qf_str_from(task->tenant), qf_str_from(task->map), &data, err);

    if (rc == QF_OK)
        in_state_answer(task, qf_strbuf_view(&data));
    return rc;
}

static qf_rc run_define(struct in_state_task *task, struct qf_err *err)
{
    qf_rc rc = in_state_define(task->state, qf_str_from(task->tenant), &task->definition,
                               task->version, err);

    return rc == QF_OK ? answer_maps(task, err) : rc;
}

static qf_rc run_drop(struct in_state_task *task, struct qf_err *err)
{
    qf_rc rc = in_state_drop(task->state, qf_str_from(task->tenant), qf_str_from(task->map),
                             task->version, err);

    if (rc == QF_OK)
        qh_stream_answer(task->stream, 204, NULL, QF_STR(""));
    return rc;
}

/* A definition whose name is the path's. */
static qf_rc read_definition(struct in_state_task *task, struct qf_err *err)
{
    static const char *const taken[] = { "maps", "load", "rules" };
    qf_rc rc =
        sm_definition_read_as(qf_strbuf_view(&task->body), task->map, &task->definition, err);

    if (rc == QF_OK && strcmp(task->definition.name, task->map) != 0)
        rc = qf_err_set(err, QF_EINVAL, "the definition is of a map %s", task->definition.name);
    for (size_t i = 0; i < QF_COUNT_OF(taken) && rc == QF_OK; i++)
        if (strcmp(task->map, taken[i]) == 0)
            rc = qf_err_set(err, QF_EINVAL,
                            "no map is called %s: the path under which it would be looked up is "
                            "taken",
                            taken[i]);
    return rc;
}

static void handle_maps(struct qh_visit *visit)
{
    struct in_state_task *task = in_state_task_new(visit, answer_maps);

    in_state_task_submit(visit, task, task->routes->state_reads);
}

static void handle_map(struct qh_visit *visit)
{
    struct in_state_task *task;
    struct qf_err err = { 0 };
    char name[SM_NAME_MAX + 1];
    uint64_t version;

    if (!in_state_map_name(visit, visit->rest, name) ||
        !in_param_u64(visit, "version", SM_EXPECT_ANY, UINT64_MAX / 2, &version))
        return;
    task = in_state_task_new(visit, answer_maps);
    task->version = version;
    memcpy(task->map, name, sizeof(name));
    if (visit->request->method == QH_METHOD_PUT) {
        task->run = run_define;
        if (read_definition(task, &err) != QF_OK) {
            in_fail(visit, &err);
            (void)in_state_task_free(task);
            return;
        }
    } else if (visit->request->method == QH_METHOD_DELETE) {
        task->run = run_drop;
    }
    in_state_task_submit(visit, task,
                         task->run == answer_maps ? task->routes->state_reads
                                                  : task->routes->state_writes);
}

/* --- snapshots --- */

static void add_header(struct in_state_task *task, const char *name, uint64_t value)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%" PRIu64, value);
    qh_stream_header(task->stream, name, text);
}

static qf_rc run_snapshot(struct in_state_task *task, struct qf_err *err)
{
    struct in_state_snapshot snapshot;
    int64_t as_of = in_state_as_of(task->state);
    qf_rc rc = in_state_snapshot(task->state, qf_str_from(task->tenant), qf_str_from(task->map),
                                 task->version, task->after, !task->range[0], &snapshot, err);

    if (rc == QF_EGONE) {
        in_fail_as(task->stream, err, 410);
        return QF_OK;
    }
    if (rc != QF_OK)
        return rc;
    add_header(task, "X-Promfabric-State-Created", snapshot.created);
    add_header(task, "X-Promfabric-State-As-Of", (uint64_t)as_of);
    if (!snapshot.version) {
        qh_stream_answer(task->stream, 204, NULL, QF_STR(""));
        return QF_OK;
    }
    add_header(task, "X-Promfabric-State-Version", snapshot.version);
    if (snapshot.file.file < 0) {
        qh_stream_answer(task->stream, 304, NULL, QF_STR(""));
        return QF_OK;
    }
    qh_stream_header(task->stream, "X-Promfabric-State-Sum", snapshot.file.sum);
    (void)qh_range_send(task->stream, qf_str_from(task->range), "application/octet-stream",
                        &(struct qh_body){ .fd = snapshot.file.file }, snapshot.file.size);
    return QF_OK;
}

static void handle_snapshot(struct qh_visit *visit)
{
    struct qf_str range = qh_request_header(visit->request, "Range");
    struct in_state_task *task;
    char name[SM_NAME_MAX + 1];
    uint64_t version, after;

    if (!in_state_map_name(visit, visit->rest, name) ||
        !in_param_u64(visit, "version", 0, UINT64_MAX / 2, &version) ||
        !in_param_u64(visit, "after", 0, UINT64_MAX / 2, &after))
        return;
    task = in_state_task_new(visit, run_snapshot);
    memcpy(task->map, name, sizeof(name));
    task->version = version;
    task->after = after;
    if (version &&
        range.len < sizeof(task->range)) /* of what is newest, the rest may be of another one */
        (void)snprintf(task->range, sizeof(task->range), "%.*s", QF_STR_ARG(range));
    in_state_task_submit(visit, task, task->routes->state_writes);
}

/* --- loads --- */

static qf_rc run_load(struct in_state_task *task, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf data = QF_STRBUF_INIT;
    struct in_state_load *load = &task->load;
    qf_rc rc;

    load->tenant = qf_str_from(task->tenant);
    load->map = qf_str_from(task->map);
    load->body = qf_strbuf_view(&task->body);
    load->now_ms = qf_clock_wall_ms();
    rc = in_state_load(task->state, load, err);
    if (rc == QF_OK) {
        qf_strbuf_printf(&data,
                         "{\"rows\":%" PRIu64 ",\"skipped\":%" PRIu64 ",\"position\":%" PRIu64
                         ",\"reasons\":[",
                         load->loaded.rows, load->loaded.skipped, load->position);
        qf_strbuf_str(&data, qf_strbuf_view(&load->reasons));
        qf_strbuf_puts(&data, "]}");
        in_state_answer(task, qf_strbuf_view(&data));
    }
    qf_strbuf_done(&load->reasons);
    return rc;
}

/* By its parameter, or else by the type of the body. */
static bool read_format(struct qh_visit *visit, enum sm_format *ret_format)
{
    static const struct {
        const char *name, *type;
        enum sm_format format;
    } formats[] = { { "xml", "application/xml", SM_XML },
                    { "xml", "text/xml", SM_XML },
                    { "jsonl", "application/jsonl", SM_JSON_LINES },
                    { "jsonl", "application/x-ndjson", SM_JSON_LINES },
                    { "csv", "text/csv", SM_CSV } };
    struct qf_str name = qh_visit_param(visit, "format");

    for (size_t i = 0; i < QF_COUNT_OF(formats); i++)
        if (name.len ? qf_str_is(name, formats[i].name)
                     : qf_str_is(visit->request->content_type, formats[i].type)) {
            *ret_format = formats[i].format;
            return true;
        }
    return false;
}

static void handle_load(struct qh_visit *visit)
{
    struct qf_str map = qh_visit_param(visit, "map"), on_error = qh_visit_param(visit, "on-error");
    struct in_state_task *task;
    struct qf_err err = { 0 };
    char name[SM_NAME_MAX + 1] = "";
    enum sm_format format;

    if (map.len && !in_state_map_name(visit, map, name))
        return;
    if (!read_format(visit, &format))
        (void)qf_err_set(&err, QF_EINVAL, "\"format\" is xml, jsonl or csv");
    else if (on_error.len && !qf_str_is(on_error, "stop") && !qf_str_is(on_error, "skip"))
        (void)qf_err_set(&err, QF_EINVAL, "\"on-error\" is stop or skip");
    if (err.rc != QF_OK) {
        in_fail(visit, &err);
        return;
    }
    task = in_state_task_new(visit, run_load);
    memcpy(task->map, name, sizeof(name));
    task->load.format = format;
    task->load.skip = qf_str_is(on_error, "skip");
    in_state_task_submit(visit, task, task->routes->state_writes);
}

static const struct qh_route routes[] = {
    { "/api/v1/state/maps", QH_GET, false, handle_maps, in_fail },
    { "/api/v1/state/maps/*/snapshot", QH_GET, false, handle_snapshot, in_fail },
    { "/api/v1/state/maps/*", QH_GET | QH_METHOD_PUT | QH_METHOD_DELETE, false, handle_map,
      in_fail },
    { "/api/v1/state/load", QH_METHOD_POST, false, handle_load, in_fail },
};
const struct qh_routes in_state_routes = { routes, QF_COUNT_OF(routes) };
