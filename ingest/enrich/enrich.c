/* enrich.c - series by series, rule by rule. */
#include "ingest/enrich/enrich.h"

#include <stdlib.h>

#include "base/pure/map.h"
#include "base/pure/vec.h"
#include "ingest/enrich/enrich_int.h"

/* Places for what was looked up, and for what values are as labels; the newest one has its place. */
enum { FOUND_PLACES = 512, VALUE_PLACES = 256 };

/* What a rule makes of a key (at a time, if it is timed). */
struct known {
    size_t rule; /* 1 + which; 0: nothing yet */
    struct qf_str key;
    int64_t time;
    bool found;
    const struct qf_label *labels;
    size_t count;
};

/* The labels of a value, told by where it lies. */
struct made {
    size_t rule;
    const char *data;
    enum sm_type type;
    const struct qf_label *labels;
    size_t count;
};

struct enriching {
    const struct in_enrich_options *options;
    struct in_enrich_figures figures;
    struct known *known;
    struct made *made;
    struct qf_strbuf key;
    struct qf_label work[IN_ENRICH_LABELS_MAX]; /* labels of the series at a moment */
    size_t count;
    bool changed;                    /* they are not those that were sent */
    bool timed;                      /* they depend on the time */
    QF_VEC(struct in_series) pieces; /* of all series, but for the first one of each */
    struct qf_err *err;
};

static qf_rc spent(struct enriching *e)
{
    return qf_err_set(e->err, QF_ELIMIT, "the request needs more memory than it may have");
}

/* --- labels --- */

static struct qf_label *find_label(struct enriching *e, struct qf_str name)
{
    for (size_t i = 0; i < e->count; i++)
        if (qf_str_eq(e->work[i].name, name))
            return &e->work[i];
    return NULL;
}

static void set_label(struct enriching *e, const struct qf_label *label, bool overwrite)
{
    struct qf_label *there = find_label(e, label->name);

    if (there && there->value.len && !overwrite)
        return;
    if (there) {
        e->changed |= !qf_str_eq(there->value, label->value);
        there->value = label->value;
    } else if (e->count < IN_ENRICH_LABELS_MAX) {
        e->work[e->count++] = *label;
        e->changed = true;
    }
}

/* What the rule asks its map for; false: the series lacks a label. Good until the next one. */
static bool make_key(struct enriching *e, const struct sm_rule *rule, struct qf_str *ret_key)
{
    qf_strbuf_reset(&e->key);
    for (size_t i = 0; i < rule->from_count; i++) {
        const struct qf_label *label = find_label(e, qf_str_from(rule->from[i]));

        if (!label || !label->value.len)
            return false;
        if (rule->from_count == 1) {
            *ret_key = label->value;
            return true;
        }
        if (i)
            qf_strbuf_puts(&e->key, rule->separator);
        qf_strbuf_str(&e->key, label->value);
    }
    *ret_key = qf_strbuf_view(&e->key);
    return true;
}

/* --- looking up --- */

static qf_rc make_labels(struct enriching *e, size_t rule, struct sm_value value,
                         struct known *known)
{
    uintptr_t at = (uintptr_t)value.bytes.data;
    struct made *made = &e->made[(at ^ at >> 8 ^ at >> 16 ^ rule) % VALUE_PLACES];

    if (made->rule != rule + 1 || made->data != value.bytes.data || made->type != value.type) {
        struct qf_label *labels =
            in_enrich_labels(e->options->arena, e->options->rules[rule].rule, value, &made->count);

        made->rule = 0;
        if (!labels)
            return spent(e);
        made->labels = labels;
        made->data = value.bytes.data;
        made->type = value.type;
        made->rule = rule + 1;
    }
    known->labels = made->labels;
    known->count = made->count;
    return QF_OK;
}

static struct known *place_of(struct enriching *e, size_t rule, struct qf_str key)
{
    return &e->known[(qf_hash_bytes(key) + rule) % FOUND_PLACES];
}

static qf_rc look_up(struct enriching *e, size_t rule, struct qf_str key, int64_t time,
                     struct known **ret_known)
{
    const struct in_enrich_options *options = e->options;
    bool timed = options->rules[rule].timed;
    struct known *known = *ret_known = place_of(e, rule, key);
    struct in_enrich_found found = { 0 };
    qf_rc rc;

