/* info.c - maps that are info series, and the copies of them that workers are to read. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "ingest/state/state_int.h"

/* A copy of a map that changes all the time is good for so long, and longer the more there is of it: what copies
 * take on the disk, each for ten minutes, and what workers fetch is bounded by that. */
#define FRESH_MS 2000
#define FRESH_MS_MAX 60000
#define FRESH_BYTES_PER_S (UINT64_C(256) << 10)
/* More than this is not copied while somebody waits for the answer. */
#define INLINE_BYTES_MAX (UINT64_C(32) << 20)

/* The copy of a map that is to be read. */
struct offer {
    uint64_t version, bytes; /* 0: there is none yet */
    int64_t behind_ms;       /* the map may have had other rows for so long; 0: it is of now */
};

static int64_t fresh_ms(uint64_t bytes)
{
    uint64_t ms = FRESH_MS + bytes * 1000 / FRESH_BYTES_PER_S;

    return bytes > INLINE_BYTES_MAX || ms > FRESH_MS_MAX ? FRESH_MS_MAX : (int64_t)ms;
}

static void offer_file(struct sm_snapshot_file *file, uint64_t version, uint64_t now,
                       struct offer *ret_offer)
{
    struct stat seen;
    int64_t age = INT64_MAX;

    if (fstat(file->file, &seen) == 0)
        age = qf_clock_wall_ms() -
              ((int64_t)seen.st_mtim.tv_sec * 1000 + seen.st_mtim.tv_nsec / 1000000);
    (void)close(file->file);
    *ret_offer = (struct offer){ .version = version,
                                 .bytes = file->size,
                                 .behind_ms = version == now ? 0 : QF_MAX(age, INT64_C(1)) };
}

/* What there is, without making anything. */
static qf_rc newest(struct sm_store *store, struct qf_str name, uint64_t now,
                    struct offer *ret_offer, struct qf_err *err)
{
    struct sm_snapshot_file file;
    uint64_t version = 0;
    qf_rc rc = sm_snapshot_newest(store, name, &version, err);

    if (rc != QF_OK || !version)
        return rc;
    if (sm_snapshot_open(store, name, version, &file, NULL) == QF_OK) /* else it is made again */
        offer_file(&file, version, now, ret_offer);
    return QF_OK;
}

static qf_rc copy_now(struct in_state *state, struct qf_str tenant, struct qf_str name,
                      uint64_t now, struct offer *ret_offer, struct qf_err *err)
{
    struct in_state_snapshot snapshot;
    qf_rc rc = in_state_snapshot(state, tenant, name, 0, 0, false, &snapshot, err);

    if (rc == QF_OK && snapshot.file.file >= 0)
        offer_file(&snapshot.file, snapshot.version, QF_MAX(now, snapshot.version), ret_offer);
    return rc;
}

/* --- maps that have gone on since they were copied --- */

/* With the lock. */
static struct in_wanted *find_wanted(struct in_state *state, struct qf_str tenant, const char *map)
{
    for (size_t i = 0; i < state->wanted_count; i++)
        if (qf_str_is(tenant, state->wanted[i].tenant) && strcmp(map, state->wanted[i].map) == 0)
            return &state->wanted[i];
    return NULL;
}

/* Note that @map has gone on, and since when that is known; 0: there is no room to note it. */
static int64_t note(struct in_state *state, struct qf_str tenant, const char *map, bool asked)
{
    struct in_wanted *wanted;
    int64_t since = 0;

    qf_lock_take(state->lock);
    wanted = find_wanted(state, tenant, map);
    if (!wanted && state->wanted_count < WANTED_MAX) {
        wanted = &state->wanted[state->wanted_count++];
        *wanted = (struct in_wanted){ .tenant = qf_xmemdup0(tenant.data, tenant.len),
                                      .map = qf_xstrdup(map),
                                      .since_ms = qf_clock_mono_ms() };
    }
    if (wanted) {
        wanted->asked |= asked;
        since = wanted->since_ms;
    }
    qf_lock_drop(state->lock);
    return since;
}

