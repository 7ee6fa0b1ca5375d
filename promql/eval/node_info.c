/* node_info.c - info(): labels of info series added to the series they identify.
 *
 * Info series belong to a base series if both have the same instance and job. Of several with the
 * same name the one with the newest sample counts; the child answers the times of the samples. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "promql/eval/groups.h"

#define NO_SERIES UINT32_MAX
/* Info metrics of different names that may enrich one series; more is an error. */
#define NAMES_MAX 64

static const struct qf_str identifying[] = { QF_STR_INIT("instance"), QF_STR_INIT("job") };

/* What a base series was made into, so that it is worked out once per change. */
struct choice {
    uint32_t infos[NAMES_MAX];
    size_t count;
    uint32_t out;
    bool valid;
};

struct info {
    struct pq_exec exec;
    struct pq_groups groups; /* by instance and job */
    struct pq_members members[2];
    struct pq_label_index index; /* of results */
    uint32_t *first_info, *next_info;
    size_t first_capacity, first_known, next_capacity, next_known;
    struct choice *choices; /* per base series */
    size_t choices_capacity, choices_known;
    bool *is_info; /* per base series: itself an info series, left alone */
    size_t is_info_capacity;
    uint32_t *outs; /* per base series and step of the block */
    size_t outs_capacity;
};

static bool is_name(const struct pq_matcher *m)
{
    return qf_str_is(m->name, QF_METRIC_NAME);
}

static bool matches_names(const struct pq_plan_node *plan, struct qf_labels labels)
{
    struct qf_str name = qf_labels_get(labels, QF_STR(QF_METRIC_NAME));

    for (size_t i = 0; i < plan->matcher_count; i++)
        if (is_name(&plan->matchers[i]) && !pq_matcher_matches(&plan->matchers[i], name))
            return false;
    return true;
}

/* Without an info series a base series passes only if no matcher asks for a label. */
static bool passes_alone(const struct pq_plan_node *plan)
{
    for (size_t i = 0; i < plan->matcher_count; i++)
        if (!is_name(&plan->matchers[i]) && !pq_matcher_matches(&plan->matchers[i], QF_STR("")))
            return false;
    return true;
}

/* With matchers for data labels only those labels are added. */
static bool wants_label(const struct pq_plan_node *plan, struct qf_str name)
{
    bool any = false;

    if (qf_str_is(name, QF_METRIC_NAME))
        return false;
    for (size_t i = 0; i < QF_COUNT_OF(identifying); i++)
        if (qf_str_eq(name, identifying[i]))
            return false;
    for (size_t i = 0; i < plan->matcher_count; i++) {
        if (is_name(&plan->matchers[i]))
            continue;
        any = true;
        if (qf_str_eq(plan->matchers[i].name, name))
            return true;
    }
    return !any;
}

static qf_rc grow_tables(struct info *self, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    struct qf_arena *arena = exec->eval->arena;
    const struct pq_series_set *base = &exec->children[0]->set, *infos = &exec->children[1]->set;

    if (!pq_grow(arena, &self->choices, &self->choices_capacity, base->count,
                 sizeof(*self->choices)) ||
        !pq_grow(arena, &self->is_info, &self->is_info_capacity, base->count, sizeof(bool)) ||
        !pq_grow(arena, &self->outs, &self->outs_capacity, base->count * PQ_BLOCK,
                 sizeof(uint32_t)) ||
        !pq_grow(arena, &self->next_info, &self->next_capacity, infos->count, sizeof(uint32_t)) ||
        !pq_grow(arena, &self->first_info, &self->first_capacity, self->groups.count,
                 sizeof(uint32_t)))
        return pq_eval_no_memory(err);
    for (; self->choices_known < base->count; self->choices_known++) {
        self->choices[self->choices_known].valid = false;
        self->is_info[self->choices_known] =
            matches_names(exec->plan, base->labels[self->choices_known]);
    }
    for (; self->first_known < self->groups.count; self->first_known++)
        self->first_info[self->first_known] = NO_SERIES;
    for (; self->next_known < infos->count; self->next_known++) {
        uint32_t *first = &self->first_info[self->members[1].group_of[self->next_known]];

        self->next_info[self->next_known] = *first;
        *first = (uint32_t)self->next_known;
    }
    return QF_OK;
}

