/* test_enrich.c - series get the labels of maps: against a model that looks at every sample by itself. */
#include "ingest/enrich/enrich.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/prng.h"
#include "base/pure/vec.h"
#include "tests/lib/test.h"

/* --- maps that say something else from a moment on --- */

enum { MAPS = 3, KEYS = 4, MOMENTS = 3, TIMES = 10 };

struct world {
    struct in_enrich_rule rules[4];
    struct sm_rule said[4];
    size_t rule_count, map[4];
    char values[MAPS][KEYS][MOMENTS][64]; /* "": nothing; else a string, or JSON */
    struct qf_arena *arena;
};

static const char *value_at(const struct world *w, size_t rule, struct qf_str key, int64_t time)
{
    size_t moment = w->rules[rule].timed ? (size_t)(time * MOMENTS / TIMES) : 0;

    if (key.len != 2 || key.data[0] != 'k')
        return "";
    return w->values[w->map[rule]][key.data[1] - '0'][moment];
}

static qf_rc find(void *ctx, size_t rule, struct qf_str key, int64_t time,
                  struct in_enrich_found *ret_found, struct qf_err *err)
{
    const char *text = value_at(ctx, rule, key, time);

    (void)err;
    *ret_found = (struct in_enrich_found){ .found = *text != 0 };
    ret_found->value = (struct sm_value){ *text == '{' ? SM_JSON : SM_STRING, qf_str_from(text) };
    return QF_OK;
}

/* --- the model: one sample, one map of labels --- */

struct model {
    char names[16][8], values[16][64];
    size_t count;
};

static const char *model_get(const struct model *m, const char *name)
{
    for (size_t i = 0; i < m->count; i++)
        if (strcmp(m->names[i], name) == 0)
            return m->values[i];
    return "";
}

static void model_set(struct model *m, const char *name, const char *value, bool overwrite)
{
    size_t i = 0;

    while (i < m->count && strcmp(m->names[i], name) != 0)
        i++;
    if (!*value || (i < m->count && m->values[i][0] && !overwrite))
        return;
    m->count += i == m->count;
    (void)snprintf(m->names[i], sizeof(m->names[i]), "%s", name);
    (void)snprintf(m->values[i], sizeof(m->values[i]), "%s", value);
}

/* Of a value {"a":"x"}, which is all that there are. */
static void model_member(const char *value, char out[64])
{
    const char *x = *value == '{' ? strrchr(value, ':') + 2 : "\"";

    (void)snprintf(out, 64, "%.*s", (int)(strchr(x, '"') - x), x);
}

static void model_rule(const struct world *w, size_t i, int64_t time, struct model *m)
{
    const struct sm_rule *rule = &w->said[i];
    const char *value, *key = model_get(m, rule->from[0]);
    char member[64];

    if (!*key || w->rules[i].missing)
        return;
    value = value_at(w, i, qf_str_from(key), time);
    model_member(value, member);
    if (rule->into == SM_INTO_LABEL)
        model_set(m, rule->to, value, rule->overwrite);
    else if (rule->into == SM_INTO_MEMBERS)
        model_set(m, "a", member, rule->overwrite);
    else
        model_set(m, rule->members[0].label, member, rule->overwrite);
}

/* --- what is compared: lines, sorted --- */

typedef QF_VEC(char *) lines;

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *line_of(struct model *m, int64_t ts, const char *kind)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    char pairs[16][80];
    char *sorted[16];
    size_t count = 0;

    for (size_t i = 0; i < m->count; i++) {
        if (!m->values[i][0])
            continue;
        sorted[count] = pairs[count];
        (void)snprintf(pairs[count++], 80, "%s=%s", m->names[i], m->values[i]);
    }
    qsort(sorted, count, sizeof(sorted[0]), by_text);
    for (size_t i = 0; i < count; i++)
        qf_strbuf_printf(&text, "%s ", sorted[i]);
    qf_strbuf_printf(&text, "%s %lld", kind, (long long)ts);
    return qf_strbuf_take(&text);
}

static struct model model_of(const struct in_series *series)
{
    struct model m = { 0 };

    for (size_t i = 0; i < series->label_count; i++) {
        (void)snprintf(m.names[i], sizeof(m.names[i]), "%.*s", QF_STR_ARG(series->labels[i].name));
        (void)snprintf(m.values[i], sizeof(m.values[i]), "%.*s",
                       QF_STR_ARG(series->labels[i].value));
        m.count++;
    }
    return m;
}

static void add_lines(const struct world *w, const struct in_series *series, bool enrich,
                      lines *out)
{
    for (size_t i = 0; i < series->sample_count + series->exemplar_count; i++) {
        bool sample = i < series->sample_count;
        int64_t ts =
            sample ? series->samples[i].ts : series->exemplars[i - series->sample_count].ts;
        struct model m = model_of(series);

        for (size_t j = 0; enrich && j < w->rule_count; j++)
            model_rule(w, j, ts, &m);
        QF_VEC_PUSH(out, line_of(&m, ts, sample ? "sample" : "exemplar"));
    }
}

