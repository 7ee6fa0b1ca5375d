/* upkeep.c - what an owner does for its maps by itself: condensation and retention in turns, files as small as they may be,
 * what nobody needs any more, copies that queries want; and how many rows there are. */
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "ingest/state/state_int.h"

#define LOOK_MS 1000   /* between two looks at what is due */
#define CLEAN_MS 60000 /* between two times that what is idle is closed and what is old removed */
#define COUNT_MS 5000  /* between two countings, at least */
/* Of the time a pass takes, which holds up merges, so much passes before the next one. */
#define REST_RATIO 4
#define REST_MS 50
/* Copies that are wanted for queries, made in a row. */
#define COPIES_AT_ONCE 4

struct in_upkeep {
    struct in_state *state;
    struct sm_owner *owner;
    int64_t round_due_ms, clean_due_ms, count_due_ms;
    uint64_t counted; /* `changes` of what was counted */
};

static void failed(struct in_state *state, const char *tenant, const char *map,
                   const struct qf_err *err)
{
    atomic_fetch_add(&state->upkeep_failures, 1);
    QF_LOG_WARN("a state map could not be maintained, it is tried again",
                QF_KV_STR("tenant", tenant), QF_KV_STR("map", map), QF_KV_STR("error", err->msg));
}

/* --- condensation and retention --- */

/* One pass. *ret_more: it has more to do. */
static void pass(struct in_upkeep *u, const char *tenant, const char *map, bool *ret_more)
{
    struct in_state *state = u->state;
    struct sm_upkeep upkeep = { 0 };
    struct sm_store *store;
    struct qf_err err = { 0 };
    int64_t began = qf_clock_mono_ms();
    qf_rc rc;

    qf_lock_take(state->work);
    rc = sm_owner_store(u->owner, qf_str_from(tenant), &store, &err);
    if (rc == QF_OK)
        rc = sm_store_upkeep(store, qf_str_from(map), qf_clock_wall_ms(), &upkeep, &err);
    qf_lock_drop(state->work);
    if (rc != QF_OK && rc != QF_ENOTFOUND) /* no rows yet, or no map any more */
        failed(state, tenant, map, &err);
    atomic_fetch_add(&state->dropped, upkeep.dropped);
    atomic_fetch_add(&state->changes, upkeep.dropped > 0);
    *ret_more = in_state_pause(state, REST_MS + REST_RATIO * (qf_clock_mono_ms() - began)) &&
                rc == QF_OK && upkeep.more;
}

/* --- files that are larger than what is in them --- */

static void compact(struct in_upkeep *u, const char *tenant, const char *map)
{
    struct in_state *state = u->state;
    struct sm_store *store;
    struct qf_err err = { 0 };
    int64_t began = qf_clock_mono_ms();
    uint64_t freed = 0;
    qf_rc rc;

    qf_lock_take(state->work);
    qf_lock_take(state->copy);
    rc = sm_owner_store(u->owner, qf_str_from(tenant), &store, &err);
    if (rc == QF_OK)
        rc = sm_store_compact(store, qf_str_from(map), &freed, &err);
    qf_lock_drop(state->copy);
    qf_lock_drop(state->work);
    if (rc == QF_EUNSUPPORTED)
        QF_LOG_DEBUG("a state map's file stays as large as it is", QF_KV_STR("error", err.msg));
    else if (rc != QF_OK && rc != QF_ENOTFOUND)
        failed(state, tenant, map, &err);
    atomic_fetch_add(&state->compacted, freed);
    atomic_fetch_add(&state->changes, freed > 0);
    if (freed)
        (void)in_state_pause(state, REST_RATIO * (qf_clock_mono_ms() - began));
}

static bool wants_upkeep(const struct sm_definition *definition)
{
    return definition->condense_ms || definition->retention_ms;
}

static void maintain(struct in_upkeep *u, const char *tenant)
{
    sm_definitions all = { 0 };
    struct sm_store *store;
    struct qf_err err = { 0 };
    qf_rc rc = sm_owner_store(u->owner, qf_str_from(tenant), &store, &err);

    if (rc == QF_OK)
        rc = sm_store_definitions(store, &all, &err);
    if (rc != QF_OK)
        failed(u->state, tenant, "", &err);
    for (size_t i = 0; i < all.count; i++) {
        bool more = wants_upkeep(&all.items[i]);

        while (more)
            pass(u, tenant, all.items[i].name, &more);
        compact(u, tenant, all.items[i].name);
    }
    QF_VEC_DONE(&all);
}

