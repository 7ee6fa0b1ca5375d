/* bench_accept.c - what a sample costs on its way in, stage by stage, in processor time. Prints; asserts
 * nothing.
 *
 * usage: bench_accept [VERSION [SERIES [REQUESTS [KIND]]]]
 *
 * KIND, state or temporal: samples get a label more, by a rule from `pod` through a map of this kind with 100,000 keys.
 *
 * Requests of 2,000 samples of hot series with 10 labels, as a scraper sends them. Snappy and HTTP are not
 * in it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/varint.h"
#include "ingest/core/intake.h"
#include "ingest/core/remote_write.h"
#include "ingest/enrich/enrich.h"
#include "ingest/head/head.h"
#include "statemap/store/env.h"
#include "statemap/store/folder.h"

enum { LABELS = 10, AT_ONCE = 2000, MAP_KEYS = 100000 };
#define NOW INT64_C(1767225600000)

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* --- bodies --- */

static void put(struct qf_strbuf *buf, uint64_t value)
{
    unsigned char bytes[QF_VARINT_MAX];

    qf_strbuf_add(buf, bytes, qf_varint_put(bytes, value));
}

static void put_bytes(struct qf_strbuf *buf, unsigned field, struct qf_str bytes)
{
    put(buf, field << 3 | 2);
    put(buf, bytes.len);
    qf_strbuf_str(buf, bytes);
}

static const char *const names[LABELS] = { "__name__", "code", "instance", "job",     "method",
                                           "path",     "pod",  "team",     "version", "zone" };

static void label_value(char *out, size_t size, int label, uint32_t i)
{
    switch (label) {
    case 0:
        (void)snprintf(out, size, "bench_metric_%u", i % 50);
        break;
    case 5:
        (void)snprintf(out, size, "/api/v1/thing/%u", i % 100);
        break;
    case 6:
        (void)snprintf(out, size, "pod-%06u", i / 50);
        break;
    default:
        (void)snprintf(out, size, "value-%d-%u", label, i % 7);
    }
}

static void put_sample(struct qf_strbuf *series, uint32_t i, int64_t ts)
{
    struct qf_strbuf sample = QF_STRBUF_INIT;
    double value = (double)i + (double)(ts % 1000);

    put(&sample, 1 << 3 | 1);
    qf_strbuf_add(&sample, &value, sizeof(value));
    put(&sample, 2 << 3);
    put(&sample, (uint64_t)ts);
    put_bytes(series, 2, qf_strbuf_view(&sample));
    qf_strbuf_done(&sample);
}

static void put_series_1(struct qf_strbuf *body, uint32_t i, int64_t ts)
{
    struct qf_strbuf series = QF_STRBUF_INIT, label = QF_STRBUF_INIT;
    char value[64];

    for (int l = 0; l < LABELS; l++) {
        label_value(value, sizeof(value), l, i);
        qf_strbuf_reset(&label);
        put_bytes(&label, 1, qf_str_from(names[l]));
        put_bytes(&label, 2, qf_str_from(value));
        put_bytes(&series, 1, qf_strbuf_view(&label));
    }
    put_sample(&series, i, ts);
    put_bytes(body, 1, qf_strbuf_view(&series));
    qf_strbuf_done(&series);
    qf_strbuf_done(&label);
}

/* Each value a symbol of its own: worse than what senders do. */
static void put_series_2(struct qf_strbuf *body, uint32_t i, uint32_t *symbols, int64_t ts)
{
    struct qf_strbuf series = QF_STRBUF_INIT, refs = QF_STRBUF_INIT;
    char value[64];

    for (int l = 0; l < LABELS; l++) {
        label_value(value, sizeof(value), l, i);
        put_bytes(body, 4, qf_str_from(value));
        put(&refs, (uint64_t)l + 1);
        put(&refs, (*symbols)++);
    }
    put_bytes(&series, 1, qf_strbuf_view(&refs));
    put_sample(&series, i, ts);
    put_bytes(body, 5, qf_strbuf_view(&series));
    qf_strbuf_done(&series);
    qf_strbuf_done(&refs);
}

static void build(struct qf_strbuf *body, int version, uint32_t first, int64_t ts)
{
    uint32_t symbols = LABELS + 1;

    qf_strbuf_reset(body);
    if (version == 2) {
        put_bytes(body, 4, QF_STR(""));
        for (int l = 0; l < LABELS; l++)
            put_bytes(body, 4, qf_str_from(names[l]));
    }
    for (uint32_t i = first; i < first + AT_ONCE; i++)
        if (version == 1)
            put_series_1(body, i, ts);
        else
            put_series_2(body, i, &symbols, ts);
}

/* --- stages --- */

