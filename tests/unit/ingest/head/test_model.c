/* The head against a plain model: a list of all samples that counted, looked through from its
 * beginning for every question. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/prng.h"
#include "promql/parse.h"
#include "tests/lib/test.h"
#include "tests/unit/ingest/head/rig.h"

enum { SERIES = 12, NUMBERS = 16, STEPS = 300 };
static const char *const tenants[] = { "a", "b" };

struct model_sample {
    int tenant, series;
    uint64_t generation, position;
    int64_t ts;
    double value;
};
struct model_range {
    int tenant;
    uint64_t generation, from, to;
    int64_t closed_ms, sealed_ms; /* -1: not */
    bool lost;                    /* sealed before a restart */
};

struct world {
    struct rig rig;
    struct qf_prng prng;
    QF_VEC(struct model_sample) samples;
    QF_VEC(struct model_range) ranges;
    int owner[2][NUMBERS]; /* which series a number means; -1: none */
};

static int below(struct world *w, int bound)
{
    return (int)qf_prng_below(&w->prng, (uint64_t)bound);
}

static struct model_range *open_range(struct world *w, int tenant)
{
    for (size_t i = 0; i < w->ranges.count; i++)
        if (w->ranges.items[i].tenant == tenant && !w->ranges.items[i].to)
            return &w->ranges.items[i];
    return NULL;
}

static void label_series(int series, struct qf_label *labels, char *text, size_t size)
{
    labels[0] = (struct qf_label){ QF_STR("__name__"), series % 2 ? QF_STR("m") : QF_STR("n") };
    labels[1] = (struct qf_label){ QF_STR("s"), { text, 0 } };
    labels[1].value.len = (size_t)snprintf(text, size, "%02d", series);
}

static double any_value(struct world *w)
{
    switch (below(w, 4)) {
    case 0:
        return below(w, 1000000);
    case 1:
        return qf_prng_unit(&w->prng) * 1e9 - 5e8;
    case 2:
        return 1;
    default:
        return -below(w, 100) / 4.0;
    }
}

/* A record of a few series, some of which are not known or known by another number. */
static void do_samples(struct world *w)
{
    int tenant = below(w, 2), count = 1 + below(w, 4);
    struct in_record_series series[4] = { 0 };
    struct in_sample samples[4][3];
    struct qf_label labels[4][2];
    char texts[4][8];
    struct model_range *range = open_range(w, tenant);
    uint64_t index = w->rig.index + 1;
    bool used[SERIES] = { false }; /* a record has a series once, as whoever makes it sees to */

    if (!range)
        memset(w->owner[tenant], -1, sizeof(w->owner[tenant]));
    for (int i = 0; i < count; i++) {
        int number = below(w, NUMBERS), *owner = &w->owner[tenant][number];

        series[i].fresh = *owner < 0 || used[*owner] || below(w, 10) == 0;
        if (series[i].fresh) {
            do
                *owner = below(w, SERIES);
            while (used[*owner]);
            label_series(*owner, labels[i], texts[i], sizeof(texts[i]));
            series[i].labels = (struct qf_labels){ labels[i], 2 };
        }
        used[*owner] = true;
        series[i].number = (uint32_t)number;
        series[i].samples = samples[i];
        series[i].sample_count = (size_t)below(w, 4);
        for (size_t j = 0; j < series[i].sample_count; j++) {
            samples[i][j] =
                (struct in_sample){ .ts = below(w, 40) * 1000000 - 9000000, .value = any_value(w) };
            QF_VEC_PUSH(&w->samples,
                        (struct model_sample){ tenant, *owner, 0, index, samples[i][j].ts,
                                               samples[i][j].value });
        }
    }
    CHECK_EQ(rig_samples(&w->rig, tenants[tenant], series, (size_t)count), IN_APPLIED);
    if (!range) {
        QF_VEC_PUSH(&w->ranges,
                    (struct model_range){ .tenant = tenant,
                                          .generation = rig_generation(&w->rig, tenants[tenant]),
                                          .from = index,
                                          .closed_ms = -1,
                                          .sealed_ms = -1 });
        range = &w->ranges.items[w->ranges.count - 1];
    }
    for (size_t i = w->samples.count; i > 0 && w->samples.items[i - 1].position == index; i--)
        w->samples.items[i - 1].generation = range->generation;
}

static void do_seal(struct world *w)
{
    int tenant = below(w, 2);
    struct model_range *range = open_range(w, tenant);

    CHECK_EQ(rig_seal(&w->rig, tenants[tenant]), range ? IN_APPLIED : IN_OUT_OF_TURN);
    if (range) {
        range->to = w->rig.index;
        range->closed_ms = rig_now;
    }
}

static void do_sealed(struct world *w)
{
    int tenant = below(w, 2);
    struct model_range *range = NULL;

    for (size_t i = 0; i < w->ranges.count && !range; i++)
        if (w->ranges.items[i].tenant == tenant && w->ranges.items[i].sealed_ms < 0)
            range = &w->ranges.items[i];
    if (!range || !range->to)
        return;
    CHECK_EQ(rig_sealed(&w->rig, tenants[tenant]), IN_APPLIED);
    range->sealed_ms = rig_now;
}

/* A new process has files of closed ranges, if there were any, and no positions. */
static void do_restart(struct world *w)
{
    bool process = below(w, 2);

    if (process)
        rig_restart(&w->rig);
    else
        rig_install(&w->rig);
    for (size_t i = 0; i < w->ranges.count; i++) {
        w->ranges.items[i].lost |= w->ranges.items[i].sealed_ms >= 0;
        if (w->ranges.items[i].to)
            w->ranges.items[i].closed_ms = process ? rig_now - RIG_KEEP_MS : rig_now;
    }
}

