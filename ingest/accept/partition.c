/* partition.c - the application of the queues metrics-N. */
#include "ingest/accept/partition.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/limits_file.h"
#include "base/sys/log.h"
#include "ingest/head/head.h"

/* Ranges closed in one second, and how often the floor is looked at. */
#define SEALS_AT_ONCE 64
#define FLOOR_EVERY_MS 60000
/* How old a range must be to be closed for want of memory: one that was just opened frees little. */
#define PRESSED_MS INT64_C(5000)
/* Floors are multiples of this: each is a record. */
#define FLOOR_STEP_MS (INT64_C(10) * 60 * 1000)

/* Records of this leader that counted for nothing though none should. */
enum { ODD_MAX = 64 };

struct partition {
    struct in_partitions *all;
    uint32_t number;
    uint64_t queue_id;
    struct in_ledger *ledger;
    struct in_intake *intake;
    struct in_head *head;
    bool leads;
    uint64_t seal_round;
    int64_t floor_due_ms;
    uint64_t odd[ODD_MAX];
    bool odd_is_note[ODD_MAX]; /* of the manifest, and nothing else */
    uint32_t odd_next;
};

struct in_partitions {
    struct in_partitions_options options;
    struct in_partition_figures figures;
    _Atomic(struct qn_node *) node;
    atomic_uint_fast64_t seal_round;
    /* Of the node's thread. */
    struct in_quota *quota;
    uint64_t limits_version;
    uint32_t led;
    uint64_t series[QN_PARTITIONS_MAX], active[QN_PARTITIONS_MAX], open[QN_PARTITIONS_MAX];
};

static void add(atomic_uint_fast64_t *figure, uint64_t amount)
{
    atomic_fetch_add_explicit(figure, amount, memory_order_relaxed);
}

/* --- what is applied --- */

static qf_rc restore(void *ctx, uint64_t index, struct qf_str state, struct qf_err *err)
{
    struct partition *partition = ctx;
    struct in_ledger *ledger = NULL;
    qf_rc rc = QF_OK;

    (void)index;
    if (!state.len)
        ledger = in_ledger_new();
    else
        rc = in_ledger_decode(state, &ledger);
    if (rc == QF_EUNSUPPORTED)
        return qf_err_set(err, rc,
                          "the state of partition %" PRIu32 " in the snapshot was written by a "
                          "newer version: start that one",
                          partition->number);
    if (rc)
        return qf_err_set(err, QF_ECORRUPT,
                          "the state of partition %" PRIu32 " in the snapshot cannot be read",
                          partition->number);
    (void)in_ledger_free(partition->ledger);
    partition->ledger = ledger;
    in_intake_reset(partition->intake);
    if (partition->head)
        in_head_reset(partition->head);
    return QF_OK;
}

static void note_applied(struct partition *partition, const struct in_record *record)
{
    struct in_partition_figures *figures = &partition->all->figures;

    switch (record->kind) {
    case IN_SAMPLES:
        add(&figures->samples, record->accepted.samples);
        add(&figures->histograms, record->accepted.histograms);
        add(&figures->exemplars, record->accepted.exemplars);
        break;
    case IN_SEAL:
        add(&figures->seals, 1);
        break;
    case IN_SEALED:
        add(&figures->sealed, 1);
        break;
    case IN_FLOOR:
        add(&figures->floors, 1);
        break;
    case IN_BELOW:
        add(&figures->belows, 1);
        break;
    case IN_ELECT:
    case IN_NOTE:
    case IN_PIN:
        break;
    }
}

/* Two of a SEALED, or a SEAL of a range that another leader closed, are ordinary, and so is a BELOW that a
 * range was opened before; samples are not. */
static void note_odd(struct partition *partition, uint64_t index, const struct in_record *record)
{
    add(&partition->all->figures.bad, 1);
    if (record->kind == IN_SAMPLES || record->kind == IN_BELOW || record->kind == IN_ELECT ||
        record->kind == IN_PIN || record->note.len) {
        partition->odd_is_note[partition->odd_next % ODD_MAX] = record->kind == IN_NOTE;
        partition->odd[partition->odd_next++ % ODD_MAX] = index;
    }
    if (record->kind != IN_SAMPLES)
        return;
    QF_LOG_WARN("samples in the log count for nothing", QF_KV_U64("partition", partition->number),
                QF_KV_U64("index", index));
}

