/* plan.c - from what was asked to plans and work items. */
#include <inttypes.h>

#include "base/pure/map.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "promql/functions.h"
#include "promql/parse.h"
#include "queryapi/query/known.h"
#include "queryapi/query/query_int.h"
#include "segments/store/ring.h"
#include "workcoord/rendezvous.h"

/* Put Prometheus's frame around what is wrong with the query itself. */
static qf_rc frame_error(const struct qa_query *query, struct qf_str text,
                         const struct qf_err *cause, struct qf_err *err)
{
    struct qf_strbuf message = QF_STRBUF_INIT;
    qf_rc rc = cause->rc;

    if (rc == QF_EPARSE || (rc == QF_EINVAL && cause->pos_end > cause->pos_start))
        pq_parse_error_print(&message, text, cause);
    else
        qf_strbuf_puts(&message, cause->msg);
    if (rc != QF_EPARSE && rc != QF_EINVAL) {
        (void)qf_err_set(err, rc, "%s", qf_strbuf_cstr(&message));
    } else if (qa_query_kind_format(query->ask.kind) == QA_FORMAT_EVENTS) {
        (void)qf_err_set(err, rc, "%s", qf_strbuf_cstr(&message));
    } else {
        (void)qf_err_set(err, rc, "invalid parameter \"query\": %s", qf_strbuf_cstr(&message));
    }
    qf_strbuf_done(&message);
    return rc;
}

static struct pq_query_params params_of(const struct qa_query *query)
{
    const struct qa_ask *ask = &query->ask;

    return (struct pq_query_params){ .start_ms = ask->start_ms,
                                     .end_ms = ask->end_ms,
                                     .step_ms = ask->step_ms,
                                     .canceled = &query->canceled,
                                     .lookback_ms = ask->lookback_ms,
                                     .samples_max = query->samples_max,
                                     .series_max = query->env->series_max,
                                     .delayed_name_removal =
                                         query->env->features.delayed_name_removal,
                                     .start_timestamps = query->env->features.start_timestamps };
}

/* Samples behind the tenant's retention do not exist for a query, whether or not their files went
 * already: leaves read times of samples, so that this holds for ranges, offsets, @ and subqueries
 * alike. Leaves that are behind it altogether read nothing. */
static void cut_leaves(const struct qa_query *query, const struct pq_plan *plan)
{
    for (size_t i = 0; i < plan->leaf_count; i++) {
        struct pq_select *select = &plan->leaves[i]->select;

        select->min_ts = QF_MAX(select->min_ts, query->oldest_ts);
    }
}

static qf_rc add_part(struct qa_query *query, const struct pq_expr *expr, struct qf_str text,
                      const struct pq_query_params *params, struct qf_err *err)
{
    struct pq_plan *plan;
    qf_rc rc = pq_plan_new(query->arena, expr, text, params, &plan, err);

    if (rc)
        return rc;
    cut_leaves(query, plan);
    query->parts[query->part_count++] = (struct qa_plan_part){ .plan = plan };
    return QF_OK;
}

static qf_rc plan_expression(struct qa_query *query, struct qf_err *err)
{
    struct pq_query_params params = params_of(query);
    struct pq_parse_options options = query->env->features.parse;
    struct qf_err cause = { 0 };
    struct pq_expr *expr;
    qf_rc rc;

    options.canceled = &query->canceled;
    rc = pq_parse(query->arena, query->ask.text, &options, &expr, &cause);
    if (rc == QF_OK)
        rc = add_part(query, expr, query->ask.text, &params, &cause);
    return rc == QF_OK ? QF_OK : frame_error(query, query->ask.text, &cause, err);
}