    if (known->rule == rule + 1 && qf_str_eq(known->key, key) && (!timed || known->time == time))
        return QF_OK;
    known->rule = 0;
    rc = options->find(options->ctx, rule, key, time, &found, e->err);
    if (rc != QF_OK)
        return rc;
    known->found = found.found;
    known->time = time;
    known->count = 0;
    if (found.found)
        rc = make_labels(e, rule, found.value, known);
    else
        e->figures.misses++;
    if (rc != QF_OK)
        return rc;
    if (!qf_str_eq(known->key, key))
        known->key = qf_arena_str(options->arena, key);
    if (!known->key.data)
        return spent(e);
    known->rule = rule + 1;
    return QF_OK;
}

static qf_rc apply_rule(struct enriching *e, size_t i, int64_t time)
{
    const struct in_enrich_rule *rule = &e->options->rules[i];
    struct known *known;
    struct qf_str key;
    qf_rc rc;

    if (!make_key(e, rule->rule, &key))
        return QF_OK;
    if (rule->missing)
        return rule->rule->leave ? QF_OK
                                 : qf_err_set(e->err, QF_EUNAVAILABLE,
                                              "rule %s: map %s has no rows at this node yet",
                                              rule->rule->name, rule->rule->map);
    e->timed |= rule->timed;
    rc = look_up(e, i, key, time, &known);
    for (size_t j = 0; rc == QF_OK && known->found && j < known->count; j++)
        set_label(e, &known->labels[j], rule->rule->overwrite);
    return rc;
}

/* The labels of @series at @time, in e->work. */
static qf_rc at_time(struct enriching *e, const struct in_series *series, int64_t time)
{
    qf_rc rc = QF_OK;

    memcpy(e->work, series->labels, series->label_count * sizeof(e->work[0]));
    e->count = series->label_count;
    e->changed = e->timed = false;
    for (size_t i = 0; i < e->options->rule_count && rc == QF_OK; i++)
        rc = apply_rule(e, i, time);
    return rc;
}

/* --- series --- */

static bool is_same(const struct enriching *e, const struct in_series *piece)
{
    if (e->count != piece->label_count)
        return false;
    for (size_t i = 0; i < e->count; i++)
        if (!qf_str_eq(e->work[i].name, piece->labels[i].name) ||
            !qf_str_eq(e->work[i].value, piece->labels[i].value))
            return false;
    return true;
}

/* The labels of e->work, if they are others than were sent. */
static qf_rc take_labels(struct enriching *e, struct in_series *piece)
{
    struct qf_label *labels;

    if (!e->changed)
        return QF_OK;
    labels = qf_arena_alloc(e->options->arena, (e->count + 1) * sizeof(*labels));
    if (!labels)
        return spent(e);
    memcpy(labels, e->work, e->count * sizeof(*labels));
    piece->labels = labels;
    piece->label_count = e->count;
    return QF_OK;
}

/* A series that is being cut: the first piece is @series itself, the others are e->pieces from @first on. */
struct cut {
    struct in_series sent;
    struct in_series *series;
    size_t first;
};

static struct in_series *last_piece(struct enriching *e, const struct cut *cut)
{
    return e->pieces.count > cut->first ? &e->pieces.items[e->pieces.count - 1] : cut->series;
}

/* One more, with the labels of e->work. */
static qf_rc add_piece(struct enriching *e, const struct cut *cut)
{
    struct in_series piece = cut->sent;

    piece.samples = NULL;
    piece.exemplars = NULL;
    piece.sample_count = piece.exemplar_count = 0;
    QF_VEC_PUSH(&e->pieces, piece);
    e->figures.splits++;
    return take_labels(e, &e->pieces.items[e->pieces.count - 1]);
}