/* Whether a record that the restored ledger counts already is in the tenant's open range. */
static bool is_open_at(const struct in_ledger *ledger, const struct in_record *record,
                       uint64_t index)
{
    const struct in_tenant *tenant =
        record->tenant.len ? in_ledger_tenant(ledger, record->tenant) : NULL;
    const struct in_range *open = tenant ? in_tenant_open(tenant) : NULL;

    return open && index >= open->from;
}

static void apply(void *ctx, const struct qn_record *entry, bool again)
{
    struct partition *partition = ctx;
    struct in_record record;
    struct qf_err err = { 0 };
    enum in_verdict verdict;

    if (in_record_decode(entry->data, &record, &err) != QF_OK) {
        /* The same on every node: it counts for nothing. */
        add(&partition->all->figures.bad, 1);
        QF_LOG_ERROR("a record of the log cannot be read",
                     QF_KV_U64("partition", partition->number), QF_KV_U64("index", entry->offset),
                     QF_KV_STR("reason", err.msg));
        return;
    }
    if (again) {
        if (record.kind == IN_SAMPLES && is_open_at(partition->ledger, &record, entry->offset))
            in_intake_applied(partition->intake, &record, IN_APPLIED);
    } else {
        verdict = in_ledger_apply(partition->ledger, entry->offset, &record, NULL);
        in_intake_applied(partition->intake, &record, verdict);
        if (verdict == IN_APPLIED)
            note_applied(partition, &record);
        else
            note_odd(partition, entry->offset, &record);
    }
    if (partition->head)
        in_head_apply(partition->head, partition->ledger, entry->offset, &record);
}

static void save(void *ctx, struct qf_strbuf *buf)
{
    in_ledger_encode(buf, ((struct partition *)ctx)->ledger);
}

static uint64_t needed_from(void *ctx)
{
    return in_ledger_needed_from(((struct partition *)ctx)->ledger);
}

/* --- leading --- */

static struct qf_limits limits_of(void *ctx, struct qf_str tenant)
{
    return qf_limits_file_of(((struct in_partitions *)ctx)->options.tenants, tenant);
}

/* What this node gives out of tenants' limits, and what these are, follow who leads and the file. */
static void look_at_limits(struct in_partitions *all)
{
    struct qn_node *node = atomic_load(&all->node);
    uint64_t version = qf_limits_file_version(all->options.tenants);

    if (version != all->limits_version)
        in_quota_renew(all->quota);
    all->limits_version = version;
    in_quota_share(all->quota, all->led, QF_MAX(node ? qn_partitions(node) : 0, all->led));
}

static void lead(void *ctx, uint64_t term)
{
    struct partition *partition = ctx;
    const struct in_partitions_options *options = &partition->all->options;

    if (partition->leads != (term != 0))
        partition->all->led += term ? 1 : UINT32_MAX;
    look_at_limits(partition->all);
    partition->leads = term != 0;
    if (term)
        in_intake_begin(partition->intake, partition->ledger, qf_clock_wall_ms(),
                        qf_clock_mono_ms());
    else
        in_intake_end(partition->intake);
    if (options->leads)
        options->leads(options->ctx, partition->number, partition->queue_id, partition->leads);
}

static enum qn_proposal refuse(struct qn_ask *ask, qf_rc rc, const char *why)
{
    (void)qf_err_set(&ask->answer.err, rc, "%s", why);
    return QN_ANSWERED;
}

/* Memory of heads is above @times its bound. */
static bool is_head_above(const struct partition *partition, uint64_t times)
{
    const struct in_partitions_options *options = &partition->all->options;

    return options->head_bytes_max && options->head_bytes &&
           options->head_bytes(options->ctx) / times > options->head_bytes_max;
}

static bool is_full(struct partition *partition)
{
    const struct in_partitions_options *options = &partition->all->options;

    return options->data_bytes_max && options->data_bytes &&
           options->data_bytes(options->ctx) > options->data_bytes_max;
}

