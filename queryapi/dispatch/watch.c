/* watch.c - clients that watch a list: every now and then an event with what is in it now.
 *
 * An event is a page (pages.c), copied on the coordinator's thread and written by one of the pool. A
 * client that does not read, or whose page is still being written, is passed over: its next event is
 * the newest state, not all that it missed. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "queryapi/dispatch/coordinator_int.h"

#define WATCH_INTERVAL_MS 500
/* Ingest nodes are asked while somebody watches. */
#define ROLL_INTERVAL_MS 1000
#define WATCHERS_MAX 64
/* Of one tenant; operators, who see all of them, count as one. */
#define TENANT_WATCHERS_MAX 16

static void watcher_free(struct watcher *watcher)
{
    (void)qh_stream_drop(watcher->stream);
    free(watcher->tenant);
    free(watcher);
}

static bool is_crowded(const struct qa_coord *coord, const char *tenant)
{
    size_t count = 0;

    for (size_t i = 0; i < coord->watchers.count; i++)
        count += strcmp(coord->watchers.items[i]->tenant, tenant) == 0;
    return coord->watchers.count >= WATCHERS_MAX || count >= TENANT_WATCHERS_MAX;
}

void co_watch(struct qa_coord *coord, enum qa_inspect what, const char *tenant, size_t limit,
              struct qh_stream *stream)
{
    struct watcher *watcher;

    if (coord->stopping || coord->draining) {
        qa_answer_error(stream, QA_FORMAT_JSON, QF_EUNAVAILABLE, "the server is shutting down");
        return;
    }
    if (is_crowded(coord, tenant)) {
        qa_answer_error(stream, QA_FORMAT_JSON, QF_EBUSY, "too many clients watch already");
        return;
    }
    watcher = qf_xcalloc(1, sizeof(*watcher));
    watcher->what = what;
    watcher->tenant = qf_xmemdup0(tenant, strlen(tenant));
    watcher->limit = limit;
    watcher->stream = qh_stream_ref(stream);
    atomic_init(&watcher->busy, false);
    QF_VEC_PUSH(&coord->watchers, watcher);
    qh_stream_header(stream, "Cache-Control", "no-cache");
    qh_stream_begin(stream, 200, "text/event-stream");
    coord->watch_due = qf_clock_mono_ms();
}

/* True: it is over, and let go of. */
static bool is_over(const struct qa_coord *coord, struct watcher *watcher)
{
    bool ends = coord->draining || coord->stopping;

    if (atomic_load(&watcher->busy) || !(ends || qh_stream_gone(watcher->stream)))
        return false;
    qh_stream_end(watcher->stream);
    watcher_free(watcher);
    return true;
}

static void post_roll(void *ctx, struct qf_str nodes)
{
    co_post(ctx, (struct msg){ .kind = MSG_ROLL, .text = qf_xmemdup0(nodes.data, nodes.len) });
}

void co_rolled(struct qa_coord *coord, char *text)
{
    free(coord->roll);
    coord->roll = *text ? QF_TAKE(text) : NULL;
    free(text);
    coord->roll_called = false;
}

static void call_roll(struct qa_coord *coord, qf_time_ms now)
{
    bool wanted = false;

    for (size_t i = 0; i < coord->watchers.count; i++)
        wanted = wanted || coord->watchers.items[i]->what == QA_INSPECT_WORKERS;
    if (!wanted)
        co_rolled(coord, qf_xstrdup("")); /* who watches next shall not see what was long ago */
    else if (coord->asker && !coord->roll_called && now >= coord->roll_due) {
        coord->roll_due = now + ROLL_INTERVAL_MS;
        coord->roll_called = qa_asker_roll(coord->asker, post_roll, coord);
    }
}

void co_watch_tick(struct qa_coord *coord, qf_time_ms now)
{
    size_t kept = 0;

    if (now < coord->watch_due)
        return;
    for (size_t i = 0; i < coord->watchers.count; i++) {
        struct watcher *watcher = coord->watchers.items[i];

        if (is_over(coord, watcher))
            continue;
        coord->watchers.items[kept++] = watcher;
        if (!atomic_load(&watcher->busy) && qh_stream_room(watcher->stream))
            co_show_watcher(coord, watcher);
    }
    coord->watchers.count = kept;
    qf_metric_set(coord->options.metrics->watchers, 0, (double)kept);
    coord->watch_due = kept ? now + WATCH_INTERVAL_MS : QF_TIME_NEVER;
    call_roll(coord, now);
}

void co_watch_done(struct qa_coord *coord)
{
    for (size_t i = 0; i < coord->watchers.count; i++) {
        qh_stream_end(coord->watchers.items[i]->stream);
        watcher_free(coord->watchers.items[i]);
    }
    QF_VEC_DONE(&coord->watchers);
    free(coord->roll);
}
