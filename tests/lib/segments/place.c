/* place.c - a store in a temporary folder for a test, and what is in it as text. */
#include "tests/lib/segments/place.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "segments/import/histogram_text.h"
#include "tests/lib/test.h"

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    (void)status;
    (void)type;
    (void)ftw;
    return remove(path);
}

void place_done(struct place *place)
{
    (void)sg_store_free(place->store);
    (void)nftw(place->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

struct place place_make(void)
{
    struct place p = { .root = "/tmp/promfabric-test-XXXXXX" };
    struct sg_store_options options = { .url = p.store_path, .create = true };
    struct qf_err err = { 0 };

    CHECK(mkdtemp(p.root));
    (void)snprintf(p.store_path, sizeof(p.store_path), "%s/store", p.root);
    (void)snprintf(p.temp, sizeof(p.temp), "%s/temp", p.root);
    (void)snprintf(p.input, sizeof(p.input), "%s/input.txt", p.root);
    CHECK_EQ(mkdir(p.temp, 0700), 0);
    CHECK_OK(sg_store_open(&options, &p.store, &err), &err);
    return p;
}

bool place_is_empty(const char *dir)
{
    DIR *opened = opendir(dir);
    struct dirent *entry;
    size_t entries = 0;

    CHECK(opened);
    while ((entry = readdir(opened)) != NULL)
        entries += entry->d_name[0] != '.';
    (void)closedir(opened);
    return entries == 0;
}

struct names {
    QF_VEC(char *) items;
};

static bool add_name(void *ctx, const struct sg_store_object *object)
{
    struct names *names = ctx;

    if (qf_str_starts(object->name, QF_STR("tenant="))) /* no notes, leases, marks, annexes */
        QF_VEC_PUSH(&names->items, qf_xmemdup0(object->name.data, object->name.len));
    return true;
}

struct place_readers place_readers(const struct place *p)
{
    struct place_readers readers = { 0 };
    struct names names = { 0 };
    struct qf_err err = { 0 };
    char path[512];

    CHECK_OK(sg_store_list(p->store, QF_STR(""), QF_STR(""), NULL, add_name, &names, &err), &err);
    for (size_t i = 0; i < names.items.count; i++) {
        struct sg_reader *reader;

        (void)snprintf(path, sizeof(path), "%s/%s", p->store_path, names.items.items[i]);
        reader = sg_reader_open(path, &err);
        CHECK_MSG(reader, "%s", err.msg);
        CHECK_OK(sg_reader_verify(reader, &err), &err);
        QF_VEC_PUSH(&readers.items, reader);
        free(names.items.items[i]);
    }
    QF_VEC_DONE(&names.items);
    return readers;
}

void place_readers_done(struct place_readers *readers)
{
    for (size_t i = 0; i < readers->items.count; i++)
        (void)sg_reader_free(readers->items.items[i]);
    QF_VEC_DONE(&readers->items);
}

static void print_sample(struct qf_strbuf *out, const struct pq_series *series, size_t i)
{
    char number[QF_DOUBLE_TEXT_MAX];

    (void)qf_double_g(series->values[i], number);
    qf_strbuf_printf(out, " %lld=", (long long)series->ts[i]);
    if (series->histograms && series->histograms[i])
        sg_histogram_text_print(out, series->histograms[i]);
    else
        qf_strbuf_puts(out, qf_is_stale(series->values[i]) ? "stale" : number);
    if (series->start_ts && series->start_ts[i])
        qf_strbuf_printf(out, "~%lld", (long long)series->start_ts[i]);
}

char *place_dump(const struct place *p, size_t *ret_segments)
{
    QF_CLEANUP(place_readers_done) struct place_readers readers = place_readers(p);
    struct pq_select all = { .min_ts = INT64_MIN, .max_ts = INT64_MAX };
    struct pq_source *source =
        sg_source_new(readers.items.items, readers.items.count, &all, NULL, 0);
    struct qf_strbuf out = QF_STRBUF_INIT;
    struct pq_series series;
    struct qf_err err = { 0 };
    bool more = true;

    for (;;) {
        CHECK_OK(source->next(source, &series, &more, &err), &err);
        if (!more)
            break;
        qf_labels_print_series(&out, series.labels);
        for (size_t i = 0; i < series.count; i++)
            print_sample(&out, &series, i);
        qf_strbuf_putc(&out, '\n');
    }
    source->close(source);
    *ret_segments = readers.items.count;
    return qf_strbuf_take(&out);
}

void place_check(const struct place *p, size_t segments, const char *want)
{
    size_t count;
    QF_CLEANUP(qf_freep) char *got = place_dump(p, &count);

    CHECK_STR(got, want);
    CHECK_EQ(count, segments);
}
