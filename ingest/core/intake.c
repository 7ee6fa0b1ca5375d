/* intake.c - what the leader of a partition makes of requests. */
#include "ingest/core/intake.h"

#include <assert.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "ingest/core/intake_int.h"

/* So few ranges are left for SEALs that a range can always be opened behind one. */
#define RANGES_LEFT 2

void in_intake_forget_told(struct in_intake_tenant *tenant)
{
    in_series_table_clear(&tenant->metadata);
    tenant->range++;
    tenant->told = 0;
}

static void series_gone(void *ctx, const struct in_known_series *series)
{
    in_usage_remove(((struct in_intake_tenant *)ctx)->usage, series->metric);
}

/* Nor which series are active. */
static void forget_series(struct in_intake_tenant *tenant)
{
    in_series_table_sweep(&tenant->series, &(uint32_t){ 0 }, 2 * tenant->series.capacity,
                          UINT32_MAX, series_gone, tenant);
    assert(!tenant->series.count);
    in_series_table_clear(&tenant->series);
    in_intake_forget_told(tenant);
}

struct in_intake *in_intake_new(const struct in_intake_limits *limits, struct in_quota *quota,
                                uint64_t seed)
{
    struct in_intake *intake = qf_xcalloc(1, sizeof(*intake));

    intake->limits = *limits;
    intake->quota = quota;
    intake->seed = seed;
    intake->floor_ms = INT64_MIN;
    intake->min_under_way = INT64_MAX;
    intake->scratch = qf_arena_new((size_t)16 << 20);
    return intake;
}

struct in_intake *in_intake_free(struct in_intake *intake)
{
    if (!intake)
        return NULL;
    while (intake->all) {
        struct in_pending *pending = intake->all;

        intake->all = pending->next;
        free(pending);
    }
    for (size_t i = 0; i < intake->tenants.count; i++) {
        forget_series(intake->tenants.items[i]);
        free(intake->tenants.items[i]->name);
        free(intake->tenants.items[i]);
    }
    QF_VEC_DONE(&intake->tenants);
    in_intake_forget_elections(intake);
    qf_map_done(&intake->names);
    QF_VEC_DONE(&intake->picked);
    QF_VEC_DONE(&intake->samples);
    qf_strbuf_done(&intake->extras);
    intake->scratch = qf_arena_free(intake->scratch);
    free(intake);
    return NULL;
}

/* --- tenants --- */

static struct in_intake_tenant *find_tenant(const struct in_intake *intake, struct qf_str name)
{
    const uint64_t *place = qf_map_get(&intake->names, name);

    return place ? intake->tenants.items[*place] : NULL;
}

static struct in_intake_tenant *make_tenant(struct in_intake *intake, struct qf_str name)
{
    struct in_intake_tenant *tenant = find_tenant(intake, name);

    if (tenant)
        return tenant;
    tenant = qf_xcalloc(1, sizeof(*tenant));
    tenant->name = qf_xmemdup0(name.data, name.len);
    tenant->max_ts = INT64_MIN;
    tenant->range = 1;
    tenant->usage = in_quota_usage(intake->quota, name);
    (void)qf_map_put(&intake->names, (struct qf_str){ tenant->name, name.len },
                     intake->tenants.count, NULL);
    QF_VEC_PUSH(&intake->tenants, tenant);
    return tenant;
}

struct in_intake_tenant *in_intake_admit(struct in_intake *intake, const struct in_ledger *ledger,
                                         struct qf_str name)
{
    struct in_intake_tenant *tenant = find_tenant(intake, name);

    if (tenant)
        return tenant;
    /* Every tenant of the intake will be in the ledger or is there. */
    if (intake->tenants.count >= IN_TENANTS_MAX || !in_ledger_room(ledger, name))
        return NULL;
    return make_tenant(intake, name);
}

