/* bombs.c - written with the product's own writer, which does as it is told. */
#include "tests/integration/hostile/bombs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "segments/parquet/column_file_seal.h"
#include "segments/parquet/seg_int.h"

#define RUN_TEXT_BYTES ((size_t)1 << 20)
#define RUN_ROWS 4000

static void must(qf_rc rc, const struct qf_err *err)
{
    if (rc == QF_OK)
        return;
    fprintf(stderr, "bombs: %s\n", err->msg);
    exit(1);
}

static void finish(struct colfile_writer *writer, struct qf_strbuf *bytes)
{
    struct colfile_written written;
    struct qf_err err = { 0 };

    must(colfile_finish(writer, false, bytes, &written, &err), &err);
    (void)colfile_writer_free(writer);
}

/* Nothing but a footer: a list of @count structures (zigzag and length as Thrift writes them), of which
 * none is there. */
static void write_footer(uint32_t count, struct qf_strbuf *bytes)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf footer = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf seal = QF_STRBUF_INIT;
    uint32_t len;

    qf_strbuf_puts(&footer, "\x49\xfc"); /* field 4, row groups: a long list of structures */
    for (; count >= 0x80; count >>= 7)
        qf_strbuf_putc(&footer, (char)(count | 0x80));
    qf_strbuf_putc(&footer, (char)count);
    len = (uint32_t)footer.len;
    qf_strbuf_add(&footer, &len, sizeof(len));
    qf_strbuf_puts(&footer, "PAR1");
    qf_strbuf_puts(bytes, "PAR1");
    colfile_seal_close(&seal, 0, 4, qf_strbuf_view(&footer));
    qf_strbuf_str(bytes, qf_strbuf_view(&seal));
    qf_strbuf_str(bytes, qf_strbuf_view(&footer));
}

static uint32_t footer_count(enum bomb bomb)
{
    return bomb == BOMB_FOOTER ? 100000 : 900000;
}

/* --- segments --- */

/* What one row group says. */
struct group {
    size_t rows;
    struct qf_str *metrics, *names, *values;
    uint32_t *label_counts;
    int32_t *samples;
    int64_t *min_ts, *max_ts, *ts;
    double *numbers;
    size_t sample_count;
};

static struct group group_new(size_t rows, size_t sample_count, struct qf_str value, int64_t start)
{
    struct group group = { .rows = rows, .sample_count = sample_count };

    group.metrics = qf_xcalloc(rows, sizeof(*group.metrics));
    group.names = qf_xcalloc(rows, sizeof(*group.names));
    group.values = qf_xcalloc(rows, sizeof(*group.values));
    group.label_counts = qf_xcalloc(rows, sizeof(*group.label_counts));
    group.samples = qf_xcalloc(rows, sizeof(*group.samples));
    group.min_ts = qf_xcalloc(rows, sizeof(*group.min_ts));
    group.max_ts = qf_xcalloc(rows, sizeof(*group.max_ts));
    group.ts = qf_xcalloc(sample_count, sizeof(*group.ts));
    group.numbers = qf_xcalloc(sample_count, sizeof(*group.numbers));
    for (size_t i = 0; i < rows; i++) {
        group.metrics[i] = QF_STR("m");
        group.names[i] = QF_STR("a");
        group.values[i] = value;
        group.label_counts[i] = 1;
        group.samples[i] = (int32_t)(sample_count / rows);
        group.min_ts[i] = start;
        group.max_ts[i] = start + (int64_t)(sample_count / rows) - 1;
    }
    for (size_t i = 0; i < sample_count; i++)
        group.ts[i] = start + (int64_t)(i % (sample_count / rows));
    return group;
}

static void group_done(struct group *group)
{
    free(group->metrics);
    free(group->names);
    free(group->values);
    free(group->label_counts);
    free(group->samples);
    free(group->min_ts);
    free(group->max_ts);
    free(group->ts);
    free(group->numbers);
}

