/* keep.c - how long a queue keeps what it has: snapshots, sync marks, retention. */
#include <assert.h>
#include <inttypes.h>

#include "base/sys/clock.h"
#include "queue/node/node_int.h"

/* A snapshot after so many entries, or so much log: what a restart applies again, and the least that
 * can be dropped. */
#define SNAPSHOT_ENTRIES 65536
#define SNAPSHOT_BYTES (UINT64_C(32) << 20)
/* Consumed or outdated records are trimmed in steps, each an entry of the log. */
#define TRIM_STEP 1000
#define CONSUMER_EXPIRY_MS (INT64_C(7) * 86400 * 1000)

/* --- snapshots --- */

/* Bytes of the log before the first offset that is kept: only a snapshot lets their files go. */
static uint64_t trimmed_bytes(const struct qn_queue *queue)
{
    uint64_t kept = ql_log_bytes_from(queue->store.log, qc_state(queue->core)->first);

    return ql_log_bytes(queue->store.log) - kept;
}

static bool snapshot_due(const struct qn_queue *queue)
{
    const struct qc_state *state = qc_state(queue->core);
    uint64_t saved = queue->store.snapshot.index;

    if (state->applied <= saved)
        return false;
    return state->applied - saved >= SNAPSHOT_ENTRIES ||
           ql_log_bytes(queue->store.log) >= queue->snapshot_bytes + SNAPSHOT_BYTES ||
           trimmed_bytes(queue) >= queue->store.options.file_bytes;
}

void qn_snapshot_if_due(struct qn_queue *queue, bool now)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT, state = QF_STRBUF_INIT;
    struct ql_snapshot snapshot;

    now |= queue->save_again;
    queue->save_again = false;
    if (!now && !snapshot_due(queue))
        return;
    if (queue->saving || queue->fetching) { /* one at a time, and none while a peer's may come */
        queue->save_again = now;
        return;
    }
    if (!qc_snapshot(queue->core, &buf, &snapshot))
        return;
    if (queue->has_app) {
        assert(queue->app_index == snapshot.index);
        queue->app.save(queue->app.ctx, &state);
        snapshot.application = qf_strbuf_view(&state);
        snapshot.needed = !queue->id; /* older releases know no application of meta */
    }
    queue->save_again = !qn_save(queue, &snapshot) && now;
}

/* --- retention --- */

/* The first offset that the size lets stand. */
static uint64_t first_by_size(const struct qn_queue *queue)
{
    uint64_t low = qc_state(queue->core)->first, high = qc_state(queue->core)->applied + 1;

    if (!queue->options.retention_bytes)
        return low;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (ql_log_bytes_from(queue->store.log, middle) > queue->options.retention_bytes)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first offset that is young enough. Times hardly ever go back (another leader's clock): then
 * records go a little late. */
static uint64_t first_by_time(struct qn_queue *queue)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    uint64_t low = qc_state(queue->core)->first, end = qc_state(queue->core)->applied + 1,
             high = end;
    int64_t oldest = qf_clock_wall_ms() - queue->options.retention_ms;

    if (!queue->options.retention_ms)
        return low;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        struct qn_record record;

        if (!qn_record_at(queue, middle, high, &buf, &record))
            high = middle;
        else if (record.time_ms < oldest)
            low = record.offset + 1;
        else
            high = middle;
    }
    return low;
}

/* When this leader last saw a consumer move; a new leader gives everyone a full time. */
static int64_t last_seen(struct qn_queue *queue, const struct qc_consumer *consumer, int64_t now)
{
    struct qn_seen *seen = NULL;

    for (uint32_t i = 0; i < queue->seen_count && !seen; i++)
        if (strcmp(queue->seen[i].name, consumer->name) == 0)
            seen = &queue->seen[i];
    if (!seen) {
        seen = &queue->seen[queue->seen_count < QC_CONSUMERS_MAX ? queue->seen_count++ : 0];
        *seen = (struct qn_seen){ .at_ms = now, .changed = consumer->changed };
        memcpy(seen->name, consumer->name, sizeof(seen->name));
    }
    if (seen->changed != consumer->changed) {
        seen->changed = consumer->changed;
        seen->at_ms = now;
    }
    return seen->at_ms;
}

/* Consumers that still move hold what they have not read against retention by time; never against
 * the size, and never in the system's queues, but that of state maps, whose consumers are the nodes. */
static uint64_t first_by_consumers(struct qn_queue *queue, int64_t now)
{
    const struct qc_state *state = qc_state(queue->core);
    int64_t expiry =
        queue->options.consumer_expiry_ms ? queue->options.consumer_expiry_ms : CONSUMER_EXPIRY_MS;
    uint64_t first = UINT64_MAX;

    if (qn_name_is_system(queue->name) && strcmp(queue->name, QN_STATE) != 0)
        return first;
    for (uint32_t i = 0; i < state->consumer_count; i++)
        if (now - last_seen(queue, &state->consumers[i], now) < expiry)
            first = QF_MIN(first, state->consumers[i].offset);
    return first;
}

/* The first offset to keep, if this node decides. */
static uint64_t first_wanted(struct qn_queue *queue, int64_t now)
{
    const struct qc_state *state = qc_state(queue->core);
    uint64_t first = queue->options.delete_on_consume ? state->position : state->first;
    uint64_t needed = queue->has_app ? queue->app.needed_from(queue->app.ctx) : 0;
    uint64_t by_size = first_by_size(queue), by_time = first_by_time(queue),
             held = first_by_consumers(queue, now);

    if (queue->has_app)
        return QF_MAX(first, needed);
    by_time = QF_MIN(by_time, held);
    first = QF_MAX(first, by_time);
    return QF_MAX(first, by_size);
}

static void trim(struct qn_queue *queue, int64_t now)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    uint64_t first = first_wanted(queue, now), kept = qc_state(queue->core)->first;
    bool little = first < kept + TRIM_STEP && ql_log_bytes_from(queue->store.log, kept) -
                                                      ql_log_bytes_from(queue->store.log, first) <
                                                  (UINT64_C(1) << 20);

    if (first <= kept || first <= queue->trim_asked || (little && now < queue->trim_due_ms))
        return;
    queue->trim_asked = first;
    queue->trim_due_ms = now + 10 * QN_HOUSEKEEPING_MS;
    qc_command_encode(&buf, &(struct qc_command){ .kind = QC_TRIM, .offset = first });
    qn_propose(queue, &(struct qc_event){ .kind = QC_EVENT_COMMAND, .data = qf_strbuf_view(&buf) });
}

void qn_keep(struct qn_queue *queue, int64_t now)
{
    qn_snapshot_if_due(queue, false);
    qn_app_tick(queue);
    if (qc_serves(queue->core) && queue->id)
        trim(queue, now);
}
