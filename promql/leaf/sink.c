/* sink.c - where the values of a leaf's series go: kept as they are, or into groups. */
#include <math.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "promql/func/aggregate.h"
#include "promql/func/histogram.h"
#include "promql/func/texts.h"
#include "promql/leaf/leaf_int.h"
#include "promql/partial/rank.h"

static const struct pq_matcher *name_matcher(const struct pq_select *select)
{
    for (size_t i = 0; i < select->matcher_count; i++)
        if (select->matchers[i].type == PQ_MATCH_EQUAL &&
            qf_str_is(select->matchers[i].name, QF_METRIC_NAME))
            return &select->matchers[i];
    return NULL;
}

bool pq_select_pins_name(const struct pq_select *select)
{
    return name_matcher(select) != NULL;
}

struct qf_str pq_select_metric(const struct pq_select *select)
{
    const struct pq_matcher *matcher = name_matcher(select);

    return matcher ? matcher->value : QF_STR("");
}

bool pq_sink_init(struct pq_sink *sink, const struct pq_leaf *leaf, struct qf_arena *arena,
                  struct pq_notes *notes, struct pq_poll *poll)
{
    *sink = (struct pq_sink){ .leaf = leaf,
                              .arena = arena,
                              .poll = poll,
                              .notes = notes,
                              .steps = (size_t)pq_leaf_grid(leaf)->count,
                              .unnames = pq_leaf_drops_names(leaf) && !leaf->delayed_name_removal };
    sink->one_name = pq_select_pins_name(&leaf->select);
    return pq_grouping_init(&sink->grouping, arena, leaf->grouping, leaf->grouping_count,
                            leaf->without);
}

void pq_sink_done(struct pq_sink *sink)
{
    qf_map_done(&sink->groups);
    qf_map_done(&sink->unnamed);
    qf_strbuf_done(&sink->key);
    qf_strbuf_done(&sink->text);
    free(sink->counted);
}

/* Make room for one more element in arrays that live in the arena and grow together. */
static bool grow(struct qf_arena *arena, void *array, size_t count, size_t *capacity, size_t size)
{
    size_t wanted = *capacity ? *capacity * 2 : 16;
    void **pointer = array;
    void *grown;

    if (count < *capacity)
        return true;
    grown = qf_arena_grow(arena, *pointer, *capacity, wanted, size);
    if (!grown)
        return false;
    *pointer = grown;
    *capacity = wanted;
    return true;
}

/* A sample that several steps look at is copied once. */
static bool keep_histograms(struct pq_sink *sink, const struct pq_lane *lane, struct pq_kept *kept)
{
    struct pq_value from = { 0 }, copy = { 0 };

    kept->histograms = QF_ARENA_ARRAY(sink->arena, const struct pq_histogram *, lane->count);
    for (size_t k = 0; kept->histograms && k < lane->count; k++) {
        if (!lane->present[k] || !lane->histograms[k])
            continue;
        if (from.histogram != lane->histograms[k]) {
            from = pq_value_at(lane->values, lane->histograms, k);
            if (!pq_value_copy(sink->arena, from, &copy))
                return false;
        }
        kept->histograms[k] = copy.histogram;
    }
    return kept->histograms != NULL;
}

/* Aggregations that have no use for histograms leave them out and say so. */
static void sort_out_histograms(struct pq_sink *sink, struct pq_lane *lane)
{
    const struct pq_leaf *leaf = sink->leaf;

    if (!leaf->agg || leaf->agg->histograms != PQ_HISTOGRAMS_IGNORE)
        return;
    if (pq_lane_drop_histograms(lane) > 0)
        pq_note_histogram_ignored_agg(sink->notes, leaf->agg_pos, pq_agg_text(leaf->agg->id));
}

/* Histograms are added up apart; what is left are the floats. */
static qf_rc add_natives(struct pq_sink *sink, struct pq_group *group, struct pq_lane *lane,
                         struct qf_err *err)
{
    PQ_POLL_EACH (sink->poll, k, 0, lane->count)
        if (lane->present[k] && lane->histograms[k] &&
            !pq_natives_add(&group->natives, k, lane->histograms[k]))
            return pq_leaf_no_memory(err);
    (void)pq_lane_drop_histograms(lane);
    return QF_OK;
}

