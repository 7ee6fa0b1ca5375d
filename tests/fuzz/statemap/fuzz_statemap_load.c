/* fuzz_statemap_load.c - any bytes as XML, JSON lines or CSV for maps of each kind, in pieces of any size: refused with a line and a
 * reason, or rows that were counted. The first byte says which format, the second how long pieces are. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "statemap/load/load.h"
#include "statemap/store/folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NOW = 1700000000 };

static char folder[] = "/tmp/promfabric-fuzz-load-XXXXXX";
static struct sm_store *store;

static void leave(void)
{
    store = sm_store_close(store);
    (void)sm_folder_remove(folder, NULL);
}

/* A map of each kind, called as its kind, and one of integers. */
static void define_all(void)
{
    struct sm_definition definition = { .layout.kind = SM_STATE, .type = SM_INTEGER };

    (void)snprintf(definition.name, sizeof(definition.name), "integers");
    assert(sm_store_define(store, &definition, NULL) == QF_OK);
    for (int kind = 0; kind < SM_KIND__COUNT; kind++) {
        definition = (struct sm_definition){ .layout.kind = (enum sm_kind)kind };
        (void)snprintf(definition.name, sizeof(definition.name), "%s",
                       sm_kind_name((enum sm_kind)kind));
        assert(sm_store_define(store, &definition, NULL) == QF_OK);
    }
}

static void begin(void)
{
    struct sm_store_options options = { .root = folder, .write = true };

    assert(mkdtemp(folder));
    assert(sm_store_open(&options, &store, NULL) == QF_OK);
    define_all();
    (void)atexit(leave);
}

static void count_skipped(void *ctx, const char *why)
{
    assert(why[0]);
    ++*(uint64_t *)ctx;
}

static qf_rc feed(struct sm_load *load, struct qf_str bytes, size_t piece, struct qf_err *err)
{
    for (size_t at = 0; at < bytes.len; at += piece) {
        qf_rc rc = sm_load_feed(load, qf_str_sub(bytes, at, at + piece), err);

        if (rc != QF_OK)
            return rc;
    }
    return sm_load_end(load, err);
}

static void load_all(enum sm_format format, struct qf_str bytes, size_t piece, bool skip,
                     struct qf_str map)
{
    uint64_t skipped = 0;
    struct sm_load_options options = { .store = store,
                                       .map = map,
                                       .now_ms = NOW,
                                       .skip = skip,
                                       .skipped = count_skipped,
                                       .ctx = &skipped };
    struct qf_err err = { 0 };
    struct sm_load *load;
    qf_rc rc;

    assert(sm_writer_begin(store, &options.writer, &err) == QF_OK);
    load = sm_load_new(&options, format);
    rc = feed(load, bytes, piece, &err);
    if (rc == QF_OK)
        assert(sm_load_count(load).skipped == skipped && (skip || skipped == 0));
    else
        assert(err.msg[0]);
    (void)sm_load_free(load);
    (void)sm_writer_abort(options.writer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qf_str bytes;

    if (size < 2)
        return 0;
    if (!store)
        begin();
    bytes = (struct qf_str){ (const char *)data + 2, size - 2 };
    load_all((enum sm_format)(data[0] % 3), bytes, data[1] ? data[1] : SIZE_MAX / 2, data[0] & 8,
             data[0] & 16 ? QF_STR("state") : QF_STR(""));
    return 0;
}