/* It was copied. */
static void forget(struct in_state *state, struct qf_str tenant, const char *map)
{
    struct in_wanted *wanted;

    qf_lock_take(state->lock);
    wanted = find_wanted(state, tenant, map);
    if (wanted) {
        free(wanted->tenant);
        free(wanted->map);
        *wanted = state->wanted[--state->wanted_count];
    }
    qf_lock_drop(state->lock);
}

void in_state_notice(struct in_state *state, struct sm_store *store, struct qf_str tenant,
                     const char *map, const struct sm_about *about)
{
    uint64_t copied = 0;

    if (about->bytes_used > INLINE_BYTES_MAX &&
        sm_snapshot_newest(store, qf_str_from(map), &copied, NULL) == QF_OK &&
        copied != about->version)
        (void)note(state, tenant, map, !copied); /* the first one before anybody asks for it */
}

/* The newest copy, or a newer one if that is due. @about is of the map as it is now. */
static qf_rc find_offer(struct in_state *state, struct sm_store *store, struct qf_str tenant,
                        const char *map, const struct sm_about *about, struct offer *ret_offer,
                        struct qf_err *err)
{
    struct qf_str name = qf_str_from(map);
    int64_t since;
    qf_rc rc = newest(store, name, about->version, ret_offer, err);

    if (rc != QF_OK)
        return rc;
    if (ret_offer->version &&
        (!ret_offer->behind_ms || ret_offer->behind_ms < fresh_ms(ret_offer->bytes)))
        return QF_OK;
    if (about->bytes_used <= INLINE_BYTES_MAX)
        return copy_now(state, tenant, name, about->version, ret_offer, err);
    since = note(state, tenant, map, true);
    if (ret_offer->version &&
        since) { /* the age of the copy is more than the map has been ahead of it */
        int64_t known = QF_MAX(qf_clock_mono_ms() - since, INT64_C(1));

        ret_offer->behind_ms = QF_MIN(ret_offer->behind_ms, known);
    }
    return QF_OK;
}

static void print(struct qf_strbuf *json, const struct sm_definition *definition,
                  const struct offer *offer)
{
    int64_t interval = definition->interval_ms ? definition->interval_ms : SM_INTERVAL_MS_DEFAULT;

    qf_strbuf_puts(json, json->len > 1 ? ",{\"name\":" : "{\"name\":");
    qf_strbuf_json(json, qf_str_from(definition->name));
    qf_strbuf_puts(json, ",\"kind\":");
    qf_strbuf_json(json, qf_str_from(sm_kind_name(definition->layout.kind)));
    qf_strbuf_puts(json, ",\"metric\":");
    qf_strbuf_json(json, qf_str_from(definition->metric));
    qf_strbuf_printf(json,
                     ",\"short_keys\":%s,\"interval_ms\":%" PRId64 ",\"created\":%" PRIu64
                     ",\"version\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"behind_ms\":%" PRId64 "}",
                     definition->layout.direct ? "true" : "false", interval, definition->created,
                     offer->version, offer->bytes, offer->behind_ms);
}

static qf_rc offer_of(struct in_state *state, struct sm_store *store, struct qf_str tenant,
                      const struct sm_definition *definition, bool *ret_any,
                      struct offer *ret_offer, struct qf_err *err)
{
    struct sm_reading reading;
    struct sm_about about;
    qf_rc rc = sm_reading_begin(store, qf_str_from(definition->name), &reading, err);

    *ret_any = rc != QF_ENOTFOUND;
    if (rc == QF_ENOTFOUND) { /* it has no rows yet, or went this moment: it has no series */
        if (err)
            *err = (struct qf_err){ 0 };
        return QF_OK;
    }
    if (rc != QF_OK)
        return rc;
    about = sm_about(reading.txn);
    sm_reading_end(store, &reading);
    return find_offer(state, store, tenant, definition->name, &about, ret_offer, err);
}