/* The time range of series and labels, cut to where there are data: a window has to have ends. */
static qf_rc cut_range(struct qa_query *query, const struct qf_str tenant, struct qf_err *err)
{
    struct sg_catalog_query ask = { .tenant = tenant,
                                    .min_ts = query->ask.start_ms,
                                    .max_ts = query->ask.end_ms,
                                    .told = query->unlisted };
    struct sg_catalog_answer found;
    int64_t min_ts = INT64_MAX, max_ts = INT64_MIN;
    qf_rc rc = sg_catalog_lookup(query->snapshot, &ask, query->arena, &found, err);

    if (rc)
        return rc;
    for (size_t g = 0; g < found.group_count; g++) {
        for (size_t i = 0; i < found.groups[g].segment_count; i++) {
            min_ts = QF_MIN(min_ts, found.groups[g].segments[i].min_ts);
            max_ts = QF_MAX(max_ts, found.groups[g].segments[i].max_ts);
        }
    }
    qa_heads_widen(query, &min_ts, &max_ts);
    qa_maps_widen(query, &min_ts, &max_ts);
    query->ask.start_ms = QF_MAX(query->ask.start_ms, min_ts);
    query->ask.end_ms = QF_MIN(query->ask.end_ms, max_ts);
    return QF_OK;
}

/* SELECTOR[end - start], to be looked at from the end. */
static struct pq_expr *samples_expression(struct qa_query *query, struct qa_ask_range range,
                                          const struct pq_matcher *matchers, size_t matcher_count)
{
    struct pq_expr *selector = QF_ARENA_NEW(query->arena, struct pq_expr);
    struct pq_expr *matrix = QF_ARENA_NEW(query->arena, struct pq_expr);

    if (!selector || !matrix)
        return NULL;
    selector->kind = PQ_VECTOR_SELECTOR;
    selector->vector.matchers = matchers;
    selector->vector.matcher_count = matcher_count;
    matrix->kind = PQ_MATRIX_SELECTOR;
    matrix->matrix.selector = selector;
    matrix->matrix.range_ms = range.end_ms - range.start_ms + 1; /* left end is open */
    return matrix;
}

/* last_over_time(MATRIX): every series with a sample in the range, under its full name. */
static struct pq_expr *series_expression(struct qa_query *query, struct pq_expr *matrix)
{
    struct pq_expr *call = QF_ARENA_NEW(query->arena, struct pq_expr);
    struct pq_expr **args = QF_ARENA_ARRAY(query->arena, struct pq_expr *, 1);

    if (!matrix || !call || !args)
        return NULL;
    call->kind = PQ_CALL;
    call->call.function = pq_function_get(PQ_FN_LAST_OVER_TIME);
    args[0] = matrix;
    call->call.args = args;
    call->call.arg_count = 1;
    return call;
}

/* Prometheus's words for a bad match[]: those of /series name the parameter. */
static qf_rc match_error(const struct qa_query *query, struct qf_str match,
                         const struct qf_err *cause, struct qf_err *err)
{
    const char *frame = query->ask.kind == QA_QUERY_SERIES ? "invalid parameter \"match[]\": " : "";
    struct qf_strbuf message = QF_STRBUF_INIT;

    if (cause->rc == QF_EPARSE)
        pq_parse_error_print(&message, match, cause);
    else
        qf_strbuf_puts(&message, cause->msg);
    (void)qf_err_set(err, cause->rc, "%s%s", frame, qf_strbuf_cstr(&message));
    qf_strbuf_done(&message);
    return cause->rc;
}

static bool wants_samples(const struct qa_query *query)
{
    return qa_query_kind_asks(query->ask.kind) == QA_ASKS_SAMPLES;
}

/* Of series nobody looks at the values, so a native histogram is as good as a float. Of samples every one
 * counts, stale markers too. */
static void set_take(const struct qa_query *query, const struct pq_plan *plan)
{
    for (size_t i = 0; i < plan->leaf_count; i++)
        plan->leaves[i]->stages[0].take = wants_samples(query) ? PQ_TAKE_ALL : PQ_TAKE_TIMESTAMP;
}

