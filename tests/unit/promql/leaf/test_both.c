/* test_both.c - two sources as one: order, series of both, errors. */
#include "base/pure/number.h"
#include "base/pure/strbuf.h"
#include "promql/source.h"
#include "tests/lib/test.h"

struct list {
    struct pq_source base; /* first member */
    const struct pq_series *items;
    size_t count, at;
    bool fails, closed;
};

static qf_rc next(struct pq_source *base, struct pq_series *ret_series, bool *ret_more,
                  struct qf_err *err)
{
    struct list *list = (struct list *)base;

    if (list->fails && list->at == list->count)
        return qf_err_set(err, QF_EIO, "broken");
    *ret_more = list->at < list->count;
    if (*ret_more)
        *ret_series = list->items[list->at++];
    return QF_OK;
}

static void close_list(struct pq_source *base)
{
    ((struct list *)base)->closed = true;
}

static struct list list_of(const struct pq_series *items, size_t count)
{
    return (struct list){ .base = { next, close_list }, .items = items, .count = count };
}

#define LABEL(value)                                                                               \
    {                                                                                              \
        &(struct qf_label){ QF_STR("a"), QF_STR(value) }, 1                                        \
    }

/* "1: 10=1 20=2; 2: ..." */
static void show(struct list *first, struct list *second, struct qf_strbuf *text)
{
    struct pq_source *both = pq_source_both(&first->base, &second->base);
    struct qf_err err = { 0 };
    struct pq_series series;
    bool more = true;
    qf_rc rc;

    for (;;) {
        rc = both->next(both, &series, &more, &err);
        if (rc != QF_OK || !more)
            break;
        qf_strbuf_printf(text, "%s%.*s:", text->len ? "; " : "",
                         QF_STR_ARG(series.labels.items[0].value));
        for (size_t i = 0; i < series.count; i++) {
            qf_strbuf_printf(text, " %lld=%g", (long long)series.ts[i], series.values[i]);
            if (series.start_ts)
                qf_strbuf_printf(text, "@%lld", (long long)series.start_ts[i]);
        }
        if (series.no_stale)
            qf_strbuf_putc(text, '!');
    }
    if (rc != QF_OK)
        qf_strbuf_puts(text, err.msg);
    else
        CHECK(both->next(both, &series, &more, &err) == QF_OK && !more);
    both->close(both);
    CHECK(first->closed && second->closed);
}

static const int64_t early[] = { 10, 20 }, late[] = { 20, 30 }, starts[] = { 1, 2 };
static const double ones[] = { 1, 1 }, twos[] = { 2, 2 };

TEST(series_of_both_come_in_order)
{
    struct pq_series a[] = { { .labels = LABEL("1"), .ts = early, .values = ones, .count = 2 },
                             { .labels = LABEL("4"), .ts = early, .values = ones, .count = 1 } };
    struct pq_series b[] = {
        { .labels = LABEL("2"), .ts = late, .values = twos, .count = 2 },
        { .labels = LABEL("3"), .ts = late, .values = twos, .count = 1, .no_stale = true }
    };
    struct list first = list_of(a, 2), second = list_of(b, 2);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

    show(&first, &second, &text);
    CHECK_STR(qf_strbuf_cstr(&text), "1: 10=1 20=1; 2: 20=2 30=2; 3: 20=2!; 4: 10=1");
}

TEST(of_one_time_the_sample_of_the_first_counts)
{
    struct pq_series a[] = {
        { .labels = LABEL("1"), .ts = early, .values = ones, .count = 2, .no_stale = true }
    };
    struct pq_series b[] = { { .labels = LABEL("1"),
                               .ts = late,
                               .values = twos,
                               .start_ts = starts,
                               .count = 2,
                               .no_stale = true } };
    struct list first = list_of(a, 1), second = list_of(b, 1);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT, other = QF_STRBUF_INIT;

    show(&first, &second, &text);
    CHECK_STR(qf_strbuf_cstr(&text), "1: 10=1@0 20=1@0 30=2@2!");
    first = list_of(b, 1);
    second = list_of(a, 1);
    show(&first, &second, &other);
    CHECK_STR(qf_strbuf_cstr(&other), "1: 10=1@0 20=2@1 30=2@2!");
}

TEST(one_that_is_empty_and_one_that_fails)
{
    struct pq_series a[] = { { .labels = LABEL("1"), .ts = early, .values = ones, .count = 2 } };
    struct list first = list_of(a, 1), second = list_of(NULL, 0), broken = list_of(NULL, 0);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT, failed = QF_STRBUF_INIT;

    show(&first, &second, &text);
    CHECK_STR(qf_strbuf_cstr(&text), "1: 10=1 20=1");
    broken.fails = true;
    first = list_of(a, 1);
    show(&first, &broken, &failed);
    CHECK_STR(qf_strbuf_cstr(&failed), "broken");
}
