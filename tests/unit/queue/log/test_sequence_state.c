#include "queue/log/bytes.h"
#include "queue/log/sequence_state.h"
#include "tests/lib/queue/sim_disk.h"
#include "tests/lib/test.h"

static void free_disk(struct sim_disk **disk)
{
    *disk = sim_disk_free(*disk);
}

static const struct ql_sequence_state first = { 7, 8, 9, 10 }, second = { 7, 8, 11, 0 };

static bool same(const struct ql_sequence_state *a, const struct ql_sequence_state *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

TEST(what_was_saved_is_loaded)
{
    QF_CLEANUP(free_disk) struct sim_disk *disk = sim_disk_new("d");
    struct ql_sequence_state state;
    struct qf_err err = { 0 };

    CHECK_EQ(ql_sequence_state_load(sim_disk_of(disk), &state, NULL), QF_ENOTFOUND);
    CHECK_OK(ql_sequence_state_save(sim_disk_of(disk), &first, &err), &err);
    CHECK_OK(ql_sequence_state_load(sim_disk_of(disk), &state, &err), &err);
    CHECK(same(&state, &first));
    CHECK_OK(ql_sequence_state_save(sim_disk_of(disk), &second, &err), &err);
    CHECK_OK(ql_sequence_state_load(sim_disk_of(disk), &state, &err), &err);
    CHECK(same(&state, &second));
}

/* Either copy may be damaged, in any byte, and nothing is forgotten. */
TEST(one_damaged_copy_is_mended_from_the_other)
{
    for (uint64_t at = 0; at < UINT64_C(2) * QL_SEQUENCE_COPY_BYTES; at += 3) {
        QF_CLEANUP(free_disk) struct sim_disk *disk = sim_disk_new("d");
        struct ql_sequence_state state;
        struct qf_err err = { 0 };

        CHECK_OK(ql_sequence_state_save(sim_disk_of(disk), &first, &err), &err);
        CHECK_OK(ql_sequence_state_save(sim_disk_of(disk), &second, &err), &err);
        sim_disk_flip(disk, QL_SEQUENCE_STATE_FILE, at, 0x10);
        CHECK_OK(ql_sequence_state_load(sim_disk_of(disk), &state, &err), &err);
        CHECK(same(&state, &second));
        sim_disk_flip(disk, QL_SEQUENCE_STATE_FILE,
                      (at + QL_SEQUENCE_COPY_BYTES) % (UINT64_C(2) * QL_SEQUENCE_COPY_BYTES), 1);
        CHECK_OK(ql_sequence_state_load(sim_disk_of(disk), &state, &err), &err);
        CHECK(same(&state, &second));
    }
}

TEST(two_damaged_copies_stop_the_node_and_name_the_file)
{
    QF_CLEANUP(free_disk) struct sim_disk *disk = sim_disk_new("folder");
    struct ql_sequence_state state;
    struct qf_err err = { 0 };

    CHECK_OK(ql_sequence_state_save(sim_disk_of(disk), &first, &err), &err);
    sim_disk_flip(disk, QL_SEQUENCE_STATE_FILE, 20, 1);
    sim_disk_flip(disk, QL_SEQUENCE_STATE_FILE, 20 + QL_SEQUENCE_COPY_BYTES, 1);
    CHECK_EQ(ql_sequence_state_load(sim_disk_of(disk), &state, &err), QF_ECORRUPT);
    CHECK(strstr(err.msg, "folder/sequence-state.dat is damaged in both copies"));
    err = (struct qf_err){ 0 };
    CHECK_EQ(ql_sequence_state_save(sim_disk_of(disk), &second, &err), QF_ECORRUPT);
}

TEST(a_newer_version_is_not_read)
{
    QF_CLEANUP(free_disk) struct sim_disk *disk = sim_disk_new("d");
    unsigned char copy[QL_SEQUENCE_COPY_BYTES];
    struct ql_sequence_state state;
    struct qf_err err = { 0 };

    ql_sequence_state_encode(&first, 1, copy);
    ql_put(copy + 8, QL_SEQUENCE_STATE_VERSION + 1, 8);
    ql_put(copy + sizeof(copy) - 8, ql_check(copy, sizeof(copy) - 8, 0), 8);
    sim_disk_put(disk, QL_SEQUENCE_STATE_FILE, copy, sizeof(copy));
    CHECK_EQ(ql_sequence_state_load(sim_disk_of(disk), &state, &err), QF_EUNSUPPORTED);
    CHECK(strstr(err.msg, "newer version"));
}

/* Crash at every write and sync of a save: the next start reads the old values or the new ones, and
 * the same again after a second loss of power. */
TEST(a_crash_anywhere_leaves_old_or_new_values)
{
    for (uint64_t seed = 1; seed <= 400; seed++) {
        QF_CLEANUP(free_disk) struct sim_disk *disk = sim_disk_new("d");
        struct qf_prng prng = { seed };
        struct ql_sequence_state state, again;
        struct qf_err err = { 0 };
        qf_rc rc;

        CHECK_OK(ql_sequence_state_save(sim_disk_of(disk), &first, &err), &err);
        sim_disk_stop_after(disk, seed % 6);
        rc = ql_sequence_state_save(sim_disk_of(disk), &second, NULL);
        sim_disk_stop_after(disk, UINT64_MAX);
        if (seed % 2)
            sim_disk_power_loss(disk, &prng);
        CHECK_OK(ql_sequence_state_load(sim_disk_of(disk), &state, &err), &err);
        CHECK(same(&state, &second) || (rc != QF_OK && same(&state, &first)));
        sim_disk_power_loss(disk, &prng);
        CHECK_OK(ql_sequence_state_load(sim_disk_of(disk), &again, &err), &err);
        CHECK(same(&state, &again));
    }
}