/* Its matchers. Lists of series must select something; who reads samples may have all of them. */
static qf_rc read_match(struct qa_query *query, struct qf_str match,
                        const struct pq_matcher **ret_matchers, size_t *ret_count,
                        struct qf_err *err)
{
    const struct pq_parse_options options = { .canceled = &query->canceled };
    struct qf_err cause = { 0 };
    bool selective = wants_samples(query);
    qf_rc rc = pq_parse_selector(query->arena, match, &options, ret_matchers, ret_count, &cause);

    for (size_t i = 0; rc == QF_OK && i < *ret_count; i++)
        selective |= !pq_matcher_matches(&(*ret_matchers)[i], QF_STR(""));
    if (rc == QF_OK && !selective)
        rc = qf_err_set(&cause, QF_EINVAL, "match[] must contain at least one non-empty matcher");
    return rc ? match_error(query, match, &cause, err) : QF_OK;
}

/* The range of match @index, as far as there are data. */
static struct qa_ask_range range_of(const struct qa_query *query, size_t index)
{
    struct qa_ask_range range = { query->ask.start_ms, query->ask.end_ms };

    if (query->ask.ranges) {
        range.start_ms = QF_MAX(range.start_ms, query->ask.ranges[index].start_ms);
        range.end_ms = QF_MIN(range.end_ms, query->ask.ranges[index].end_ms);
    }
    return range;
}

static qf_rc plan_match(struct qa_query *query, size_t index, struct qf_err *err)
{
    struct qa_ask_range range = range_of(query, index);
    struct pq_query_params params = { .start_ms = range.end_ms,
                                      .end_ms = range.end_ms,
                                      .samples_max = query->samples_max,
                                      .series_max = query->env->series_max };
    const struct pq_matcher *matchers;
    struct qa_plan_part *part;
    struct pq_expr *expr;
    size_t count;
    qf_rc rc = read_match(query, query->ask.matches[index], &matchers, &count, err);

    if (rc || range.end_ms < range.start_ms)
        return rc; /* no data in the range: the selector was checked, the answer is empty */
    expr = samples_expression(query, range, matchers, count);
    if (!wants_samples(query))
        expr = series_expression(query, expr);
    if (!expr)
        return qf_err_set(err, QF_ELIMIT, "the query is too large");
    rc = add_part(query, expr, query->ask.matches[index], &params, err);
    if (rc)
        return rc;
    part = &query->parts[query->part_count - 1];
    part->match = (uint32_t)index;
    set_take(query, part->plan);
    return QF_OK;
}

static qf_rc plan_matches(struct qa_query *query, struct qf_err *err)
{
    qf_rc rc = cut_range(query, query->ask.tenant, err);

    for (size_t i = 0; rc == QF_OK && i < query->ask.match_count; i++)
        rc = plan_match(query, i, err);
    return rc;
}

/* Of one group, or of several: a series is in one of them, so their order does not matter. */
static bool copy_segments(struct qa_query *query, const struct sg_catalog_group *groups,
                          size_t count, struct qa_item *item)
{
    size_t total = 0;

    for (size_t g = 0; g < count; g++)
        total += groups[g].segment_count;
    item->segments = QF_ARENA_ARRAY(query->arena, struct pb_segment, total);
    if (!item->segments)
        return false;
    for (size_t g = 0; g < count; g++) {
        for (size_t i = 0; i < groups[g].segment_count; i++) {
            const struct sg_catalog_segment *from = &groups[g].segments[i];

            item->segments[item->segment_count++] =
                (struct pb_segment){ .name = from->name,
                                     .size_bytes = from->size,
                                     .etag = from->etag,
                                     .mtime_ms = from->mtime_ms,
                                     .shard = from->shard,
                                     .shard_count = from->shard_count,
                                     .generation = from->generation };
        }
    }
    return true;
}

static uint64_t log2_floor(uint64_t value)
{
    return value ? 63 - (uint64_t)__builtin_clzll(value) : 0;
}