void in_intake_applied(struct in_intake *intake, const struct in_record *record,
                       enum in_verdict verdict)
{
    if (verdict != IN_APPLIED)
        return;
    if (record->kind == IN_SAMPLES) {
        struct in_intake_tenant *tenant = make_tenant(intake, record->tenant);

        tenant->seen = QF_MAX(tenant->seen, record->numbers);
    } else if (record->kind == IN_SEAL) {
        make_tenant(intake, record->tenant)->seen = 0;
    }
}

void in_intake_reset(struct in_intake *intake)
{
    for (size_t i = 0; i < intake->tenants.count; i++)
        intake->tenants.items[i]->seen = 0;
}

/* --- leading --- */

/* As the applied log left it. */
static void start_tenant(struct in_intake_tenant *tenant, const struct in_ledger *ledger,
                         int64_t wall_ms, int64_t mono_ms)
{
    const struct in_tenant *before = in_ledger_tenant(ledger, qf_str_from(tenant->name));
    const struct in_range *open = before ? in_tenant_open(before) : NULL;
    int64_t age = open ? wall_ms - (int64_t)(open->generation / 1000) : 0;

    forget_series(tenant);
    tenant->next_number = tenant->seen;
    tenant->resume_number = 0;
    tenant->max_ts = before ? before->max_ts : INT64_MIN;
    tenant->open = open != NULL;
    tenant->sealing = false;
    tenant->opened_ms = mono_ms - QF_MAX(age, INT64_C(0));
    tenant->range_bytes = 0;
}

void in_intake_begin(struct in_intake *intake, const struct in_ledger *ledger, int64_t wall_ms,
                     int64_t mono_ms)
{
    intake->leads = true;
    intake->epoch++;
    in_intake_forget_elections(intake);
    intake->under_way = 0;
    intake->min_under_way = INT64_MAX;
    intake->floor_ms = in_ledger_floor(ledger);
    intake->time_ms = QF_MAX(wall_ms, in_ledger_time(ledger));
    intake->time_mono_ms = mono_ms;
    for (size_t i = 0; i < in_ledger_tenant_count(ledger); i++)
        (void)make_tenant(intake, qf_str_from(in_ledger_tenant_at(ledger, i)->name));
    for (size_t i = 0; i < intake->tenants.count; i++)
        start_tenant(intake->tenants.items[i], ledger, wall_ms, mono_ms);
}

void in_intake_end(struct in_intake *intake)
{
    intake->leads = false;
    intake->epoch++;
    in_intake_forget_elections(intake);
    for (size_t i = 0; i < intake->tenants.count; i++)
        forget_series(intake->tenants.items[i]);
}

int64_t in_intake_time(struct in_intake *intake, int64_t wall_ms, int64_t mono_ms)
{
    int64_t least = intake->time_ms + QF_MAX(mono_ms - intake->time_mono_ms, INT64_C(0));

    intake->time_ms = QF_MAX(wall_ms, least);
    intake->time_mono_ms = mono_ms;
    return intake->time_ms;
}

/* --- what is under way --- */

static struct in_pending **bucket_of(struct in_intake *intake, const uint8_t key[IN_HASH_BYTES])
{
    uint32_t hash;

    memcpy(&hash, key, sizeof(hash));
    return &intake->keys[hash % IN_PENDING_BUCKETS];
}

struct in_pending *in_intake_pending(struct in_intake *intake, const struct in_request_key *key)
{
    struct in_pending *pending = *bucket_of(intake, key->key);

    while (pending && memcmp(pending->key.key, key->key, IN_HASH_BYTES) != 0)
        pending = pending->chain;
    return pending;
}

struct in_pending *in_intake_add_pending(struct in_intake *intake, enum in_record_kind kind,
                                         struct in_intake_tenant *tenant,
                                         const struct in_request_key *key)
{
    struct in_pending *pending = qf_xcalloc(1, sizeof(*pending));

    *pending = (struct in_pending){
        .kind = kind, .epoch = intake->epoch, .tenant = tenant, .next = intake->all
    };
    if (intake->all)
        intake->all->prev = pending;
    intake->all = pending;
    intake->under_way++;
    if (key && key->given) {
        struct in_pending **bucket = bucket_of(intake, key->key);

        pending->key = *key;
        pending->chain = *bucket;
        *bucket = pending;
    }
    return pending;
}

