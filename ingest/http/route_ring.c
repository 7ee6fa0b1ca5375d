/* route_ring.c - storage nodes: the ring for those who follow it, and its administration.
 *
 * The operator's paths end at the leader of `meta`, whichever node is asked. ring/core/wire.h says how the ring is followed. */
#include <inttypes.h>

#include "base/pure/number.h"
#include "base/sys/clock.h"
#include "ingest/http/routes_int.h"
#include "ring/coord/coord.h"
#include "ring/core/wire.h"

#define COPIES 3 /* of a ring that is founded without saying how many */

static void fail(struct qh_visit *visit, qf_rc rc, const char *why)
{
    struct qf_err err = { 0 };

    (void)qf_err_set(&err, rc, "%s", why);
    in_fail(visit, &err);
}

/* Who has the operator's key: where there are keys, one for all tenants. */
static bool operates(struct qh_visit *visit)
{
    if (visit->caller.sees_all)
        return true;
    fail(visit, QF_EDENIED, "storage nodes are the operator's business: a key for all tenants");
    return false;
}

static void handle_follow(struct qh_visit *visit)
{
    struct in_routes *routes = in_routes_of(visit);
    bool waits = qh_visit_param(visit, "from").len > 0;
    int64_t wait_ms, now = qf_clock_mono_ms();
    uint64_t from;
    qf_rc rc;

    if (!in_param_u64(visit, "from", 0, UINT64_MAX / 2, &from) ||
        !in_param_duration(visit, "wait", RG_RING_WAIT_MS, &wait_ms) || !operates(visit))
        return;
    if (!waits || atomic_load(&routes->draining))
        wait_ms = 0;
    rc = rg_board_wait(routes->ring, visit->stream, from,
                       now + QF_MIN(wait_ms, RG_RING_WAIT_MAX_MS));
    if (rc == QF_OK && wait_ms == 0)
        rg_board_tick(routes->ring, now, false);
    if (rc == QF_EBUSY)
        fail(visit, rc, "too many wait for the ring at this node: ask another one");
    else if (rc != QF_OK)
        fail(visit, rc, "this node does not know the ring yet: ask another one");
}

/* --- asking the leader of meta --- */

/* Letters, digits, '.', '_' and '-', not '.' or '-' first: good in paths, logs and host names. */
static bool is_node_name(struct qf_str name)
{
    if (!name.len || name.len > RG_NAME_MAX || name.data[0] == '.' || name.data[0] == '-')
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '.' || c == '_' || c == '-'))
            return false;
    }
    return true;
}

static bool is_url(struct qf_str url)
{
    return qf_str_starts(url, QF_STR("http://"))
               ? url.len > 7
               : qf_str_starts(url, QF_STR("https://")) && url.len > 8;
}

/* A path that names nothing that can be. */
static bool names_something(struct qh_visit *visit)
{
    if (visit->rest.len <= RG_NAME_MAX)
        return true;
    fail(visit, QF_ENOTFOUND, "there is nothing of such a long name");
    return false;
}

static void wish(struct qh_visit *visit, const struct rg_wish *wish)
{
    if (operates(visit) && names_something(visit))
        in_visit_submit(visit, rg_coord_wish(wish));
}

static void question(struct qh_visit *visit, enum rg_question question)
{
    if (operates(visit) && names_something(visit))
        in_visit_submit(visit, rg_coord_question(question, visit->rest));
}

/* --- nodes --- */

static void handle_nodes(struct qh_visit *visit)
{
    question(visit, RG_ASK_NODES);
}

static void handle_node(struct qh_visit *visit)
{
    question(visit, RG_ASK_NODE);
}

static void handle_add(struct qh_visit *visit)
{
    char name[RG_NAME_MAX + 1], zone[RG_NAME_MAX + 1], url[RG_URL_MAX + 1];
    struct rg_wish add = { .entry = { .kind = RG_ADD } };

    if (!in_param_text(visit, "name", name, sizeof(name)) ||
        !in_param_text(visit, "zone", zone, sizeof(zone)) ||
        !in_param_text(visit, "url", url, sizeof(url)))
        return;
    add.entry.name = qf_str_from(name);
    add.entry.zone = qf_str_from(zone);
    add.entry.url = qf_str_from(url);
    if (!is_node_name(add.entry.name) || !is_url(add.entry.url))
        fail(visit, QF_EINVAL,
             "\"name\" (1 to 63 of letters, digits, '.', '_', '-', beginning with a letter or "
             "digit) "
             "and \"url\" (http://... or https://..., at most 200 bytes) of a storage node are "
             "needed");
    else
        wish(visit, &add);
}

