/* fuzz_artifact.c - damaged artifacts are errors or the same result, never a crash, within a budget.
 *
 * The input is a list of edits to a good artifact, sealed again; or it goes to the metadata before it
 * is sealed: what a reader meets if a writer goes wrong, or lies. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "segments/parquet/artifact.h"
#include "segments/parquet/column_file.h"
#include "tests/fuzz/segments/sealed.h"

#define BUDGET ((size_t)16 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(struct qf_str bytes)
{
    struct qf_purse purse = { .limit = BUDGET };
    struct qf_err err = { 0 };
    struct pq_leaf_reader *reader = sg_artifact_open_memory(bytes, "fuzz", &purse, &err);
    struct pq_rows rows = { .count = 1 };

    if (!reader)
        return;
    while (rows.count && reader->next(reader, &rows, &err) == QF_OK)
        ;
    reader->close(reader);
    if (qf_purse_used(&purse) != 0)
        abort(); /* what was paid for is given back */
}

/* A sealed file of the artifact's shape whose metadata and rows come from the input. */
static void read_sealed(const uint8_t *data, size_t size)
{
    static const struct colfile_column columns[] = {
        { "ts", COLFILE_I64, COLFILE_FLAT, COLFILE_DELTA, COLFILE_RAW, false },
        { "series", COLFILE_I32, COLFILE_FLAT, COLFILE_DELTA, COLFILE_RAW, false },
        { "value", COLFILE_F64, COLFILE_FLAT, COLFILE_PLAIN, COLFILE_RAW, false },
        { "histogram", COLFILE_BYTES, COLFILE_OPTIONAL, COLFILE_PLAIN, COLFILE_RAW, false },
    };
    struct colfile_schema schema = { columns, 4, 4096, false };
    struct colfile_writer *writer = colfile_writer_new(&schema, NULL, NULL);
    struct qf_str input = { (const char *)data, size };
    struct qf_str half = qf_str_sub(input, 0, size / 2), rest = qf_str_sub(input, size / 2, size);
    int64_t ts[2] = { 1, 2 };
    int32_t series[2] = { size ? data[0] % 3 : 0, 0 };
    double values[2] = { 1, 2 };
    uint32_t lengths[2] = { 1, 0 };
    struct colfile_data out[] = {
        { ts, 2, 2, NULL }, { series, 2, 2, NULL }, { values, 2, 2, NULL }, { &rest, 1, 2, lengths }
    };
    struct colfile_written written;
    struct qf_strbuf buf = QF_STRBUF_INIT;

    for (size_t i = 0; i < 4; i++)
        if (colfile_write(writer, &out[i], NULL) != QF_OK)
            abort();
    colfile_set_meta(writer, QF_STR("promfabric.artifact_version"), QF_STR("2"));
    colfile_set_meta(writer, QF_STR("promfabric.kind"), QF_STR("series"));
    colfile_set_meta(writer, QF_STR("promfabric.samples_read"), QF_STR("0"));
    colfile_set_meta(writer, QF_STR("promfabric.points"), QF_STR("0"));
    colfile_set_meta(writer, QF_STR("promfabric.series"), half);
    colfile_set_meta(writer, QF_STR("promfabric.notes"), rest);
    if (colfile_finish(writer, false, &buf, &written, NULL) != QF_OK)
        abort();
    (void)colfile_writer_free(writer);
    read_all(qf_strbuf_view(&buf));
    qf_strbuf_done(&buf);
}

static const struct sealed *good(void)
{
    static struct sealed sealed;
    struct qf_label item = { QF_STR("a"), QF_STR("b") };
    struct qf_labels labels = { &item, 1 };
    int64_t ts[3] = { 1, 2, 3 };
    uint32_t series[3] = { 0, 0, 0 };
    double values[3] = { 1, 2, 3 };
    struct pq_leaf_result result = {
        .kind = &pq_leaf_series,
        .series = &labels,
        .series_count = 1,
        .rows = { .count = 3, .ts = ts, .series = series, .columns = { values } },
    };
    struct qf_strbuf buf = QF_STRBUF_INIT;

    if (sealed.file.len)
        return &sealed;
    if (sg_artifact_write_memory(&result, &buf, NULL, NULL) != QF_OK)
        abort();
    sealed_learn(&sealed, qf_strbuf_view(&buf));
    qf_strbuf_done(&buf);
    return &sealed;
}

static void read_edited(const uint8_t *data, size_t size)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;

    sealed_edit(good(), data, size, &buf);
    read_all(qf_strbuf_view(&buf));
    qf_strbuf_done(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size && data[0] & 1)
        read_sealed(data + 1, size - 1);
    else if (size)
        read_edited(data + 1, size - 1);
    return 0;
}
