/* route_state_look.c - what state maps say: of a key, of many, row by row. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "base/pure/number.h"
#include "base/sys/clock.h"
#include "ingest/http/state_int.h"

#define ROWS_DEFAULT 100

static bool refuse(struct qh_visit *visit, const char *name, const char *what)
{
    struct qf_err err = { 0 };

    (void)qf_err_set(&err, QF_EINVAL, "invalid parameter \"%s\": expected %s", name, what);
    in_fail(visit, &err);
    return false;
}

/* False, and answered, if it is there and no time. *ret_set may be NULL. */
static bool read_time(struct qh_visit *visit, const char *name, int64_t *ret_time, bool *ret_set)
{
    struct qf_str text = qh_visit_param(visit, name);

    if (ret_set)
        *ret_set = text.len > 0;
    if (!text.len || qf_time_parse_rfc3339(text, ret_time))
        return true;
    return refuse(visit, name, "a time as 2026-01-31T23:59:58Z");
}

/* A task about the map of the path; NULL: it was answered that there can be none. */
static struct in_state_task *task_of(struct qh_visit *visit, in_state_run *run)
{
    char name[SM_NAME_MAX + 1];
    struct in_state_task *task;

    if (!in_state_map_name(visit, visit->rest, name))
        return NULL;
    task = in_state_task_new(visit, run);
    memcpy(task->map, name, sizeof(name));
    return task;
}

/* --- keys --- */

static qf_rc look_up(struct in_state_task *task, const struct qf_str *keys, size_t count,
                     struct in_state_found *ret_found, struct qf_strbuf *rows, struct qf_err *err)
{
    const struct in_state_keys wanted = { .tenant = qf_str_from(task->tenant),
                                          .map = qf_str_from(task->map),
                                          .keys = keys,
                                          .count = count,
                                          .time = task->time };

    return in_state_look_up(task->state, &wanted, ret_found, rows, err);
}

static void begin_answer(const struct in_state_task *task, struct qf_strbuf *data, uint64_t version)
{
    qf_strbuf_printf(data, "{\"version\":%" PRIu64 ",\"as_of\":%" PRId64, version,
                     in_state_as_of(task->state));
}

static qf_rc run_one(struct in_state_task *task, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf data = QF_STRBUF_INIT, row = QF_STRBUF_INIT;
    struct qf_str key = qf_strbuf_view(&task->key);
    struct in_state_found found;
    qf_rc rc = look_up(task, &key, 1, &found, &row, err);

    if (rc != QF_OK)
        return rc;
    if (!found.found)
        return qf_err_set(err, QF_ENOTFOUND, "map %s says nothing of %.*s", task->map,
                          (int)QF_MIN(key.len, (size_t)100), key.data);
    begin_answer(task, &data, found.version);
    qf_strbuf_puts(&data, ",\"row\":");
    qf_strbuf_str(&data, qf_strbuf_view(&row));
    qf_strbuf_putc(&data, '}');
    in_state_answer(task, qf_strbuf_view(&data));
    return QF_OK;
}

/* A number is asked for as the text it is. */
static bool read_key(const json_t *from, struct qf_strbuf *room, struct qf_str *ret_key)
{
    if (json_is_string(from)) {
        *ret_key = (struct qf_str){ json_string_value(from), json_string_length(from) };
        return true;
    }
    if (!json_is_integer(from))
        return false;
    ret_key->data = room->data + room->len;
    qf_strbuf_printf(room, "%" JSON_INTEGER_FORMAT, json_integer_value(from));
    ret_key->len = (size_t)(room->data + room->len - ret_key->data);
    return true;
}

static qf_rc read_keys(const json_t *from, struct qf_strbuf *room, struct qf_str *keys,
                       struct qf_err *err)
{
    const json_t *item;
    size_t i;

    (void)qf_strbuf_reserve(room,
                            json_array_size(from) * 24 + 1); /* what is borrowed must not move */
    json_array_foreach(from, i, item)
    {
        if (!read_key(item, room, &keys[i]))
            return qf_err_set(err, QF_EINVAL, "key %zu is neither text nor an integer", i + 1);
    }
    return QF_OK;
}

static qf_rc answer_keys(struct in_state_task *task, const json_t *from, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf data = QF_STRBUF_INIT, rows = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf room = QF_STRBUF_INIT;
    size_t count = json_array_size(from);
    struct qf_str *keys = qf_xcalloc(count + 1, sizeof(*keys));
    struct in_state_found found;
    qf_rc rc = read_keys(from, &room, keys, err);

    if (rc == QF_OK)
        rc = look_up(task, keys, count, &found, &rows, err);
    free(keys);
    if (rc != QF_OK)
        return rc;
    begin_answer(task, &data, found.version);
    qf_strbuf_printf(&data, ",\"found\":%zu,\"rows\":[", found.found);
    qf_strbuf_str(&data, qf_strbuf_view(&rows));
    qf_strbuf_puts(&data, "]}");
    in_state_answer(task, qf_strbuf_view(&data));
    return QF_OK;
}