/* Values as decimals are in a column of their own, and then none are doubles. */
static void write_group(struct colfile_writer *writer, const struct group *group, bool decimals)
{
    const uint32_t *lengths = (const uint32_t *)group->samples;
    size_t rows = group->rows, doubles = decimals ? 0 : group->sample_count;
    QF_CLEANUP(qf_freep) uint32_t *none = qf_xcalloc(rows, sizeof(*none));
    struct colfile_data columns[SG_COL__COUNT] = {
        [SG_COL_METRIC] = { group->metrics, rows, rows, NULL },
        [SG_COL_LABEL_NAMES] = { group->names, rows, rows, group->label_counts },
        [SG_COL_LABEL_VALUES] = { group->values, rows, rows, group->label_counts },
        [SG_COL_SAMPLES] = { group->samples, rows, rows, NULL },
        [SG_COL_MIN_TS] = { group->min_ts, rows, rows, NULL },
        [SG_COL_MAX_TS] = { group->max_ts, rows, rows, NULL },
        [SG_COL_TS] = { group->ts, group->sample_count, rows, lengths },
        [SG_COL_VALUE] = { group->numbers, doubles, rows, decimals ? none : lengths },
        [SG_COL_SCALE] = { none, rows, rows, NULL },
        [SG_COL_LAST] = { group->min_ts, rows, rows, NULL },
        [SG_COL_DIGITS] = { group->ts, group->sample_count, rows, lengths },
    };
    struct qf_err err = { 0 };

    for (size_t i = 0; i < (decimals ? SG_COL__COUNT : SG_COL__COUNT_V1); i++)
        must(colfile_write(writer, &columns[i], &err), &err);
}

static void set_meta(struct colfile_writer *writer, const char *key, const char *text)
{
    colfile_set_meta(writer, qf_str_from(key), qf_str_from(text));
}

static void set_number(struct colfile_writer *writer, const char *key, int64_t value)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRId64, value);
    set_meta(writer, key, text);
}

static void set_name(struct colfile_writer *writer, const struct sg_segment_name *name,
                     const char *tenant, const struct group *group)
{
    set_meta(writer, SG_KEY_TENANT, tenant);
    set_number(writer, SG_KEY_SHARD, 0);
    set_number(writer, SG_KEY_SHARDS, 1);
    set_number(writer, SG_KEY_MIN_TS, name->min_ts);
    set_number(writer, SG_KEY_MAX_TS, name->max_ts);
    set_number(writer, SG_KEY_SERIES, (int64_t)group->rows);
    set_number(writer, SG_KEY_SAMPLES, (int64_t)group->sample_count);
    set_number(writer, SG_KEY_GENERATION, (int64_t)name->generation);
    set_number(writer, SG_KEY_ID, (int64_t)name->id);
}

static void write_segment(enum bomb bomb, const char *tenant, struct sg_segment_name *name,
                          struct qf_strbuf *bytes)
{
    size_t len = bomb == BOMB_PAGES ? BOMB_TEXT_BYTES : bomb == BOMB_RUNS ? RUN_TEXT_BYTES : 1;
    size_t rows = bomb == BOMB_PAGES ? BOMB_TEXTS : bomb == BOMB_RUNS ? RUN_ROWS : 1;
    size_t samples = bomb == BOMB_SAMPLES || bomb == BOMB_DIGITS ? BOMB_ROWS : rows;
    uint32_t version = bomb == BOMB_DIGITS ? 2 : 1;
    char *text = qf_xmalloc(len);
    struct group group;
    struct sg_schema schema;
    struct colfile_writer *writer;
    struct qf_err err = { 0 };

    memset(text, 'x', len);
    group = group_new(rows, samples, (struct qf_str){ text, len }, name->min_ts);
    name->max_ts = group.max_ts[0];
    sg_schema_init(&schema, version, false, false);
    if (bomb == BOMB_PAGES) {
        schema.columns[SG_COL_LABEL_VALUES].encoding = COLFILE_PLAIN;
        schema.columns[SG_COL_LABEL_VALUES].codec = COLFILE_ZSTD;
        schema.columns[SG_COL_LABEL_VALUES].statistics = false;
    }
    schema.columns[SG_COL_TS].codec = COLFILE_ZSTD;
    schema.columns[SG_COL_VALUE].codec = COLFILE_ZSTD;
    schema.columns[SG_COL_DIGITS].codec = COLFILE_ZSTD;
    writer = colfile_writer_new(&schema.file, NULL, &err);
    must(writer ? QF_OK : err.rc, &err);
    write_group(writer, &group, version == 2);
    set_number(writer, SG_KEY_VERSION, version);
    set_name(writer, name, tenant, &group);
    finish(writer, bytes);
    group_done(&group);
    free(text);
}