static enum qn_proposal propose_samples(struct partition *partition, struct qn_ask *ask,
                                        const struct in_record *batch, struct qf_strbuf *record,
                                        struct in_pending **ret_pending)
{
    struct in_partition_figures *figures = &partition->all->figures;
    struct in_outcome outcome;
    enum in_intake_verdict verdict;

    if (is_full(partition))
        return refuse(ask, QF_ENOSPC,
                      "too much waits to be sealed into the store: is the store reachable?");
    if (is_head_above(partition, 2))
        return refuse(ask, QF_ENOSPC, "the memory for what is not in the store yet is used up");
    look_at_limits(partition->all);
    verdict = in_intake_take(partition->intake, partition->ledger, batch, qf_clock_wall_ms(),
                             qf_clock_mono_ms(), record, &outcome, ret_pending);
    for (size_t i = 0; i < QF_WRITE_LIMITS; i++)
        add(&figures->limited[i], outcome.limited_by[i]);
    switch (verdict) {
    case IN_INTAKE_RECORD:
        add(&figures->taken, outcome.accepted.samples + outcome.accepted.histograms);
        add(&figures->refused, outcome.refused.samples + outcome.refused.histograms);
        return QN_PROPOSED;
    case IN_INTAKE_WAIT:
        return QN_DEFERRED;
    case IN_INTAKE_OTHER:
        return refuse(ask, QF_EEXIST, "the Idempotency-Key was used for another body");
    case IN_INTAKE_KNOWN:
        add(&figures->repeated, 1);
        break;
    case IN_INTAKE_NOTHING:
        add(&figures->refused, outcome.refused.samples + outcome.refused.histograms);
        break;
    }
    in_outcome_encode(&ask->answer.text, &outcome);
    return QN_ANSWERED;
}

/* Whether it is the oldest closed range that is said to be in the store. */
static bool is_next_to_seal(const struct in_ledger *ledger, const struct in_record *sealed)
{
    const struct in_tenant *tenant = in_ledger_tenant(ledger, sealed->tenant);
    const struct in_range *range = tenant ? in_tenant_next_to_seal(tenant) : NULL;

    return range && range->from == sealed->from && range->to == sealed->to;
}

static enum qn_proposal propose_other(struct partition *partition, struct qn_ask *ask,
                                      const struct in_record *wanted, struct qf_str bytes,
                                      struct qf_strbuf *record, struct in_pending **ret_pending)
{
    *ret_pending = NULL;
    if (wanted->kind == IN_SEAL) {
        *ret_pending = in_intake_seal(partition->intake, partition->ledger, wanted->tenant, record);
    } else if (wanted->kind == IN_FLOOR) {
        *ret_pending =
            in_intake_floor(partition->intake, partition->ledger, wanted->floor_ms, record);
    } else if (is_next_to_seal(partition->ledger, wanted)) {
        qf_strbuf_str(record, bytes);
        *ret_pending = in_intake_pass(partition->intake);
    }
    return *ret_pending ? QN_PROPOSED : refuse(ask, QF_EINVAL, "it is not its turn");
}

/* A node that does not know the record would go on as if there were none: @what has to wait. */
static bool all_know(struct partition *partition, struct qn_ask *ask, uint32_t records,
                     const char *what)
{
    const struct in_partitions_options *options = &partition->all->options;
    char name[QC_NAME_SIZE];

    if (!options->all_know || options->all_know(options->ctx, ask, records, name))
        return true;
    (void)qf_err_set(&ask->answer.err, QF_EUNAVAILABLE,
                     "node %s is of an older release, or was not seen since this node started: "
                     "%s when every node runs this release",
                     name, what);
    return false;
}

static enum qn_proposal propose_below(struct partition *partition, struct qn_ask *ask,
                                      const struct in_record *wanted, struct qf_strbuf *record,
                                      struct in_pending **ret_pending)
{
    uint64_t settled;

    if (!in_ledger_knows_below(partition->ledger) &&
        !all_know(partition, ask, IN_RECORDS_BELOW, "compaction begins"))
        return QN_ANSWERED;
    *ret_pending = in_intake_below(partition->intake, partition->ledger, wanted, qf_clock_wall_ms(),
                                   qf_clock_mono_ms(), record, &settled);
    if (*ret_pending)
        return QN_PROPOSED;
    qf_strbuf_printf(&ask->answer.text, "%" PRIu64, settled);
    return QN_ANSWERED;
}