static void drop_pending(struct in_intake *intake, struct in_pending *pending)
{
    if (pending->key.given) {
        struct in_pending **link = bucket_of(intake, pending->key.key);

        while (*link != pending)
            link = &(*link)->chain;
        *link = pending->chain;
    }
    if (pending->prev)
        pending->prev->next = pending->next;
    else
        intake->all = pending->next;
    if (pending->next)
        pending->next->prev = pending->prev;
    free(pending);
}

/* It did not get into the log: neither did the labels that came with it, or its end of a range. */
static void undo(struct in_pending *pending)
{
    struct in_intake_tenant *tenant = pending->tenant;

    if (!tenant)
        return;
    in_intake_forget_told(tenant);
    if (pending->opens)
        tenant->open = false;
    if (pending->kind == IN_SEAL) {
        tenant->next_number = QF_MAX(tenant->next_number, tenant->resume_number);
        tenant->open = true;
    }
}

void in_intake_ended(struct in_intake *intake, struct in_pending *pending, qf_rc rc,
                     struct in_outcome *ret_outcome)
{
    *ret_outcome = pending->outcome;
    if (pending->epoch == intake->epoch) {
        if (pending->kind == IN_SEAL)
            pending->tenant->sealing = false;
        if (pending->election)
            in_intake_elected(pending, rc);
        else if (rc != QF_OK)
            undo(pending);
        intake->under_way--;
        if (!intake->under_way)
            intake->min_under_way = INT64_MAX;
    }
    drop_pending(intake, pending);
}

/* --- the other records --- */

struct in_pending *in_intake_seal(struct in_intake *intake, const struct in_ledger *ledger,
                                  struct qf_str name, struct qf_strbuf *buf)
{
    const struct in_tenant *before = in_ledger_tenant(ledger, name);
    struct in_intake_tenant *tenant = find_tenant(intake, name);
    struct in_pending *pending;

    if (!intake->leads || !tenant || !before || !tenant->open || tenant->sealing ||
        before->range_count + RANGES_LEFT > IN_RANGES_MAX)
        return NULL;
    in_record_put_seal(buf, name, before->generation + 1);
    pending = in_intake_add_pending(intake, IN_SEAL, tenant, NULL);
    in_intake_forget_told(tenant);
    tenant->resume_number = tenant->next_number;
    tenant->next_number = 0;
    tenant->open = false;
    tenant->sealing = true;
    return pending;
}

struct in_pending *in_intake_floor(struct in_intake *intake, const struct in_ledger *ledger,
                                   int64_t floor_ms, struct qf_strbuf *buf)
{
    if (!intake->leads || floor_ms <= intake->floor_ms || floor_ms > intake->min_under_way ||
        floor_ms > in_ledger_oldest(ledger))
        return NULL;
    intake->floor_ms = floor_ms;
    in_record_put_floor(buf, floor_ms);
    return in_intake_add_pending(intake, IN_FLOOR, NULL, NULL);
}

struct in_pending *in_intake_below(struct in_intake *intake, const struct in_ledger *ledger,
                                   const struct in_record *wanted, int64_t wall_ms, int64_t mono_ms,
                                   struct qf_strbuf *buf, uint64_t *ret_settled)
{
    const struct in_tenant *before = in_ledger_tenant(ledger, wanted->tenant);
    int64_t time_ms = in_intake_time(intake, wall_ms, mono_ms);
    uint64_t now = time_ms > 0 && time_ms < INT64_MAX / 1000 ? (uint64_t)time_ms * 1000 : 0;
    /* Not ahead of the time: generations stay what the time is. */
    uint64_t settles = QF_MIN(wanted->generation, now ? now - 1 : 0);
    struct in_pending *pending;

