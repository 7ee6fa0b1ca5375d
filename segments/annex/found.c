/* found.c - exemplars that somebody asked for. */
#include "segments/annex/found.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/pure/number.h"

bool sg_found_add(struct sg_found *found, struct qf_arena *arena,
                  const struct sg_found_exemplar *exemplar)
{
    size_t count = found->count;

    if ((count & (count - 1)) == 0) { /* a power of two, or none: full */
        struct sg_found_exemplar *items =
            qf_arena_grow(arena, found->items, count, count ? 2 * count : 1, sizeof(*items));

        if (!items)
            return false;
        found->items = items;
    }
    found->items[found->count++] = *exemplar;
    return true;
}

static int by_series(const void *a, const void *b)
{
    const struct sg_found_exemplar *x = a, *y = b;
    int order = qf_labels_cmp(x->series, y->series);

    if (order || x->ts != y->ts)
        return order ? order : (x->ts < y->ts ? -1 : 1);
    order = qf_labels_cmp(x->labels, y->labels);
    return order ? order : memcmp(&x->value, &y->value, sizeof(x->value));
}

void sg_found_sort(struct sg_found *found)
{
    size_t kept = 0;

    if (found->count)
        qsort(found->items, found->count, sizeof(*found->items), by_series);
    for (size_t i = 0; i < found->count; i++)
        if (!kept || by_series(&found->items[kept - 1], &found->items[i]) != 0)
            found->items[kept++] = found->items[i];
    found->count = kept;
}

static void print_one(struct qf_strbuf *buf, const struct sg_found_exemplar *exemplar)
{
    uint64_t ts = exemplar->ts < 0 ? -(uint64_t)exemplar->ts : (uint64_t)exemplar->ts;
    char value[QF_DOUBLE_TEXT_MAX];

    (void)qf_double_f(exemplar->value, value);
    qf_strbuf_puts(buf, "{\"labels\":");
    qf_labels_json(buf, exemplar->labels);
    qf_strbuf_printf(buf, ",\"value\":\"%s", value);
    qf_strbuf_printf(buf, "\",\"timestamp\":%s%" PRIu64 ".%03" PRIu64 "}",
                     exemplar->ts < 0 ? "-" : "", ts / 1000, ts % 1000);
}

void sg_found_print(struct qf_strbuf *buf, const struct sg_found *found, uint64_t limit)
{
    uint64_t told = 0;

    qf_strbuf_putc(buf, '[');
    for (size_t i = 0; i < found->count; i++) {
        const struct sg_found_exemplar *item = &found->items[i];
        bool begins = i == 0 || !qf_labels_eq(item[-1].series, item->series);

        if (begins && limit && told == limit)
            break;
        if (begins) {
            qf_strbuf_puts(buf, told++ ? ",{\"seriesLabels\":" : "{\"seriesLabels\":");
            qf_labels_json(buf, item->series);
            qf_strbuf_puts(buf, ",\"exemplars\":[");
        } else {
            qf_strbuf_putc(buf, ',');
        }
        print_one(buf, item);
        if (i + 1 == found->count || !qf_labels_eq(item->series, item[1].series))
            qf_strbuf_puts(buf, "]}");
    }
    qf_strbuf_putc(buf, ']');
}