uint64_t qa_leaf_key(const struct qa_query *query, uint32_t part, uint32_t leaf)
{
    const struct pq_leaf *spec = query->parts[part].plan->leaves[leaf];
    uint64_t asked[] = {
        qf_hash_bytes(query->ask.tenant),
        qf_hash_bytes(query->ask.match_count ? query->ask.matches[query->parts[part].match]
                                             : query->ask.text),
        leaf,
        log2_floor((uint64_t)QF_MAX(spec->select.max_ts - spec->select.min_ts, (int64_t)0)),
        log2_floor((uint64_t)QF_MAX(query->ask.step_ms, (int64_t)0)),
    };

    return qf_hash_bytes((struct qf_str){ (const char *)asked, sizeof(asked) });
}

/* What a worker reads in a microsecond, and what a sample takes on disk: both are on the safe side.
 */
#define SAMPLES_PER_US 40
#define BYTES_PER_SAMPLE 3

/* Samples in the leaf's time range, whatever the matchers leave of them. */
static double samples_in(const struct sg_catalog_answer *found, const struct pq_select *select)
{
    double samples = 0;

    for (size_t g = 0; g < found->group_count; g++) {
        for (size_t i = 0; i < found->groups[g].segment_count; i++) {
            const struct sg_catalog_segment *segment = &found->groups[g].segments[i];
            int64_t from = QF_MAX(segment->min_ts, select->min_ts);
            int64_t to = QF_MIN(segment->max_ts, select->max_ts);
            double share =
                (double)(to - from + 1) / (double)(segment->max_ts - segment->min_ts + 1);

            samples += (double)segment->size / BYTES_PER_SAMPLE * share;
        }
    }
    return samples;
}

/* Add what the leaf reads to what the query is expected to take. */
static void estimate_leaf(struct qa_query *query, uint32_t part, uint32_t leaf,
                          const struct sg_catalog_answer *found)
{
    double samples = samples_in(found, &query->parts[part].plan->leaves[leaf]->select);
    double us = samples / SAMPLES_PER_US;
    uint64_t scan_us;

    if (query->env->costs &&
        qa_costs_find(query->env->costs, qa_leaf_key(query, part, leaf), &scan_us))
        us = (double)scan_us;
    query->estimate.segments += found->segment_count;
    query->estimate.bytes += found->bytes;
    query->estimate.samples += samples;
    query->estimate.seconds += us / 1e6;
}

/* Refuse what is expected to take too long, and say what was expected. Who only wants to know the cost
 * is told it. */
static qf_rc check_cost(const struct qa_query *query, struct qf_err *err)
{
    const struct qa_estimate *estimate = &query->estimate;
    double max = (double)query->env->cost_max_ms / 1000;

    if (!query->env->cost_max_ms || query->ask.kind == QA_QUERY_EXPLAIN || estimate->seconds <= max)
        return QF_OK;
    return qf_err_set(err, QF_ELIMIT,
                      "the query is expected to scan for %.3g s, and may for %.3g s: %" PRIu64
                      " segments of %" PRIu64 " bytes, about %.3g samples in range; ask for a "
                      "shorter time or fewer series",
                      estimate->seconds, max, estimate->segments, estimate->bytes,
                      estimate->samples);
}

/* May several groups be one work item, though they are not all? Head inputs and state maps come by group,
 * and of what keepers hold a work item should read what its own keeper has. */
static bool may_share(const struct qa_query *query, const struct pb_maps *maps)
{
    return !maps->count && !(query->fresh && query->fresh->count) &&
           !sg_store_is_ring(query->env->store);
}

/* Groups of each work item of the leaf: all, if the leaf takes so little that one worker should have
 * it. Either it did when it was asked before, or there is not more than that in the time range, whatever
 * the matchers leave of it. If it took more, as many that an item takes about that long: what an item
 * costs besides its scan would come once for each shard. */