void bomb_segment(enum bomb bomb, const char *tenant, int64_t start_ms, struct qf_strbuf *key,
                  struct qf_strbuf *bytes)
{
    struct sg_segment_name name = { .tenant = qf_str_from(tenant),
                                    .min_ts = start_ms,
                                    .max_ts = start_ms + 1,
                                    .shard_count = 1,
                                    .generation = 1,
                                    .id = 1 };

    if (bomb == BOMB_FOOTER || bomb == BOMB_FOOTERS)
        write_footer(footer_count(bomb), bytes);
    else
        write_segment(bomb, tenant, &name, bytes);
    sg_segment_name_print(key, &name);
}

/* --- artifacts --- */

static const struct colfile_column artifact_columns[] = {
    { "ts", COLFILE_I64, COLFILE_FLAT, COLFILE_DELTA, COLFILE_ZSTD, false },
    { "series", COLFILE_I32, COLFILE_FLAT, COLFILE_DELTA, COLFILE_ZSTD, false },
    { "value", COLFILE_F64, COLFILE_FLAT, COLFILE_PLAIN, COLFILE_ZSTD, false },
    { "histogram", COLFILE_BYTES, COLFILE_OPTIONAL, COLFILE_PLAIN, COLFILE_ZSTD, false },
};

static void write_artifact(bool histograms, struct qf_strbuf *bytes)
{
    size_t rows = histograms ? BOMB_TEXTS : BOMB_ROWS;
    struct colfile_schema schema = { artifact_columns, histograms ? 4 : 3, 1 << 20, false };
    struct qf_err err = { 0 };
    struct colfile_writer *writer = colfile_writer_new(&schema, NULL, &err);
    char *text = qf_xcalloc(1, BOMB_TEXT_BYTES);
    struct qf_str values[BOMB_TEXTS];
    uint32_t lengths[BOMB_TEXTS];
    int64_t *ts = qf_xcalloc(rows, sizeof(*ts));
    int32_t *series = qf_xcalloc(rows, sizeof(*series));
    double *numbers = qf_xcalloc(rows, sizeof(*numbers));
    struct colfile_data data[] = { { ts, rows, rows, NULL },
                                   { series, rows, rows, NULL },
                                   { numbers, rows, rows, NULL },
                                   { values, rows, rows, lengths } };

    for (size_t i = 0; i < rows; i++)
        ts[i] = (int64_t)i;
    for (size_t i = 0; i < BOMB_TEXTS; i++) {
        values[i] = (struct qf_str){ text, BOMB_TEXT_BYTES };
        lengths[i] = 1;
    }
    for (size_t i = 0; i < schema.column_count; i++)
        must(colfile_write(writer, &data[i], &err), &err);
    set_meta(writer, "promfabric.artifact_version", "2");
    set_meta(writer, "promfabric.kind", "series");
    set_meta(writer, "promfabric.samples_read", "0");
    set_meta(writer, "promfabric.points", "0");
    colfile_set_meta(writer, QF_STR("promfabric.series"), (struct qf_str){ "\1\0", 2 });
    finish(writer, bytes);
    free(text);
    free(ts);
    free(series);
    free(numbers);
}

void bomb_artifact(enum bomb bomb, struct qf_strbuf *bytes)
{
    if (bomb == BOMB_FOOTER || bomb == BOMB_FOOTERS)
        write_footer(footer_count(bomb), bytes);
    else
        write_artifact(bomb != BOMB_SAMPLES && bomb != BOMB_DIGITS, bytes);
}
