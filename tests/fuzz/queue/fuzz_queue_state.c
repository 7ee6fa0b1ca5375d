/* fuzz_queue_state.c - any bytes as sequence-state.dat or snapshot.dat: refused, or read the same
 * again. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/log/store.h"
#include "tests/lib/queue/sim_disk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void sequence(const uint8_t *data, size_t size)
{
    struct sim_disk *disk = sim_disk_new("fuzz");
    struct ql_sequence_state state, again;
    qf_rc rc;

    sim_disk_put(disk, QL_SEQUENCE_STATE_FILE, data, size);
    rc = ql_sequence_state_load(sim_disk_of(disk), &state, NULL);
    assert(rc == QF_OK || rc == QF_ECORRUPT || rc == QF_EUNSUPPORTED || rc == QF_ELIMIT);
    if (rc == QF_OK) {
        rc = ql_sequence_state_load(sim_disk_of(disk), &again, NULL);
        assert(rc == QF_OK);
        assert(memcmp(&state, &again, sizeof(state)) == 0);
    }
    (void)sim_disk_free(disk);
}

static void snapshot(const uint8_t *data, size_t size)
{
    struct qf_str bytes = { (const char *)data, size };
    struct qf_strbuf again = QF_STRBUF_INIT;
    struct ql_snapshot decoded;

    if (ql_snapshot_decode(bytes, &decoded) == QF_OK) {
        ql_snapshot_encode(&again, &decoded);
        assert(qf_str_eq(bytes, qf_strbuf_view(&again)));
    }
    qf_strbuf_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sequence(data, size);
    snapshot(data, size);
    return 0;
}
