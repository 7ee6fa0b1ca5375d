/* bench_statemap.c - what maps cost of one core: merging a part, looking up keys, numbers and moments.
 *
 * usage: bench_statemap [KEYS [KIND]]     10,000,000 of each kind unless said; some GiB in a folder below $TMPDIR or /tmp, which
 *                                         goes in the end
 *
 * Keys are looked up in a snapshot, as readers have it.
 *
 * Rates are of processor time, so that what else the machine does counts for less; the disk's does not count at all. Printing
 * keys is part of loads, not of look-ups: whoever looks up has the key. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/prng.h"
#include "statemap/store/folder.h"
#include "statemap/store/store.h"

enum { LOOK_UPS = 500 * 4096, KEYS_AT_ONCE = 4096 };

static void must(qf_rc rc, const struct qf_err *err)
{
    if (rc == QF_OK)
        return;
    fprintf(stderr, "bench_statemap: %s\n", err->msg);
    exit(1);
}

/* Of this process's processor time. */
static double now_seconds(void)
{
    struct timespec now = { 0 };

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct qf_str key_of(uint64_t number, char room[32])
{
    return (struct qf_str){ room, (size_t)snprintf(
                                      room, 32, "10.%u.%u.%u:%u", (unsigned)(number >> 16 & 255),
                                      (unsigned)(number >> 8 & 255), (unsigned)(number & 255),
                                      (unsigned)(number >> 24)) };
}

static struct sm_row row_of(enum sm_kind kind, uint64_t number, char room[32])
{
    struct sm_row row = { .value = { SM_STRING, QF_STR_INIT("payments") } };

    row.key = key_of(kind == SM_TEMPORAL ? number / 10 : number, room);
    row.time = (int64_t)(number % 10) * 1000;
    row.end = row.time + 500;
    row.from = (int64_t)number * 256;
    row.to = row.from + 255;
    return row;
}

/* A load of rows from @from on; the seconds it takes to read and to merge it. */
static void load(struct sm_store *store, const struct sm_definition *definition, uint64_t from,
                 uint64_t count, const char *what)
{
    struct sm_writer *writer;
    struct qf_err err = { 0 };
    uint64_t position, left;
    double began = now_seconds();
    char room[32];

    must(sm_writer_begin(store, &writer, &err), &err);
    for (uint64_t i = 0; i < count; i++) {
        struct sm_row row = row_of(definition->layout.kind, from + i, room);

        must(sm_writer_put(writer, definition, &row, &err), &err);
    }
    must(sm_writer_finish(writer, &position, &err), &err);
    printf("%-16s %s: %10.0f rows/s into a part,", sm_kind_name(definition->layout.kind), what,
           (double)count / (now_seconds() - began));
    began = now_seconds();
    must(sm_store_merge(store, &left, &err), &err);
    printf(" %10.0f rows/s merged\n", (double)count / (now_seconds() - began));
}

/* Keys that were printed before the clock began. */
struct keys {
    struct sm_row rows[KEYS_AT_ONCE];
    char rooms[KEYS_AT_ONCE][32];
};

/* The seconds that look-ups of so many keys of @count take. */
static double look_up_some(struct sm_txn *txn, const struct sm_definition *definition,
                           struct qf_prng *prng, uint64_t count, uint64_t *hits)
{
    static struct keys keys;
    bool ranged = sm_kind_ranged(definition->layout.kind);
    struct qf_err err = { 0 };
    double began;

    for (size_t i = 0; i < KEYS_AT_ONCE; i++)
        keys.rows[i] = row_of(definition->layout.kind, qf_prng_below(prng, count), keys.rooms[i]);
    began = now_seconds();
    for (size_t i = 0; i < KEYS_AT_ONCE; i++) {
        struct sm_row row, *wanted = &keys.rows[i];
        bool found;

        must(ranged ? sm_find_number(txn, wanted->from + 77, 5000, &found, &row, &err)
                    : sm_find(txn, wanted->key, wanted->time, &found, &row, &err),
             &err);
        *hits += found;
    }
    return now_seconds() - began;
}

static void look_up(struct sm_store *store, const struct sm_definition *definition, uint64_t keys)
{
    struct qf_str name = qf_str_from(definition->name);
    struct qf_prng prng = { 1 };
    struct sm_reading reading;
    struct qf_err err = { 0 };
    uint64_t hits = 0, version;
    double took = 0;

    must(sm_snapshot_make(store, name, &version, &err), &err);
    must(sm_snapshot_begin(store, name, version, &reading, &err), &err);
    for (int i = 0; i < LOOK_UPS; i += KEYS_AT_ONCE) /* until what can be is in memory */
        (void)look_up_some(reading.txn, definition, &prng, keys, &hits);
    for (int i = 0; i < LOOK_UPS; i += KEYS_AT_ONCE)
        took += look_up_some(reading.txn, definition, &prng, keys, &hits);
    printf("%-16s %10.0f look-ups/s of %" PRIu64 " rows, %.0f %% found\n",
           sm_kind_name(definition->layout.kind), LOOK_UPS / took, keys,
           100.0 * (double)hits / (2.0 * LOOK_UPS));
    sm_reading_end(store, &reading);
}

int main(int argc, char **argv)
{
    uint64_t keys = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
    const char *only = argc > 2 ? argv[2] : NULL, *temporary = getenv("TMPDIR");
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf folder = QF_STRBUF_INIT;
    struct sm_store_options options = { .write = true };
    struct sm_store *store;
    struct qf_err err = { 0 };

    qf_strbuf_printf(&folder, "%s/promfabric-bench-XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder.data))
        return 1;
    options.root = folder.data;
    must(sm_store_open(&options, &store, &err), &err);
    for (int kind = 0; kind < SM_KIND__COUNT; kind++) {
        struct sm_definition definition = { .layout.kind = (enum sm_kind)kind };

        if (only && strcmp(only, sm_kind_name((enum sm_kind)kind)) != 0)
            continue;
        (void)snprintf(definition.name, sizeof(definition.name), "%s",
                       sm_kind_name((enum sm_kind)kind));
        must(sm_store_define(store, &definition, &err), &err);
        load(store, &definition, 0, keys, "first part");
        load(store, &definition, keys / 2, keys / 10, "into it   ");
        look_up(store, &definition, keys);
    }
    (void)sm_store_close(store);
    (void)sm_folder_remove(folder.data, NULL);
    return 0;
}