static void handle_remove(struct qh_visit *visit)
{
    wish(visit, &(struct rg_wish){ .node = visit->rest, .entry = { .kind = RG_REMOVE } });
}

/* What a former owner still holds of a slot goes: without the four checks if it is forced. */
static void handle_clean(struct qh_visit *visit)
{
    struct rg_wish clean = { .node = visit->rest, .entry = { .kind = RG_CLEAN } };
    char reason[RG_REASON_MAX + 1], force[8];
    uint64_t slot;

    if (!in_param_u64(visit, "slot", UINT64_MAX, RG_SLOTS - 1, &slot) ||
        !in_param_text(visit, "reason", reason, sizeof(reason)) ||
        !in_param_text(visit, "force", force, sizeof(force)))
        return;
    if (slot >= RG_SLOTS) {
        fail(visit, QF_EINVAL, "\"slot\", a number below 1024, is needed");
        return;
    }
    clean.entry.slots = rg_slot_set_of((uint32_t)slot);
    clean.entry.forced = strcmp(force, "true") == 0;
    clean.entry.reason = qf_str_from(reason);
    wish(visit, &clean);
}

/* --- the ring as a whole --- */

static bool param_copies(struct qh_visit *visit, uint64_t standard, struct rg_entry *entry)
{
    uint64_t copies;

    if (!in_param_u64(visit, "copies", standard, RG_COPIES_MAX, &copies))
        return false;
    entry->copies = (uint8_t)copies;
    if (copies)
        return true;
    fail(visit, QF_EINVAL, "\"copies\", 1 to 7, is needed");
    return false;
}

static void handle_found(struct qh_visit *visit)
{
    struct rg_wish found = { .entry = { .kind = RG_FOUND } };

    if (param_copies(visit, COPIES, &found.entry) &&
        in_param_duration(visit, "grace", RG_GRACE_MS, &found.entry.grace_ms))
        wish(visit, &found);
}

static void handle_factor(struct qh_visit *visit)
{
    struct rg_wish factor = { .entry = { .kind = RG_FACTOR } };

    if (param_copies(visit, 0, &factor.entry))
        wish(visit, &factor);
}

/* --- migrations --- */

static void handle_changes(struct qh_visit *visit)
{
    question(visit, RG_ASK_CHANGES);
}

static void handle_change(struct qh_visit *visit)
{
    question(visit, RG_ASK_CHANGE);
}

static void handle_cancel(struct qh_visit *visit)
{
    struct rg_wish cancel = { .entry = { .kind = RG_CANCEL } };
    char reason[RG_REASON_MAX + 1];

    if (!in_param_text(visit, "reason", reason, sizeof(reason)))
        return;
    if (!qf_parse_u64(visit->rest, &cancel.entry.change)) {
        fail(visit, QF_ENOTFOUND, "a migration has a number");
        return;
    }
    cancel.entry.reason = reason[0] ? qf_str_from(reason) : QF_STR("canceled by an operator");
    wish(visit, &cancel);
}

static const struct qh_route routes[] = {
    { RG_RING_PATH, QH_GET, false, handle_follow, in_fail },
    { "/v1/admin/ring", QH_METHOD_POST, false, handle_found, in_fail },
    { "/v1/admin/ring", QH_METHOD_PUT, false, handle_factor, in_fail },
    { "/v1/admin/storage-nodes", QH_METHOD_GET, false, handle_nodes, in_fail },
    { "/v1/admin/storage-nodes", QH_METHOD_POST, false, handle_add, in_fail },
    { "/v1/admin/storage-nodes/*/clean", QH_METHOD_POST, false, handle_clean, in_fail },
    { "/v1/admin/storage-nodes/*", QH_METHOD_GET, false, handle_node, in_fail },
    { "/v1/admin/storage-nodes/*", QH_METHOD_DELETE, false, handle_remove, in_fail },
    { "/v1/admin/migrations", QH_METHOD_GET, false, handle_changes, in_fail },
    { "/v1/admin/migrations/*", QH_METHOD_GET, false, handle_change, in_fail },
    { "/v1/admin/migrations/*", QH_METHOD_DELETE, false, handle_cancel, in_fail },
};
const struct qh_routes in_ring_routes = { routes, QF_COUNT_OF(routes) };
