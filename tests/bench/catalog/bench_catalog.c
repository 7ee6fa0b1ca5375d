/* bench_catalog.c - how long 200,000 segments take to index, to refresh and to look up.
 *
 * usage: bench_catalog [COUNT [FOLDER]]    with FOLDER: also a local store of empty files, kept
 *
 * Limits to hold: indexed in 2 s, a lookup in 1 ms. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/prng.h"
#include "base/sys/clock.h"
#include "segments/catalog/catalog.h"
#include "segments/parquet/segment_name.h"
#include "segments/catalog/index.h"
#include "tests/lib/segments/memory_store.h"

#define HOUR INT64_C(3600000)
#define T0 INT64_C(1735689600000) /* 2025-01-01T00:00:00Z */
#define SHARDS 16
#define LOOKUPS 2000

static void die(const struct qf_err *err)
{
    fprintf(stderr, "%s\n", err->msg);
    exit(1);
}

static double ms_since(int64_t start_ns)
{
    return (double)(qf_clock_mono_ns() - start_ns) / 1e6;
}

/* Windows of two hours, sixteen shards; @count of them, from T0 on. */
static void print_name(struct qf_strbuf *buf, size_t i)
{
    int64_t start = T0 + (int64_t)(i / SHARDS) * 2 * HOUR;

    qf_strbuf_reset(buf);
    sg_segment_name_print(buf,
                          &(struct sg_segment_name){ .tenant = QF_STR("default"),
                                                     .min_ts = start,
                                                     .max_ts = start + 2 * HOUR - 1,
                                                     .shard = (uint32_t)(i % SHARDS),
                                                     .shard_count = SHARDS,
                                                     .generation = UINT64_C(1769900000000000) + i,
                                                     .id = i });
}

static void time_refresh(struct sg_catalog *catalog, const char *what)
{
    int64_t start = qf_clock_mono_ns();
    struct qf_err err = { 0 };

    if (sg_catalog_refresh(catalog, SG_CATALOG_REFRESH_NOW, NULL, &err))
        die(&err);
    printf("%-34s %9.1f ms, %llu segments\n", what, ms_since(start),
           (unsigned long long)sg_catalog_stats(catalog).segments);
}

