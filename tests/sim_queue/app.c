/* app.c - an application on every node, as queue/node runs them: its leader proposes records that each
 * stand on the one before.
 *
 * Records are links, numbered on: a leader goes on behind the last link that was applied when it began
 * to serve, gathers links for a while, and hands over what it gathered as one chained submission. So
 * the links in the log are 1, 2, 3, ... whoever wrote them, or a rule is broken: refused links took
 * those behind them along and were told of the last one first, what was gathered in one term was not
 * handed over in another, and all that was before was applied when a leader began to serve. */
#include "queue/log/bytes.h"
#include "tests/sim_queue/sim_int.h"

enum { GATHER_MAX = 6, ROUND_MAX = 48, MARK_AT = 8, LINK_AT = 16, LINK_BYTES = 24 };
/* No other record has anything but zeros where links have this. */
#define MARK UINT64_C(0x6b6e696c)

uint64_t sim_link_of(struct qf_str record)
{
    const unsigned char *bytes = (const unsigned char *)record.data;

    return record.len >= LINK_BYTES && ql_get(bytes + MARK_AT, 8) == MARK
               ? ql_get(bytes + LINK_AT, 8)
               : 0;
}

/* --- proposing --- */

static struct sim_node *leading_node(struct sim *sim)
{
    uint32_t any = (uint32_t)sim_below(sim, sim->node_count);

    for (uint32_t i = 0; i < sim->node_count; i++) {
        struct sim_node *node = &sim->nodes[(any + i) % sim->node_count];

        if (node->up && node->app.term)
            return node;
    }
    return NULL;
}

void sim_app_propose(struct sim *sim)
{
    struct sim_node *node = leading_node(sim);
    uint64_t count = 1 + sim_below(sim, GATHER_MAX);

    if (!node || node->app.round.count + count > ROUND_MAX)
        return;
    for (uint64_t i = 0; i < count; i++) {
        struct sim_link link = { .value = history_offer(sim->history),
                                 .link = ++node->app.tip,
                                 .term = node->app.term };

        link.bytes = LINK_BYTES + (uint32_t)sim_below(sim, sim_below(sim, 8) ? 64 : 600);
        link.large = sim_chance(sim, 0.02);
        QF_VEC_PUSH(&node->app.round, link);
        sim->result.links++;
    }
    if (node->app.gathering)
        return;
    node->app.gathering = true;
    sim_post(sim, sim_below(sim, sim_chance(sim, 0.05) ? 900000 : 1500),
             &(struct sim_event){ .kind = SIM_FLUSH, .node = node->number, .life = node->life });
}

/* The commands of what was gathered; a large one is refused by its length alone. */
static void encode_round(const struct sim_app *app, struct qf_strbuf *bytes,
                         struct qc_request requests[ROUND_MAX])
{
    static char too_large[QL_ENTRY_MAX + 1];
    size_t at = 0;

    for (size_t i = 0; i < app->round.count; i++) {
        const struct sim_link *link = &app->round.items[i];
        unsigned char record[LINK_BYTES + 600] = { 0 };

        ql_put(record, link->value, 8);
        ql_put(record + MARK_AT, MARK, 8);
        ql_put(record + LINK_AT, link->link, 8);
        qc_command_encode(bytes, &(struct qc_command){ .kind = QC_OFFER,
                                                       .data = { (char *)record, link->bytes } });
    }
    for (size_t i = 0; i < app->round.count; i++) {
        const struct sim_link *link = &app->round.items[i];
        struct qf_str data = { bytes->data + at, QC_OFFER_HEADER + link->bytes };

        at += data.len;
        if (link->large)
            data = (struct qf_str){ too_large, sizeof(too_large) };
        requests[i] = (struct qc_request){ SIM_LINK_REQUEST | link->value, data, QC_LEVEL_QUORUM };
    }
}

void sim_app_flush(struct sim *sim, uint32_t number)
{
    struct sim_node *node = &sim->nodes[number];
    struct sim_app *app = &node->app;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct qc_request requests[ROUND_MAX];
    uint32_t count = (uint32_t)app->round.count;

    app->gathering = false;
    if (!count)
        return;
    if (sim_chance(sim, 0.01)) { /* it dies with what it gathered */
        sim_node_crash(sim, number, sim_below(sim, 2));
        return;
    }
    encode_round(app, &bytes, requests);
    for (uint32_t i = 0; i < count; i++)
        QF_VEC_PUSH(&app->pending, app->round.items[i]);
    app->round.count = 0;
    app->flushed_from = app->pending.items[app->pending.count - count].value;
    sim_node_step(
        sim, number,
        &(struct qc_event){ .kind = QC_EVENT_COMMANDS,
                            .commands = requests,
                            .count = count,
                            .chained = !(sim->options.sim_unsafe & SIM_UNSAFE_UNCHAINED) });
    app->flushed_from = UINT64_MAX;
}

