/* route_about.c - what Prometheus says of itself and its targets, as far as it makes sense here.
 *
 * There are no scrapes, rules or alerts: those lists are empty, in the form that clients expect, and
 * parameters are checked all the same. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/pure/number.h"
#include "base/sys/clock.h"
#include "promql/parse.h"
#include "queryapi/http/routes_int.h"

/* The release whose answers we give. */
#define PROMETHEUS_VERSION "3.14.0"

static void succeed(struct qh_visit *visit, struct qf_str data)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;

    qf_strbuf_puts(&body, "{\"status\":\"success\",\"data\":");
    qf_strbuf_str(&body, data);
    qf_strbuf_putc(&body, '}');
    qh_visit_json(visit, 200, qf_strbuf_view(&body));
}

static void refuse(struct qh_visit *visit, const char *text)
{
    struct qf_err err = { 0 };

    (void)qf_err_set(&err, QF_EINVAL, "%s", text);
    visit->route->fail(visit, &err);
}

/* Every @name of the request is a selector. False after an answer that says which is not; @where
 * begins its text. */
static bool check_selectors(struct qh_visit *visit, const char *name, const char *where)
{
    const struct qh_params *params = &visit->request->params;
    struct qf_arena *arena = visit->request->arena;
    size_t bytes = 0;

    for (size_t i = 0; i < params->count; i++) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
        const struct pq_matcher *matchers;
        struct qf_err cause = { 0 };
        size_t count;

        if (!qf_str_is(params->items[i].name, name) ||
            (params->items[i].value.len == 0 && where[0])) /* an optional one */
            continue;
        bytes += params->items[i].value.len;
        if (qa_check_short(bytes, &cause) == QF_OK &&
            pq_parse_selector(arena, params->items[i].value, &(struct pq_parse_options){ 0 },
                              &matchers, &count, &cause) == QF_OK)
            continue;
        qf_strbuf_puts(&text, where);
        if (cause.rc == QF_EPARSE)
            pq_parse_error_print(&text, params->items[i].value, &cause);
        else
            qf_strbuf_puts(&text, cause.msg);
        refuse(visit, qf_strbuf_cstr(&text));
        return false;
    }
    return true;
}

static void handle_targets(struct qh_visit *visit)
{
    struct qf_str state = qh_visit_param(visit, "state");
    bool dropped = state.len == 0 || qf_str_is(state, "any") || qf_str_is(state, "dropped");

    succeed(visit, dropped ? QF_STR("{\"activeTargets\":[],\"droppedTargets\":[],"
                                    "\"droppedTargetCounts\":{}}")
                           : QF_STR("{\"activeTargets\":[],\"droppedTargets\":[],"
                                    "\"droppedTargetCounts\":null}"));
}

static void handle_target_metadata(struct qh_visit *visit)
{
    struct qf_str limit = qh_visit_param(visit, "limit");
    int64_t number;

    if (limit.len && !qf_parse_i64(limit, &number))
        refuse(visit, "limit must be a number");
    else if (check_selectors(visit, "match_target", "invalid parameter \"match_target\": "))
        succeed(visit, QF_STR("[]"));
}

static void handle_scrape_pools(struct qh_visit *visit)
{
    succeed(visit, QF_STR("{\"scrapePools\":[]}"));
}

static void handle_alertmanagers(struct qh_visit *visit)
{
    succeed(visit, QF_STR("{\"activeAlertmanagers\":[],\"droppedAlertmanagers\":[]}"));
}

static void handle_nothing(struct qh_visit *visit)
{
    succeed(visit, QF_STR("[]"));
}

static void handle_alerts(struct qh_visit *visit)
{
    succeed(visit, QF_STR("{\"alerts\":[]}"));
}

/* As Go reads them. */
static bool is_bool(struct qf_str text)
{
    static const char *const words[] = { "1", "t", "T", "TRUE",  "true",  "True",
                                         "0", "f", "F", "FALSE", "false", "False" };

    for (size_t i = 0; i < QF_COUNT_OF(words); i++)
        if (qf_str_is(text, words[i]))
            return true;
    return false;
}

