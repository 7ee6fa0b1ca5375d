/* worker_trace.c - "[now] event -> effect; effect": the wording is part of the interface.
 *
 * s session, q query, k work, k7#2 its second attempt, r run. */
#include "worker_int.h"

#include <inttypes.h>

#include "trace.h"

static void event_text(const struct wc_worker *wc, struct wc_line *line)
{
    const struct wc_worker_event *event = wc->event;

    (void)wc_line_add(line, "[%" PRId64 "] %s", wc->now, wc_worker_event_name(event->type));
    if (event->session.v)
        (void)wc_line_add(line, " s%" PRIu64, event->session.v);
    if (event->type == WC_WORKER_EV_ASSIGN)
        (void)wc_line_add(line, " q%" PRIu64, event->assign.query.v);
    if (event->work.v)
        (void)wc_line_add(line, " k%" PRIu64 "#%" PRIu32, event->work.v, event->attempt);
    if (event->run.v)
        (void)wc_line_add(line, " r%" PRIu64, event->run.v);
    if (event->type == WC_WORKER_EV_RUN_FAILED)
        (void)wc_line_add(line, " %s%s", qf_rc_name(event->failure.rc),
                          event->failure.retryable ? " retryable" : "");
    if (event->type == WC_WORKER_EV_ACCEPTING)
        (void)wc_line_add(line, " %s", event->accepting ? "yes" : "no");
}

static void status_text(const struct wc_worker *wc, struct wc_line *line)
{
    (void)wc_line_add(line, "%s%s", wc->stats.accepting ? " accepting" : "",
                      wc->stats.draining ? " draining" : "");
}

static bool effect_text(const struct wc_worker *wc, struct wc_line *line,
                        const struct wc_worker_effect *effect, const char *sep)
{
    struct wc_line one = { .len = 0 };

    (void)wc_line_add(&one, "%s", wc_worker_effect_name(effect->type));
    if (effect->session.v)
        (void)wc_line_add(&one, " s%" PRIu64, effect->session.v);
    if (effect->query.v)
        (void)wc_line_add(&one, " q%" PRIu64, effect->query.v);
    if (effect->work.v)
        (void)wc_line_add(&one, " k%" PRIu64 "#%" PRIu32, effect->work.v, effect->attempt);
    if (effect->run.v)
        (void)wc_line_add(&one, " r%" PRIu64, effect->run.v);
    if (effect->type == WC_WORKER_DO_REJECT)
        (void)wc_line_add(&one, " %s", wc_reject_name(effect->reject));
    if (effect->type == WC_WORKER_DO_FAILED)
        (void)wc_line_add(&one, " %s%s", qf_rc_name(effect->failure.rc),
                          effect->failure.retryable ? " retryable" : "");
    if (effect->type == WC_WORKER_DO_STATUS)
        status_text(wc, &one);
    if (effect->type == WC_WORKER_DO_DRAINED)
        (void)wc_line_add(&one, " unfinished=%" PRIu32, effect->count);
    return wc_line_add(line, "%s%s", sep, one.text);
}

void wc_worker_trace_step(struct wc_worker *wc, qf_rc rc)
{
    struct wc_line line = { .len = 0 };

    event_text(wc, &line);
    if (rc != QF_OK)
        (void)wc_line_add(&line, " !%s", qf_rc_name(rc));
    if (wc->stats.illegal != wc->trace_illegal)
        (void)wc_line_add(&line, " (illegal)");
    if (wc->stats.stale != wc->trace_stale)
        (void)wc_line_add(&line, " (stale)");
    for (size_t i = 0; i < wc->effect_count; i++) {
        if (!effect_text(wc, &line, &wc->effects[i], i ? "; " : " -> ")) {
            wc_line_cut(&line, wc->effect_count - i);
            break;
        }
    }
    wc->trace(wc->trace_ctx, line.text, line.len);
}