/* --- ends --- */

void sim_app_done(struct sim_node *node, uint64_t value, qf_rc rc, uint64_t index)
{
    QF_VEC_PUSH(&node->app.ends, (struct sim_end){ value, rc, index });
}

static struct sim_link take_pending(struct sim *sim, struct sim_app *app, uint64_t value)
{
    for (size_t i = 0; i < app->pending.count; i++) {
        struct sim_link link = app->pending.items[i];

        if (link.value != value)
            continue;
        app->pending.count--;
        memmove(&app->pending.items[i], &app->pending.items[i + 1],
                (app->pending.count - i) * sizeof(link));
        return link;
    }
    sim_fail(sim, "a link ended twice");
    return (struct sim_link){ 0 };
}

static void refuse(struct sim *sim, uint64_t value)
{
    const char *wrong = history_refused(sim->history, value);

    sim->result.links_refused++;
    if (wrong)
        sim_fail(sim, wrong);
}

static void end_link(struct sim *sim, struct sim_node *node, const struct sim_end *end)
{
    struct sim_app *app = &node->app;
    struct sim_link link = take_pending(sim, app, end->value);
    const char *wrong = NULL;

    if (end->rc == QF_OK) {
        sim->result.links_acked++;
        wrong = history_acked(sim->history, end->value, end->index);
        if (!wrong && sim->truth.items[end->index].link != link.link)
            wrong = "a link is acknowledged that is not there";
    } else {
        if (link.term == app->term && link.link != app->tip &&
            !(sim->options.sim_unsafe & SIM_UNSAFE_UNCHAINED))
            wrong = "links that fall do not end the last one first";
        if (link.term == app->term)
            app->tip = link.link - 1;
        /* Whoever is told at once was refused; of others nobody knows. */
        if (end->value >= app->flushed_from)
            refuse(sim, end->value);
    }
    if (wrong)
        sim_fail(sim, wrong);
}

/* --- leading --- */

void sim_app_stepped(struct sim *sim, struct sim_node *node)
{
    struct sim_app *app = &node->app;
    uint64_t term = qc_serves(node->core) ? qc_term(node->core) : 0;

    if (!sim->options.chains)
        return;
    if (term != app->term) {
        if (!(sim->options.sim_unsafe & SIM_UNSAFE_ROUND_OUTLIVES_TERM)) {
            for (size_t i = 0; i < app->round.count; i++)
                refuse(sim, app->round.items[i].value);
            app->round.count = 0;
        }
        app->term = term;
        app->tip = sim->truth.items[qc_state(node->core)->applied].link;
    }
    for (size_t i = 0; i < app->ends.count && !sim->result.failure; i++)
        end_link(sim, node, &app->ends.items[i]);
    app->ends.count = 0;
}

void sim_app_forget(struct sim_app *app)
{
    app->term = app->tip = 0;
    app->gathering = false;
    app->flushed_from = UINT64_MAX;
    app->round.count = app->pending.count = app->ends.count = 0;
}

void sim_app_free(struct sim_app *app)
{
    QF_VEC_DONE(&app->round);
    QF_VEC_DONE(&app->pending);
    QF_VEC_DONE(&app->ends);
}

/* --- its state: the last link --- */

void sim_app_save(struct sim *sim, struct ql_snapshot *snapshot, unsigned char state[8])
{
    if (!sim->options.chains)
        return;
    ql_put(state, sim->truth.items[snapshot->index].link, 8);
    snapshot->application = (struct qf_str){ (const char *)state, 8 };
}

void sim_app_check_snapshot(struct sim *sim, const struct sim_node *node)
{
    const struct ql_snapshot *snapshot = &node->store.snapshot;

    if (!sim->options.chains || !snapshot->index || sim->result.failure)
        return;
    if (snapshot->application.len != 8 || ql_get((const unsigned char *)snapshot->application.data,
                                                 8) != sim->truth.items[snapshot->index].link)
        sim_fail(sim, "a snapshot has another state of the application");
}
