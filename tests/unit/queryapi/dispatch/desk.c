/* desk.c - the coordinator of a test, and those who talk to it. */
#include "tests/unit/queryapi/dispatch/desk.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "tests/lib/test.h"

struct desk *desk_now;

struct desk *desk_new(size_t queries_max, size_t active_max, size_t tenant_queue_max)
{
    struct desk *desk = qf_xcalloc(1, sizeof(*desk));
    struct qf_err err = { 0 };
    struct qa_coord_options options = { .api_id = "api",
                                        .metrics = &desk->metrics,
                                        .spool_dir = "/nowhere",
                                        .queries_max = queries_max,
                                        .queries_active_max = active_max,
                                        .tenant_queue_max = tenant_queue_max,
                                        .query_artifact_bytes_max = 1000,
                                        .query_timeout_ms = 60000,
                                        .worker_wait_ms = 30000,
                                        .hedge_after = 2,
                                        .quarantine_after = 2,
                                        .quarantine_ms = 60000,
                                        .slow_query_ms = 0 };

    desk_now = desk;
    qa_metrics_init(&desk->metrics);
    desk->env.memory_bytes_max = 1 << 20;
    desk->items = 1;
    desk->segment.name = QF_STR("a.parquet");
    desk->coord = co_new(&options, &err);
    CHECK_MSG(desk->coord, "%s", err.msg);
    return desk;
}

void desk_limit(struct desk *desk, const struct qf_limits *limits)
{
    struct qa_tenants_options options = { .limits = *limits };

    desk->env.tenants = qa_tenants_new(&options, NULL);
}

/* Whatever is left is ended as the server would at its exit. */
void desk_freep(struct desk **at)
{
    struct desk *desk = *at;

    desk->pool_full = false;
    co_post(desk->coord, (struct msg){ .kind = MSG_STOP });
    desk_pump(desk);
    while (desk->tasks.count)
        desk_turn(desk);
    CHECK_EQ(qa_coord_query_count(desk->coord), 0);
    while (desk->fetches.count)
        desk_fetched(desk, false);
    CHECK_EQ(atomic_load(&desk->coord->spool_bytes), 0);
    co_free(desk->coord);
    (void)qa_tenants_free(desk->env.tenants);
    qa_metrics_done(&desk->metrics);
    qf_strbuf_done(&desk->log);
    free(desk->shown);
    QF_VEC_DONE(&desk->tasks);
    QF_VEC_DONE(&desk->fetches);
    free(desk);
    desk_now = NULL;
}

void desk_note(const char *fmt, ...)
{
    char text[300];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    qf_strbuf_printf(&desk_now->log, "%s%s", desk_now->log.len ? "; " : "", text);
}

const char *desk_log(struct desk *desk)
{
    free(desk->shown);
    desk->shown = qf_strbuf_take(&desk->log);
    return desk->shown ? desk->shown : "";
}

void desk_pump(struct desk *desk)
{
    struct msg *msg;

    while ((msg = qf_mailbox_try_receive(desk->coord->box)) != NULL)
        co_handle(desk->coord, msg);
}

void desk_turn(struct desk *desk)
{
    struct task task;

    CHECK(desk->tasks.count > 0);
    task = desk->tasks.items[0];
    desk->tasks.count--;
    memmove(desk->tasks.items, desk->tasks.items + 1, desk->tasks.count * sizeof(task));
    task.fn(task.arg);
    desk_pump(desk);
}

void desk_show(struct desk *desk)
{
    struct task task;

    desk_pump(desk);
    CHECK(desk->tasks.count > 0);
    task = desk->tasks.items[--desk->tasks.count];
    task.fn(task.arg);
}

void desk_time_passes(struct desk *desk, int64_t ms)
{
    desk->later_ms += ms;
    co_tick(desk->coord);
}