static void sort_lines(lines *all)
{
    if (all->count)
        qsort(all->items, all->count, sizeof(char *), by_text);
}

static void lines_done(lines *all)
{
    for (size_t i = 0; i < all->count; i++)
        free(all->items[i]);
    QF_VEC_DONE(all);
}

/* --- random worlds --- */

static const char *const label_names[] = { "a", "b", "c", "d" };

static void make_rule(struct world *w, size_t i, struct qf_prng *prng)
{
    struct sm_rule *rule = &w->said[i];

    *rule = (struct sm_rule){ .name = "r", .map = "m", .from_count = 1, .leave = true };
    (void)snprintf(rule->from[0], sizeof(rule->from[0]), "%s", label_names[qf_prng_below(prng, 4)]);
    rule->into = (enum sm_rule_into)qf_prng_below(prng, 3);
    if (rule->into == SM_INTO_LABEL)
        (void)snprintf(rule->to, sizeof(rule->to), "%s", label_names[qf_prng_below(prng, 4)]);
    if (rule->into == SM_INTO_NAMED) {
        rule->member_count = 1;
        (void)snprintf(rule->members[0].member, 8, "a");
        (void)snprintf(rule->members[0].label, 8, "%s", label_names[qf_prng_below(prng, 4)]);
    }
    rule->overwrite = qf_prng_chance(prng, 0.4);
    w->map[i] = qf_prng_below(prng, MAPS);
    w->rules[i] = (struct in_enrich_rule){ .rule = rule,
                                           .timed = w->map[i] > 0,
                                           .missing = qf_prng_chance(prng, 0.1) };
}

static struct world make_world(struct qf_prng *prng)
{
    struct world w = { .rule_count = qf_prng_below(prng, 5), .arena = qf_arena_new(1 << 24) };

    for (size_t i = 0; i < MAPS * KEYS * MOMENTS; i++) {
        char *value = w.values[0][0][0] + 64 * i;
        int what = (int)qf_prng_below(prng, 5), number = (int)qf_prng_below(prng, KEYS);

        if (what == 0)
            value[0] = '\0';
        else if (what < 3)
            (void)snprintf(value, 64, "k%d", number);
        else
            (void)snprintf(value, 64, "{\"a\":\"k%d\"}", number);
    }
    return w;
}

static void make_series(struct world *w, struct qf_prng *prng, struct in_series *series)
{
    size_t labels = 1 + qf_prng_below(prng, 3);

    *series = (struct in_series){ .labels = QF_ARENA_ARRAY(w->arena, struct qf_label, 4),
                                  .samples = QF_ARENA_ARRAY(w->arena, struct in_sample, 6),
                                  .exemplars = QF_ARENA_ARRAY(w->arena, struct in_exemplar, 4),
                                  .label_count = labels,
                                  .sample_count = qf_prng_below(prng, 7),
                                  .exemplar_count = qf_prng_below(prng, 4) };
    for (size_t i = 0; i < labels; i++) {
        series->labels[i].name = qf_str_from(label_names[i]);
        series->labels[i].value =
            qf_str_from(qf_arena_printf(w->arena, "k%d", (int)qf_prng_below(prng, KEYS)));
        if (qf_prng_chance(prng, 0.1))
            series->labels[i].value.len = 0;
    }
    for (size_t i = 0; i < series->sample_count; i++)
        series->samples[i].ts = (int64_t)qf_prng_below(prng, TIMES);
    for (size_t i = 0; i < series->exemplar_count; i++)
        series->exemplars[i].ts = (int64_t)qf_prng_below(prng, TIMES);
}

static void check_world(uint64_t seed)
{
    struct qf_prng prng = { seed };
    struct world w = make_world(&prng);
    struct in_series series[5];
    struct in_request request = { .series = series, .series_count = QF_COUNT_OF(series) };
    const struct in_enrich_options options = { w.rules, w.rule_count, find, &w, w.arena };
    struct in_enrich_figures figures;
    lines want = { 0 }, got = { 0 };
    struct qf_err err = { 0 };

    for (size_t i = 0; i < w.rule_count; i++)
        make_rule(&w, i, &prng);
    for (size_t i = 0; i < w.rule_count; i++)
        w.rules[i].rule = &w.said[i];
    for (size_t i = 0; i < QF_COUNT_OF(series); i++) {
        make_series(&w, &prng, &series[i]);
        add_lines(&w, &series[i], true, &want);
    }
    CHECK_OK(in_enrich(&options, &request, &figures, &err), &err);
    CHECK_EQ(request.series_count, QF_COUNT_OF(series) + figures.splits);
    for (size_t i = 0; i < request.series_count; i++)
        add_lines(&w, &request.series[i], false, &got);
    CHECK_EQ(got.count, want.count);
    sort_lines(&want);
    sort_lines(&got);
    for (size_t i = 0; i < want.count; i++)
        CHECK_MSG(strcmp(want.items[i], got.items[i]) == 0, "seed %llu: %s, not %s",
                  (unsigned long long)seed, got.items[i], want.items[i]);
    lines_done(&want);
    lines_done(&got);
    (void)qf_arena_free(w.arena);
}