struct times {
    double decode, enrich, check, batch, take, read, ledger, head;
};

/* A rule, and its map. */
struct enrichment {
    struct sm_env *env; /* NULL: there is none */
    struct sm_txn *txn; /* of one request */
    struct sm_rule rule;
    struct in_enrich_rule of;
};

struct bench {
    struct enrichment enrichment;
    struct in_ledger *ledger;
    struct in_intake *intake;
    struct in_head *head;
    struct qf_strbuf body, batch, record;
    struct in_record_series series[AT_ONCE];
    uint64_t index, bytes, body_bytes;
    struct times times;
};

static double stage(double *sum, double since)
{
    double now = seconds();

    *sum += now - since;
    return now;
}

static void fail(const char *what)
{
    (void)fprintf(stderr, "bench_accept: %s\n", what);
    exit(1);
}

/* --- enrichment --- */

static struct sm_env *make_map(const char *folder, enum sm_kind kind)
{
    struct sm_env_options options = {
        .folder = folder, .name = "pods", .layout.kind = kind, .create = true, .alone = true
    };
    struct sm_env *env = NULL;
    struct sm_txn *txn = NULL;
    struct qf_err err = { 0 };

    if (sm_env_open(&options, &env, &err) != QF_OK || sm_write_begin(env, &txn, &err) != QF_OK)
        fail(err.msg);
    for (unsigned i = 0; i < MAP_KEYS; i++) {
        char key[32], value[32];
        struct sm_row row = { .key = { key, (size_t)snprintf(key, sizeof(key), "pod-%06u", i) } };

        row.value = (struct sm_value){
            SM_STRING, { value, (size_t)snprintf(value, sizeof(value), "team-%u", i % 20) }
        };
        if (sm_put(txn, &row, &err) != QF_OK)
            fail(err.msg);
    }
    if (sm_commit(txn, &err) != QF_OK)
        fail(err.msg);
    return env;
}

static qf_rc find(void *ctx, size_t rule, struct qf_str key, int64_t time,
                  struct in_enrich_found *ret_found, struct qf_err *err)
{
    struct enrichment *e = ctx;
    struct sm_row row = { 0 };
    qf_rc rc = sm_find(e->txn, key, time, &ret_found->found, &row, err);

    (void)rule;
    ret_found->value = row.value;
    return rc;
}

static void enrich(struct enrichment *e, struct in_request *request, struct qf_arena *arena)
{
    struct in_enrich_options options = {
        .rules = &e->of, .rule_count = 1, .find = find, .ctx = e, .arena = arena
    };
    struct in_enrich_figures figures;
    struct qf_err err = { 0 };

    if (!e->env)
        return;
    if (sm_read_begin(e->env, &e->txn, &err) != QF_OK ||
        in_enrich(&options, request, &figures, &err) != QF_OK)
        fail(err.msg);
    if (figures.samples != AT_ONCE)
        fail("not all samples were enriched");
    e->txn = sm_end(e->txn);
}

static void make_batch(struct bench *bench, const struct in_request *request)
{
    const struct in_record head = { .tenant = QF_STR("default"), .accepted = request->accepted };

    for (size_t i = 0; i < request->series_count; i++)
        bench->series[i] =
            (struct in_record_series){ .number = (uint32_t)i,
                                       .fresh = true,
                                       .labels = in_series_labels(&request->series[i]),
                                       .samples = request->series[i].samples,
                                       .sample_count = request->series[i].sample_count };
    qf_strbuf_reset(&bench->batch);
    in_record_put_samples(&bench->batch, &head, bench->series, request->series_count);
}

static void run(struct bench *bench, int version, int64_t ts)
{
    static const struct in_check_limits limits = { 64, 1024, 8192, INT64_MIN, INT64_MAX };
    struct qf_arena *arena = qf_arena_new((size_t)1 << 30);
    struct in_request request;
    struct in_outcome outcome;
    struct in_pending *pending = NULL;
    struct in_record batch, record;
    double at = seconds();

    if (in_remote_write_decode(version == 1 ? IN_REMOTE_WRITE_1 : IN_REMOTE_WRITE_2,
                               qf_strbuf_view(&bench->body), arena, &request, NULL) != QF_OK)
        fail("decode");
    at = stage(&bench->times.decode, at);
    enrich(&bench->enrichment, &request, arena);
    at = stage(&bench->times.enrich, at);
    in_request_check(&request, &limits);
    at = stage(&bench->times.check, at);
    make_batch(bench, &request);
    at = stage(&bench->times.batch, at);
    qf_strbuf_reset(&bench->record);
    if (in_record_decode_own(qf_strbuf_view(&bench->batch), &batch, NULL) != QF_OK ||
        in_intake_take(bench->intake, bench->ledger, &batch, ts, ts, &bench->record, &outcome,
                       &pending) != IN_INTAKE_RECORD)
        fail("take");
    at = stage(&bench->times.take, at);
    if (in_record_decode(qf_strbuf_view(&bench->record), &record, NULL) != QF_OK)
        fail("read");
    at = stage(&bench->times.read, at);
    (void)in_ledger_apply(bench->ledger, ++bench->index, &record, NULL);
    in_intake_applied(bench->intake, &record, IN_APPLIED);
    in_intake_ended(bench->intake, pending, QF_OK, &outcome);
    at = stage(&bench->times.ledger, at);
    in_head_apply(bench->head, bench->ledger, bench->index, &record);
    (void)stage(&bench->times.head, at);
    bench->bytes += bench->record.len;
    bench->body_bytes += bench->body.len;
    (void)qf_arena_free(arena);
}