struct qh_stream *desk_ask(struct desk *desk, const char *tenant)
{
    struct qh_stream *stream = qh_stream_new(1 << 16);
    struct qa_ask ask = { .kind = QA_QUERY_INSTANT,
                          .tenant = qf_str_from(tenant),
                          .text = QF_STR("up") };

    qa_coord_submit(desk->coord, qa_query_new(&desk->env, &ask, stream));
    desk_pump(desk);
    return stream;
}

static void ignore(void *connection)
{
    (void)connection;
}

const char *desk_answer(struct qh_stream *stream)
{
    static char text[8200];
    struct qh_stream_hooks hooks = { .suspend = ignore, .resume = ignore, .fd = -1 };
    struct qh_stream_head head;
    char body[8000];
    ssize_t len;

    qh_stream_attach(stream, &hooks);
    if (!qh_stream_head(stream, &head))
        return "open";
    len = qh_stream_take(stream, body, sizeof(body));
    if (len == QH_STREAM_CUT)
        return "cut";
    (void)snprintf(text, sizeof(text), "%d %.*s", head.status, (int)QF_MAX(len, (ssize_t)0), body);
    return text;
}

void desk_say(struct desk *desk, uint64_t session, const struct pb_worker_message *message)
{
    co_message(desk->coord, session, message);
}

void desk_worker_up(struct desk *desk, uint64_t session)
{
    char name[20];
    const char *all[16] = { "a:1", "b:1", "c:1", "d:1" };
    struct pb_worker_message message = { .kind = PB_WORKER_STATUS };

    (void)snprintf(name, sizeof(name), "worker-%d", (int)session);
    qa_coord_endpoints(desk->coord, all, session);
    desk_pump(desk);
    message.u.status = (struct pb_status){ .protocol_version = desk->protocol ? desk->protocol
                                                                              : PB_PROTOCOL_VERSION,
                                           .worker_id = qf_str_from(name),
                                           .artifact_base_url = QF_STR("http://w"),
                                           .accepting_work = true,
                                           .slots = 1 };
    desk_say(desk, session, &message);
}

void desk_accept(struct desk *desk, uint64_t session, uint64_t work, uint32_t attempt)
{
    struct pb_worker_message message = { .kind = PB_WORKER_ACCEPTED,
                                         .u.accepted = { work, attempt } };

    desk_say(desk, session, &message);
}

void desk_ready(struct desk *desk, uint64_t session, uint64_t work, uint32_t attempt, uint64_t size)
{
    struct pb_worker_message message = { .kind = PB_WORKER_READY };

    message.u.ready = (struct pb_ready){ .work_id = work,
                                         .attempt = attempt,
                                         .artifact_url = QF_STR("http://w/a"),
                                         .artifact_size_bytes = size,
                                         .artifact_checksum = QF_STR("7") };
    desk_say(desk, session, &message);
}

void desk_fail(struct desk *desk, uint64_t session, uint64_t work, uint32_t attempt,
               const char *code, bool retryable)
{
    struct pb_worker_message message = { .kind = PB_WORKER_FAILED };

    message.u.failed = (struct pb_failed){ .work_id = work,
                                           .attempt = attempt,
                                           .code = qf_str_from(code),
                                           .reason = QF_STR("the disk says no"),
                                           .retryable = retryable };
    desk_say(desk, session, &message);
}

void desk_fetched(struct desk *desk, bool ok)
{
    struct qa_fetch *fetch;

    CHECK(desk->fetches.count > 0);
    fetch = desk->fetches.items[0];
    desk->fetches.count--;
    memmove(desk->fetches.items, desk->fetches.items + 1, desk->fetches.count * sizeof(fetch));
    fetch->ok = ok;
    if (ok) {
        fetch->artifact.data = qf_xstrdup("bytes");
        (void)atomic_fetch_add(&desk->coord->spool_bytes, fetch->size_bytes);
    }
    co_post(desk->coord, (struct msg){ .kind = MSG_FETCHED, .fetch = fetch });
    desk_pump(desk);
}