static size_t groups_per_item(const struct qa_query *query, uint32_t part, uint32_t leaf,
                              const struct sg_catalog_answer *found, const struct pb_maps *maps,
                              double head_samples)
{
    const struct pq_select *select = &query->parts[part].plan->leaves[leaf]->select;
    uint64_t small_us = query->env->small_scan_us, scan_us, items;
    size_t segments = 0;

    for (size_t g = 0; g < found->group_count; g++)
        segments += found->groups[g].segment_count;
    if (found->group_count < 2 || !small_us || segments > PB_SEGMENTS_MAX)
        return 1;
    if (!qa_costs_find(query->env->costs, qa_leaf_key(query, part, leaf), &scan_us))
        return samples_in(found, select) + head_samples <= (double)small_us * SAMPLES_PER_US
                   ? found->group_count
                   : 1;
    items = QF_MAX((scan_us + small_us - 1) / small_us, UINT64_C(1));
    if (items > 1 && !may_share(query, maps))
        return 1;
    return (size_t)QF_MAX((found->group_count + items - 1) / items, UINT64_C(1));
}

/* The group whose worker gets a work item of several: another one for another selector, so that
 * small queries are not all one worker's. */
static const struct sg_catalog_group *home_of(const struct qa_query *query, uint32_t part,
                                              uint32_t leaf, const struct sg_catalog_group *groups,
                                              size_t count)
{
    return count == 1 ? groups : &groups[qa_leaf_key(query, part, leaf) % count];
}

/* What a segment takes in a message besides its name and etag, and a work besides its segments. */
#define SEGMENT_BYTES 80
#define REPLICA_BYTES 8
#define WORK_BYTES 4096

/* A worker ends the stream of an API that sends it more than it takes, and with the stream the work
 * of every other query: what does not fit is never sent. */
static bool fits_a_message(const struct qa_item *item)
{
    size_t bytes = item->spec.len + WORK_BYTES;

    for (size_t i = 0; i < item->segment_count; i++)
        bytes += item->segments[i].name.len + item->segments[i].etag.len + SEGMENT_BYTES;
    for (size_t i = 0; i < item->heads.count; i++) {
        bytes += item->heads.inputs[i].queue.len + SEGMENT_BYTES;
        for (size_t k = 0; k < item->heads.inputs[i].replica_count; k++)
            bytes += item->heads.inputs[i].replicas[k].len + REPLICA_BYTES;
    }
    bytes += item->heads.match.len;
    for (size_t i = 0; i < item->maps.count; i++)
        bytes += item->maps.inputs[i].name.len + item->maps.inputs[i].metric.len + SEGMENT_BYTES;
    for (size_t i = 0; i < item->maps.node_count; i++)
        bytes += item->maps.nodes[i].len + REPLICA_BYTES;
    return item->segment_count <= PB_SEGMENTS_MAX && item->heads.count <= PB_HEADS_MAX &&
           item->spec.len <= PB_SPEC_BYTES_MAX && bytes <= PB_MESSAGE_BYTES_MAX;
}