TEST(every_sample_has_the_labels_of_its_time)
{
    for (uint64_t seed = 1; seed <= 3000; seed++)
        check_world(seed);
}

/* --- single rules --- */

struct one {
    struct qf_label labels[3];
    struct in_sample samples[3];
    struct in_series series;
    struct in_request request;
    struct sm_rule rule;
    struct in_enrich_rule of;
    struct sm_value value;
    struct qf_str asked;
    struct qf_arena *arena;
};

static qf_rc find_one(void *ctx, size_t rule, struct qf_str key, int64_t time,
                      struct in_enrich_found *ret_found, struct qf_err *err)
{
    struct one *one = ctx;

    (void)rule;
    (void)time;
    (void)err;
    one->asked = qf_arena_str(one->arena, key);
    *ret_found = (struct in_enrich_found){ .found = true, .value = one->value };
    return QF_OK;
}

static void one_init(struct one *one)
{
    *one = (struct one){ .labels = { { QF_STR("__name__"), QF_STR("m") },
                                     { QF_STR("x"), QF_STR("1") },
                                     { QF_STR("y"), QF_STR("2") } },
                         .rule = { .name = "r",
                                   .map = "m",
                                   .from = { "x", "y" },
                                   .from_count = 2,
                                   .separator = "/" },
                         .arena = qf_arena_new(1 << 20) };
    one->series = (struct in_series){
        .labels = one->labels, .label_count = 3, .samples = one->samples, .sample_count = 1
    };
    one->request = (struct in_request){ .series = &one->series, .series_count = 1 };
    one->of.rule = &one->rule;
}

static void one_done(struct one *one)
{
    (void)qf_arena_free(one->arena);
}

static qf_rc run(struct one *one, struct qf_err *err)
{
    const struct in_enrich_options options = { &one->of, 1, find_one, one, one->arena };
    struct in_enrich_figures figures;

    return in_enrich(&options, &one->request, &figures, err);
}

TEST(several_labels_are_asked_for_together_and_values_of_all_types_are_text)
{
    static const struct {
        enum sm_type type;
        const char *bytes;
        size_t len;
        const char *text;
    } cases[] = { { SM_STRING, "cardiff", 7, "cardiff" },
                  { SM_BOOLEAN, "\1", 1, "true" },
                  { SM_JSON, "[1,\"a\"]", 7, "[1,\"a\"]" },
                  { SM_JSON, "\"a\"", 3, "a" },
                  { SM_JSON, "2.5", 3, "2.5" },
                  { SM_ANY, "", 0, "true" } };

    for (size_t i = 0; i < QF_COUNT_OF(cases); i++) {
        QF_CLEANUP(one_done) struct one one;
        struct qf_err err = { 0 };

        one_init(&one);
        one.rule.into = SM_INTO_LABEL;
        (void)snprintf(one.rule.to, sizeof(one.rule.to), "site");
        one.value = (struct sm_value){ cases[i].type, { cases[i].bytes, cases[i].len } };
        CHECK_OK(run(&one, &err), &err);
        CHECK(qf_str_is(one.asked, "1/2"));
        CHECK_EQ(one.series.label_count, 4);
        CHECK_MSG(qf_str_is(one.series.labels[3].value, cases[i].text), "%.*s, not %s",
                  QF_STR_ARG(one.series.labels[3].value), cases[i].text);
    }
}

TEST(members_that_cannot_be_labels_are_left_out)
{
    QF_CLEANUP(one_done) struct one one;
    struct qf_err err = { 0 };

    one_init(&one);
    one.value = (struct sm_value){
        SM_JSON,
        QF_STR("{\"\":\"a\",\"__name__\":\"b\",\"none\":null,\"empty\":\"\",\"fine\":7}")
    };
    CHECK_OK(run(&one, &err), &err);
    CHECK_EQ(one.series.label_count, 4);
    CHECK(qf_str_is(one.series.labels[3].name, "fine") &&
          qf_str_is(one.series.labels[3].value, "7"));
    CHECK(qf_str_is(one.series.labels[0].value, "m"));
}

TEST(a_map_that_is_missing_is_refused_where_a_series_needs_it)
{
    QF_CLEANUP(one_done) struct one one;
    struct qf_err err = { 0 };

    one_init(&one);
    one.of.missing = true;
    CHECK_EQ(run(&one, &err), QF_EUNAVAILABLE);
    CHECK_STR(err.msg, "rule r: map m has no rows at this node yet");
    one.rule.leave = true;
    CHECK_OK(run(&one, &err), &err);
    one.rule.leave = false;
    (void)snprintf(one.rule.from[0], sizeof(one.rule.from[0]), "other");
    CHECK_OK(run(&one, &err), &err);
    CHECK_EQ(one.series.label_count, 3);
}

TEST(memory_ends_with_an_error)
{
    QF_CLEANUP(one_done) struct one one;
    struct qf_err err = { 0 };

    one_init(&one);
    (void)qf_arena_free(one.arena);
    one.arena = qf_arena_new(16);
    CHECK_EQ(run(&one, &err), QF_ELIMIT);
}
