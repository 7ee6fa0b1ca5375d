/* life_trace.c - "[now] event -> effect; effect": the wording is part of the interface.
 *
 * q query, t tenant. */
#include "life_int.h"

#include <inttypes.h>

#include "trace.h"

static void event_text(const struct wc_life *life, struct wc_line *line)
{
    const struct wc_life_event *event = life->event;

    (void)wc_line_add(line, "[%" PRId64 "] %s", life->now, wc_life_event_name(event->type));
    if (event->query.v)
        (void)wc_line_add(line, " q%" PRIu64, event->query.v);
    if (event->type == WC_LIFE_EV_SUBMIT)
        (void)wc_line_add(line, " t%" PRIu64, event->submit.tenant.v);
    else if (event->rc < 0)
        (void)wc_line_add(line, " %s", qf_rc_name(event->rc));
}

static bool effect_text(struct wc_line *line, const struct wc_life_effect *effect, const char *sep)
{
    struct wc_line one = { .len = 0 };

    (void)wc_line_add(&one, "%s q%" PRIu64, wc_life_effect_name(effect->type), effect->query.v);
    if (effect->replans)
        (void)wc_line_add(&one, " replans=%" PRIu32, effect->replans);
    if (effect->type == WC_LIFE_DO_FAIL)
        (void)wc_line_add(&one, " %s", wc_life_cause_name(effect->cause));
    if (effect->type == WC_LIFE_DO_END || effect->rc < 0)
        (void)wc_line_add(&one, " %s", effect->rc == QF_OK ? "ok" : qf_rc_name(effect->rc));
    return wc_line_add(line, "%s%s", sep, one.text);
}

void wc_life_trace_step(struct wc_life *life, qf_rc rc)
{
    struct wc_line line = { .len = 0 };

    event_text(life, &line);
    if (rc != QF_OK)
        (void)wc_line_add(&line, " !%s", qf_rc_name(rc));
    if (life->stats.illegal != life->trace_illegal)
        (void)wc_line_add(&line, " (illegal)");
    if (life->stats.stale != life->trace_stale)
        (void)wc_line_add(&line, " (stale)");
    for (size_t i = 0; i < life->effect_count; i++) {
        if (!effect_text(&line, &life->effects[i], i ? "; " : " -> ")) {
            wc_line_cut(&line, life->effect_count - i);
            break;
        }
    }
    life->trace(life->trace_ctx, line.text, line.len);
}
