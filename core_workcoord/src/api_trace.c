/* api_trace.c - "[now] event -> effect; effect": the wording is part of the interface.
 *
 * w worker, s session, q query, k work, k7#2 its second attempt. */
#include "api_int.h"

#include <inttypes.h>

#include "trace.h"

static void event_ids(const struct wc_api *wc, struct wc_line *line)
{
    const struct wc_api_event *event = wc->event;

    if (event->worker.v)
        (void)wc_line_add(line, " w%" PRIu64, event->worker.v);
    if (event->session.v)
        (void)wc_line_add(line, " s%" PRIu64, event->session.v);
    if (event->query.v)
        (void)wc_line_add(line, " q%" PRIu64, event->query.v);
    if (event->work.v)
        (void)wc_line_add(line, " k%" PRIu64 "#%" PRIu32, event->work.v, event->attempt);
}

static void event_details(const struct wc_api *wc, struct wc_line *line)
{
    const struct wc_api_event *event = wc->event;

    if (event->type == WC_API_EV_STATUS)
        (void)wc_line_add(line, "%s%s", event->status.accepting ? " accepting" : "",
                          event->status.draining ? " draining" : "");
    if (event->type == WC_API_EV_DISCONNECTED && event->died)
        (void)wc_line_add(line, " died");
    if (event->type == WC_API_EV_REJECTED)
        (void)wc_line_add(line, " %s", wc_reject_name(event->reject));
    if (event->type == WC_API_EV_FAILED)
        (void)wc_line_add(line, " %s%s", qf_rc_name(event->failure.rc),
                          event->failure.retryable ? " retryable" : "");
    if (event->type == WC_API_EV_FETCH_FAILED)
        (void)wc_line_add(line, " %s", wc_fetch_error_name(event->fetch_error));
    if (event->type == WC_API_EV_QUERY_BEGIN)
        (void)wc_line_add(line, " items=%zu", event->begin.count);
    if (event->type == WC_API_EV_QUERY_CANCEL && event->rc < 0)
        (void)wc_line_add(line, " %s", qf_rc_name(event->rc));
}

static bool effect_text(struct wc_line *line, const struct wc_api_effect *effect, const char *sep)
{
    struct wc_line one = { .len = 0 };

    (void)wc_line_add(&one, "%s", wc_api_effect_name(effect->type));
    if (effect->type == WC_API_DO_QUERY_ENDED)
        (void)wc_line_add(&one, " q%" PRIu64 " %s", effect->query.v,
                          effect->rc == QF_OK ? "ok" : qf_rc_name(effect->rc));
    if (effect->work.v)
        (void)wc_line_add(&one, " k%" PRIu64, effect->work.v);
    if (effect->attempt)
        (void)wc_line_add(&one, "#%" PRIu32, effect->attempt);
    if (effect->worker.v)
        (void)wc_line_add(&one, " w%" PRIu64, effect->worker.v);
    if (effect->session.v)
        (void)wc_line_add(&one, " s%" PRIu64, effect->session.v);
    return wc_line_add(line, "%s%s", sep, one.text);
}

void wc_api_trace_step(struct wc_api *wc, qf_rc rc)
{
    struct wc_line line = { .len = 0 };

    (void)wc_line_add(&line, "[%" PRId64 "] %s", wc->now, wc_api_event_name(wc->event->type));
    event_ids(wc, &line);
    event_details(wc, &line);
    if (rc != QF_OK)
        (void)wc_line_add(&line, " !%s", qf_rc_name(rc));
    if (wc->stats.illegal != wc->trace_illegal)
        (void)wc_line_add(&line, " (illegal)");
    if (wc->stats.stale != wc->trace_stale)
        (void)wc_line_add(&line, " (stale)");
    for (size_t i = 0; i < wc->effect_count; i++) {
        if (!effect_text(&line, &wc->effects[i], i ? "; " : " -> ")) {
            wc_line_cut(&line, wc->effect_count - i);
            break;
        }
    }
    wc->trace(wc->trace_ctx, line.text, line.len);
}
