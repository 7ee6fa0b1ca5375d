/* hostile_segments.c - put segments that mean harm into a store, each with a tenant of its own.
 *
 * usage: hostile_segments STORE START_MS EDITED SEED
 *
 * Tenants b0, b1... have one of the bombs of bombs.h each; e0, e1... (EDITED of them) a good segment with
 * a few bytes changed, and sealed again. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/prng.h"
#include "segments/parquet/segment_writer.h"
#include "segments/store/store.h"
#include "tests/fuzz/segments/sealed.h"
#include "tests/integration/hostile/bombs.h"

#define SERIES 6
#define SAMPLES 200
#define EDITS_MAX 4

static void must(qf_rc rc, const struct qf_err *err)
{
    if (rc == QF_OK)
        return;
    fprintf(stderr, "hostile_segments: %s\n", err->msg);
    exit(1);
}

static void put(struct sg_store *store, struct qf_strbuf *key, struct qf_strbuf *bytes)
{
    struct qf_err err = { 0 };

    must(sg_store_put(store, qf_strbuf_view(key), bytes->data, bytes->len, NULL, &err), &err);
    qf_strbuf_reset(key);
    qf_strbuf_reset(bytes);
}

static void add_series(struct sg_writer *writer, int number, int64_t start)
{
    char value[2] = { (char)('0' + number), '\0' };
    struct qf_label items[] = { { QF_STR("__name__"), QF_STR("m") },
                                { QF_STR("i"), qf_str_from(value) } };
    int64_t ts[SAMPLES];
    double values[SAMPLES];
    struct qf_err err = { 0 };

    for (int i = 0; i < SAMPLES; i++) {
        ts[i] = start + i * 15000;
        values[i] = number + i * 0.5;
    }
    must(sg_writer_add(writer, (struct qf_labels){ items, 2 }, ts, values, SAMPLES, &err), &err);
}

/* A good segment of @tenant, to be changed. */
static void write_good(const char *tenant, int64_t start, struct sealed *sealed,
                       struct qf_strbuf *key)
{
    char path[64];
    struct sg_writer_options options = { .path = path,
                                         .tenant = qf_str_from(tenant),
                                         .shard_count = 1,
                                         .generation = 1,
                                         .start_ts = true,
                                         .histograms = true };
    struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct sg_segment_name name;
    struct sg_writer *writer;
    struct qf_err err = { 0 };
    char piece[4096];
    FILE *file;
    size_t len;

    (void)snprintf(path, sizeof(path), "/tmp/hostile_segments.%d", (int)getpid());
    (void)unlink(path);
    writer = sg_writer_new(&options, &err);
    must(writer ? QF_OK : err.rc, &err);
    for (int i = 0; i < SERIES; i++)
        add_series(writer, i, start);
    must(sg_writer_finish(writer, &name, &err), &err);
    sg_segment_name_print(key, &name);
    (void)sg_writer_free(writer);
    file = fopen(path, "re");
    while (file && (len = fread(piece, 1, sizeof(piece), file)) > 0)
        qf_strbuf_add(&bytes, piece, len);
    if (file)
        (void)fclose(file);
    (void)unlink(path);
    sealed_learn(sealed, qf_strbuf_view(&bytes));
    qf_strbuf_done(&bytes);
}

static void put_edited(struct sg_store *store, size_t number, int64_t start, struct qf_prng *prng)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf key = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct sealed sealed = { 0 };
    uint8_t edits[3 * EDITS_MAX];
    size_t count = 1 + qf_prng_below(prng, EDITS_MAX);
    char tenant[16];

    (void)snprintf(tenant, sizeof(tenant), "e%zu", number);
    write_good(tenant, start, &sealed, &key);
    for (size_t i = 0; i < 3 * count; i++)
        edits[i] = (uint8_t)qf_prng_below(prng, 256);
    sealed_edit(&sealed, edits, 3 * count, &bytes);
    put(store, &key, &bytes);
    qf_strbuf_done(&sealed.file);
    QF_VEC_DONE(&sealed.chunks);
}

int main(int argc, char **argv)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf key = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct sg_store_options options = { .create = true };
    struct sg_store *store;
    struct qf_err err = { 0 };
    struct qf_prng prng = { 0 };
    uint64_t edited;
    int64_t start;

    if (argc != 5 || !qf_parse_i64(qf_str_from(argv[2]), &start) ||
        !qf_parse_u64(qf_str_from(argv[3]), &edited) ||
        !qf_parse_u64(qf_str_from(argv[4]), &prng.state)) {
        fprintf(stderr, "usage: hostile_segments STORE START_MS EDITED SEED\n");
        return 2;
    }
    options.url = argv[1];
    must(sg_store_open(&options, &store, &err), &err);
    for (int bomb = 0; bomb < BOMB__COUNT; bomb++) {
        char tenant[16];

        (void)snprintf(tenant, sizeof(tenant), "b%d", bomb);
        bomb_segment((enum bomb)bomb, tenant, start, &key, &bytes);
        put(store, &key, &bytes);
    }
    for (size_t i = 0; i < edited; i++)
        put_edited(store, i, start, &prng);
    (void)sg_store_free(store);
    return 0;
}
