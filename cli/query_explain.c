/* query_explain.c - the plan of a query in a terminal, while it runs and after. */
#include "cli/query_explain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/macros.h"
#include "base/pure/strbuf.h"

#define STAGES_MAX 16
/* Work items of one leaf: while it runs those that workers have, and at the end. */
#define LIVE_WORKS_MAX 8
#define WORKS_MAX 200

struct cli_explain {
    bool live;
    size_t drawn; /* lines on stderr */
    json_t *plan; /* the latest, and the news of its works by id */
    json_t **works;
    size_t work_count;
    struct {
        char name[16];
        int64_t t_ms;
    } stages[STAGES_MAX];
    size_t stage_count;
    json_t *done;
};

struct cli_explain *cli_explain_new(bool live)
{
    struct cli_explain *explain = qf_xcalloc(1, sizeof(*explain));

    explain->live = live;
    return explain;
}

static void forget_plan(struct cli_explain *explain)
{
    for (size_t i = 0; i < explain->work_count; i++)
        json_decref(explain->works[i]);
    free(explain->works);
    json_decref(explain->plan);
    explain->works = NULL;
    explain->plan = NULL;
    explain->work_count = 0;
}

struct cli_explain *cli_explain_free(struct cli_explain *explain)
{
    if (!explain)
        return NULL;
    forget_plan(explain);
    json_decref(explain->done);
    free(explain);
    return NULL;
}

/* --- numbers --- */

static int64_t number(const json_t *object, const char *key)
{
    return (int64_t)json_number_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
    const char *found = json_string_value(json_object_get(object, key));

    return found ? found : "";
}