/* The work items of a leaf: one per shard group, or fewer if it takes little. */
static qf_rc add_leaf(struct qa_query *query, uint32_t part, uint32_t leaf, struct qf_err *err)
{
    struct qa_plan_part *of = &query->parts[part];
    const struct pq_leaf *spec = of->plan->leaves[leaf];
    struct sg_catalog_query ask = { .tenant = query->ask.tenant,
                                    .min_ts = spec->select.min_ts,
                                    .max_ts = spec->select.max_ts,
                                    .matchers = spec->select.matchers,
                                    .matcher_count = spec->select.matcher_count,
                                    .told = query->unlisted };
    double head_samples = 0;
    struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct sg_catalog_answer found;
    struct pb_maps maps = { 0 };
    struct qf_str encoded;
    struct qa_item *items;
    size_t per_item;
    qf_rc rc = sg_catalog_lookup(query->snapshot, &ask, query->arena, &found, err);

    if (rc == QF_OK)
        rc = qa_heads_groups(query, &spec->select, &found, &head_samples, err);
    if (rc == QF_OK)
        rc = qa_maps_find(query, &spec->select, &maps, err);
    if (rc == QF_OK)
        rc = qa_maps_groups(query, &maps, &found, err);
    if (rc)
        return rc;
    if (query->item_count + found.group_count > query->env->items_max)
        return qf_err_set(err, QF_ELIMIT, "the query needs more than %" PRIu64 " work items",
                          query->env->items_max);
    pq_leaf_encode(spec, &bytes);
    encoded = qf_arena_str(query->arena, qf_strbuf_view(&bytes));
    qf_strbuf_done(&bytes);
    items = qf_arena_grow(query->arena, query->items, query->item_count,
                          query->item_count + found.group_count, sizeof(*items));
    if (!encoded.data || (found.group_count && !items))
        return qf_err_set(err, QF_ELIMIT, "the query is too large");
    query->items = items;
    per_item = groups_per_item(query, part, leaf, &found, &maps, head_samples);
    if (query->ask.explain || query->env->cost_max_ms)
        estimate_leaf(query, part, leaf, &found);
    for (size_t g = 0; g < found.group_count; g += per_item) {
        const struct sg_catalog_group *groups = &found.groups[g];
        size_t count = QF_MIN(per_item, found.group_count - g);
        const struct sg_catalog_group *home = home_of(query, part, leaf, groups, count);
        struct qa_item *item = &query->items[query->item_count];
        const char *key;

        *item = (struct qa_item){ .plan = part,
                                  .leaf = leaf,
                                  .leaf_id = of->leaf_base + leaf,
                                  .column = (uint32_t)(g / per_item),
                                  .spec = encoded,
                                  .affinity = wc_affinity_key(query->ask.tenant, home->shard),
                                  .all_shards = count > 1 };
        qa_owners_add(query, home, item);
        key = qf_arena_printf(query->arena, "%.*s/%" PRIu32, QF_STR_ARG(query->ask.tenant),
                              home->shard);
        if (!key || !copy_segments(query, groups, count, item))
            return qf_err_set(err, QF_ELIMIT, "the query is too large");
        item->affinity_key = qf_str_from(key);
        item->maps = qa_maps_part(&maps, home, count == found.group_count);
        rc = qa_heads_add(query, &spec->select, groups, count, count == found.group_count, item,
                          err);
        if (rc)
            return rc;
        if (!fits_a_message(item))
            return qf_err_set(err, QF_ELIMIT,
                              "%zu segments and %zu bytes of selector are too much for one work "
                              "item (%d, %u, and %u bytes in all); ask for a shorter time",
                              item->segment_count, item->spec.len, PB_SEGMENTS_MAX,
                              PB_SPEC_BYTES_MAX, PB_MESSAGE_BYTES_MAX);
        query->segment_count += item->segment_count;
        query->head_count += item->heads.count;
        query->item_count++;
    }
    of->columns = QF_MAX(of->columns, (found.group_count + per_item - 1) / per_item);
    return QF_OK;
}

static qf_rc make_items(struct qa_query *query, struct qf_err *err)
{
    uint32_t leaf_base = 0;

    qa_owners_follow(query);
    for (uint32_t part = 0; part < query->part_count; part++) {
        const struct pq_plan *plan = query->parts[part].plan;

        query->parts[part].leaf_base = leaf_base;
        for (uint32_t leaf = 0; leaf < plan->leaf_count; leaf++) {
            qf_rc rc = add_leaf(query, part, leaf, err);

            if (rc)
                return rc;
        }
        leaf_base += (uint32_t)plan->leaf_count;
    }
    return QF_OK;
}

/* A local folder is cheap to look at, so that what was just written counts at once; a bucket is
 * looked at every few seconds. */
static qf_rc refresh(const struct qa_query *query, bool list, const struct sg_store_call *call,
                     struct qf_err *err)
{
    struct sg_catalog *catalog = query->env->catalog;

    if (query->co.vanished)
        return sg_catalog_refresh(catalog, SG_CATALOG_REFRESH_ANEW, call, err);
    if (list)
        return sg_catalog_refresh(catalog, SG_CATALOG_REFRESH_NOW, call, err);
    if (sg_store_has_tokens(query->env->store))
        return sg_catalog_refresh_tenant(catalog, query->ask.tenant, call, err);
    return sg_catalog_refresh(catalog, SG_CATALOG_REFRESH_DUE, call, err);
}