/* --- what nobody needs any more --- */

static void clean(struct in_upkeep *u, const char *tenant)
{
    struct in_state *state = u->state;
    struct sm_store *store;
    struct qf_err err = { 0 };
    qf_rc rc;

    qf_lock_take(state->work);
    qf_lock_take(state->copy);
    rc = sm_owner_store(u->owner, qf_str_from(tenant), &store, &err);
    if (rc == QF_OK)
        rc = sm_store_clean(store, &err);
    qf_lock_drop(state->copy);
    qf_lock_drop(state->work);
    if (rc != QF_OK)
        failed(state, tenant, "", &err);
}

/* --- figures --- */

struct in_count {
    uint64_t maps, rows, bytes;
};

static void count_map(struct in_state *state, struct sm_store *store, const char *tenant,
                      const struct sm_definition *definition, struct in_count *count)
{
    struct sm_reading reading;
    struct sm_about about;

    count->maps++;
    if (sm_reading_begin(store, qf_str_from(definition->name), &reading, NULL) != QF_OK)
        return; /* it has no rows yet; what is damaged is told by who uses it */
    about = sm_about(reading.txn);
    count->rows += about.rows;
    count->bytes += about.bytes_used;
    sm_reading_end(store, &reading);
    if (definition->metric[0])
        in_state_notice(state, store, qf_str_from(tenant), definition->name, &about);
}

static void count_tenant(struct in_upkeep *u, const char *tenant, struct in_count *count)
{
    sm_definitions all = { 0 };
    struct sm_store *store;

    if (sm_owner_store(u->owner, qf_str_from(tenant), &store, NULL) == QF_OK &&
        sm_store_definitions(store, &all, NULL) == QF_OK)
        for (size_t i = 0; i < all.count; i++)
            count_map(u->state, store, tenant, &all.items[i], count);
    QF_VEC_DONE(&all);
}

static void count_all(struct in_upkeep *u, const struct sm_names *tenants)
{
    int64_t began = qf_clock_mono_ms();
    struct in_count count = { 0 };

    u->counted = atomic_load(&u->state->changes);
    for (size_t i = 0; i < tenants->names.count; i++)
        count_tenant(u, tenants->names.items[i], &count);
    atomic_store(&u->state->maps, count.maps);
    atomic_store(&u->state->map_rows, count.rows);
    atomic_store(&u->state->map_bytes, count.bytes);
    u->count_due_ms = qf_clock_mono_ms() + COUNT_MS + REST_RATIO * (qf_clock_mono_ms() - began);
}

/* --- the thread --- */

static void do_what_is_due(struct in_upkeep *u, const struct sm_names *tenants)
{
    int64_t now = qf_clock_mono_ms(), every = u->state->upkeep_ms;

    for (int i = 0; i < COPIES_AT_ONCE; i++)
        in_state_copy_wanted(u->state);
    if (every && now >= u->round_due_ms) {
        for (size_t i = 0; i < tenants->names.count; i++)
            maintain(u, tenants->names.items[i]);
        u->round_due_ms = qf_clock_mono_ms() + every;
    }
    if (now >= u->clean_due_ms) {
        for (size_t i = 0; i < tenants->names.count; i++)
            clean(u, tenants->names.items[i]);
        u->clean_due_ms = qf_clock_mono_ms() + CLEAN_MS;
    }
    if (now >= u->count_due_ms && u->counted != atomic_load(&u->state->changes))
        count_all(u, tenants);
}

void in_state_run_upkeep(void *arg)
{
    struct in_upkeep u = { .state = arg };
    struct in_state *state = arg;

    while (in_state_pause(state, LOOK_MS)) {
        QF_CLEANUP(sm_names_done) struct sm_names tenants = { 0 };
        struct qf_err err = { 0 };

        if (in_state_owner(state, &u.owner, NULL) != QF_OK)
            continue;
        if (sm_owner_tenants(u.owner, &tenants, &err) == QF_OK)
            do_what_is_due(&u, &tenants);
        else
            failed(state, "", "", &err);
    }
}