static qf_rc read_wanted(struct in_state_task *task, const json_t *root, struct qf_err *err)
{
    const json_t *time = json_object_get(root, "time");

    if (!json_is_array(json_object_get(root, "keys")) || json_object_size(root) != (time ? 2u : 1u))
        return qf_err_set(err, QF_EINVAL, "expected {\"keys\":[...],\"time\":\"...\"}");
    if (json_array_size(json_object_get(root, "keys")) > IN_STATE_KEYS_MAX)
        return qf_err_set(err, QF_EINVAL, "at most %d keys at once", (int)IN_STATE_KEYS_MAX);
    if (time &&
        (!json_is_string(time) ||
         !qf_time_parse_rfc3339(
             (struct qf_str){ json_string_value(time), json_string_length(time) }, &task->time)))
        return qf_err_set(err, QF_EINVAL, "\"time\" is a time as 2026-01-31T23:59:58Z");
    return QF_OK;
}

static qf_rc run_many(struct in_state_task *task, struct qf_err *err)
{
    json_error_t why;
    json_t *root = json_loadb(task->body.len ? task->body.data : "", task->body.len,
                              JSON_REJECT_DUPLICATES, &why);
    qf_rc rc = root ? read_wanted(task, root, err)
                    : qf_err_set(err, QF_EINVAL, "the body is no JSON: %s", why.text);

    if (rc == QF_OK)
        rc = answer_keys(task, json_object_get(root, "keys"), err);
    json_decref(root);
    return rc;
}

static void handle_keys(struct qh_visit *visit)
{
    bool many = visit->request->method == QH_METHOD_POST;
    struct qf_str key = qh_visit_param(visit, "key");
    int64_t time = qf_clock_wall_ms();
    struct in_state_task *task;

    if (!many && !key.len) {
        (void)refuse(visit, "key", "what to look up (rows are below /rows)");
        return;
    }
    if (!read_time(visit, "time", &time, NULL))
        return;
    task = task_of(visit, many ? run_many : run_one);
    if (!task)
        return;
    task->time = time;
    qf_strbuf_str(&task->key, key);
    in_state_task_submit(visit, task, task->routes->state_reads);
}

/* --- rows --- */

static qf_rc run_rows(struct in_state_task *task, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf data = QF_STRBUF_INIT;
    struct in_state_page page = { .tenant = qf_str_from(task->tenant),
                                  .map = qf_str_from(task->map),
                                  .filter = task->filter,
                                  .limit = task->limit,
                                  .after = qf_strbuf_view(&task->cursor) };
    qf_rc rc;

    page.filter.key = qf_strbuf_view(&task->key);
    page.filter.prefix = qf_strbuf_view(&task->prefix);
    rc = in_state_rows(task->state, &page, &data, err);
    if (rc == QF_OK)
        in_state_answer(task, qf_strbuf_view(&data));
    return rc;
}

static bool read_filter(struct qh_visit *visit, struct sm_filter *filter)
{
    struct qf_str number = qh_visit_param(visit, "number");

    filter->has_number = number.len > 0;
    if (number.len && !qf_parse_i64(number, &filter->number))
        return refuse(visit, "number", "an integer");
    return read_time(visit, "since", &filter->since, &filter->has_since) &&
           read_time(visit, "until", &filter->until, &filter->has_until);
}

static void handle_rows(struct qh_visit *visit)
{
    struct sm_filter filter = { 0 };
    struct in_state_task *task;
    uint64_t limit;

    if (!in_param_u64(visit, "limit", ROWS_DEFAULT, IN_STATE_ROWS_MAX, &limit) ||
        !read_filter(visit, &filter))
        return;
    if (!limit) {
        (void)refuse(visit, "limit", "at least 1");
        return;
    }
    task = task_of(visit, run_rows);
    if (!task)
        return;
    task->filter = filter;
    task->limit = limit;
    qf_strbuf_str(&task->key, qh_visit_param(visit, "key"));
    qf_strbuf_str(&task->prefix, qh_visit_param(visit, "prefix"));
    qf_strbuf_str(&task->cursor, qh_visit_param(visit, "after"));
    in_state_task_submit(visit, task, task->routes->state_reads);
}

static const struct qh_route routes[] = {
    { "/api/v1/state/*/rows", QH_GET, false, handle_rows, in_fail },
    { "/api/v1/state/*", QH_GET | QH_METHOD_POST, false, handle_keys, in_fail },
};
const struct qh_routes in_state_look_routes = { routes, QF_COUNT_OF(routes) };
