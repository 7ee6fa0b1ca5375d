/* lane_trace.c - "[now] event -> effect; effect": the wording is part of the interface.
 *
 * w worker, s session, j job, j7#2 its second attempt. */
#include "lane_int.h"

#include <inttypes.h>

#include "trace.h"

static void event_text(const struct wc_lane *lane, struct wc_line *line)
{
    const struct wc_lane_event *event = lane->event;

    (void)wc_line_add(line, "[%" PRId64 "] %s", lane->now, wc_lane_event_name(event->type));
    if (event->worker.v)
        (void)wc_line_add(line, " w%" PRIu64, event->worker.v);
    if (event->type == WC_LANE_EV_STATUS)
        (void)wc_line_add(line, " s%" PRIu64 " slots=%" PRIu32 " load=%" PRIu32 "%s",
                          event->session.v, event->status.slots, event->status.load,
                          event->status.draining ? " draining" : "");
    if (event->type == WC_LANE_EV_LOST && event->died)
        (void)wc_line_add(line, " died");
    if (event->job.v && event->attempt)
        (void)wc_line_add(line, " j%" PRIu64 "#%" PRIu32, event->job.v, event->attempt);
    else if (event->job.v)
        (void)wc_line_add(line, " j%" PRIu64, event->job.v);
    if (event->type == WC_LANE_EV_FAILED)
        (void)wc_line_add(line, " %s%s", qf_rc_name(event->failure.rc),
                          event->failure.retryable ? " retryable" : "");
}

static bool effect_text(struct wc_line *line, const struct wc_lane_effect *effect, const char *sep)
{
    struct wc_line one = { .len = 0 };

    (void)wc_line_add(&one, "%s j%" PRIu64 "#%" PRIu32, wc_lane_effect_name(effect->type),
                      effect->job.v, effect->attempt);
    if (effect->worker.v)
        (void)wc_line_add(&one, " w%" PRIu64, effect->worker.v);
    if (effect->type == WC_LANE_DO_ENDED)
        (void)wc_line_add(&one, " %s", effect->rc == QF_OK ? "ok" : qf_rc_name(effect->rc));
    return wc_line_add(line, "%s%s", sep, one.text);
}

void wc_lane_trace_step(struct wc_lane *lane, qf_rc rc)
{
    struct wc_line line = { .len = 0 };

    event_text(lane, &line);
    if (rc != QF_OK)
        (void)wc_line_add(&line, " !%s", qf_rc_name(rc));
    if (lane->stats.stale != lane->trace_stale)
        (void)wc_line_add(&line, " (stale)");
    for (size_t i = 0; i < lane->effect_count; i++) {
        if (!effect_text(&line, &lane->effects[i], i ? "; " : " -> ")) {
            wc_line_cut(&line, lane->effect_count - i);
            break;
        }
    }
    lane->trace(lane->trace_ctx, line.text, line.len);
}
