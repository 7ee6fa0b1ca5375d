/* route_tenants.c - the settings of tenants: asked for, changed, followed (ring/tenant/page.h).
 *
 *     POST /v1/tenants                             {"tenant":NAME, SETTINGS}
 *     GET  /v1/tenants?after=NAME                  a page of them
 *     GET  /v1/tenants/NAME
 *     PUT  /v1/tenants/NAME                        {"version":N, SETTINGS}: all settings are these from now on
 *     PUT  /v1/tenants/NAME/replication-factor     {"replication_factor":N}, perhaps with "version"
 *
 * SETTINGS: "replication_factor", "level" and "limits", an object with the names and values of the file of limits
 * (base/pure/limits.h); what is absent is as for all tenants. What GET says may be PUT as it is. All of it ends at the leader
 * of `meta`, whichever node is asked, with the operator's key where there are keys. */
#include "base/pure/number.h"
#include "base/sys/clock.h"
#include "ingest/http/heads_int.h"
#include "ring/coord/coord.h"

#define VALUE_TEXT_MAX 64

static bool refuse(struct qh_visit *visit, qf_rc rc, const char *what)
{
    in_body_refuse(visit, rc, what);
    return false;
}

static bool refuse_member(struct qh_visit *visit, const char *name, const char *what)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

    qf_strbuf_printf(&text, "\"%.40s\": %s", name, what);
    return refuse(visit, QF_EINVAL, qf_strbuf_cstr(&text));
}

static bool operates(struct qh_visit *visit)
{
    return visit->caller.sees_all ||
           refuse(visit, QF_EDENIED, "tenants are the operator's business: a key for all tenants");
}

/* --- bodies --- */

/* "90d", or 4: as the file has it. */
static bool read_limit(struct qh_visit *visit, const char *name, const json_t *value,
                       struct qf_limits *limits)
{
    enum qf_limit limit = qf_limit_find(qf_str_from(name));
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    const char *wrong;

    if (limit == QF_LIMIT__COUNT)
        return refuse_member(visit, name, "no such limit");
    if (json_is_null(value))
        return true;
    if (json_is_integer(value))
        qf_strbuf_i64(&text, json_integer_value(value));
    else if (json_is_string(value) && json_string_length(value) <= VALUE_TEXT_MAX)
        qf_strbuf_puts(&text, json_string_value(value));
    wrong = qf_limit_read(limit, qf_strbuf_view(&text), &limits->of[limit]);
    return !wrong || refuse_member(visit, name, wrong);
}

static bool read_limits(struct qh_visit *visit, const json_t *object, struct qf_limits *limits)
{
    const json_t *value;
    const char *name;

    if (!json_is_object(object) && !json_is_null(object))
        return refuse_member(visit, "limits", "an object is expected");
    json_object_foreach((json_t *)object, name, value)
    {
        if (!read_limit(visit, name, value, limits))
            return false;
    }
    return true;
}

static bool read_copies(struct qh_visit *visit, const json_t *value, uint8_t *ret_copies)
{
    json_int_t copies = json_integer_value(value);

    *ret_copies = 0;
    if (json_is_null(value))
        return true;
    if (!json_is_integer(value) || copies < 1 || copies > RG_COPIES_MAX)
        return refuse_member(visit, "replication_factor", "1 to 7 are expected");
    *ret_copies = (uint8_t)copies;
    return true;
}

static bool read_level(struct qh_visit *visit, const json_t *value, enum rg_tenant_level *ret_level)
{
    const char *text = json_string_value(value);

    *ret_level = RG_TENANT_ANY;
    return json_is_null(value) || (text && rg_tenant_level_parse(qf_str_from(text), ret_level)) ||
           refuse_member(visit, "level", "one, quorum or all are expected");
}

/* One member into @entry. Those that GET says beside settings are passed over. */
static bool read_member(struct qh_visit *visit, const char *name, const json_t *value,
                        struct rg_tenant_entry *entry)
{
    static const char *const said[] = { "created", "updated", "copies" };

    for (size_t i = 0; i < QF_COUNT_OF(said); i++)
        if (strcmp(name, said[i]) == 0)
            return true;
    if (strcmp(name, "replication_factor") == 0)
        return read_copies(visit, value, &entry->settings.copies);
    if (strcmp(name, "level") == 0)
        return read_level(visit, value, &entry->settings.level);
    if (strcmp(name, "limits") == 0)
        return read_limits(visit, value, &entry->settings.limits);
    if (strcmp(name, "version") == 0) {
        entry->version = json_is_integer(value) ? (uint64_t)json_integer_value(value) : 0;
        return (json_is_integer(value) && json_integer_value(value) > 0) ||
               refuse_member(visit, name, "the number is expected that GET says");
    }
    if (strcmp(name, "tenant") == 0) {
        if (!entry->name.len && json_is_string(value))
            entry->name = (struct qf_str){ json_string_value(value), json_string_length(value) };
        return (json_is_string(value) && qf_str_is(entry->name, json_string_value(value))) ||
               refuse_member(visit, name, "not the name in the path");
    }
    return refuse_member(visit, name, "there is no such setting");
}

