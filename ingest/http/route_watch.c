/* route_watch.c - what changes in `meta`, as events.
 *
 *     event: state      without `from`: all queues as this node knows them, at `index`
 *     event: change     a record of meta; its id is its index
 *     event: heartbeat  each second: nothing else up to `index`
 *     event: error      the stream ends; whoever goes on says from=INDEX, the one behind the last
 *
 * Whoever asks for records that are gone gets 410, and begins again without `from`. A watch is a poll of meta
 * that waits a second, again and again: any node serves it, and its leader confirms what it says. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "ingest/http/routes_int.h"

#define WATCHES_MAX 64
#define HEARTBEAT_MS 1000
#define EVENTS_MAX 100
/* A poll that ends sooner without a record did not wait: somebody has too much to do. */
#define TOO_SOON_MS 500

struct watch {
    struct in_routes *routes;
    struct qh_stream *stream;
    struct qn_ask *ask; /* the answered one */
    uint64_t next;
    int64_t asked_ms;
};

static void watch_free(struct watch *watch)
{
    atomic_fetch_sub(&watch->routes->watches, 1);
    (void)qh_stream_drop(watch->stream);
    free(watch);
}

static void add_event(struct qf_strbuf *buf, const char *kind, uint64_t index)
{
    qf_strbuf_printf(buf, "event: %s\nid: %" PRIu64 "\ndata: ", kind, index);
}

/* {"node":...} with the index in front. */
static void add_state(struct qf_strbuf *buf, const struct qn_answer *answer)
{
    struct qf_str text = qf_strbuf_view(&answer->text);

    add_event(buf, "state", answer->next - 1);
    qf_strbuf_printf(buf, "{\"index\":%" PRIu64 ",", answer->next - 1);
    qf_strbuf_str(buf, qf_str_sub(text, 1, text.len));
    qf_strbuf_puts(buf, "\n\n");
}

static void add_changes(struct qf_strbuf *buf, const struct qn_answer *answer)
{
    for (size_t i = 0; i < answer->records.count; i++) {
        const struct qn_record *record = &answer->records.items[i];

        add_event(buf, "change", record->offset);
        qf_strbuf_str(buf, record->data); /* JSON in one line */
        qf_strbuf_puts(buf, "\n\n");
    }
    if (!answer->records.count) {
        add_event(buf, "heartbeat", answer->next - 1);
        qf_strbuf_printf(buf, "{\"index\":%" PRIu64 "}\n\n", answer->next - 1);
    }
}

static void add_error(struct qf_strbuf *buf, const struct qf_err *err)
{
    qf_strbuf_puts(buf, "event: error\ndata: {\"error\":");
    qf_strbuf_json(buf, qf_str_from(qf_rc_name(err->rc)));
    qf_strbuf_puts(buf, ",\"message\":");
    qf_strbuf_json(buf, qf_str_from(err->msg));
    qf_strbuf_puts(buf, "}\n\n");
}

static bool ask_next(struct watch *watch, enum qn_verb verb);

/* What the answer means for the watch: events into @buf; false: it ends with them. */
static bool take_answer(struct watch *watch, struct qn_answer *answer, struct qf_strbuf *buf)
{
    bool soon = qf_clock_mono_ms() < watch->asked_ms + TOO_SOON_MS;

    if (answer->err.rc == QF_OK && watch->ask->verb == QN_POLL && !answer->records.count && soon)
        (void)qf_err_set(&answer->err, QF_EBUSY, "too many wait at this queue's leader: try again");
    if (answer->err.rc != QF_OK) {
        add_error(buf, &answer->err);
        return false;
    }
    if (watch->ask->verb == QN_LIST)
        add_state(buf, answer);
    else
        add_changes(buf, answer);
    watch->next = answer->next;
    return true;
}

static void go_on(void *arg)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct watch *watch = arg;
    struct qn_ask *ask = watch->ask;
    bool ends;

    if (!qh_stream_begun(watch->stream) && ask->answer.err.rc != QF_OK) {
        in_answer(ask, watch->stream); /* 410, 403, 503 */
        watch_free(watch);
        return;
    }
    ends = !take_answer(watch, &ask->answer, &buf);
    qh_stream_begin(watch->stream, 200, "text/event-stream");
    ends |= !qh_stream_write(watch->stream, qf_strbuf_view(&buf)) ||
            !qh_stream_room(watch->stream) || atomic_load(&watch->routes->draining);
    (void)qn_ask_free(ask);
    if (ends || !ask_next(watch, QN_POLL)) {
        qh_stream_end(watch->stream);
        watch_free(watch);
    }
}

/* On the node's thread. */
static void answered(void *ctx, struct qn_ask *ask)
{
    struct watch *watch = ctx;

    watch->ask = ask;
    if (!qf_pool_submit(watch->routes->pool, go_on, watch)) {
        if (ask->answer.err.rc == QF_OK) /* do not write events on the node's thread */
            (void)qf_err_set(&ask->answer.err, QF_EBUSY, "too many reads are under way: try again");
        go_on(watch);
    }
}

static bool ask_next(struct watch *watch, enum qn_verb verb)
{
    struct qn_ask *ask = qn_ask_new(verb, verb == QN_POLL ? QF_STR(QN_META) : QF_STR(""));

    ask->operates = true;
    ask->from = watch->next;
    ask->max = EVENTS_MAX;
    ask->wait_ms = verb == QN_POLL ? HEARTBEAT_MS : 0;
    ask->done = answered;
    ask->ctx = watch;
    watch->asked_ms = qf_clock_mono_ms();
    if (qn_ask(watch->routes->node, ask))
        return true;
    (void)qn_ask_free(ask);
    return false;
}

static bool admitted(struct qh_visit *visit)
{
    struct in_routes *routes = in_routes_of(visit);
    struct qf_err err = { 0 };

    if (!visit->caller.sees_all)
        (void)qf_err_set(&err, QF_EDENIED,
                         "meta is the system's own: it needs a key for all tenants");
    else if (atomic_load(&routes->draining))
        (void)qf_err_set(&err, QF_EUNAVAILABLE, "this node is stopping: ask another one");
    else if (atomic_fetch_add(&routes->watches, 1) < WATCHES_MAX)
        return true;
    else {
        atomic_fetch_sub(&routes->watches, 1);
        (void)qf_err_set(&err, QF_EBUSY, "%d watches are under way: try again", WATCHES_MAX);
    }
    in_fail(visit, &err);
    return false;
}

static void handle_watch(struct qh_visit *visit)
{
    struct qf_err err = { 0 };
    struct watch *watch;
    uint64_t from;

    if (!in_param_u64(visit, "from", 0, UINT64_MAX / 2, &from) || !admitted(visit))
        return;
    watch = qf_xcalloc(1, sizeof(*watch));
    *watch = (struct watch){ .routes = in_routes_of(visit),
                             .stream = qh_stream_ref(visit->stream),
                             .next = from };
    if (ask_next(watch, from ? QN_POLL : QN_LIST))
        return;
    (void)qf_err_set(&err, QF_EBUSY, "too many requests are under way: try again");
    in_fail(visit, &err);
    watch_free(watch);
}

static const struct qh_route routes[] = {
    { "/v1/watch", QH_GET, false, handle_watch, in_fail },
};
const struct qh_routes in_watch_routes = { routes, QF_COUNT_OF(routes) };