static qf_rc duplicate(const struct info *self, uint32_t a, uint32_t b, size_t k,
                       struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    const struct pq_exec *infos = self->exec.children[1];
    long long ts = (long long)(pq_row(&infos->batch, a)[k] * 1000);
    bool in_order = qf_labels_cmp(infos->set.labels[a], infos->set.labels[b]) < 0;

    qf_strbuf_puts(&text, "found duplicate series for info metric: existing ");
    qf_labels_print(&text, infos->set.labels[in_order ? a : b]);
    qf_strbuf_printf(&text, " @ %lld, new ", ts);
    qf_labels_print(&text, infos->set.labels[in_order ? b : a]);
    return qf_err_set(err, QF_EEXEC, "%s @ %lld", qf_strbuf_cstr(&text), ts);
}

/* The info series for base series @s at step @k: one per name. */
static qf_rc choose(const struct info *self, size_t s, size_t k, struct choice *ret,
                    struct qf_err *err)
{
    const struct pq_exec *infos = self->exec.children[1];
    uint32_t group = self->members[0].group_of[s];

    ret->count = 0;
    if (self->groups.labels[group].count == 0)
        return QF_OK; /* nothing identifies it */
    for (uint32_t i = self->first_info[group]; i != NO_SERIES; i = self->next_info[i]) {
        struct qf_str name = qf_labels_get(infos->set.labels[i], QF_STR(QF_METRIC_NAME));
        size_t at = 0;
        double mine, other;

        if (!(infos->batch.present[i] >> k & 1))
            continue;
        while (at < ret->count && !qf_str_eq(name, qf_labels_get(infos->set.labels[ret->infos[at]],
                                                                 QF_STR(QF_METRIC_NAME))))
            at++;
        if (at == ret->count) {
            if (at == NAMES_MAX)
                return qf_err_set(err, QF_ELIMIT, "more than %d info metrics for one series",
                                  NAMES_MAX);
            ret->infos[ret->count++] = i;
            continue;
        }
        mine = pq_row(&infos->batch, i)[k];
        other = pq_row(&infos->batch, ret->infos[at])[k];
        if (mine == other)
            return duplicate(self, ret->infos[at], i, k, err);
        if (mine > other)
            ret->infos[at] = i;
    }
    return QF_OK;
}

static qf_rc enrich(const struct info *self, size_t s, const struct choice *choice,
                    struct qf_labels *ret, struct qf_err *err)
{
    const struct pq_exec *exec = &self->exec;
    struct qf_labels base = exec->children[0]->set.labels[s];

    *ret = base;
    for (size_t i = 0; i < choice->count; i++) {
        struct qf_labels info = exec->children[1]->set.labels[choice->infos[i]];

        for (size_t j = 0; j < info.count; j++) {
            struct qf_str name = info.items[j].name, value = info.items[j].value;

            if (!wants_label(exec->plan, name) || qf_labels_has(base, name))
                continue;
            if (qf_labels_has(*ret, name) && !qf_str_eq(qf_labels_get(*ret, name), value))
                return qf_err_set(err, QF_EEXEC, "conflicting label: %.*s", QF_STR_ARG(name));
            if (!qf_labels_set(exec->eval->arena, *ret, name, value, ret))
                return pq_eval_no_memory(err);
        }
    }
    return QF_OK;
}

