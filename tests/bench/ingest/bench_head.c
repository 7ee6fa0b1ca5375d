/* bench_head.c - memory and processor time of a head: scraped series, five minutes of them.
 *
 * usage: bench_head [SERIES]     100000 by default; files go to /tmp and are removed
 *
 * Targets of 500 series with 10 labels each, scraped every 15 s, a record a target and scrape; of the
 * values a half are counters, a quarter gauges of whole numbers, a quarter gauges of fractions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/prng.h"
#include "ingest/head/head.h"
#include "promql/parse.h"

enum { TARGET = 500, SCRAPES = 20, LABELS = 10, SHARDS = 4 };

struct bench {
    struct in_ledger *ledger;
    struct in_head *head;
    uint64_t index;
    uint32_t series;
    double *values;
    struct qf_prng prng;
    double decode_s, apply_s;
};

static double now(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double resident_mb(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;

    if (file && fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    if (file)
        (void)fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

static struct qf_labels labels_of(uint32_t number, struct qf_label items[LABELS],
                                  char texts[LABELS][48])
{
    static const char *const names[LABELS] = { "__name__", "cluster", "container", "endpoint",
                                               "instance", "job",     "mode",      "namespace",
                                               "pod",      "service" };
    uint32_t metric = number % TARGET, target = number / TARGET;

    (void)snprintf(texts[0], 48, "node_some_metric_%u_total", metric / 4);
    (void)snprintf(texts[1], 48, "eu-west-1-prod");
    (void)snprintf(texts[2], 48, "container-%u", target % 20);
    (void)snprintf(texts[3], 48, "http-metrics");
    (void)snprintf(texts[4], 48, "10.0.%u.%u:9100", target / 250, target % 250);
    (void)snprintf(texts[5], 48, "kubernetes-pods");
    (void)snprintf(texts[6], 48, "mode-%u", metric % 4);
    (void)snprintf(texts[7], 48, "namespace-%u", target % 30);
    (void)snprintf(texts[8], 48, "deployment-7f9c6d5b4-%05u", target);
    (void)snprintf(texts[9], 48, "service-%u", target % 30);
    for (int i = 0; i < LABELS; i++)
        items[i] = (struct qf_label){ qf_str_from(names[i]), qf_str_from(texts[i]) };
    return (struct qf_labels){ items, LABELS };
}

static double next_value(struct bench *b, uint32_t number)
{
    double *value = &b->values[number];

    switch (number % 4) {
    case 0:
    case 1:
        return *value += (double)qf_prng_below(&b->prng, 1000);
    case 2:
        return *value = (double)qf_prng_below(&b->prng, 100);
    default:
        return *value = qf_prng_unit(&b->prng) * 100;
    }
}

/* One scrape of one target, as the log has it. */
static void scrape(struct bench *b, uint32_t target, int round, struct qf_strbuf *buf)
{
    static struct in_record_series series[TARGET];
    static struct in_sample samples[TARGET];
    static struct qf_label items[TARGET][LABELS];
    static char texts[TARGET][LABELS][48];
    const struct in_record record = { .tenant = QF_STR("default"), .time_ms = round * 15000 };

    for (uint32_t i = 0; i < TARGET; i++) {
        uint32_t number = target * TARGET + i;

        samples[i] =
            (struct in_sample){ .ts = INT64_C(1767225600000) + round * 15000 + target * 7 % 15000,
                                .value = next_value(b, number) };
        series[i] = (struct in_record_series){
            .number = number, .fresh = round == 0, .samples = &samples[i], .sample_count = 1
        };
        if (round == 0)
            series[i].labels = labels_of(number, items[i], texts[i]);
    }
    qf_strbuf_reset(buf);
    in_record_put_samples(buf, &record, series, TARGET);
}

static void apply(struct bench *b, struct qf_str bytes)
{
    struct in_record record;
    double began = now();

    if (in_record_decode(bytes, &record, NULL) != QF_OK)
        exit(1);
    (void)in_ledger_apply(b->ledger, ++b->index, &record, NULL);
    b->decode_s += now() - began;
    began = now();
    in_head_apply(b->head, b->ledger, b->index, &record);
    b->apply_s += now() - began;
}