static void print(const struct bench *bench, int version, uint64_t samples)
{
    const struct times *t = &bench->times;
    double n = (double)samples / 1e9, all = t->decode + t->enrich + t->check + t->batch + t->take +
                                            t->read + t->ledger + t->head;

    printf(
        "version %d.0, ns a sample: decode %.0f, enrich %.0f, check %.0f, batch %.0f; leader %.0f; "
        "applied: read %.0f, ledger %.0f, head %.0f; all %.0f\n",
        version, t->decode / n, t->enrich / n, t->check / n, t->batch / n, t->take / n, t->read / n,
        t->ledger / n, t->head / n, all / n);
    printf("bytes a sample: body %.1f, record %.1f\n", (double)bench->body_bytes / (double)samples,
           (double)bench->bytes / (double)samples);
}

static struct qf_limits limits_of(void *ctx, struct qf_str tenant)
{
    (void)ctx;
    (void)tenant;
    return (struct qf_limits){ .of = { [QF_LIMIT_SERIES] = 5000000 } };
}

int main(int argc, char **argv)
{
    int version = argc > 1 && argv[1][0] == '2' ? 2 : 1;
    uint32_t series = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 20000;
    uint32_t requests = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 200;
    const struct in_intake_limits limits = { 7200000, 600000, 1000, 600000 };
    struct in_quota *quota = in_quota_new(limits_of, NULL);
    char dir[] = "/tmp/bench-accept-XXXXXX", map[] = "/tmp/bench-map-XXXXXX";
    enum sm_kind kind;
    struct qf_err err = { 0 };
    struct bench bench = { .ledger = in_ledger_new(), .intake = in_intake_new(&limits, quota, 17) };
    struct in_head_options options = { .dir = mkdtemp(dir), .shards = 4, .keep_ms = 60000 };

    bench.head = in_head_new(&options, &err);
    if (!bench.head)
        fail(err.msg);
    if (argc > 4) {
        if (!sm_kind_parse(qf_str_from(argv[4]), &kind) || !sm_kind_keyed(kind) ||
            kind == SM_SESSION)
            fail("KIND is state or temporal");
        bench.enrichment = (struct enrichment){ .env = make_map(mkdtemp(map), kind),
                                                .rule = { .name = "pods",
                                                          .map = "pods",
                                                          .from = { "pod" },
                                                          .from_count = 1,
                                                          .into = SM_INTO_LABEL,
                                                          .to = "owner" } };
        bench.enrichment.of =
            (struct in_enrich_rule){ .rule = &bench.enrichment.rule, .timed = kind == SM_TEMPORAL };
    }
    in_intake_begin(bench.intake, bench.ledger, NOW, NOW);
    for (uint32_t i = 0, first = 0; i < requests; i++) {
        int64_t ts = NOW + INT64_C(15000) * ((int64_t)i * AT_ONCE / series);

        if (first == 0 && i && i < 2 * series / AT_ONCE) /* hot from here on */
            bench.times = (struct times){ 0 }, bench.bytes = bench.body_bytes = 0;
        build(&bench.body, version, first, ts);
        run(&bench, version, ts);
        first = first + 2 * AT_ONCE > series ? 0 : first + AT_ONCE;
    }
    print(&bench, version, (uint64_t)(requests - series / AT_ONCE) * AT_ONCE);
    (void)in_head_free(bench.head);
    (void)in_intake_free(bench.intake);
    (void)in_quota_free(quota);
    (void)in_ledger_free(bench.ledger);
    qf_strbuf_done(&bench.body);
    qf_strbuf_done(&bench.batch);
    qf_strbuf_done(&bench.record);
    (void)rmdir(dir);
    if (bench.enrichment.env) {
        (void)sm_env_close(bench.enrichment.env);
        (void)sm_folder_remove(map, NULL);
    }
    return 0;
}