/* --- questions --- */

static const char *const selectors[] = { "{__name__=~\".+\"}", "m", "n{s!=\"04\"}",
                                         "{s=~\"0[1-5]\"}", "{s=\"03\",x=\"\"}" };
static bool selects(size_t selector, int series)
{
    switch (selector) {
    case 1:
        return series % 2;
    case 2:
        return series % 2 == 0 && series != 4;
    case 3:
        return series >= 1 && series <= 5;
    case 4:
        return series == 3;
    default:
        return true;
    }
}

static int by_time(const void *a, const void *b)
{
    const struct model_sample *x = *(struct model_sample *const *)a;
    const struct model_sample *y = *(struct model_sample *const *)b;

    return x->ts != y->ts ? (x->ts < y->ts ? -1 : 1) : (x < y ? -1 : 1);
}

/* The answer by the book, for one series. */
static void expect_series(const struct world *w, const struct in_head_ask *ask, int tenant,
                          int series, struct qf_strbuf *text)
{
    QF_VEC(const struct model_sample *) found = { 0 };
    struct qf_label labels[2];
    char name[8];

    label_series(series, labels, name, sizeof(name));
    for (size_t i = 0; i < w->samples.count; i++) {
        const struct model_sample *s = &w->samples.items[i];

        if (s->tenant == tenant && s->series == series && s->generation == ask->generation &&
            s->position <= ask->cut && s->ts >= ask->min_ts && s->ts <= ask->max_ts)
            QF_VEC_PUSH(&found, s);
    }
    if (found.count && sg_shard_of((struct qf_labels){ labels, 2 }, ask->shards) == ask->shard) {
        qsort(found.items, found.count, sizeof(found.items[0]), by_time);
        qf_labels_print(text, (struct qf_labels){ labels, 2 });
        for (size_t i = 0; i < found.count; i++)
            if (i + 1 == found.count || found.items[i + 1]->ts != found.items[i]->ts)
                qf_strbuf_printf(text, " %" PRId64 ":%.17g", found.items[i]->ts,
                                 found.items[i]->value);
        qf_strbuf_putc(text, '\n');
    }
    QF_VEC_DONE(&found);
}

static char *expect(const struct world *w, const struct in_head_ask *ask, int tenant,
                    size_t selector)
{
    struct qf_strbuf text = QF_STRBUF_INIT;

    for (int odd = 1; odd >= 0; odd--) /* m before n */
        for (int series = odd; series < SERIES; series += 2)
            if (selects(selector, series))
                expect_series(w, ask, tenant, series, &text);
    return qf_strbuf_take(&text);
}

/* Nothing forbids the head to say that it no longer has it. */
static bool may_be_gone(const struct model_range *range, uint64_t cut)
{
    if (range->lost || (range->sealed_ms >= 0 && rig_now - range->sealed_ms >= RIG_KEEP_MS))
        return true;
    return range->to && cut < range->to && rig_now - range->closed_ms >= RIG_KEEP_MS;
}

static void do_read(struct world *w)
{
    struct qf_arena *arena;
    const struct model_range *range;
    struct in_head_ask ask = { .shards = 1u << below(w, 4) };
    size_t selector = (size_t)below(w, QF_COUNT_OF(selectors));
    char *got, *want;

    if (!w->ranges.count)
        return;
    range = &w->ranges.items[below(w, (int)w->ranges.count)];
    arena = qf_arena_new(SIZE_MAX);
    ask.tenant = qf_str_from(tenants[range->tenant]);
    ask.generation = range->generation;
    ask.cut = range->from + (uint64_t)below(w, (int)(w->rig.index - range->from) + 1);
    ask.shard = (uint32_t)below(w, (int)ask.shards);
    ask.min_ts = below(w, 3) ? INT64_MIN : 5000000;
    ask.max_ts = below(w, 3) ? INT64_MAX : 20000000;
    CHECK_EQ(pq_parse_selector(arena, qf_str_from(selectors[selector]), NULL, &ask.matchers,
                               &ask.matcher_count, NULL),
             QF_OK);
    got = rig_ask(&w->rig, ask);
    want = expect(w, &ask, range->tenant, selector);
    if (strcmp(got, "not_found") != 0 || !may_be_gone(range, ask.cut))
        CHECK_STR(got, want);
    free(got);
    free(want);
    (void)qf_arena_free(arena);
}

static void do_something(struct world *w)
{
    struct qf_err err = { 0 };
    bool built;

    switch (below(w, 40)) {
    case 0:
    case 1:
    case 2:
        do_seal(w);
        break;
    case 3:
    case 4:
        do_sealed(w);
        break;
    case 5:
    case 6:
        CHECK_OK(in_head_build(w->rig.head, &built, &err), &err);
        break;
    case 7:
        rig_now += below(w, RIG_KEEP_MS);
        in_head_tick(w->rig.head);
        break;
    case 8:
        do_restart(w);
        break;
    default:
        if (below(w, 3))
            do_samples(w);
        else
            do_read(w);
    }
}

TEST(the_head_answers_as_the_model_does)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct world w = { .prng = { seed } };

        memset(w.owner, -1, sizeof(w.owner));
        rig_begin(&w.rig, 1u << (seed % 3));
        for (int i = 0; i < STEPS; i++)
            do_something(&w);
        for (int i = 0; i < 40; i++)
            do_read(&w);
        CHECK_EQ(in_head_figures(w.rig.head).unknown_series, 0);
        rig_end(&w.rig);
        QF_VEC_DONE(&w.samples);
        QF_VEC_DONE(&w.ranges);
    }
}