/* A map that cannot be read is one without a copy: others are told all the same. */
static void tell(struct in_state *state, struct sm_store *store, struct qf_str tenant,
                 const struct sm_definition *definition, struct qf_strbuf *json)
{
    struct offer offer = { 0 };
    struct qf_err err = { 0 };
    bool any;
    qf_rc rc = offer_of(state, store, tenant, definition, &any, &offer, &err);

    if (rc != QF_OK) {
        QF_LOG_WARN("a state map cannot be offered to queries", QF_KV_SLICE("tenant", tenant),
                    QF_KV_STR("map", definition->name), QF_KV_STR("error", err.msg));
        offer = (struct offer){ 0 };
    }
    if (rc != QF_OK || any)
        print(json, definition, &offer);
}

/* The tenant's maps; none if it has none. */
static qf_rc all_maps(struct in_state *state, struct qf_str tenant, struct sm_store **ret_store,
                      sm_definitions *ret_all, struct qf_err *err)
{
    qf_rc rc = in_state_store(state, tenant, ret_store, err);

    if (rc == QF_OK)
        return sm_store_definitions(*ret_store, ret_all, err);
    if (rc != QF_ENOTFOUND)
        return rc;
    if (err)
        *err = (struct qf_err){ 0 };
    return QF_OK;
}

qf_rc in_state_info(struct in_state *state, struct qf_str tenant, struct qf_strbuf *json,
                    struct qf_err *err)
{
    sm_definitions all = { 0 };
    struct sm_store *store = NULL;
    qf_rc rc = all_maps(state, tenant, &store, &all, err);

    qf_strbuf_putc(json, '[');
    for (size_t i = 0; i < all.count && rc == QF_OK; i++)
        if (all.items[i].metric[0])
            tell(state, store, tenant, &all.items[i], json);
    qf_strbuf_putc(json, ']');
    QF_VEC_DONE(&all);
    return rc;
}

qf_rc in_state_metrics(struct in_state *state, struct qf_str tenant,
                       void (*each)(void *ctx, struct qf_str metric, struct qf_str map), void *ctx,
                       struct qf_err *err)
{
    sm_definitions all = { 0 };
    struct sm_store *store = NULL;
    qf_rc rc = all_maps(state, tenant, &store, &all, err);

    for (size_t i = 0; i < all.count && rc == QF_OK; i++)
        if (all.items[i].metric[0])
            each(ctx, qf_str_from(all.items[i].metric), qf_str_from(all.items[i].name));
    QF_VEC_DONE(&all);
    return rc;
}

/* --- copies that nobody waits for --- */

/* One that was asked for, as copies of its texts: NULL if there is none. */
static struct in_wanted next_wanted(struct in_state *state)
{
    struct in_wanted next = { 0 };

    qf_lock_take(state->lock);
    for (size_t i = 0; i < state->wanted_count && !next.tenant; i++) {
        struct in_wanted *wanted = &state->wanted[i];

        if (!wanted->asked)
            continue;
        wanted->asked = false; /* if it fails, until it is asked for again */
        next.tenant = qf_xstrdup(wanted->tenant);
        next.map = qf_xstrdup(wanted->map);
    }
    qf_lock_drop(state->lock);
    return next;
}

void in_state_copy_wanted(struct in_state *state)
{
    struct in_wanted wanted = next_wanted(state);
    struct offer offer = { 0 };
    struct qf_err err = { 0 };
    qf_rc rc;

    if (!wanted.tenant)
        return;
    rc = copy_now(state, qf_str_from(wanted.tenant), qf_str_from(wanted.map), 0, &offer, &err);
    if (rc == QF_OK || rc == QF_ENOTFOUND)
        forget(state, qf_str_from(wanted.tenant), wanted.map);
    else
        QF_LOG_WARN("a state map cannot be copied for queries", QF_KV_STR("tenant", wanted.tenant),
                    QF_KV_STR("map", wanted.map), QF_KV_STR("error", err.msg));
    free(wanted.tenant);
    free(wanted.map);
}

void in_state_forget_wanted(struct in_state *state)
{
    while (state->wanted_count) {
        free(state->wanted[--state->wanted_count].tenant);
        free(state->wanted[state->wanted_count].map);
    }
}