static bool read_body(struct qh_visit *visit, const json_t *root, struct rg_tenant_entry *entry)
{
    const json_t *value;
    const char *name;

    json_object_foreach((json_t *)root, name, value)
    {
        if (!read_member(visit, name, value, entry))
            return false;
    }
    return qf_tenant_valid(entry->name) ||
           refuse(visit, QF_EINVAL,
                  "\"tenant\" is needed: 1 to 150 of letters, digits and !_.*'()-, not '.' first");
}

/* --- changes --- */

static bool is_whole(struct qh_visit *visit, const struct rg_tenant_entry *entry)
{
    switch (entry->kind) {
    case RG_TENANT_CREATE:
        return !entry->version ||
               refuse_member(visit, "version", "a tenant that is made has none yet");
    case RG_TENANT_PUT:
        return entry->version ||
               refuse_member(visit, "version", "the number that GET says is needed");
    case RG_TENANT_COPIES:
        return entry->settings.copies ||
               refuse_member(visit, "replication_factor", "1 to 7 are needed");
    case RG_TENANT_KIND__COUNT:
        break;
    }
    return false;
}

static void change(struct qh_visit *visit, enum rg_tenant_kind kind)
{
    struct rg_tenant_entry entry = { .kind = kind, .name = visit->rest };
    json_t *root = in_body_read(visit);

    if (!root)
        return;
    if (read_body(visit, root, &entry) && is_whole(visit, &entry))
        in_visit_submit(visit, rg_coord_tenant_wish(&entry));
    json_decref(root);
}

static void handle_create(struct qh_visit *visit)
{
    change(visit, RG_TENANT_CREATE);
}

static void handle_put(struct qh_visit *visit)
{
    change(visit, RG_TENANT_PUT);
}

static void handle_copies(struct qh_visit *visit)
{
    change(visit, RG_TENANT_COPIES);
}

/* --- looking --- */

static void question(struct qh_visit *visit, enum rg_question question, struct qf_str name)
{
    if (!operates(visit))
        return;
    if (name.len && !qf_tenant_valid(name))
        (void)refuse(visit, QF_ENOTFOUND, "no tenant can have this name");
    else
        in_visit_submit(visit, rg_coord_question(question, name));
}

static void handle_list(struct qh_visit *visit)
{
    question(visit, RG_ASK_TENANTS, qh_visit_param(visit, "after"));
}

static void handle_get(struct qh_visit *visit)
{
    question(visit, RG_ASK_TENANT, visit->rest);
}

static bool param_cluster(struct qh_visit *visit, uint64_t *ret_cluster)
{
    struct qf_str text = qh_visit_param(visit, "cluster");

    *ret_cluster = 0;
    for (size_t i = 0; i < text.len; i++) {
        int digit = qf_hex_digit(text.data[i]);

        if (digit < 0 || i >= 16)
            return refuse_member(visit, "cluster", "16 hex digits are expected");
        *ret_cluster = *ret_cluster << 4 | (uint64_t)digit;
    }
    return true;
}

static void handle_follow(struct qh_visit *visit)
{
    struct in_routes *routes = in_routes_of(visit);
    bool waits = qh_visit_param(visit, "since").len > 0;
    uint64_t since, cluster;
    int64_t wait_ms;
    qf_rc rc;

    if (!in_param_u64(visit, "since", 0, UINT64_MAX / 2, &since) ||
        !in_param_duration(visit, "wait", RG_TENANT_WAIT_MS, &wait_ms) ||
        !param_cluster(visit, &cluster) || !operates(visit))
        return;
    if (!waits || atomic_load(&routes->draining))
        wait_ms = 0;
    rc = rg_tenants_wait(routes->settings, visit->stream, cluster, since,
                         qf_clock_mono_ms() + QF_MIN(wait_ms, RG_TENANT_WAIT_MAX_MS));
    if (rc == QF_EBUSY)
        (void)refuse(visit, rc,
                     "too many wait for settings of tenants at this node: ask another one");
    else if (rc != QF_OK)
        (void)refuse(visit, rc,
                     "this node does not know the settings of tenants yet: ask another one");
}

static const struct qh_route routes[] = {
    { "/v1/tenants", QH_METHOD_POST, false, handle_create, in_fail },
    { "/v1/tenants", QH_GET, false, handle_list, in_fail },
    { "/v1/tenants/*/replication-factor", QH_METHOD_PUT, false, handle_copies, in_fail },
    { "/v1/tenants/*", QH_GET, false, handle_get, in_fail },
    { "/v1/tenants/*", QH_METHOD_PUT, false, handle_put, in_fail },
    { RG_TENANT_PAGE_PATH, QH_GET, false, handle_follow, in_fail },
};
const struct qh_routes in_tenant_routes = { routes, QF_COUNT_OF(routes) };
