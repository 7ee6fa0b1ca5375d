/* fuzz_segment.c - segments whose seal is right and whose words are lies, read within a budget.
 *
 * The input is a list of edits to a good segment with all optional columns. Whatever they make of it:
 * reading it ends, in an error or in series in order, and holds no more memory than it may. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "promql/parse.h"
#include "promql/plan.h"
#include "segments/parquet/segment_reader.h"
#include "segments/parquet/segment_writer.h"
#include "tests/fuzz/segments/sealed.h"

#define BUDGET ((uint64_t)16 << 20)
#define SERIES 6
#define SAMPLES 20

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_series(struct sg_writer *writer, int number)
{
    char value[2] = { (char)('0' + number), '\0' };
    struct qf_label items[] = { { QF_STR("__name__"), QF_STR("m") },
                                { QF_STR("i"), qf_str_from(value) } };
    int64_t ts[SAMPLES];
    double values[SAMPLES];

    for (int i = 0; i < SAMPLES; i++) {
        ts[i] = 1700000000000 + i * 15000;
        values[i] = number + i * (number % 2 ? 0.5 : 1.0 / 3); /* decimals, and none */
    }
    if (sg_writer_add(writer, (struct qf_labels){ items, 2 }, ts, values, SAMPLES, NULL) != QF_OK)
        abort();
}

static void write_good(const char *path, uint32_t version)
{
    struct sg_writer_options options = { .path = path,
                                         .schema_version = version,
                                         .tenant = QF_STR("t"),
                                         .shard_count = 1,
                                         .generation = 1,
                                         .start_ts = true,
                                         .histograms = true };
    struct sg_writer *writer = sg_writer_new(&options, NULL);
    struct sg_segment_name name;

    if (!writer)
        abort();
    for (int i = 0; i < SERIES; i++)
        add_series(writer, i);
    if (sg_writer_finish(writer, &name, NULL) != QF_OK)
        abort();
    (void)sg_writer_free(writer);
}

static const struct sealed *good(uint32_t version)
{
    static struct sealed all[SG_SCHEMA_VERSION + 1];
    struct sealed *sealed = &all[version];
    char path[64], *bytes;
    FILE *file;
    size_t len;

    if (sealed->file.len)
        return sealed;
    (void)snprintf(path, sizeof(path), "/tmp/pf-fuzz-segment-%d", (int)getpid());
    (void)unlink(path);
    write_good(path, version);
    file = fopen(path, "re");
    bytes = qf_xmalloc((size_t)1 << 20);
    len = file ? fread(bytes, 1, (size_t)1 << 20, file) : 0;
    if (len < 100)
        abort();
    (void)fclose(file);
    (void)unlink(path);
    sealed_learn(sealed, (struct qf_str){ bytes, len });
    free(bytes);
    return sealed;
}

/* A leaf that calculates with times: a rate over windows, and over windows of windows. */
static void run_leaf(struct pq_source *source)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new((size_t)1 << 24);
    struct pq_query_params params = { .start_ms = 1700000000000,
                                      .end_ms = 1700000300000,
                                      .step_ms = 15000 };
    struct qf_str query = QF_STR("max_over_time(rate(m[1m])[2m:20s])");
    struct pq_leaf_result result;
    struct pq_expr *expr;
    struct pq_plan *plan;
    struct qf_err err = { 0 };

    if (pq_parse(arena, query, NULL, &expr, &err) != QF_OK ||
        pq_plan_new(arena, expr, query, &params, &plan, &err) != QF_OK)
        abort();
    (void)!pq_leaf_run(plan->leaves[0], source, NULL, NULL, arena, &result, &err);
}

static void scan(struct sg_reader *reader)
{
    struct pq_select select = { .min_ts = INT64_MIN, .max_ts = INT64_MAX };
    struct pq_source *source = sg_source_new(&reader, 1, &select, NULL, BUDGET);

    run_leaf(source);
    if (sg_source_stats(source).memory_peak > BUDGET)
        abort();
    source->close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct sg_reader *reader;
    struct qf_err err = { 0 };
    int fd = memfd_create("segment", MFD_CLOEXEC);

    /* Edits are three bytes each; one more asks for the first version. */
    sealed_edit(good(size % 3 == 1 ? 1 : SG_SCHEMA_VERSION), data, size, &bytes);
    if (fd < 0 || write(fd, bytes.data, bytes.len) != (ssize_t)bytes.len)
        abort();
    reader = sg_reader_open_fd(fd, "fuzz", &err);
    if (!reader) {
        if (size < 3)
            abort(); /* the good one can be read */
        return 0;
    }
    scan(reader);
    (void)!sg_reader_verify(reader, &err);
    (void)sg_reader_free(reader);
    return 0;
}