static enum qn_proposal propose_elect(struct partition *partition, struct qn_ask *ask,
                                      const struct in_record *wanted, struct qf_strbuf *record,
                                      struct in_pending **ret_pending)
{
    if (!in_ledger_knows_elect(partition->ledger) &&
        !all_know(partition, ask, IN_RECORDS_ELECT, "replicas are elected"))
        return QN_ANSWERED;
    switch (in_intake_elect(partition->intake, partition->ledger, wanted, qf_clock_wall_ms(),
                            qf_clock_mono_ms(), record, ret_pending)) {
    case IN_ELECT_IS:
        qf_strbuf_putc(&ask->answer.text, '1');
        return QN_ANSWERED;
    case IN_ELECT_IS_NOT:
        qf_strbuf_putc(&ask->answer.text, '0');
        return QN_ANSWERED;
    case IN_ELECT_RECORD:
        return QN_PROPOSED;
    case IN_ELECT_WAIT:
        return QN_DEFERRED;
    case IN_ELECT_FULL:
        break;
    }
    return refuse(ask, QF_EBUSY, "the tenant has too many clusters of senders");
}

static enum qn_proposal propose_pin(struct partition *partition, struct qn_ask *ask,
                                    const struct in_record *wanted, struct qf_strbuf *record,
                                    struct in_pending **ret_pending)
{
    uint64_t position;

    /* Every node knows the record: there were no rules before all did. */
    switch (in_intake_pin(partition->intake, partition->ledger, wanted, qf_clock_wall_ms(),
                          qf_clock_mono_ms(), record, &position, ret_pending)) {
    case IN_PIN_IS:
        qf_strbuf_printf(&ask->answer.text, "%" PRIu64, position);
        return QN_ANSWERED;
    case IN_PIN_RECORD:
        return QN_PROPOSED;
    case IN_PIN_WAIT:
        return QN_DEFERRED;
    case IN_PIN_OTHER:
        break;
    }
    return refuse(ask, QF_EEXIST, "the Idempotency-Key was used for another body");
}

/* What is noted of the manifest counts or does not when it is applied: another note may come in between. */
static enum qn_proposal propose_note(struct partition *partition, struct qn_ask *ask,
                                     struct qf_str bytes, struct qf_strbuf *record,
                                     struct in_pending **ret_pending)
{
    if (!in_ledger_manifest(partition->ledger) &&
        !all_know(partition, ask, IN_RECORDS_RING, "blobs are kept on our own nodes"))
        return QN_ANSWERED;
    qf_strbuf_str(record, bytes);
    *ret_pending = in_intake_pass(partition->intake);
    return *ret_pending ? QN_PROPOSED : refuse(ask, QF_EBUSY, "too much is under way");
}

static enum qn_proposal propose(void *ctx, struct qn_ask *ask, struct qf_strbuf *record,
                                void **ret_pending)
{
    struct partition *partition = ctx;
    struct in_pending *pending = NULL;
    struct in_record wanted;
    struct qf_str bytes;
    struct qf_err err = { 0 };
    enum qn_proposal proposal;
    qf_rc rc;

    if (ask->records.count != 1)
        return refuse(ask, QF_EPROTO, "a write is one record");
    bytes = qn_ask_record(ask, 0);
    /* What another node sent is looked at whole; what this process made is what it made. */
    rc = ask->forwarded ? in_record_decode(bytes, &wanted, &err)
                        : in_record_decode_own(bytes, &wanted, &err);
    if (rc != QF_OK)
        return refuse(ask, QF_EPROTO, err.msg);
    if (wanted.kind == IN_SAMPLES)
        proposal = propose_samples(partition, ask, &wanted, record, &pending);
    else if (wanted.kind == IN_BELOW)
        proposal = propose_below(partition, ask, &wanted, record, &pending);
    else if (wanted.kind == IN_ELECT)
        proposal = propose_elect(partition, ask, &wanted, record, &pending);
    else if (wanted.kind == IN_PIN)
        proposal = propose_pin(partition, ask, &wanted, record, &pending);
    else if (wanted.kind == IN_NOTE ||
             (wanted.note.len && is_next_to_seal(partition->ledger, &wanted)))
        proposal = propose_note(partition, ask, bytes, record, &pending);
    else
        proposal = propose_other(partition, ask, &wanted, bytes, record, &pending);
    *ret_pending = pending;
    return proposal;
}