static qf_rc keep_lane(struct pq_sink *sink, struct qf_labels labels, const struct pq_lane *lane,
                       struct qf_err *err)
{
    struct pq_kept kept = { .values = qf_arena_alloc(sink->arena, lane->count * sizeof(double)),
                            .present = qf_arena_alloc(sink->arena, lane->count) };

    if (!kept.values || !kept.present ||
        !grow(sink->arena, &sink->kept, sink->kept_count, &sink->kept_capacity, sizeof(kept)) ||
        !qf_labels_copy(sink->arena, labels, &kept.labels))
        return pq_leaf_no_memory(err);
    for (size_t k = 0, end; (end = pq_poll_piece(sink->poll, k, lane->count)) > k; k = end) {
        memcpy(kept.values + k, lane->values + k, (end - k) * sizeof(double));
        memcpy(kept.present + k, lane->present + k, end - k);
    }
    if (lane->histograms && !keep_histograms(sink, lane, &kept))
        return pq_leaf_no_memory(err);
    sink->kept[sink->kept_count++] = kept;
    return QF_OK;
}

/* A series of nothing but a histogram that is ignored. Where it stands decides in which order an instant
 * query lists the groups; the histogram itself stays here, an empty one travels. */
static qf_rc keep_place(struct pq_sink *sink, struct qf_labels labels, struct qf_err *err)
{
    static const struct pq_histogram empty;
    const struct pq_histogram *histograms[] = { &empty };
    double values[] = { 0 };
    uint8_t present[] = { 1 };
    struct pq_lane lane = { values, present, 1, 1, histograms };

    return keep_lane(sink, labels, &lane, err);
}

/* The group with exactly these labels, made if it is new: then @first is its first series. */
static qf_rc find_group(struct pq_sink *sink, struct qf_labels labels, struct qf_labels first,
                        struct pq_group **ret_group, struct qf_err *err)
{
    struct pq_group *group;
    uint64_t *index;
    struct qf_str key;

    qf_strbuf_reset(&sink->key);
    qf_labels_encode(&sink->key, labels);
    index = qf_map_get(&sink->groups, qf_strbuf_view(&sink->key));
    if (index) {
        *ret_group = &sink->group_list[*index];
        return QF_OK;
    }
    key = qf_arena_str(sink->arena, qf_strbuf_view(&sink->key));
    if (!key.data || !grow(sink->arena, &sink->group_list, sink->group_count, &sink->group_capacity,
                           sizeof(*group)))
        return pq_leaf_no_memory(err);
    group = &sink->group_list[sink->group_count];
    *group =
        (struct pq_group){ .natives = pq_natives_of(sink->arena, sink->leaf->agg, sink->steps) };
    if (!qf_labels_copy(sink->arena, labels, &group->labels) ||
        (sink->leaf->ranks && !pq_rank_mark(sink->arena, group->labels, first, &group->labels)))
        return pq_leaf_no_memory(err);
    /* Values are too many groups with too few steps each for a cell per step. */
    if (sink->leaf->agg->shape == PQ_AGG_FOLDS &&
        !pq_cells_init(&group->cells, sink->leaf->agg, sink->arena, sink->steps, sink->poll))
        return pq_leaf_no_memory(err);
    (void)qf_map_put(&sink->groups, key, sink->group_count++, NULL);
    *ret_group = group;
    return QF_OK;
}