static size_t allocated(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static int by_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void time_lookups(struct sg_catalog *catalog, size_t count, int64_t hours,
                         const struct pq_matcher *matchers, size_t matcher_count, const char *what)
{
    struct sg_catalog_snapshot *snapshot = sg_catalog_snapshot(catalog);
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct qf_prng prng = { 1 };
    int64_t end = T0 + (int64_t)(count / SHARDS) * 2 * HOUR;
    double *times = qf_xcalloc(LOOKUPS, sizeof(*times));
    size_t segments = 0, pruned = 0;

    for (int i = 0; i < LOOKUPS; i++) {
        struct sg_catalog_query query = { .tenant = QF_STR("default"),
                                          .matchers = matchers,
                                          .matcher_count = matcher_count };
        struct sg_catalog_answer answer;
        struct qf_err err = { 0 };
        int64_t start;

        query.min_ts = T0 + (int64_t)qf_prng_below(&prng, (uint64_t)(end - T0 - hours * HOUR) + 1);
        query.max_ts = query.min_ts + hours * HOUR;
        qf_arena_reset(arena);
        start = qf_clock_mono_ns();
        if (sg_catalog_lookup(snapshot, &query, arena, &answer, &err))
            die(&err);
        times[i] = ms_since(start);
        segments += answer.segment_count;
        pruned += answer.pruned;
    }
    qsort(times, LOOKUPS, sizeof(*times), by_double);
    printf("%-34s %9.4f ms median, %.4f ms 99 %%, %zu segments, %zu pruned\n", what,
           times[LOOKUPS / 2], times[LOOKUPS * 99 / 100], segments / LOOKUPS, pruned / LOOKUPS);
    free(times);
    (void)qf_arena_free(arena);
    (void)sg_catalog_snapshot_drop(snapshot);
}

/* Summaries as if every footer had been read: 300 metrics, 3,000 label values each. */
static void learn_all(struct sg_catalog *catalog)
{
    struct sg_catalog_snapshot *snapshot = sg_catalog_snapshot(catalog);
    struct qf_strbuf text = QF_STRBUF_INIT;
    struct sg_summary_builder *builder = sg_summary_builder_new();

    for (int i = 0; i < 3000; i++) {
        char metric[32], instance[32];
        struct qf_label items[2] = { { QF_STR(QF_METRIC_NAME), { metric, 0 } },
                                     { QF_STR("instance"), { instance, 0 } } };

        items[0].value.len = (size_t)snprintf(metric, sizeof(metric), "metric_%d", i % 300);
        items[1].value.len = (size_t)snprintf(instance, sizeof(instance), "host-%d", i);
        sg_summary_builder_add(builder, qf_labels_normalize(items, 2));
    }
    sg_summary_builder_print(builder, &text);
    for (size_t i = 0; i < snapshot->count; i++) {
        for (size_t j = 0; j < snapshot->folders[i]->count && j < 200; j++)
            index_entry_learn(
                snapshot->folders[i], &snapshot->folders[i]->entries[j],
                &(struct index_learnt){ .summary = sg_summary_parse(qf_strbuf_view(&text)) });
    }
    (void)sg_summary_builder_free(builder);
    qf_strbuf_done(&text);
    (void)sg_catalog_snapshot_drop(snapshot);
}

static void bench_memory(size_t count)
{
    struct memory_store *memory = memory_store_new();
    struct sg_catalog *catalog = sg_catalog_new(&(struct sg_catalog_options){
        .store = memory_store_base(memory), .summary_time_ms = -1, .summary_bytes_max = SIZE_MAX });
    struct qf_strbuf name = QF_STRBUF_INIT;
    struct pq_matcher matchers[2] = {
        { .type = PQ_MATCH_EQUAL, .name = QF_STR(QF_METRIC_NAME), .value = QF_STR("metric_7") },
        { .type = PQ_MATCH_EQUAL, .name = QF_STR("instance"), .value = QF_STR("no-such-host") },
    };
    size_t before;

    for (size_t i = 0; i < count; i++) {
        print_name(&name, i);
        memory_store_put(memory, qf_strbuf_cstr(&name), QF_STR(""));
    }
    before = allocated();
    time_refresh(catalog, "first listing");
    printf("%-34s %9zu bytes a segment\n", "memory of the index",
           (allocated() - before) / (count ? count : 1));
    time_refresh(catalog, "again, nothing changed");
    print_name(&name, count);
    memory_store_put(memory, qf_strbuf_cstr(&name), QF_STR(""));
    time_refresh(catalog, "again, one more");
    time_lookups(catalog, count, 1, NULL, 0, "lookup of 1 h");
    time_lookups(catalog, count, 24, NULL, 0, "lookup of 24 h");
    time_lookups(catalog, count, 24 * 30, NULL, 0, "lookup of 30 d");
    learn_all(catalog);
    time_lookups(catalog, count, 24, matchers, 1, "lookup of 24 h, one matcher");
    time_lookups(catalog, count, 24, matchers, 2, "lookup of 24 h, two matchers");
    qf_strbuf_done(&name);
    (void)sg_catalog_free(catalog);
    (void)sg_store_free(memory_store_base(memory));
}

static void bench_local(size_t count, const char *folder)
{
    struct sg_store *store = NULL;
    struct sg_catalog *catalog;
    struct qf_strbuf path = QF_STRBUF_INIT, name = QF_STRBUF_INIT;
    struct qf_err err = { 0 };

    if (sg_store_open(&(struct sg_store_options){ .url = folder, .create = true }, &store, &err))
        die(&err);
    for (size_t i = 0; i < count; i++) {
        char *slash;
        FILE *file;

        print_name(&name, i);
        qf_strbuf_reset(&path);
        qf_strbuf_printf(&path, "%s/%s", folder, qf_strbuf_cstr(&name));
        file = fopen(path.data, "wb");
        for (slash = path.data + strlen(folder) + 1; !file && (slash = strchr(slash, '/'));
             slash++) {
            *slash = '\0';
            (void)mkdir(path.data, 0777);
            *slash = '/';
        }
        file = file ? file : fopen(path.data, "wb");
        if (!file || fclose(file))
            die(&(struct qf_err){ .msg = "cannot create files" });
    }
    catalog = sg_catalog_new(&(struct sg_catalog_options){ .store = store, .summary_time_ms = -1 });
    time_refresh(catalog, "local, first listing");
    (void)sleep(3); /* until the folders' stamps have settled */
    time_refresh(catalog, "local, again, nothing changed");
    time_refresh(catalog, "local, again, nothing changed");
    (void)sg_catalog_free(catalog);
    (void)sg_store_free(store);
    qf_strbuf_done(&path);
    qf_strbuf_done(&name);
}

int main(int argc, char **argv)
{
    uint64_t count = 200000;

    if (argc > 1 && !qf_parse_u64(qf_str_from(argv[1]), &count)) {
        fprintf(stderr, "usage: bench_catalog [COUNT [FOLDER]]\n");
        return 2;
    }
    bench_memory((size_t)count);
    if (argc > 2)
        bench_local((size_t)count, argv[2]);
    return 0;
}
