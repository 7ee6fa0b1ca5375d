/* load_series.c - put series of a test script's notation into a store, as segments.
 *
 * usage: load_series STORE TENANT SHARDS START_MS STEP_MS WINDOW_MS < LINES
 *
 * A line is `metric{label="x"} 0+1x100`. Samples are cut into windows of WINDOW_MS and shards. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "base/pure/number.h"
#include "base/pure/vec.h"
#include "base/sys/clock.h"
#include "promql/histogram/codec.h"
#include "promql/parse.h"
#include "promql/testing/series.h"
#include "segments/parquet/segment_writer.h"
#include "segments/store/store.h"

struct line {
    struct qf_labels labels;
    struct pq_sequence_value *values;
    size_t count;
};

struct load {
    struct qf_arena *arena;
    struct sg_store *store;
    struct qf_str tenant;
    uint32_t shards;
    int64_t start, step, window;
    bool histograms; /* some of the lines have */
    QF_VEC(struct line) lines;
    /* The samples of one line in one window. */
    int64_t *ts;
    double *values;
    struct qf_str *encoded;
};

static void die(const char *what, const struct qf_err *err)
{
    fprintf(stderr, "load_series: %s: %s\n", what, err->msg);
    exit(1);
}

static int by_labels(const void *a, const void *b)
{
    return qf_labels_cmp(((const struct line *)a)->labels, ((const struct line *)b)->labels);
}

static void read_lines(struct load *load)
{
    struct qf_err err = { 0 };
    char *text = NULL;
    size_t size = 0;
    ssize_t len;

    while ((len = getline(&text, &size, stdin)) > 0) {
        struct qf_str s = qf_str_trim((struct qf_str){ text, (size_t)len });
        struct line line;

        if (s.len == 0 || s.data[0] == '#')
            continue;
        s = qf_arena_str(load->arena, s);
        if (pq_parse_series(load->arena, s, &line.labels, &line.values, &line.count, &err))
            die(text, &err);
        for (size_t i = 0; i < line.count; i++)
            load->histograms |= line.values[i].histogram != NULL;
        QF_VEC_PUSH(&load->lines, line);
    }
    free(text);
    qsort(load->lines.items, load->lines.count, sizeof(load->lines.items[0]), by_labels);
}

static struct qf_str encode(struct load *load, const struct pq_histogram *histogram)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qf_str encoded = QF_STR("");

    if (histogram) {
        pq_histogram_encode(&buf, histogram);
        encoded = qf_arena_str(load->arena, qf_strbuf_view(&buf));
    }
    qf_strbuf_done(&buf);
    return encoded;
}

static size_t cut(struct load *load, const struct line *line, int64_t from)
{
    size_t count = 0;

    for (size_t i = 0; i < line->count; i++) {
        int64_t at = load->start + (int64_t)i * load->step;

        if (line->values[i].omitted || at < from || at >= from + load->window)
            continue;
        load->ts[count] = at;
        load->encoded[count] = encode(load, line->values[i].histogram);
        load->values[count++] = line->values[i].value;
    }
    return count;
}

static void put(struct load *load, const char *path, struct sg_writer *writer)
{
    struct qf_strbuf key = QF_STRBUF_INIT, bytes = QF_STRBUF_INIT;
    struct sg_segment_name name;
    struct qf_err err = { 0 };
    char piece[65536];
    size_t len;
    FILE *file;

    if (sg_writer_finish(writer, &name, &err))
        die(path, &err);
    sg_segment_name_print(&key, &name);
    file = fopen(path, "re");
    while (file && (len = fread(piece, 1, sizeof(piece), file)) > 0)
        qf_strbuf_add(&bytes, piece, len);
    if (file)
        (void)fclose(file);
    if (sg_store_put(load->store, qf_strbuf_view(&key), bytes.data, bytes.len, NULL, &err))
        die(qf_strbuf_cstr(&key), &err);
    qf_strbuf_done(&key);
    qf_strbuf_done(&bytes);
}

static void write_shard(struct load *load, int64_t from, uint32_t shard)
{
    char path[64];
    struct sg_writer_options options = { .path = path,
                                         .tenant = load->tenant,
                                         .shard = shard,
                                         .shard_count = load->shards,
                                         .histograms = load->histograms,
                                         .generation = (uint64_t)qf_clock_wall_ms() * 1000 };
    struct sg_writer *writer = NULL;
    struct qf_err err = { 0 };

    (void)snprintf(path, sizeof(path), "/tmp/load_series.%d", (int)getpid());
    (void)unlink(path); /* of one that was killed and had the same id */
    for (size_t i = 0; i < load->lines.count; i++) {
        const struct line *line = &load->lines.items[i];
        struct sg_samples samples = { .ts = load->ts, .values = load->values };

        if (sg_shard_of(line->labels, load->shards) != shard)
            continue;
        samples.count = cut(load, line, from);
        samples.histograms = load->histograms ? load->encoded : NULL;
        if (samples.count == 0)
            continue;
        if (!writer)
            writer = sg_writer_new(&options, &err);
        if (!writer || sg_writer_add_samples(writer, line->labels, &samples, &err))
            die("write", &err);
    }
    if (writer)
        put(load, path, writer);
    (void)sg_writer_free(writer);
    (void)unlink(path);
}

int main(int argc, char **argv)
{
    struct load load = { .arena = qf_arena_new(SIZE_MAX) };
    struct sg_store_options options = { .create = true };
    struct qf_err err = { 0 };
    uint64_t shards = 0;
    size_t longest = 1;
    int64_t from;

    if (argc != 7 || !qf_parse_u64(qf_str_from(argv[3]), &shards) ||
        !qf_parse_i64(qf_str_from(argv[4]), &load.start) ||
        !qf_parse_i64(qf_str_from(argv[5]), &load.step) ||
        !qf_parse_i64(qf_str_from(argv[6]), &load.window)) {
        fprintf(stderr, "usage: load_series STORE TENANT SHARDS START STEP WINDOW < LINES\n");
        return 2;
    }
    options.url = argv[1];
    load.tenant = qf_str_from(argv[2]);
    load.shards = (uint32_t)shards;
    if (sg_store_open(&options, &load.store, &err))
        die(argv[1], &err);
    read_lines(&load);
    for (size_t i = 0; i < load.lines.count; i++)
        longest = QF_MAX(longest, load.lines.items[i].count);
    load.ts = qf_xcalloc(longest, sizeof(*load.ts));
    load.values = qf_xcalloc(longest, sizeof(*load.values));
    load.encoded = qf_xcalloc(longest, sizeof(*load.encoded));
    from = qf_floor_div(load.start, load.window) * load.window;
    for (; from <= load.start + (int64_t)longest * load.step; from += load.window)
        for (uint32_t shard = 0; shard < load.shards; shard++)
            write_shard(&load, from, shard);
    free(load.ts);
    free(load.values);
    free(load.encoded);
    QF_VEC_DONE(&load.lines);
    (void)sg_store_free(load.store);
    (void)qf_arena_free(load.arena);
    return 0;
}
