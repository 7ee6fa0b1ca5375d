/* add_segments.c - a segment in each of so many hours into a store, with so few of them named at once that it takes several
 * steps: add_segments URL HOURS STEP FROM-MS. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/number.h"
#include "base/sys/clock.h"
#include "segments/write/batch.h"
#include "segments/write/claim.h"

static qf_rc add_all(struct sg_batch *batch, uint64_t hours, uint64_t from_ms, struct qf_err *err)
{
    struct qf_label name = { QF_STR("__name__"), QF_STR("c_total") };
    qf_rc rc = QF_OK;

    for (uint64_t i = 0; i < hours && !rc; i++) {
        struct sg_sample sample = { .ts = (int64_t)(from_ms + i * 3600000), .value = (double)i };

        rc = sg_batch_add(batch, (struct qf_labels){ &name, 1 }, &sample, 1, err);
    }
    return rc;
}

static qf_rc import(struct sg_store *store, const uint64_t *numbers, struct qf_err *err)
{
    struct sg_batch_options options = { .store = store,
                                        .tenant = QF_STR("default"),
                                        .shard_count = 1,
                                        .window_ms = 3600000,
                                        .memory_bytes = SG_BATCH_MEMORY_MIN,
                                        .names_max = (uint32_t)numbers[1] };
    struct sg_batch *batch = NULL;
    qf_rc rc = sg_claim_new(store, options.tenant, (uint64_t)qf_clock_wall_ms() * 1000, NULL,
                            &options.claim, err);

    if (rc == QF_OK) {
        options.generation = sg_claim_generation(options.claim);
        batch = sg_batch_new(&options, err);
        rc = batch ? add_all(batch, numbers[0], numbers[2], err) : err->rc;
    }
    if (rc == QF_OK)
        rc = sg_batch_commit(batch, err);
    if (rc == QF_OK)
        printf("%" PRIu64 " new, %" PRIu64 " present\n", sg_batch_summary(batch).segments,
               sg_batch_summary(batch).segments_present);
    (void)sg_batch_free(batch);
    (void)sg_claim_end(options.claim);
    return rc;
}

int main(int argc, char **argv)
{
    struct qf_err err = { 0 };
    struct sg_store *store = NULL;
    uint64_t numbers[3];
    qf_rc rc;

    for (int i = 0; i < 3; i++)
        if (argc != 5 || !qf_parse_u64(qf_str_from(argv[i + 2]), &numbers[i]))
            return 2;
    rc = sg_store_open(&(struct sg_store_options){ .url = argv[1] }, &store, &err);
    if (rc == QF_OK)
        rc = import(store, numbers, &err);
    if (rc)
        fprintf(stderr, "error: %s\n", err.msg);
    (void)sg_store_free(store);
    return rc ? 1 : 0;
}