static void put_bytes(struct qf_strbuf *buf, int64_t bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    double value = (double)bytes;
    size_t unit = 0;

    for (; value >= 1024 && unit + 1 < QF_COUNT_OF(units); unit++)
        value /= 1024;
    qf_strbuf_printf(buf, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

static void put_time(struct qf_strbuf *buf, double us)
{
    if (us < 1e3)
        qf_strbuf_printf(buf, "%.0f us", us);
    else if (us < 1e6)
        qf_strbuf_printf(buf, "%.1f ms", us / 1e3);
    else
        qf_strbuf_printf(buf, "%.2f s", us / 1e6);
}

/* --- the tree --- */

static void put_work(struct qf_strbuf *buf, const json_t *planned, const json_t *work, int indent)
{
    const char *reason = text(work, "reason");

    qf_strbuf_printf(buf, "%*swork %" PRId64 ": %s", indent, "", number(planned, "id"),
                     work ? text(work, "state") : "pending");
    if (*text(work, "worker"))
        qf_strbuf_printf(buf, " on %s", text(work, "worker"));
    if (number(work, "attempt") > 1)
        qf_strbuf_printf(buf, ", attempt %" PRId64, number(work, "attempt"));
    if (json_is_true(json_object_get(work, "hedged")))
        qf_strbuf_puts(buf, ", hedged");
    if (*reason)
        qf_strbuf_printf(buf, " (%s)", reason);
    qf_strbuf_printf(buf, "; %" PRId64 " segments, ", number(planned, "segments"));
    put_bytes(buf, number(planned, "bytes"));
    if (json_object_get(work, "scan_us")) {
        qf_strbuf_printf(buf, "; %" PRId64 " samples, result ", number(work, "samples"));
        put_bytes(buf, number(work, "artifact_bytes"));
        qf_strbuf_puts(buf, "; scan ");
        put_time(buf, (double)number(work, "scan_us"));
        qf_strbuf_puts(buf, ", fetch ");
        put_time(buf, (double)number(work, "fetch_us"));
    }
    qf_strbuf_putc(buf, '\n');
}

static bool is_running(const json_t *work)
{
    const char *state = text(work, "state");

    return strcmp(state, "assigned") == 0 || strcmp(state, "accepted") == 0 ||
           strcmp(state, "ready") == 0;
}

static void put_works(struct qf_strbuf *buf, const struct cli_explain *explain, int64_t leaf,
                      int indent, bool live)
{
    size_t shown = 0, hidden = 0, i;
    json_t *planned;

    json_array_foreach(json_object_get(explain->plan, "works"), i, planned)
    {
        if (number(planned, "leaf") != leaf || (live && !is_running(explain->works[i])))
            continue;
        if (shown++ < (live ? LIVE_WORKS_MAX : WORKS_MAX))
            put_work(buf, planned, explain->works[i], indent);
        else
            hidden++;
    }
    if (hidden)
        qf_strbuf_printf(buf, "%*s... and %zu more work items\n", indent, "", hidden);
}

static void put_leaf_totals(struct qf_strbuf *buf, const struct cli_explain *explain, int64_t leaf)
{
    int64_t total = 0, fetched = 0, samples = 0, scan_us = 0;
    json_t *planned;
    size_t i;

    json_array_foreach(json_object_get(explain->plan, "works"), i, planned)
    {
        if (number(planned, "leaf") != leaf)
            continue;
        total++;
        fetched += strcmp(text(explain->works[i], "state"), "fetched") == 0;
        samples += number(explain->works[i], "samples");
        scan_us += number(explain->works[i], "scan_us");
    }
    qf_strbuf_printf(buf, "  [%" PRId64 " of %" PRId64 " work items, %" PRId64 " samples, scan ",
                     fetched, total, samples);
    put_time(buf, (double)scan_us);
    qf_strbuf_putc(buf, ']');
}

static void put_group(struct qf_strbuf *buf, const json_t *node, const char *key)
{
    const json_t *names = json_object_get(node, key), *name;
    size_t i;

    if (!names)
        return;
    qf_strbuf_printf(buf, " %s (", key);
    json_array_foreach(names, i, name)
        qf_strbuf_printf(buf, "%s%s", i ? ", " : "", json_string_value(name));
    qf_strbuf_putc(buf, ')');
}

/* What node number @at took in the API, once that is known. */
static void put_figures(struct qf_strbuf *buf, const struct cli_explain *explain, size_t at)
{
    const json_t *figures = json_array_get(json_object_get(explain->done, "nodes"), at);

    if (number(figures, "blocks") == 0)
        return;
    qf_strbuf_puts(buf, "  (");
    put_time(buf, (double)number(figures, "self_us"));
    qf_strbuf_printf(buf, " in the API, %" PRId64 " series)", number(figures, "series"));
}

/* As deep as the API's plan, whose depth the API bounds and jansson again. @at counts nodes. */
static void put_node(struct qf_strbuf *buf, const struct cli_explain *explain, const json_t *node,
                     size_t *at, int indent, bool live)
{
    const json_t *leaf_id = json_object_get(node, "leaf"), *child;
    size_t i;

    qf_strbuf_printf(buf, "%*s%s", indent, "", text(node, "node"));
    if (leaf_id) {
        const json_t *leaves = json_object_get(json_object_get(explain->plan, "plan"), "leaves");
        const json_t *leaf = json_array_get(leaves, (size_t)json_integer_value(leaf_id));

        qf_strbuf_printf(buf, ": %s", text(leaf, "text"));
        put_leaf_totals(buf, explain, json_integer_value(leaf_id));
    } else if (*text(node, "detail")) {
        qf_strbuf_printf(buf, " %s", text(node, "detail"));
    }
    put_group(buf, node, "by");
    put_group(buf, node, "without");
    put_figures(buf, explain, (*at)++);
    qf_strbuf_putc(buf, '\n');
    if (leaf_id)
        put_works(buf, explain, json_integer_value(leaf_id), indent + 2, live);
    json_array_foreach(json_object_get(node, "children"), i, child)
        put_node(buf, explain, child, at, indent + 2, live);
}

static void put_stages(struct qf_strbuf *buf, const struct cli_explain *explain)
{
    for (size_t i = 0; i < explain->stage_count; i++)
        qf_strbuf_printf(buf, "%s%s at %" PRId64 " ms", i ? ", " : "", explain->stages[i].name,
                         explain->stages[i].t_ms);
    if (explain->stage_count)
        qf_strbuf_putc(buf, '\n');
}

static void put_tree(struct qf_strbuf *buf, const struct cli_explain *explain, bool live)
{
    const json_t *estimate = json_object_get(explain->plan, "estimate");
    size_t at = 0;

    put_stages(buf, explain);
    if (!explain->plan)
        return;
    qf_strbuf_printf(buf, "query %s, expected: %" PRId64 " segments, ",
                     text(explain->plan, "query_id"), number(estimate, "segments"));
    put_bytes(buf, number(estimate, "bytes"));
    qf_strbuf_printf(buf, ", about %" PRId64 " samples, ", number(estimate, "samples"));
    put_time(buf, json_number_value(json_object_get(estimate, "seconds")) * 1e6);
    qf_strbuf_puts(buf, " of scanning\n");
    put_node(buf, explain, json_object_get(json_object_get(explain->plan, "plan"), "tree"), &at, 0,
             live);
}

static void put_receipt(struct qf_strbuf *buf, const json_t *done)
{
    const json_t *stats = json_object_get(done, "stats");
    const json_t *coverage = json_object_get(done, "coverage");

    if (!stats || !coverage)
        return;
    qf_strbuf_puts(buf, "took ");
    put_time(buf, json_number_value(json_object_get(stats, "total_seconds")) * 1e6);
    qf_strbuf_printf(buf,
                     ": %" PRId64 " series, %" PRId64 " points, %" PRId64 " samples read, %" PRId64
                     " retries, %" PRId64 " hedges, %" PRId64 " re-plans, memory ",
                     number(stats, "series"), number(stats, "points"), number(stats, "samples"),
                     number(stats, "retries"), number(stats, "hedges"), number(stats, "replans"));
    put_bytes(buf, number(stats, "peak_memory_bytes"));
    qf_strbuf_printf(
        buf, "\nstands on %" PRId64 " segments in %" PRId64 " work items, checksum %s\n",
        number(coverage, "segments"), number(coverage, "works"), text(coverage, "checksum"));
}

/* Names come from other machines: what would steer the terminal is not passed on. */
static void write_out(const struct qf_strbuf *buf, FILE *out)
{
    for (size_t i = 0; i < buf->len; i++) {
        unsigned char byte = (unsigned char)buf->data[i];

        (void)fputc(byte == '\n' || (byte >= ' ' && byte != 0x7f) ? byte : '?', out);
    }
    (void)fflush(out);
}

/* --- events --- */

void cli_explain_clear(struct cli_explain *explain)
{
    if (explain->drawn)
        (void)fprintf(stderr, "\r\033[%zuA\033[J", explain->drawn);
    explain->drawn = 0;
}

static void draw(struct cli_explain *explain)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;

    if (!explain->live)
        return;
    put_tree(&buf, explain, true);
    cli_explain_clear(explain);
    (void)fprintf(stderr, "\033[?7l"); /* a line is a line, however long */
    write_out(&buf, stderr);
    (void)fprintf(stderr, "\033[?7h");
    for (size_t i = 0; i < buf.len; i++)
        explain->drawn += buf.data[i] == '\n';
}

static void hear_stage(struct cli_explain *explain, const json_t *data)
{
    if (explain->stage_count == STAGES_MAX)
        return;
    (void)snprintf(explain->stages[explain->stage_count].name, sizeof(explain->stages[0].name),
                   "%s", text(data, "name"));
    explain->stages[explain->stage_count++].t_ms = number(data, "t_ms");
}

static void hear_plan(struct cli_explain *explain, json_t *data)
{
    forget_plan(explain);
    explain->plan = json_incref(data);
    explain->work_count = json_array_size(json_object_get(data, "works"));
    explain->works = qf_xcalloc(QF_MAX(explain->work_count, (size_t)1), sizeof(json_t *));
}

static void hear_works(struct cli_explain *explain, const json_t *data)
{
    json_t *work;
    size_t i;

    json_array_foreach(json_object_get(data, "changed"), i, work)
    {
        int64_t id = number(work, "id");

        if (id < 0 || (uint64_t)id >= explain->work_count)
            continue;
        json_decref(explain->works[id]);
        explain->works[id] = json_incref(work);
    }
}

void cli_explain_hear(struct cli_explain *explain, const char *type, json_t *data)
{
    if (strcmp(type, "stage") == 0) {
        hear_stage(explain, data);
    } else if (strcmp(type, "plan") == 0) {
        hear_plan(explain, data);
    } else if (strcmp(type, "works") == 0) {
        hear_works(explain, data);
    } else if (strcmp(type, "done") == 0) {
        json_decref(explain->done);
        explain->done = json_incref(data);
        cli_explain_clear(explain);
        return;
    } else {
        return;
    }
    draw(explain);
}

void cli_explain_print(const struct cli_explain *explain, FILE *out)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;

    put_tree(&buf, explain, false);
    put_receipt(&buf, explain->done);
    write_out(&buf, out);
}