/* The same once more may count, but for a note: whoever wrote it looks how things are now. */
static qf_rc was_odd(const struct partition *partition, uint64_t index)
{
    for (size_t i = 0; i < ODD_MAX; i++)
        if (index && partition->odd[i] == index)
            return partition->odd_is_note[i] ? QF_ECONFLICT : QF_EUNAVAILABLE;
    return QF_OK;
}

static void ended(void *ctx, void *pending, qf_rc rc, uint64_t index, struct qn_answer *answer)
{
    struct partition *partition = ctx;
    uint64_t settles = in_pending_settles(pending);
    struct in_outcome outcome;
    bool replaces, elects = in_pending_elects(pending, &replaces);
    qf_rc odd;

    in_intake_ended(partition->intake, pending, rc, &outcome);
    if (elects && replaces && rc == QF_OK)
        add(&partition->all->figures.failovers, 1);
    if (!answer || rc != QF_OK)
        return;
    odd = was_odd(partition, index);
    if (odd)
        (void)qf_err_set(&answer->err, odd,
                         odd == QF_ECONFLICT
                             ? "the note counts for nothing as things stand: a name of it was "
                               "removed, or owners were counted in an earlier epoch"
                             : "the request was not written: try again");
    else if (elects)
        qf_strbuf_putc(&answer->text, '1');
    else if (settles)
        qf_strbuf_printf(&answer->text, "%" PRIu64, settles);
    else
        in_outcome_encode(&answer->text, &outcome);
}

static void answer(void *ctx, struct qn_ask *ask, uint64_t index)
{
    struct partition *partition = ctx;
    const struct in_partitions_options *options = &partition->all->options;
    struct qf_str question = QF_STR("");

    (void)index;
    if (ask->records.count)
        question = qn_ask_record(ask, 0);
    if (options->answer)
        options->answer(options->ctx, partition->number, partition->queue_id, partition->ledger,
                        question, ask);
    else
        (void)qf_err_set(&ask->answer.err, QF_EUNSUPPORTED, "no such question");
}

/* --- time --- */

static void forget(void *ctx, struct qn_ask *ask)
{
    (void)ctx;
    (void)qn_ask_free(ask);
}

struct qn_ask *in_partition_ask(uint32_t partition, struct qf_str bytes)
{
    char name[QN_NAME_SIZE];
    struct qn_ask *ask;

    qn_partition_name(partition, name);
    ask = qn_ask_new(QN_WRITE, qf_str_from(name));
    ask->operates = true;
    qn_ask_add(ask, bytes);
    return ask;
}

/* Ask this node, which leads, to append a record. If it cannot now the next second tries again. */
static void want(struct partition *partition, struct qf_strbuf *record)
{
    struct qn_node *node = atomic_load(&partition->all->node);
    struct qn_ask *ask = in_partition_ask(partition->number, qf_strbuf_view(record));

    ask->done = forget;
    if (!node || !qn_ask(node, ask))
        (void)qn_ask_free(ask);
    qf_strbuf_reset(record);
}

static void close_ranges(struct partition *partition, int64_t mono_ms)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf record = QF_STRBUF_INIT;
    const struct in_partitions_options *options = &partition->all->options;
    uint64_t round = atomic_load(&partition->all->seal_round);
    int64_t age = partition->seal_round == round ? options->seal_age_ms : 0;
    struct qf_str tenant;
    size_t i = 0;

    partition->seal_round = round;
    if (is_head_above(partition, 1))
        age = QF_MIN(age, PRESSED_MS);
    for (int n = 0; n < SEALS_AT_ONCE && in_intake_due(partition->intake, &i, mono_ms, age,
                                                       options->seal_bytes, &tenant);
         n++) {
        in_record_put_seal(&record, tenant, 0);
        want(partition, &record);
    }
}