    assert(intake->leads);
    if (before)
        settles = QF_MIN(settles, in_tenant_settled(before));
    *ret_settled = 0;
    if (!settles || !in_intake_admit(intake, ledger, wanted->tenant))
        return NULL;
    *ret_settled = settles;
    if (before && settles <= before->below)
        return NULL;
    in_record_put_below(buf, wanted->tenant, settles, time_ms, wanted->keep_ms);
    pending = in_intake_add_pending(intake, IN_BELOW, NULL, NULL);
    pending->settles = settles;
    return pending;
}

uint64_t in_pending_settles(const struct in_pending *pending)
{
    return pending->settles;
}

enum in_pin_verdict in_intake_pin(struct in_intake *intake, const struct in_ledger *ledger,
                                  const struct in_record *wanted, int64_t wall_ms, int64_t mono_ms,
                                  struct qf_strbuf *buf, uint64_t *ret_position,
                                  struct in_pending **ret_pending)
{
    const struct in_key_entry *before = in_ledger_key(ledger, wanted->key.key);
    struct in_record record = *wanted;

    *ret_pending = NULL;
    if (before && memcmp(before->body, wanted->key.body, IN_HASH_BYTES) != 0)
        return IN_PIN_OTHER;
    if (before) {
        *ret_position = before->accepted.series;
        return IN_PIN_IS;
    }
    if (in_intake_pending(intake, &wanted->key))
        return IN_PIN_WAIT;
    record.time_ms = in_intake_time(intake, wall_ms, mono_ms);
    in_record_put_pin(buf, &record);
    *ret_pending = in_intake_add_pending(intake, IN_PIN, NULL, &wanted->key);
    (*ret_pending)->settles = wanted->position;
    return IN_PIN_RECORD;
}

struct in_pending *in_intake_pass(struct in_intake *intake)
{
    return in_intake_add_pending(intake, IN_SEALED, NULL, NULL);
}

bool in_intake_due(const struct in_intake *intake, size_t *i, int64_t mono_ms, int64_t age_ms,
                   uint64_t bytes, struct qf_str *ret_tenant)
{
    while (intake->leads && *i < intake->tenants.count) {
        const struct in_intake_tenant *tenant = intake->tenants.items[(*i)++];

        if (!tenant->open || tenant->sealing ||
            (mono_ms - tenant->opened_ms < age_ms && tenant->range_bytes < bytes &&
             tenant->next_number < IN_SERIES_MAX / 2))
            continue;
        *ret_tenant = qf_str_from(tenant->name);
        return true;
    }
    return false;
}

uint64_t in_intake_series(const struct in_intake *intake)
{
    uint64_t series = 0;

    for (size_t i = 0; i < intake->tenants.count; i++)
        series += intake->tenants.items[i]->told;
    return series;
}

uint64_t in_intake_active(const struct in_intake *intake)
{
    uint64_t series = 0;

    for (size_t i = 0; i < intake->tenants.count; i++)
        series += intake->tenants.items[i]->series.count;
    return series;
}

/* Every place is looked at twice within the time that a series may be idle. */
void in_intake_tick(struct in_intake *intake, int64_t mono_ms)
{
    int64_t seconds = QF_MAX(intake->limits.idle_ms / 2000, INT64_C(1));
    int64_t before_s = (mono_ms - intake->limits.idle_ms) / 1000;

    for (size_t i = 0; i < intake->tenants.count && before_s > 0; i++) {
        struct in_intake_tenant *tenant = intake->tenants.items[i];

        in_series_table_sweep(&tenant->series, &tenant->swept,
                              (uint32_t)(tenant->series.capacity / seconds + 1), (uint32_t)before_s,
                              series_gone, tenant);
    }
}

uint64_t in_intake_open(const struct in_intake *intake)
{
    uint64_t open = 0;

    for (size_t i = 0; intake->leads && i < intake->tenants.count; i++)
        open += intake->tenants.items[i]->open;
    return open;
}