/* False after an answer that says what is wrong with group_limit or group_next_token. */
static bool check_pages(struct qh_visit *visit)
{
    struct qf_str limit = qh_visit_param(visit, "group_limit"),
                  token = qh_visit_param(visit, "group_next_token");
    char text[300] = "";
    int64_t number;

    if (limit.len == 0 && token.len)
        (void)snprintf(text, sizeof(text),
                       "invalid parameter \"group_next_token\": group_limit needs to be present in "
                       "order to paginate over the groups");
    else if (limit.len && !qf_parse_i64(limit, &number))
        (void)snprintf(text, sizeof(text),
                       "invalid parameter \"group_limit\": group_limit needs to be a valid number: "
                       "strconv.ParseInt: parsing \"%.*s\": invalid syntax",
                       QF_STR_ARG(qf_str_sub(limit, 0, 100)));
    else if (limit.len && number <= 0)
        (void)snprintf(text, sizeof(text),
                       "invalid parameter \"group_limit\": group_limit needs to be greater than 0");
    else if (token.len)
        (void)snprintf(text, sizeof(text),
                       "invalid parameter \"group_next_token\": invalid group_next_token '%.*s'. "
                       "were rule groups changed?",
                       QF_STR_ARG(qf_str_sub(token, 0, 100)));
    if (text[0])
        refuse(visit, text);
    return !text[0];
}

static void handle_rules(struct qh_visit *visit)
{
    struct qf_str type = qh_visit_param(visit, "type"),
                  exclude = qh_visit_param(visit, "exclude_alerts");
    char text[300];

    if (!check_selectors(visit, "match[]", ""))
        return;
    if (type.len && !qf_str_is(type, "alert") && !qf_str_is(type, "record")) {
        (void)snprintf(text, sizeof(text),
                       "invalid parameter \"type\": not supported value \"%.*s\"",
                       QF_STR_ARG(qf_str_sub(type, 0, 100)));
        refuse(visit, text);
    } else if (exclude.len && !is_bool(exclude)) {
        (void)snprintf(text, sizeof(text),
                       "invalid parameter \"exclude_alerts\": error converting exclude_alerts: "
                       "strconv.ParseBool: parsing \"%.*s\": invalid syntax",
                       QF_STR_ARG(qf_str_sub(exclude, 0, 100)));
        refuse(visit, text);
    } else if (check_pages(visit)) {
        succeed(visit, QF_STR("{\"groups\":[]}"));
    }
}

#define BUILD                                                                                      \
    "{\"version\":\"" PROMETHEUS_VERSION "\",\"revision\":\"promfabric-" PROMFABRIC_VERSION        \
    "\",\"branch\":\"\",\"buildUser\":\"\",\"buildDate\":\"\",\"goVersion\":\"\"}"

static void handle_buildinfo(struct qh_visit *visit)
{
    succeed(visit, QF_STR(BUILD));
}

static void handle_version(struct qh_visit *visit)
{
    qh_visit_text(visit, 200, BUILD);
}

/* --- for operators --- */

/* What flags hold is no tenant's business: false after an answer that says so. */
static bool is_operator(struct qh_visit *visit)
{
    struct qf_err err = { 0 };

    if (visit->caller.sees_all)
        return true;
    (void)qf_err_set(&err, QF_EDENIED, "this is shown to operators: a key for all tenants");
    visit->route->fail(visit, &err);
    return false;
}

static void handle_flags(struct qh_visit *visit)
{
    if (is_operator(visit))
        succeed(visit, qf_str_from(qa_routes_of(visit)->flags_json ? qa_routes_of(visit)->flags_json
                                                                   : "{}"));
}

static void handle_config(struct qh_visit *visit)
{
    if (is_operator(visit))
        succeed(visit, QF_STR("{\"yaml\":\"# Promfabric has no configuration file; its flags are "
                              "below /api/v1/status/flags.\\n\"}"));
}

static void put_time(struct qf_strbuf *buf, const char *key, qf_time_ms time)
{
    qf_strbuf_printf(buf, "\"%s\":\"", key);
    qf_time_print_rfc3339(buf, time);
    qf_strbuf_puts(buf, "\",");
}

static void put_text(struct qf_strbuf *buf, const char *key, const char *text)
{
    qf_strbuf_printf(buf, "\"%s\":", key);
    qf_strbuf_json(buf, qf_str_from(text));
    qf_strbuf_putc(buf, ',');
}

