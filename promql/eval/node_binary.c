/* node_binary.c - operators between two vectors.
 *
 * Series of both sides meet in match groups. One side may have several series per group and step
 * (the many side, of group_left or group_right), the other one only. Which series meet and what
 * labels come out is worked out once per pair of series. */
#include "base/pure/alloc.h"
#include "promql/eval/groups.h"
#include "promql/eval/sequence.h"
#include "promql/func/binary_op.h"
#include "promql/func/value_op.h"
#include "promql/leaf/values.h"

enum { MANY, ONE }; /* sides; without group_right the many side is the left one */

#define NO_SERIES UINT32_MAX /* the other side is a fill value */

/* A pair of series that met, and the series that came of it. */
struct pair {
    uint32_t one; /* NO_SERIES: filled */
    uint32_t out;
    struct pair *next;
};

struct binary {
    struct pq_exec exec;
    struct pq_groups groups;
    struct pq_members members[2];
    bool swapped; /* group_right: the left child is the one side */
    struct pq_label_index index;
    struct pair **pairs; /* per series of the many side */
    size_t pairs_capacity, pairs_known;
    uint32_t *filled; /* per series of the one side: out series when the many side is filled */
    size_t filled_capacity, filled_known;
    /* The series of the one side in each group: a list through next_one. */
    uint32_t *first_one, *next_one;
    size_t first_capacity, first_known, next_capacity, next_known;
    /* Per group and block: where the sides have series, where results came out. */
    uint64_t *there[2], *matched;
    size_t there_capacity[2], matched_capacity;
    /* Per result series and block: steps at which a pair claimed it, kept or not. */
    uint64_t *claimed;
    size_t claimed_capacity;
    struct pq_sequence sequence;
};

static struct pq_exec *side(const struct binary *self, int which)
{
    return self->exec.children[(which == MANY) == self->swapped ? 1 : 0];
}

static const struct pq_matching *matching_of(const struct binary *self)
{
    return self->exec.plan->matching;
}

/* Fill values belong to the sides as they stand here: fill_left to the many side. */
static bool fills(const struct binary *self, int which)
{
    return which == MANY ? matching_of(self)->has_fill_left : matching_of(self)->has_fill_right;
}

static qf_rc grow_tables(struct binary *self, struct qf_err *err)
{
    struct qf_arena *arena = self->exec.eval->arena;
    size_t many = side(self, MANY)->set.count, one = side(self, ONE)->set.count;
    size_t groups = self->groups.count;

    if (!pq_grow(arena, &self->pairs, &self->pairs_capacity, many, sizeof(*self->pairs)) ||
        !pq_grow(arena, &self->filled, &self->filled_capacity, one, sizeof(uint32_t)) ||
        !pq_grow(arena, &self->next_one, &self->next_capacity, one, sizeof(uint32_t)) ||
        !pq_grow(arena, &self->first_one, &self->first_capacity, groups, sizeof(uint32_t)) ||
        !pq_grow(arena, &self->there[MANY], &self->there_capacity[MANY], groups,
                 sizeof(uint64_t)) ||
        !pq_grow(arena, &self->there[ONE], &self->there_capacity[ONE], groups, sizeof(uint64_t)) ||
        !pq_grow(arena, &self->matched, &self->matched_capacity, groups, sizeof(uint64_t)))
        return pq_eval_no_memory(err);
    for (; self->pairs_known < many; self->pairs_known++)
        self->pairs[self->pairs_known] = NULL;
    for (; self->filled_known < one; self->filled_known++)
        self->filled[self->filled_known] = NO_SERIES;
    for (; self->first_known < groups; self->first_known++)
        self->first_one[self->first_known] = NO_SERIES;
    for (; self->next_known < one; self->next_known++) {
        uint32_t *first = &self->first_one[self->members[ONE].group_of[self->next_known]];

        self->next_one[self->next_known] = *first;
        *first = (uint32_t)self->next_known;
    }
    for (size_t g = 0; g < groups; g++)
        self->there[MANY][g] = self->there[ONE][g] = self->matched[g] = 0;
    return QF_OK;
}

