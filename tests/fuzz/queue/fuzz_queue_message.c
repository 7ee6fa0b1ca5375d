/* fuzz_queue_message.c - any messages of peers: a node drops them or takes them, and its library, which
 * trusts what it is given, never meets one that breaks it.
 *
 * Each message is made from 16 bytes of the input, with small numbers, so that many fit the node's
 * state. The node is a member of three and performs what it is told over a simulated disk. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/core/core.h"
#include "tests/lib/queue/sim_disk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SELF = 1, BYTES = 16, ENTRIES = 4 };

static uint64_t log_first(void *ctx)
{
    return ql_log_first(((struct ql_store *)ctx)->log);
}
static uint64_t log_last(void *ctx)
{
    return ql_log_last(((struct ql_store *)ctx)->log);
}
static uint64_t log_term(void *ctx, uint64_t index)
{
    return ql_log_term(((struct ql_store *)ctx)->log, index);
}
static enum ql_type log_type(void *ctx, uint64_t index)
{
    return ql_log_type(((struct ql_store *)ctx)->log, index);
}
static qf_rc log_read(void *ctx, uint64_t index, struct qf_strbuf *buf, struct ql_entry *ret,
                      struct qf_err *err)
{
    return ql_log_read(((struct ql_store *)ctx)->log, index, buf, ret, err);
}

/* False if the node stopped, which is one way of not believing. */
static bool perform(struct ql_store *store, struct qc_effects effects)
{
    qf_rc rc = QF_OK;

    for (size_t i = 0; rc == QF_OK && i < effects.count; i++) {
        const struct qc_effect *effect = &effects.items[i];

        if (effect->kind == QC_EFFECT_VOTE)
            rc = ql_store_vote(store, effect->term, effect->vote, NULL);
        if (effect->kind == QC_EFFECT_APPEND)
            rc = ql_log_append(store->log, effect->entries, effect->count, true, NULL);
        if (effect->kind == QC_EFFECT_STOP)
            return false;
    }
    assert(rc == QF_OK);
    return true;
}

static void fill(const uint8_t *in, const char *members, size_t members_len,
                 struct ql_entry entries[ENTRIES], struct qc_message *message)
{
    *message = (struct qc_message){ .kind = (enum qc_message_kind)(in[0] % 10),
                                    .cluster = 1,
                                    .from = 1 + in[1] % 4,
                                    .to = in[1] > 250 ? 2 : SELF,
                                    .term = in[2] % 8,
                                    .index = in[3] % 12,
                                    .index_term = in[4] % 8,
                                    .commit = in[5] % 16,
                                    .rejected = in[6] % 12,
                                    .change_index = in[7] % 4,
                                    .nonce = in[8] % 4,
                                    .pre_vote = in[9] & 1,
                                    .disrupt = in[9] & 2,
                                    .granted = in[9] & 4,
                                    .count = in[10] % (ENTRIES + 1),
                                    .entries = entries };
    for (uint32_t i = 0; i < ENTRIES; i++) {
        bool change = in[12 + i] % 5 == 0;

        entries[i] =
            (struct ql_entry){ message->index + 1 + i,
                               in[12 + i] % 8,
                               change ? QL_CHANGE : QL_COMMAND,
                               { change ? members : "\1record", change ? members_len : 7 } };
    }
}

static void run(struct ql_store *store, const uint8_t *data, size_t size, struct qf_str members)
{
    const struct qc_log log = { store, log_first, log_last, log_term, log_type, log_read };
    const struct qc_options options = { .cluster = 1, .id = SELF, .seed = 7 };
    struct qc_effects effects;
    struct qc_core *core;
    uint64_t now = 1;
    bool alive;
    qf_rc rc = qc_new(&options, &log, &store->sequence, &store->snapshot, &core, NULL);

    assert(rc == QF_OK);
    qc_start(core, now, &effects);
    alive = perform(store, effects);
    for (size_t at = 0; alive && at + BYTES <= size; at += BYTES) {
        struct ql_entry entries[ENTRIES];
        struct qc_message message;
        struct qc_event event = { .kind = QC_EVENT_MESSAGE, .message = &message };
        uint64_t last = ql_log_last(store->log);

        fill(data + at, members.data, members.len, entries, &message);
        if (data[at + 11] % 4 == 0)
            event = (struct qc_event){ .kind = QC_EVENT_TICK };
        if (data[at + 11] % 4 == 1)
            event = (struct qc_event){ .kind = QC_EVENT_PERSISTED,
                                       .index = last,
                                       .term = ql_log_term(store->log, last) };
        now += data[at + 11] * 10;
        event.now = now;
        qc_step(core, &event, &effects);
        alive = perform(store, effects);
    }
    (void)qc_free(core);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct qc_members members = {
        3, { { SELF, QC_VOTER, "a" }, { 2, QC_VOTER, "b" }, { 3, QC_VOTER, "c" } }
    };
    const struct ql_sequence_state sequence = { 1, SELF, 1, 0 };
    const struct ql_options options = { .file_bytes = 4096 };
    struct sim_disk *disk = sim_disk_new("fuzz");
    struct qf_strbuf buf = QF_STRBUF_INIT;
    struct ql_entry first = { 1, 1, QL_CHANGE, { NULL, 0 } };
    struct ql_store store;
    qf_rc rc = ql_store_create(sim_disk_of(disk), &sequence, NULL);

    if (rc == QF_OK)
        rc = ql_store_open(&store, sim_disk_of(disk), &options, NULL);
    qc_members_encode(&buf, &members);
    first.data = qf_strbuf_view(&buf);
    if (rc == QF_OK)
        rc = ql_log_append(store.log, &first, 1, true, NULL);
    assert(rc == QF_OK);
    run(&store, data, size, qf_strbuf_view(&buf));
    ql_store_close(&store);
    qf_strbuf_done(&buf);
    (void)sim_disk_free(disk);
    return 0;
}