/* The result series of base series @s at step @k; NO_SERIES: there is none. */
static qf_rc resolve(struct info *self, size_t s, size_t k, uint32_t *ret_out, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    struct choice *cached = &self->choices[s], now = { 0 };
    struct qf_labels labels;
    bool fresh;
    qf_rc rc = self->is_info[s] ? QF_OK : choose(self, s, k, &now, err);

    *ret_out = NO_SERIES;
    if (rc != QF_OK)
        return rc;
    if (now.count == 0 && !self->is_info[s] && !passes_alone(exec->plan))
        return QF_OK;
    if (!cached->valid || cached->count != now.count ||
        memcmp(cached->infos, now.infos, now.count * sizeof(now.infos[0])) != 0) {
        rc = enrich(self, s, &now, &labels, err);
        if (rc == QF_OK)
            rc = pq_label_index_put(&self->index, exec->eval, labels, (uint32_t)exec->set.count,
                                    &now.out, &fresh, err);
        if (rc == QF_OK && fresh)
            rc = pq_exec_add(exec, labels, exec->children[0]->set.drop[s], err);
        if (rc != QF_OK)
            return rc;
        now.valid = true;
        *cached = now;
    }
    *ret_out = cached->out;
    return QF_OK;
}

static qf_rc resolve_all(struct info *self, struct qf_err *err)
{
    const struct pq_batch *base = &self->exec.children[0]->batch;
    qf_rc rc = QF_OK;

    for (size_t s = 0; s < base->series_count; s++)
        for (uint64_t bits = base->present[s]; bits && rc == QF_OK; bits &= bits - 1) {
            size_t k = (size_t)__builtin_ctzll(bits);

            rc = resolve(self, s, k, &self->outs[s * PQ_BLOCK + k], err);
        }
    return rc;
}

static qf_rc move_values(struct info *self, struct qf_err *err)
{
    struct pq_exec *exec = &self->exec;
    const struct pq_batch *base = &exec->children[0]->batch;

    for (size_t s = 0; s < base->series_count; s++)
        for (uint64_t bits = base->present[s]; bits; bits &= bits - 1) {
            size_t k = (size_t)__builtin_ctzll(bits);
            uint32_t out = self->outs[s * PQ_BLOCK + k];
            qf_rc rc;

            if (out == NO_SERIES)
                continue;
            if (exec->batch.present[out] >> k & 1)
                return qf_err_set(err, QF_EEXEC, PQ_SAME_LABELSET);
            rc = pq_exec_put(exec, out, k, pq_batch_value(base, s, k), err);
            if (rc != QF_OK)
                return rc;
        }
    return QF_OK;
}

static qf_rc info_next(struct pq_exec *exec, struct qf_err *err)
{
    struct info *self = (struct info *)exec;
    qf_rc rc = QF_OK;

    for (size_t i = 0; i < 2 && rc == QF_OK; i++) {
        rc = pq_exec_next(exec->children[i], err);
        if (rc == QF_OK)
            rc = pq_groups_assign(&self->groups, exec->eval, exec->children[i], &self->members[i],
                                  err);
    }
    if (rc == QF_OK)
        rc = grow_tables(self, err);
    if (rc == QF_OK)
        rc = resolve_all(self, err);
    if (rc == QF_OK)
        rc = pq_exec_begin(exec, err);
    if (rc == QF_OK)
        rc = move_values(self, err);
    return rc;
}

static void info_close(struct pq_exec *exec)
{
    struct info *self = (struct info *)exec;

    pq_groups_done(&self->groups);
    pq_label_index_done(&self->index);
}

static const struct pq_exec_ops info_ops = { info_next, info_close };

struct pq_exec *pq_node_info(struct pq_eval *eval, const struct pq_plan_node *plan)
{
    struct info *self = (struct info *)pq_exec_new(eval, plan, &info_ops, sizeof(*self));

    if (!self || !pq_groups_init(&self->groups, eval, identifying, QF_COUNT_OF(identifying), false))
        return NULL;
    return &self->exec;
}