static qf_rc duplicate_error(const struct binary *self, uint32_t a, uint32_t b, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    const struct pq_series_set *set = &side(self, ONE)->set;
    bool in_order = qf_labels_cmp(set->labels[a], set->labels[b]) < 0;

    qf_strbuf_puts(&text, "found duplicate series for the match group ");
    qf_labels_print(&text, self->groups.labels[self->members[ONE].group_of[a]]);
    qf_strbuf_printf(&text, " on the %s hand-side of the operation: [",
                     self->swapped ? "left" : "right");
    qf_labels_print(&text, set->labels[in_order ? a : b]);
    qf_strbuf_puts(&text, ", ");
    qf_labels_print(&text, set->labels[in_order ? b : a]);
    qf_strbuf_puts(&text, "];many-to-many matching not allowed: matching labels must be unique on "
                          "one side");
    return qf_err_set(err, QF_EEXEC, "%s", qf_strbuf_cstr(&text));
}

/* Two series of a group are there at some step that counts: say which two Prometheus would come upon, that is the first
 * two of a group at the first such step, in the order of the series. */
static qf_rc name_duplicate(struct binary *self, uint64_t relevant, struct qf_err *err)
{
    const struct pq_batch *one = &side(self, ONE)->batch;
    const uint32_t *group_of = self->members[ONE].group_of;
    QF_CLEANUP(qf_freep) uint32_t *first = qf_xcalloc(self->groups.count + 1, sizeof(*first));
    uint64_t *there = self->there[ONE], twice = 0;
    uint32_t s = 0;

    for (size_t g = 0; g < self->groups.count; g++) {
        there[g] = 0;
        first[g] = NO_SERIES;
    }
    for (size_t i = 0; i < one->series_count; i++) {
        twice |= there[group_of[i]] & one->present[i] & relevant;
        there[group_of[i]] |= one->present[i];
    }
    twice &= -twice; /* the first in time */
    for (size_t i = 0; i < pq_batch_length(one); i++) {
        s = pq_batch_at(one, i);
        if (!(one->present[s] & twice))
            continue;
        if (first[group_of[s]] != NO_SERIES)
            break;
        first[group_of[s]] = s;
    }
    return duplicate_error(self, first[group_of[s]], s, err);
}

/* Who is there, and that the one side has one series per group. */
static qf_rc look_at_sides(struct binary *self, struct qf_err *err)
{
    const struct pq_batch *many = &side(self, MANY)->batch, *one = &side(self, ONE)->batch;
    uint64_t any_many = 0, relevant;

    for (size_t s = 0; s < many->series_count; s++) {
        self->there[MANY][self->members[MANY].group_of[s]] |= many->present[s];
        any_many |= many->present[s];
    }
    /* A step at which the other side is empty is not looked at, unless it is filled. */
    relevant = fills(self, MANY) ? UINT64_MAX : any_many;
    for (size_t s = 0; s < one->series_count; s++) {
        uint32_t group = self->members[ONE].group_of[s];

        if (self->there[ONE][group] & one->present[s] & relevant)
            return name_duplicate(self, relevant, err);
        self->there[ONE][group] |= one->present[s];
    }
    return QF_OK;
}

/* The labels of a result: those of the many side, cut down for one-to-one matching, plus the
 * included ones of the one side. */
static qf_rc result_labels(struct binary *self, struct qf_labels many, struct qf_labels one,
                           struct qf_labels *ret, struct qf_err *err)
{
    const struct pq_matching *matching = matching_of(self);
    struct qf_arena *arena = self->exec.eval->arena;
    const struct pq_grouping *grouping = &self->groups.grouping;
    struct qf_labels labels = many;
    bool ok = true;