static void move_floor(struct partition *partition, int64_t mono_ms)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf record = QF_STRBUF_INIT;
    int64_t age = partition->all->options.floor_age_ms, floor;

    if (!age || mono_ms < partition->floor_due_ms)
        return;
    partition->floor_due_ms = mono_ms + FLOOR_EVERY_MS;
    floor = in_ledger_floor_due(partition->ledger, qf_clock_wall_ms(), age);
    floor -= floor % FLOOR_STEP_MS;
    if (floor <= in_ledger_floor(partition->ledger) || floor <= 0)
        return;
    in_record_put_floor(&record, floor);
    want(partition, &record);
}

static void tick(void *ctx)
{
    struct partition *partition = ctx;
    struct in_partitions *all = partition->all;
    uint64_t series = 0, active = 0, open = 0;

    if (partition->leads) {
        in_intake_tick(partition->intake, qf_clock_mono_ms());
        close_ranges(partition, qf_clock_mono_ms());
        move_floor(partition, qf_clock_mono_ms());
    }
    all->series[partition->number] = partition->leads ? in_intake_series(partition->intake) : 0;
    all->active[partition->number] = partition->leads ? in_intake_active(partition->intake) : 0;
    all->open[partition->number] = in_intake_open(partition->intake);
    for (size_t i = 0; i < QN_PARTITIONS_MAX; i++) {
        series += all->series[i];
        active += all->active[i];
        open += all->open[i];
    }
    atomic_store(&all->figures.series, series);
    atomic_store(&all->figures.active, active);
    atomic_store(&all->figures.open, open);
}

/* --- opening and closing --- */

static void close_partition(void *ctx)
{
    struct partition *partition = ctx;

    partition->all->series[partition->number] = partition->all->open[partition->number] = 0;
    partition->all->active[partition->number] = 0;
    partition->all->led -= partition->leads;
    partition->intake = in_intake_free(partition->intake);
    partition->ledger = in_ledger_free(partition->ledger);
    free(partition);
}

static bool open_partition(void *ctx, const char *queue, uint64_t id, struct qn_application *ret)
{
    struct in_partitions *all = ctx;
    struct partition *partition;
    uint64_t seed = 0;
    uint32_t number;

    if (!qn_name_partition(queue, &number))
        return false;
    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
        seed ^= (uint64_t)qf_clock_mono_ns();
    partition = qf_xcalloc(1, sizeof(*partition));
    partition->all = all;
    partition->number = number;
    partition->queue_id = id;
    partition->ledger = in_ledger_new();
    partition->intake = in_intake_new(&all->options.limits, all->quota, seed);
    partition->seal_round = atomic_load(&all->seal_round);
    if (all->options.open_head)
        partition->head = all->options.open_head(all->options.ctx, number, id);
    *ret = (struct qn_application){ .ctx = partition,
                                    .restore = restore,
                                    .apply = apply,
                                    .save = save,
                                    .needed_from = needed_from,
                                    .lead = lead,
                                    .propose = propose,
                                    .ended = ended,
                                    .answer = answer,
                                    .tick = tick,
                                    .close = close_partition };
    return true;
}

struct in_partitions *in_partitions_new(const struct in_partitions_options *options)
{
    struct in_partitions *partitions = qf_xcalloc(1, sizeof(*partitions));

    partitions->options = *options;
    partitions->quota = in_quota_new(limits_of, partitions);
    return partitions;
}

struct in_partitions *in_partitions_free(struct in_partitions *partitions)
{
    if (partitions)
        partitions->quota = in_quota_free(partitions->quota);
    free(partitions);
    return NULL;
}

struct qn_applications in_partitions_applications(struct in_partitions *partitions)
{
    return (struct qn_applications){ partitions, open_partition };
}

void in_partitions_set_node(struct in_partitions *partitions, struct qn_node *node)
{
    atomic_store(&partitions->node, node);
}

void in_partitions_seal_all(struct in_partitions *partitions)
{
    atomic_fetch_add(&partitions->seal_round, 1);
}

struct in_partition_figures *in_partitions_figures(struct in_partitions *partitions)
{
    return &partitions->figures;
}