static qf_rc cut_samples(struct enriching *e, struct cut *cut)
{
    struct in_series *series = cut->series;
    qf_rc rc = QF_OK;

    series->sample_count = 0;
    for (size_t i = 0; i < cut->sent.sample_count && rc == QF_OK; i++) {
        struct in_series *piece = last_piece(e, cut);

        if (i == 0 || cut->sent.samples[i].ts != cut->sent.samples[i - 1].ts)
            rc = at_time(e, &cut->sent, cut->sent.samples[i].ts);
        if (rc == QF_OK && i == 0)
            rc = take_labels(e, series);
        else if (rc == QF_OK && !is_same(e, piece))
            rc = add_piece(e, cut);
        piece = last_piece(e, cut);
        if (!piece->sample_count)
            piece->samples = &cut->sent.samples[i];
        piece->sample_count++;
        e->figures.samples += e->changed;
        if (!e->timed && rc == QF_OK) { /* the others are the same */
            piece->sample_count = cut->sent.sample_count;
            e->figures.samples += e->changed ? cut->sent.sample_count - 1 : 0;
            break;
        }
    }
    return rc;
}

/* A piece with the labels of e->work that has no exemplars yet; NULL: there is none. */
static struct in_series *free_piece(struct enriching *e, const struct cut *cut)
{
    if (!cut->series->exemplar_count && is_same(e, cut->series))
        return cut->series;
    for (size_t i = cut->first; i < e->pieces.count; i++)
        if (!e->pieces.items[i].exemplar_count && is_same(e, &e->pieces.items[i]))
            return &e->pieces.items[i];
    return NULL;
}

static qf_rc cut_exemplars(struct enriching *e, struct cut *cut)
{
    struct in_series *piece = NULL;
    bool any = cut->sent.sample_count > 0; /* the first piece has labels of a moment */
    qf_rc rc = QF_OK;

    cut->series->exemplar_count = 0;
    for (size_t i = 0; i < cut->sent.exemplar_count && rc == QF_OK; i++) {
        rc = at_time(e, &cut->sent, cut->sent.exemplars[i].ts);
        if (rc == QF_OK && !any)
            rc = take_labels(e, cut->series);
        any = true;
        if (rc == QF_OK && !(piece && is_same(e, piece))) {
            piece = free_piece(e, cut);
            if (!piece) {
                rc = add_piece(e, cut);
                piece = last_piece(e, cut);
            }
            piece->exemplars = &cut->sent.exemplars[i];
        }
        if (rc == QF_OK)
            piece->exemplar_count++;
    }
    return rc;
}

static qf_rc enrich_series(struct enriching *e, struct in_series *series)
{
    struct cut cut = { *series, series, e->pieces.count };
    qf_rc rc;

    if (series->bad || series->label_count > IN_ENRICH_LABELS_MAX / 2)
        return QF_OK;
    rc = cut_samples(e, &cut);
    return rc == QF_OK && cut.sent.exemplar_count ? cut_exemplars(e, &cut) : rc;
}

static qf_rc add_pieces(struct enriching *e, struct in_request *request)
{
    size_t count = request->series_count + e->pieces.count;
    struct in_series *all;

    if (!e->pieces.count)
        return QF_OK;
    all = qf_arena_alloc(e->options->arena, count * sizeof(*all));
    if (!all)
        return spent(e);
    memcpy(all, request->series, request->series_count * sizeof(*all));
    memcpy(all + request->series_count, e->pieces.items, e->pieces.count * sizeof(*all));
    request->series = all;
    request->series_count = count;
    return QF_OK;
}

qf_rc in_enrich(const struct in_enrich_options *options, struct in_request *request,
                struct in_enrich_figures *ret_figures, struct qf_err *err)
{
    struct enriching *e = qf_xcalloc(1, sizeof(*e));
    qf_rc rc = QF_OK;

    e->options = options;
    e->err = err;
    e->known = QF_ARENA_ARRAY(options->arena, struct known, FOUND_PLACES);
    e->made = QF_ARENA_ARRAY(options->arena, struct made, VALUE_PLACES);
    if (!e->known || !e->made)
        rc = spent(e);
    for (size_t i = 0; i < request->series_count && rc == QF_OK; i++)
        rc = enrich_series(e, &request->series[i]);
    if (rc == QF_OK)
        rc = add_pieces(e, request);
    *ret_figures = e->figures;
    QF_VEC_DONE(&e->pieces);
    qf_strbuf_done(&e->key);
    free(e);
    return rc;
}