/* Two series that differ by name alone may not both have a value at a step. */
static qf_rc check_unnamed(struct pq_sink *sink, struct qf_labels unnamed,
                           const struct pq_lane *lane, struct qf_err *err)
{
    uint8_t *seen;
    uint64_t *value;
    struct qf_str key;
    bool fresh = false;

    qf_strbuf_reset(&sink->key);
    qf_labels_encode(&sink->key, unnamed);
    key = qf_arena_str(sink->arena, qf_strbuf_view(&sink->key));
    if (!key.data)
        return pq_leaf_no_memory(err);
    value = qf_map_put(&sink->unnamed, key, 0, &fresh);
    if (fresh) {
        seen = qf_arena_calloc(sink->arena, lane->count, 1);
        if (!seen)
            return pq_leaf_no_memory(err);
        *value = (uint64_t)(uintptr_t)seen;
    }
    seen = (uint8_t *)(uintptr_t)*value;
    PQ_POLL_EACH (sink->poll, k, 0, lane->count) {
        if (seen[k] & lane->present[k])
            return qf_err_set(err, QF_EEXEC, PQ_SAME_LABELSET);
        seen[k] |= lane->present[k];
    }
    return QF_OK;
}

/* Every value is a group of its own; only which step it was seen at is written down. */
static qf_rc count_values(struct pq_sink *sink, struct qf_labels labels, struct qf_labels first,
                          const struct pq_lane *lane, struct qf_err *err)
{
    struct qf_label *items = QF_ARENA_ARRAY(sink->arena, struct qf_label, labels.count + 1);

    if (!items)
        return pq_leaf_no_memory(err);
    PQ_POLL_EACH (sink->poll, k, 0, lane->count) {
        struct pq_group *group;
        struct qf_str value;
        qf_rc rc;

        if (!lane->present[k])
            continue;
        /* The same room for every value: what is new is copied. */
        qf_strbuf_reset(&sink->text);
        value = pq_value_text(&sink->text, pq_value_at(lane->values, lane->histograms, k));
        rc = find_group(sink, qf_labels_set_in(items, labels, sink->leaf->label, value), first,
                        &group, err);
        if (rc != QF_OK)
            return rc;
        if (sink->counted_count == sink->counted_capacity) {
            sink->counted_capacity = QF_MAX(sink->counted_capacity * 2, (size_t)256);
            sink->counted =
                qf_xrealloc(sink->counted, sink->counted_capacity * sizeof(*sink->counted));
        }
        sink->counted[sink->counted_count++] =
            (struct pq_counted){ (uint32_t)k, (uint32_t)(group - sink->group_list) };
    }
    return QF_OK;
}

qf_rc pq_sink_add(struct pq_sink *sink, struct qf_labels labels, struct pq_lane *lane,
                  struct qf_err *err)
{
    const struct pq_leaf *leaf = sink->leaf;
    struct qf_labels named = labels, grouped;
    struct pq_group *group;
    qf_rc rc;

    if (lane->points == 0)
        return QF_OK;
    if (!leaf->agg)
        return keep_lane(sink, labels, lane, err);
    if (sink->unnames) {
        if (!pq_labels_unnamed(sink->arena, labels, &named))
            return pq_leaf_no_memory(err);
        rc = sink->one_name ? QF_OK : check_unnamed(sink, named, lane, err);
        if (rc != QF_OK)
            return rc;
    }
    if (lane->histograms)
        sort_out_histograms(sink, lane);
    if (leaf->agg->shape == PQ_AGG_SELECTS && lane->points == 0)
        return sink->steps == 1 ? keep_place(sink, labels, err) : QF_OK;
    if (leaf->agg->shape == PQ_AGG_SELECTS)
        return keep_lane(sink, labels, lane, err);
    if (lane->points == 0 && !leaf->ranks)
        return QF_OK;
    if (!pq_grouping_labels(&sink->grouping, sink->arena, named, &grouped))
        return pq_leaf_no_memory(err);
    if (leaf->agg->shape == PQ_AGG_TALLIES)
        return count_values(sink, grouped, labels, lane, err);
    rc = find_group(sink, grouped, labels, &group, err);
    if (rc == QF_OK && lane->histograms && leaf->agg->histograms == PQ_HISTOGRAMS_EITHER)
        rc = add_natives(sink, group, lane, err);
    if (rc == QF_OK)
        pq_cells_add(&group->cells, leaf->agg, lane->values, lane->present, lane->count,
                     sink->poll);
    return rc;
}