    if (!pq_op_keeps_name(self->exec.plan->op))
        ok = pq_labels_unnamed(arena, labels, &labels);
    if (ok && matching->card == PQ_CARD_ONE_TO_ONE) {
        /* The grouping of ignoring() has the metric name in it; a comparison keeps it. */
        if (matching->on)
            ok = qf_labels_keep(arena, labels, grouping->names, grouping->count, &labels);
        else
            ok = qf_labels_drop(arena, labels, self->exec.plan->grouping,
                                self->exec.plan->grouping_count, &labels);
    }
    for (size_t i = 0; i < matching->include_count && ok; i++)
        ok = qf_labels_set(arena, labels, matching->include[i],
                           qf_labels_get(one, matching->include[i]), &labels);
    *ret = labels;
    return ok ? QF_OK : pq_eval_no_memory(err);
}

static qf_rc add_result(struct binary *self, struct qf_labels many, struct qf_labels one, bool drop,
                        uint32_t *ret_out, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    struct qf_labels labels;
    bool fresh;
    qf_rc rc = result_labels(self, many, one, &labels, err);

    if (rc == QF_OK)
        rc = pq_label_index_put(&self->index, exec->eval, labels, (uint32_t)exec->set.count,
                                ret_out, &fresh, err);
    if (rc == QF_OK && fresh)
        rc = pq_exec_add(exec, labels, drop || exec->plan->drops_names, err);
    return rc;
}

/* The out series of a pair, made when the two first meet. */
static qf_rc find_pair(struct binary *self, uint32_t many, uint32_t one, uint32_t *ret_out,
                       struct qf_err *err)
{
    const struct pq_series_set *many_set = &side(self, MANY)->set;
    struct pair *pair = self->pairs[many];
    qf_rc rc;

    while (pair && pair->one != one)
        pair = pair->next;
    if (pair) {
        *ret_out = pair->out;
        return QF_OK;
    }
    pair = QF_ARENA_NEW(self->exec.eval->arena, struct pair);
    if (!pair)
        return pq_eval_no_memory(err);
    rc = add_result(self, many_set->labels[many],
                    one == NO_SERIES ? self->groups.labels[self->members[MANY].group_of[many]]
                                     : side(self, ONE)->set.labels[one],
                    many_set->drop[many], &pair->out, err);
    if (rc != QF_OK)
        return rc;
    pair->one = one;
    pair->next = self->pairs[many];
    self->pairs[many] = pair;
    *ret_out = pair->out;
    return QF_OK;
}

/* Find all pairs that meet in this block, so that there is room for what comes out. */
static qf_rc meet(struct binary *self, struct qf_err *err)
{
    const struct pq_batch *many = &side(self, MANY)->batch, *one = &side(self, ONE)->batch;
    uint32_t out;
    qf_rc rc = QF_OK;

    for (size_t s = 0; s < many->series_count && rc == QF_OK; s++) {
        uint32_t group = self->members[MANY].group_of[s];

        if (!many->present[s])
            continue;
        for (uint32_t o = self->first_one[group]; o != NO_SERIES && rc == QF_OK;
             o = self->next_one[o])
            if (many->present[s] & one->present[o])
                rc = find_pair(self, (uint32_t)s, o, &out, err);
        if (rc == QF_OK && fills(self, ONE) && (many->present[s] & ~self->there[ONE][group]))
            rc = find_pair(self, (uint32_t)s, NO_SERIES, &out, err);
    }
    for (size_t o = 0; fills(self, MANY) && o < one->series_count && rc == QF_OK; o++) {
        uint32_t group = self->members[ONE].group_of[o];

        if (self->filled[o] == NO_SERIES && (one->present[o] & ~self->there[MANY][group]))
            rc = add_result(self, self->groups.labels[group], side(self, ONE)->set.labels[o], false,
                            &self->filled[o], err);
    }
    return rc;
}

/* Values of one side for a block: a row, or a fill value. */
struct operand {
    const double *row; /* NULL: fill */
    double fill;
    const struct pq_histogram *const *histograms; /* NULL, or per step NULL for a float */
};

static struct operand row_of(const struct pq_batch *batch, size_t s)
{
    return (struct operand){ .row = pq_row(batch, s),
                             .histograms =
                                 batch->histograms ? batch->histograms + s * batch->stride : NULL };
}