static void read_metric(struct bench *b, const char *selector, const char *dir)
{
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct in_head_ask ask = { .tenant = QF_STR("default"),
                               .cut = b->index,
                               .shards = 1,
                               .min_ts = INT64_MIN,
                               .max_ts = INT64_MAX,
                               .memory_bytes = UINT64_C(1) << 30 };
    struct in_head_answer answer = { 0 };
    struct qf_err err = { 0 };
    char path[128];
    double began;

    ask.generation = in_ledger_tenant(b->ledger, ask.tenant)->generation;
    (void)snprintf(path, sizeof(path), "%s/read", dir);
    ask.path = path;
    if (pq_parse_selector(arena, qf_str_from(selector), NULL, &ask.matchers, &ask.matcher_count,
                          &err) != QF_OK)
        exit(1);
    began = now();
    if (in_head_read(b->head, &ask, &answer, &err) != QF_OK)
        printf("read failed: %s\n", err.msg);
    printf("read %-40s %8.1f ms, %llu series, %llu samples\n", selector, (now() - began) * 1e3,
           (unsigned long long)answer.series, (unsigned long long)answer.samples);
    (void)unlink(path);
    (void)qf_arena_free(arena);
}

static void close_range_of(struct bench *b)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qf_err err = { 0 };
    double began = now(), seconds;
    bool built;

    in_record_put_seal(&buf, QF_STR("default"), 0);
    apply(b, qf_strbuf_view(&buf));
    if (in_head_build(b->head, &built, &err) != QF_OK)
        printf("build failed: %s\n", err.msg);
    seconds = now() - began;
    printf("files of the closed range: %.2f s, %.1f bytes a series\n", seconds,
           (double)in_head_figures(b->head).file_bytes / b->series);
    in_head_tick(b->head);
    printf("memory after that: %llu bytes; resident %.0f MB\n",
           (unsigned long long)in_head_figures(b->head).memory_bytes, resident_mb());
}

int main(int argc, char **argv)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    char dir[] = "/tmp/bench_head.XXXXXX";
    struct in_head_options options = { .shards = SHARDS };
    struct bench b = { .prng = { 1 } };
    struct qf_err err = { 0 };
    uint64_t log_bytes = 0;
    double before, samples;

    b.series = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) / TARGET * TARGET : 100000;
    if (!b.series || !mkdtemp(dir))
        return 2;
    options.dir = dir;
    b.values = qf_xcalloc(b.series, sizeof(*b.values));
    b.ledger = in_ledger_new();
    b.head = in_head_new(&options, &err);
    if (!b.head)
        return 1;
    scrape(&b, 0, 0, &buf); /* its own memory is there before */
    before = resident_mb();
    for (int round = 0; round < SCRAPES; round++) {
        for (uint32_t target = 0; target < b.series / TARGET; target++) {
            scrape(&b, target, round, &buf);
            log_bytes += buf.len;
            apply(&b, qf_strbuf_view(&buf));
        }
    }
    samples = (double)b.series * SCRAPES;
    printf("%u series, %d samples each, %d labels\n", b.series, SCRAPES, LABELS);
    printf("memory: %.0f bytes a series as counted, %.0f resident; log %.1f bytes a sample\n",
           (double)in_head_figures(b.head).memory_bytes / b.series,
           (resident_mb() - before) * 1e6 / b.series, (double)log_bytes / samples);
    printf("decode and ledger %.0f ns a sample, head %.0f ns a sample\n",
           b.decode_s / samples * 1e9, b.apply_s / samples * 1e9);
    read_metric(&b, "node_some_metric_7_total", dir);
    read_metric(&b, "{__name__=~\".+\",instance=\"10.0.0.7:9100\"}", dir);
    read_metric(&b, "{__name__=~\"node_.*\"}", dir);
    close_range_of(&b);
    read_metric(&b, "node_some_metric_7_total", dir);
    b.head = in_head_free(b.head);
    b.ledger = in_ledger_free(b.ledger);
    free(b.values);
    return rmdir(dir) == 0 ? 0 : 1;
}