static qf_rc take_snapshot(struct qa_query *query, struct qf_err *err)
{
    const struct qa_query_env *env = query->env;
    struct sg_store_call call = { .cancel = &query->canceled, .timeout_ms = 30000 };
    struct qf_err cause = { 0 };
    bool list = query->fresh && query->fresh->list;
    qf_rc rc = refresh(query, list, &call, &cause);

    query->unlisted = sg_catalog_told(env->catalog); /* before the snapshot: see catalog.h */
    query->snapshot = sg_catalog_snapshot(env->catalog);
    if (rc == QF_OK && list)
        qa_asker_listed(env->asker, query->fresh);
    if (rc == QF_OK && query->snapshot)
        return QF_OK;
    /* The index is too old and could miss segments: better no answer than a smaller one. */
    QF_LOG_WARN("cannot list the store, a query fails", QF_KV_STR("query_id", query->name),
                QF_KV_STR("error", cause.msg));
    if (rc != QF_ECANCELED && rc != QF_ETIMEOUT)
        rc = QF_ESTORE;
    return qf_err_set(err, rc, "the store cannot be listed (query %s; the server's log says more)",
                      query->name);
}

/* The times that the query reads, in query->wants; false if it reads nothing. */
static bool find_times(struct qa_query *query, bool expression)
{
    int64_t min_ts = INT64_MAX, max_ts = INT64_MIN;

    for (size_t i = 0; i < query->part_count; i++) {
        const struct pq_plan *plan = query->parts[i].plan;

        for (size_t leaf = 0; leaf < plan->leaf_count; leaf++) {
            min_ts = QF_MIN(min_ts, plan->leaves[leaf]->select.min_ts);
            max_ts = QF_MAX(max_ts, plan->leaves[leaf]->select.max_ts);
        }
    }
    query->wants.min_ts = expression ? min_ts : query->ask.start_ms;
    query->wants.max_ts = expression ? max_ts : query->ask.end_ms;
    return query->wants.min_ts <= query->wants.max_ts;
}

qf_rc qa_query_plan(struct qa_query *query, struct qf_err *err)
{
    bool expression = qa_query_kind_asks(query->ask.kind) == QA_ASKS_EXPRESSION;
    qf_rc rc = QF_OK;

    qa_query_reset(query);
    if (!expression) /* expressions: see cut_leaves() */
        query->ask.start_ms = QF_MAX(query->ask.start_ms, query->oldest_ts);
    query->parts = QF_ARENA_ARRAY(query->arena, struct qa_plan_part,
                                  QF_MAX(query->ask.match_count, (size_t)1));
    if (!query->parts)
        return qf_err_set(err, QF_ELIMIT, "the query is too large");
    if (expression) /* a bad query costs no look at the store */
        rc = plan_expression(query, err);
    if (rc)
        return rc;
    if (query->env->asker && find_times(query, expression)) {
        query->next = QA_NEXT_ASK;
        return QF_OK;
    }
    return qa_query_resume(query, err);
}

qf_rc qa_query_resume(struct qa_query *query, struct qf_err *err)
{
    bool expression = qa_query_kind_asks(query->ask.kind) == QA_ASKS_EXPRESSION, answered = false;
    qf_rc rc = take_snapshot(query, err);

    if (rc == QF_OK && !expression)
        rc = qa_answer_known(query, &answered, err);
    if (rc != QF_OK || answered)
        return rc;
    if (!expression)
        rc = plan_matches(query, err);
    if (rc == QF_OK)
        rc = make_items(query, err);
    if (rc == QF_OK)
        rc = check_cost(query, err);
    if (rc)
        return rc;
    query->timings.planned_ns = qf_clock_mono_ns();
    query->next = QA_NEXT_WORK;
    return QF_OK;
}