static struct pq_value value_of(const struct operand *operand, size_t k)
{
    return operand->row ? pq_value_at(operand->row, operand->histograms, k)
                        : pq_number(operand->fill);
}

static qf_rc collision(const struct binary *self, uint64_t in_group, struct qf_err *err)
{
    if (matching_of(self)->card == PQ_CARD_ONE_TO_ONE)
        return qf_err_set(err, QF_EEXEC,
                          "multiple matches for labels: many-to-one matching must be explicit "
                          "(group_left/group_right)");
    if (in_group)
        return qf_err_set(err, QF_EEXEC,
                          "multiple matches for labels: grouping labels must ensure unique "
                          "matches");
    return qf_err_set(err, QF_EEXEC, PQ_SAME_LABELSET);
}

/* left op right where not both are floats that the operator knows. */
static qf_rc put_values(struct binary *self, struct pq_value left, struct pq_value right,
                        uint32_t out, size_t k, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    const struct pq_plan_node *plan = exec->plan;
    struct pq_value_op op = { .op = plan->op,
                              .return_bool = plan->return_bool,
                              .pos = exec->plan->pos,
                              .notes = &exec->eval->notes,
                              .scope = exec->scope };
    struct pq_value value;
    bool there;
    qf_rc rc;

    if (!left.histogram && !right.histogram) {
        pq_value_op_note(&op, left, right);
        return QF_OK;
    }
    rc = pq_value_op(&op, left, right, &there, &value, err);
    return rc == QF_OK && there ? pq_exec_put(exec, out, k, value, err) : rc;
}

static double number_of(const struct operand *operand, size_t k)
{
    return operand->row ? operand->row[k] : operand->fill;
}

/* many op one at the steps of @bits. */
static qf_rc compute(struct binary *self, uint32_t group, struct operand many, struct operand one,
                     uint64_t bits, uint32_t out, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    const struct pq_plan_node *plan = exec->plan;
    const struct operand *left = self->swapped ? &one : &many,
                         *right = self->swapped ? &many : &one;
    double *row = pq_row(&exec->batch, out), number;
    bool one_to_one = matching_of(self)->card == PQ_CARD_ONE_TO_ONE;
    bool floats = pq_value_op_takes_floats(plan->op), mixed = many.histograms || one.histograms;
    qf_rc rc = QF_OK;

    for (; bits && rc == QF_OK; bits &= bits - 1) {
        size_t k = (size_t)__builtin_ctzll(bits);
        uint64_t bit = (uint64_t)1 << k;

        /* A match counts even if a comparison then drops its result. */
        if ((one_to_one && (self->matched[group] & bit)) || (self->claimed[out] & bit))
            return collision(self, self->matched[group] & bit, err);
        self->matched[group] |= bit;
        self->claimed[out] |= bit;
        if (!floats || (mixed && (value_of(left, k).histogram || value_of(right, k).histogram))) {
            rc = put_values(self, value_of(left, k), value_of(right, k), out, k, err);
        } else if (pq_fn_binary(plan->op, number_of(left, k), number_of(right, k),
                                plan->return_bool, &number)) {
            exec->batch.present[out] |= bit;
            row[k] = number;
        }
    }
    return rc;
}

static qf_rc compute_many(struct binary *self, size_t s, struct qf_err *err)
{
    const struct pq_batch *many = &side(self, MANY)->batch, *one = &side(self, ONE)->batch;
    uint32_t group = self->members[MANY].group_of[s];
    struct operand left = row_of(many, s);
    qf_rc rc = QF_OK;

    for (const struct pair *pair = self->pairs[s]; pair && rc == QF_OK; pair = pair->next) {
        struct operand right = { .fill = matching_of(self)->fill_right };
        uint64_t bits = many->present[s] & ~self->there[ONE][group];

        if (pair->one != NO_SERIES) {
            right = row_of(one, pair->one);
            bits = many->present[s] & one->present[pair->one];
        } else if (!fills(self, ONE)) {
            continue;
        }
        rc = compute(self, group, left, right, bits, pair->out, err);
    }
    return rc;
}