/* Go's words, our figures: goroutines are threads. */
static void handle_runtimeinfo(struct qh_visit *visit)
{
    const struct qa_routes *of = qa_routes_of(visit);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf data = QF_STRBUF_INIT;
    char folder[PATH_MAX] = "", host[HOST_NAME_MAX + 1] = "";

    if (!is_operator(visit))
        return;
    (void)!getcwd(folder, sizeof(folder));
    (void)gethostname(host, sizeof(host) - 1);
    qf_strbuf_putc(&data, '{');
    put_time(&data, "startTime", of->started_ms);
    put_text(&data, "CWD", folder);
    put_text(&data, "hostname", host);
    put_time(&data, "serverTime", qf_clock_wall_ms());
    qf_strbuf_puts(&data, "\"reloadConfigSuccess\":true,");
    put_time(&data, "lastConfigTime", of->started_ms);
    qf_strbuf_printf(&data,
                     "\"corruptionCount\":0,\"goroutineCount\":%zu,\"GOMAXPROCS\":%ld,"
                     "\"GOMEMLIMIT\":%zu,\"GOGC\":\"\",\"GODEBUG\":\"\",\"storageRetention\":\"\"}",
                     of->thread_count, sysconf(_SC_NPROCESSORS_ONLN),
                     of->env->purse ? of->env->purse->limit : (size_t)0);
    succeed(visit, qf_strbuf_view(&data));
}

static void handle_walreplay(struct qh_visit *visit)
{
    succeed(visit, QF_STR("{\"min\":0,\"max\":0,\"current\":0}"));
}

/* Which parts of the language and the API are there. */
static void handle_features(struct qh_visit *visit)
{
    const struct qa_features *features = &qa_routes_of(visit)->env->features;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf data = QF_STRBUF_INIT;

    qf_strbuf_puts(&data, "{\"api\":{\"exclude_alerts\":true,\"label_values_match\":true,"
                          "\"query_stats\":true,\"query_warnings\":true,\"series\":true},"
                          "\"prometheus\":{\"native_histograms\":true},\"promql\":{"
                          "\"at_modifier\":true,\"negative_offset\":true,\"subqueries\":true,");
    qf_strbuf_printf(&data, "\"delayed_name_removal\":%s,\"start_timestamps\":%s},",
                     features->delayed_name_removal ? "true" : "false",
                     features->start_timestamps ? "true" : "false");
    qf_strbuf_puts(&data, "\"promql_functions\":{");
    for (int id = 0; id < PQ_FN__COUNT; id++) {
        const struct pq_function *function = pq_function_get((enum pq_function_id)id);

        qf_strbuf_printf(
            &data, "%s\"%s\":%s", id ? "," : "", function->name,
            function->experimental && !features->parse.experimental_functions ? "false" : "true");
    }
    qf_strbuf_puts(&data, "}}");
    succeed(visit, qf_strbuf_view(&data));
}

static const struct qh_route routes[] = {
    { "/api/v1/targets", QH_GET, false, handle_targets, qa_fail_json },
    { "/api/v1/targets/metadata", QH_GET, false, handle_target_metadata, qa_fail_json },
    { "/api/v1/scrape_pools", QH_GET, false, handle_scrape_pools, qa_fail_json },
    { "/api/v1/alertmanagers", QH_GET, false, handle_alertmanagers, qa_fail_json },
    { "/api/v1/alerts", QH_GET, false, handle_alerts, qa_fail_json },
    { "/api/v1/rules", QH_GET, false, handle_rules, qa_fail_json },
    { "/api/v1/notifications", QH_GET, false, handle_nothing, qa_fail_json },
    { "/api/v1/features", QH_GET, false, handle_features, qa_fail_json },
    { "/api/v1/status/buildinfo", QH_GET, false, handle_buildinfo, qa_fail_json },
    { "/api/v1/status/config", QH_GET, false, handle_config, qa_fail_json },
    { "/api/v1/status/flags", QH_GET, false, handle_flags, qa_fail_json },
    { "/api/v1/status/runtimeinfo", QH_GET, false, handle_runtimeinfo, qa_fail_json },
    { "/api/v1/status/walreplay", QH_GET, false, handle_walreplay, qa_fail_json },
    { "/version", QH_GET, true, handle_version, qa_fail_json },
};
const struct qh_routes qa_about_routes = { routes, QF_COUNT_OF(routes) };
