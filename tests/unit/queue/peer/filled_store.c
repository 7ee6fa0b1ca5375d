#include "tests/unit/queue/peer/filled_store.h"

#include <stdio.h>

#include "tests/lib/test.h"

void filled_store_start(struct filled_store *filled, uint64_t records, uint64_t snapshot)
{
    struct ql_sequence_state sequence = { .cluster = 7, .incarnation = 9, .term = 1 };
    struct ql_snapshot taken = { .index = snapshot,
                                 .term = 1,
                                 .change_index = 1,
                                 .members = QF_STR("members"),
                                 .state = QF_STR("state") };
    struct qf_err err = { 0 };

    filled->disk = sim_disk_new("disk");
    CHECK_OK(ql_store_create(sim_disk_of(filled->disk), &sequence, &err), &err);
    CHECK_OK(
        ql_store_open(&filled->store, sim_disk_of(filled->disk), &(struct ql_options){ 0 }, &err),
        &err);
    for (uint64_t i = 1; i <= records; i++) {
        char text[32];
        struct ql_entry entry = { .index = i, .term = 1, .type = QL_COMMAND };

        (void)snprintf(text, sizeof(text), "record %llu", (unsigned long long)i);
        entry.data = qf_str_from(text);
        CHECK_OK(ql_log_append(filled->store.log, &entry, 1, false, &err), &err);
    }
    CHECK_OK(ql_log_sync(filled->store.log, &err), &err);
    CHECK_OK(ql_store_save(&filled->store, &taken, &err), &err);
}

void filled_store_stop(struct filled_store *filled)
{
    ql_store_close(&filled->store);
    filled->disk = sim_disk_free(filled->disk);
}