static qf_rc compute_all(struct binary *self, struct qf_err *err)
{
    const struct pq_batch *many = &side(self, MANY)->batch, *one = &side(self, ONE)->batch;
    qf_rc rc = QF_OK;

    if (!pq_grow(self->exec.eval->arena, &self->claimed, &self->claimed_capacity,
                 self->exec.set.count, sizeof(uint64_t)))
        return pq_eval_no_memory(err);
    for (size_t i = 0; i < self->exec.set.count; i++)
        self->claimed[i] = 0;
    for (size_t s = 0; s < many->series_count && rc == QF_OK; s++)
        if (many->present[s])
            rc = compute_many(self, s, err);
    for (size_t o = 0; fills(self, MANY) && o < one->series_count && rc == QF_OK; o++) {
        uint32_t group = self->members[ONE].group_of[o];
        struct operand filled = { .fill = matching_of(self)->fill_left };
        struct operand there = row_of(one, o);
        uint64_t bits = one->present[o] & ~self->there[MANY][group];

        if (bits)
            rc = compute(self, group, filled, there, bits, self->filled[o], err);
    }
    return rc;
}

/* In the order of the many side; what it lacks and a fill value stands for comes last. */
static qf_rc list_results(struct binary *self, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    const struct pq_batch *many = &side(self, MANY)->batch;
    qf_rc rc = pq_sequence_begin(&self->sequence, exec, err);

    if (rc != QF_OK)
        return rc;
    for (size_t i = 0; i < pq_batch_length(many); i++) {
        uint32_t s = pq_batch_at(many, i);

        for (const struct pair *pair = many->present[s] & 1 ? self->pairs[s] : NULL; pair;
             pair = pair->next)
            pq_sequence_add(&self->sequence, exec, pair->out);
    }
    for (size_t o = 0; o < self->filled_known; o++)
        if (self->filled[o] != NO_SERIES)
            pq_sequence_add(&self->sequence, exec, self->filled[o]);
    pq_sequence_end(&self->sequence, exec);
    return QF_OK;
}

static qf_rc binary_next(struct pq_exec *exec, struct qf_err *err)
{
    struct binary *self = (struct binary *)exec;
    qf_rc rc = QF_OK;

    for (size_t i = 0; i < 2 && rc == QF_OK; i++)
        rc = pq_exec_next(exec->children[i], err);
    for (int which = MANY; which <= ONE && rc == QF_OK; which++)
        rc = pq_groups_assign(&self->groups, exec->eval, side(self, which), &self->members[which],
                              err);
    if (rc == QF_OK)
        rc = grow_tables(self, err);
    if (rc == QF_OK)
        rc = look_at_sides(self, err);
    if (rc == QF_OK)
        rc = meet(self, err);
    if (rc == QF_OK)
        rc = pq_exec_begin(exec, err);
    if (rc == QF_OK)
        rc = compute_all(self, err);
    if (rc == QF_OK && pq_exec_is_ordered(exec))
        rc = list_results(self, err);
    return rc;
}

static void binary_close(struct pq_exec *exec)
{
    struct binary *self = (struct binary *)exec;

    pq_groups_done(&self->groups);
    pq_label_index_done(&self->index);
}

static const struct pq_exec_ops binary_ops = { binary_next, binary_close };

struct pq_exec *pq_node_binary(struct pq_eval *eval, const struct pq_plan_node *plan)
{
    const struct pq_matching *matching = plan->matching;
    struct binary *self = (struct binary *)pq_exec_new(eval, plan, &binary_ops, sizeof(*self));

    if (!self ||
        !pq_groups_init(&self->groups, eval, plan->grouping, plan->grouping_count, !matching->on))
        return NULL;
    self->swapped = matching->card == PQ_CARD_ONE_TO_MANY;
    return &self->exec;
}
