/* enrich.c - requests with samples, enriched by this node's maps as they were at a position of the log. */
#include "ingest/enrich/enrich.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/sys/clock.h"
#include "ingest/state/state_int.h"
#include "statemap/store/rules.h"

/* Until this node knows what others knew when the request came first. */
#define REACH_MS 5000
/* Until it has heard of the log for the first time, and how often it is looked at. */
#define FIRST_MS 3000
#define AGAIN_MS 10

/* A map that is read; of several rules, perhaps. */
struct opened {
    const char *name;
    enum sm_kind kind;
    struct sm_reading reading; /* txn NULL: it has no rows */
};

struct enriching {
    struct sm_store *store;
    struct sm_rule_set *rules;
    struct in_enrich_rule *of; /* of each rule, in their order */
    size_t *map;               /* likewise: its place in maps */
    QF_VEC(struct opened) maps;
};

/* --- positions --- */

/* A node that never heard of the log cannot say that there are no rules. */
static bool await_log(struct in_state *state)
{
    int64_t deadline = qf_clock_mono_ms() + FIRST_MS;

    while (!in_state_as_of(state) && !in_state_figures(state).applied)
        if (qf_clock_mono_ms() >= deadline || !in_state_pause(state, AGAIN_MS))
            return false;
    return true;
}

qf_rc in_state_position(struct in_state *state, struct qf_str tenant, uint64_t *ret_position,
                        struct qf_err *err)
{
    struct sm_store *store;
    bool matter;
    qf_rc rc;

    *ret_position = 0;
    if (!await_log(state))
        return qf_err_set(err, QF_EUNAVAILABLE,
                          "this node does not know the rules of enrichment yet: try again");
    rc = in_state_store(state, tenant, &store, err);
    if (rc == QF_ENOTFOUND) {
        *err = (struct qf_err){ 0 };
        return QF_OK;
    }
    if (rc == QF_OK)
        rc = sm_rules_matter(store, NULL, qf_clock_wall_ms(), &matter, err);
    if (rc != QF_OK || !matter)
        return rc;
    *ret_position = in_state_figures(state).applied;
    return QF_OK;
}

/* --- maps --- */

static qf_rc open_map(struct enriching *e, const char *name, uint64_t position,
                      struct opened *opened, struct qf_err *err)
{
    struct sm_definition definition;
    bool any = false;
    qf_rc rc = sm_store_definition(e->store, qf_str_from(name), &definition, err);

    if (rc == QF_ENOTFOUND || (rc == QF_OK && definition.created > position))
        return qf_err_set(err, QF_EGONE, "map %s is not what it was when the request came first",
                          name);
    if (rc != QF_OK)
        return rc;
    opened->name = name;
    opened->kind = definition.layout.kind;
    rc = sm_reading_begin(e->store, qf_str_from(name), &opened->reading, err);
    if (rc == QF_ENOTFOUND) {
        *err = (struct qf_err){ 0 };
        return QF_OK;
    }
    if (rc == QF_OK)
        rc = sm_as_of(opened->reading.txn, position, &any, err);
    if (!any)
        sm_reading_end(e->store, &opened->reading);
    return rc;
}

static qf_rc open_rule(struct enriching *e, size_t i, uint64_t position, struct qf_err *err)
{
    const struct sm_rule *rule = &e->rules->rules[i];
    struct opened opened = { 0 };
    qf_rc rc = QF_OK;

    for (e->map[i] = 0; e->map[i] < e->maps.count; e->map[i]++)
        if (strcmp(e->maps.items[e->map[i]].name, rule->map) == 0)
            break;
    if (e->map[i] == e->maps.count) {
        rc = open_map(e, rule->map, position, &opened, err);
        if (rc != QF_OK)
            return rc;
        QF_VEC_PUSH(&e->maps, opened);
    }
    opened = e->maps.items[e->map[i]];
    e->of[i] =
        (struct in_enrich_rule){ .rule = rule,
                                 .timed = sm_kind_timed(opened.kind) || opened.kind == SM_SESSION,
                                 .missing = !opened.reading.txn };
    return QF_OK;
}

static void close_all(struct enriching *e)
{
    for (size_t i = 0; i < e->maps.count; i++)
        sm_reading_end(e->store, &e->maps.items[i].reading);
    QF_VEC_DONE(&e->maps);
    free(e->of);
    free(e->map);
    sm_rules_give_back(e->rules);
}

static qf_rc open_all(struct enriching *e, uint64_t position, struct qf_err *err)
{
    qf_rc rc = sm_rules_take(e->store, position, &e->rules, err);
    size_t count = rc == QF_OK && e->rules ? e->rules->count : 0;

    e->of = qf_xcalloc(count + 1, sizeof(*e->of));
    e->map = qf_xcalloc(count + 1, sizeof(*e->map));
    for (size_t i = 0; i < count && rc == QF_OK; i++)
        rc = open_rule(e, i, position, err);
    return rc;
}

static qf_rc find(void *ctx, size_t rule, struct qf_str key, int64_t time,
                  struct in_enrich_found *ret_found, struct qf_err *err)
{
    const struct enriching *e = ctx;
    const struct opened *map = &e->maps.items[e->map[rule]];
    struct sm_row row;
    int64_t number;
    qf_rc rc = QF_OK;

    *ret_found = (struct in_enrich_found){ 0 };
    if (!sm_kind_ranged(map->kind))
        rc = sm_find(map->reading.txn, key, time, &ret_found->found, &row, err);
    else if (sm_rule_number(key, &number)) /* else no range has it */
        rc = sm_find_number(map->reading.txn, number, time, &ret_found->found, &row, err);
    if (rc == QF_OK && ret_found->found)
        ret_found->value = row.value;
    return rc;
}

/* --- requests --- */

static qf_rc enrich(struct enriching *e, struct in_request *request, struct qf_arena *arena,
                    struct in_enrich_figures *figures, struct qf_err *err)
{
    const struct in_enrich_options options = {
        .rules = e->of, .rule_count = e->rules->count, .find = find, .ctx = e, .arena = arena
    };

    return in_enrich(&options, request, figures, err);
}

qf_rc in_state_enrich(struct in_state *state, struct qf_str tenant, uint64_t position,
                      struct in_request *request, struct qf_arena *arena, struct qf_err *err)
{
    int64_t begun_us = qf_clock_mono_ns() / 1000;
    struct in_enrich_figures figures = { 0 };
    struct enriching e = { 0 };
    qf_rc rc = in_state_reach(state, position, REACH_MS, err);

    if (rc == QF_OK)
        rc = in_state_store(state, tenant, &e.store, err);
    if (rc == QF_OK)
        rc = open_all(&e, position, err);
    if (rc == QF_OK && e.rules)
        rc = enrich(&e, request, arena, &figures, err);
    close_all(&e);
    atomic_fetch_add(&state->enrich_refused, rc != QF_OK);
    atomic_fetch_add(&state->enriched, figures.samples);
    atomic_fetch_add(&state->enrich_misses, figures.misses);
    atomic_fetch_add(&state->enrich_splits, figures.splits);
    atomic_fetch_add(&state->enrich_us, (uint64_t)(qf_clock_mono_ns() / 1000 - begun_us));
    return rc;
}
