/* pieces.c - a store with pieces in it. */
#include "tests/unit/segments/compact/pieces.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/prng.h"
#include "segments/parquet/segment_name.h"
#include "segments/write/batch.h"
#include "tests/lib/test.h"

static struct sg_sample sample_of(struct qf_prng *prng, int64_t ts,
                                  const struct pq_histogram *histogram)
{
    struct sg_sample sample = { .ts = ts, .value = (double)qf_prng_below(prng, 1000) / 8 };
    uint64_t stale = UINT64_C(0x7ff0000000000002);

    switch (qf_prng_below(prng, 8)) {
    case 0:
        sample.histogram = histogram;
        sample.value = 0;
        break;
    case 1:
        sample.start_ts = ts - 5000;
        break;
    case 2:
        memcpy(&sample.value, &stale, sizeof(stale));
        break;
    case 3:
        sample.value = qf_prng_unit(prng);
        break;
    }
    return sample;
}

void piece_put_as(const struct place *p, struct piece piece)
{
    struct qf_err err = { 0 };
    struct sg_batch_options options = { .store = p->store,
                                        .tenant = QF_STR("t"),
                                        .shard_count = piece.shards,
                                        .window_ms = piece.window_ms,
                                        .memory_bytes = SG_BATCH_MEMORY_MIN,
                                        .temp_dir = p->temp,
                                        .generation = piece.generation };
    struct sg_batch *batch = sg_batch_new(&options, &err);
    struct qf_prng prng = { piece.seed };

    CHECK_MSG(batch, "%s", err.msg);
    for (int i = 0; i < piece.count; i++) {
        char host[20];
        struct qf_label labels[2] = { { QF_STR("__name__"), QF_STR("metric") },
                                      { QF_STR("host"), { host, 0 } } };
        const struct pq_histogram histogram = { .count = 1 + (double)qf_prng_below(&prng, 5),
                                                .sum = 2 };
        struct sg_sample sample = sample_of(&prng, piece.from_ms + i * 60000, &histogram);

        labels[1].value.len = (size_t)snprintf(host, sizeof(host), "h%d",
                                               (int)qf_prng_below(&prng, (uint64_t)piece.series));
        CHECK_OK(sg_batch_add(batch, (struct qf_labels){ labels, 2 }, &sample, 1, &err), &err);
    }
    CHECK_OK(sg_batch_commit(batch, &err), &err);
    (void)sg_batch_free(batch);
}

void piece_put(const struct place *p, uint64_t seed, uint64_t generation, int64_t from_ms,
               int count)
{
    piece_put_as(p, (struct piece){ .seed = seed,
                                    .generation = generation,
                                    .from_ms = from_ms,
                                    .window_ms = 2 * HOUR,
                                    .count = count,
                                    .series = 5,
                                    .shards = 1 });
}

static bool collect(void *ctx, const struct sg_store_object *object)
{
    struct names *names = ctx;
    struct sg_segment_name parts;

    if (sg_segment_name_parse(object->name, &parts))
        QF_VEC_PUSH(&names->items, qf_xmemdup0(object->name.data, object->name.len));
    return true;
}

struct names names_in(struct sg_store *store)
{
    struct names names = { 0 };
    struct qf_err err = { 0 };

    CHECK_OK(sg_store_list(store, QF_STR(""), QF_STR(""), NULL, collect, &names, &err), &err);
    return names;
}

void names_done(struct names *names)
{
    for (size_t i = 0; i < names->items.count; i++)
        free(names->items.items[i]);
    QF_VEC_DONE(&names->items);
}

void damage(const struct place *p, const char *name)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    FILE *file;
    int byte;

    qf_strbuf_printf(&path, "%s/%s", p->store_path, name);
    file = fopen(qf_strbuf_cstr(&path), "r+");
    CHECK(file);
    CHECK_EQ(fseek(file, 60, SEEK_SET), 0);
    byte = fgetc(file);
    CHECK_EQ(fseek(file, 60, SEEK_SET), 0);
    CHECK(fputc(byte ^ 0x55, file) != EOF);
    CHECK_EQ(fclose(file), 0);
}
