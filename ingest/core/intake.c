/* intake.c - what the leader of a partition makes of requests. */
#include "ingest/core/intake.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "base/pure/vec.h"
#include "ingest/core/extras.h"
#include "ingest/core/series_table.h"

enum { BUCKETS = 4096, LABELS_SHOWN = 200, AHEAD = 16 };
/* So few ranges are left for SEALs that a range can always be opened behind one. */
#define RANGES_LEFT 2
/* A tenant's rate is looked at over so many seconds. */
#define RATE_SECONDS 2

struct tenant {
    char *name;
    /* On every node. */
    uint32_t seen; /* 1 + the greatest number in its open range */
    /* On the leader. */
    struct in_series_table series, metadata; /* the second one: by all that they say */
    uint32_t next_number, resume_number; /* the second one: if a SEAL under way comes to nothing */
    int64_t max_ts;                      /* of what was taken; INT64_MIN: nothing */
    bool open, sealing;                  /* its range; a SEAL is under way */
    int64_t opened_ms;                   /* by the clock that never goes back */
    uint64_t range_bytes;
    double tokens; /* samples that it may still send now */
    int64_t tokens_ms;
};

struct in_pending {
    enum in_record_kind kind;
    uint64_t epoch;
    struct tenant *tenant; /* NULL: of none */
    struct in_request_key key;
    struct in_outcome outcome;
    bool opens;                     /* SAMPLES: the first of a range */
    uint64_t settles;               /* BELOW */
    struct in_pending *chain;       /* of its bucket of keys */
    struct in_pending *prev, *next; /* of all */
};

struct in_intake {
    struct in_intake_limits limits;
    uint64_t seed, epoch;
    bool leads;
    struct qf_map names; /* to places in tenants */
    QF_VEC(struct tenant *) tenants;
    struct in_pending *keys[BUCKETS], *all;
    int64_t floor_ms;      /* applied or under way */
    int64_t min_under_way; /* the oldest sample taken since nothing was under way */
    uint32_t under_way;
    int64_t time_ms, time_mono_ms; /* of the last record, and when that was */
    /* Of one request. */
    QF_VEC(struct in_raw_series) picked;
    QF_VEC(struct in_raw_sample) samples;
    struct qf_strbuf extras;
    struct qf_arena *scratch;
};

/* What is in the log of its range is not known to this node, or no longer. */
static void forget_told(struct tenant *tenant)
{
    in_series_table_clear(&tenant->series);
    in_series_table_clear(&tenant->metadata);
}

struct in_intake *in_intake_new(const struct in_intake_limits *limits, uint64_t seed)
{
    struct in_intake *intake = qf_xcalloc(1, sizeof(*intake));

    intake->limits = *limits;
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
        forget_told(intake->tenants.items[i]);
        free(intake->tenants.items[i]->name);
        free(intake->tenants.items[i]);
    }
    QF_VEC_DONE(&intake->tenants);
    qf_map_done(&intake->names);
    QF_VEC_DONE(&intake->picked);
    QF_VEC_DONE(&intake->samples);
    qf_strbuf_done(&intake->extras);
    intake->scratch = qf_arena_free(intake->scratch);
    free(intake);
    return NULL;
}

/* --- tenants --- */

static struct tenant *find_tenant(const struct in_intake *intake, struct qf_str name)
{
    const uint64_t *place = qf_map_get(&intake->names, name);

    return place ? intake->tenants.items[*place] : NULL;
}

static struct tenant *make_tenant(struct in_intake *intake, struct qf_str name)
{
    struct tenant *tenant = find_tenant(intake, name);

    if (tenant)
        return tenant;
    tenant = qf_xcalloc(1, sizeof(*tenant));
    tenant->name = qf_xmemdup0(name.data, name.len);
    tenant->max_ts = INT64_MIN;
    (void)qf_map_put(&intake->names, (struct qf_str){ tenant->name, name.len },
                     intake->tenants.count, NULL);
    QF_VEC_PUSH(&intake->tenants, tenant);
    return tenant;
}

void in_intake_applied(struct in_intake *intake, const struct in_record *record,
                       enum in_verdict verdict)
{
    if (verdict != IN_APPLIED)
        return;
    if (record->kind == IN_SAMPLES) {
        struct tenant *tenant = make_tenant(intake, record->tenant);

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
static void start_tenant(struct tenant *tenant, const struct in_ledger *ledger, int64_t wall_ms,
                         int64_t mono_ms)
{
    const struct in_tenant *before = in_ledger_tenant(ledger, qf_str_from(tenant->name));
    const struct in_range *open = before ? in_tenant_open(before) : NULL;
    int64_t age = open ? wall_ms - (int64_t)(open->generation / 1000) : 0;

    forget_told(tenant);
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
    for (size_t i = 0; i < intake->tenants.count; i++)
        forget_told(intake->tenants.items[i]);
}

/* Time goes on at least as fast as the clock that never goes back, whatever the calendar does: keys
 * must get old. */
static int64_t record_time(struct in_intake *intake, int64_t wall_ms, int64_t mono_ms)
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
    return &intake->keys[hash % BUCKETS];
}

static struct in_pending *find_pending(struct in_intake *intake, const struct in_request_key *key)
{
    struct in_pending *pending = *bucket_of(intake, key->key);

    while (pending && memcmp(pending->key.key, key->key, IN_HASH_BYTES) != 0)
        pending = pending->chain;
    return pending;
}

static struct in_pending *add_pending(struct in_intake *intake, enum in_record_kind kind,
                                      struct tenant *tenant, const struct in_request_key *key)
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
    struct tenant *tenant = pending->tenant;

    if (!tenant)
        return;
    forget_told(tenant);
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
        if (rc != QF_OK)
            undo(pending);
        intake->under_way--;
        if (!intake->under_way)
            intake->min_under_way = INT64_MAX;
    }
    drop_pending(intake, pending);
}

/* --- requests --- */

struct taking {
    struct in_intake *intake;
    struct tenant *tenant;
    struct in_outcome *outcome;
    int64_t oldest, newest;     /* samples before and behind these are refused */
    int64_t min_ts, max_ts;     /* of what is taken */
    struct in_series_hash hash; /* of the series that is looked at */
};

static void count(struct in_amounts *amounts, const struct in_raw_sample *sample)
{
    if (sample->histogram)
        amounts->histograms++;
    else
        amounts->samples++;
}

/* Describe the first thing refused. */
static void note(struct taking *taking, const char *why, struct qf_str labels,
                 const struct in_raw_sample *sample)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf shown = QF_STRBUF_INIT;
    struct in_outcome *outcome = taking->outcome;
    struct qf_labels decoded;

    if (outcome->first[0])
        return;
    qf_arena_reset(taking->intake->scratch);
    if (qf_labels_decode(taking->intake->scratch, labels, &decoded, NULL) == QF_OK)
        qf_labels_print(&shown, decoded);
    for (size_t i = 0; i < shown.len; i++)
        if ((unsigned char)shown.data[i] < ' ' || shown.data[i] == 0x7f)
            shown.data[i] = '?';
    /* Cut where a character begins. */
    while (shown.len > LABELS_SHOWN ||
           (shown.len == LABELS_SHOWN && (shown.data[shown.len - 1] & 0x80)))
        shown.len--;
    (void)snprintf(outcome->first, sizeof(outcome->first), "%s (time %lld): series %.*s", why,
                   (long long)sample->ts, (int)shown.len, shown.len ? shown.data : "");
}

static const char *judge(const struct taking *taking, const struct in_known_series *known,
                         const struct in_raw_sample *sample, uint64_t value)
{
    if (sample->ts > taking->newest)
        return "out of bounds: a sample is too far in the future";
    if (sample->ts < taking->intake->floor_ms)
        return "out of bounds: a sample is older than what is accepted";
    if (sample->ts < taking->oldest)
        return "out of order: a sample is too far behind the newest";
    if (known && sample->ts == known->ts &&
        (value != known->value || sample->histogram != known->histogram))
        return "duplicate sample for timestamp: another value is there";
    return NULL;
}

static uint64_t value_of(const struct in_intake *intake, const struct in_raw_sample *sample)
{
    uint64_t bits;

    if (sample->histogram)
        return in_hash_value(intake->seed, sample->value);
    memcpy(&bits, sample->value.data, sizeof(bits));
    return bits;
}

/* Give the series a number. NULL: there is no room for one more. */
static struct in_known_series *number_series(struct taking *taking, struct in_raw_series *series)
{
    struct in_intake *intake = taking->intake;
    struct tenant *tenant = taking->tenant;
    struct in_known_series *known;

    if (tenant->series.count >= intake->limits.series_max || tenant->next_number >= IN_SERIES_MAX)
        return NULL;
    known = in_series_table_put(&tenant->series, taking->hash, &series->fresh);
    known->number = tenant->next_number++;
    return known;
}

/* Whether a sample of a series, which gets a number if it has none, can be written. */
static bool take_sample(struct taking *taking, struct in_raw_series *series,
                        struct in_known_series **known, const struct in_raw_sample *sample)
{
    uint64_t value = value_of(taking->intake, sample);
    const char *why = judge(taking, *known, sample, value);

    if (!why && !*known) {
        *known = number_series(taking, series);
        why = *known ? NULL : "the tenant has too many series";
        taking->outcome->limited |= !*known;
    }
    if (why) {
        count(&taking->outcome->refused, sample);
        note(taking, why, series->labels, sample);
        return false;
    }
    if (sample->ts >= (*known)->ts) {
        (*known)->ts = sample->ts;
        (*known)->value = value;
        (*known)->histogram = sample->histogram;
    }
    taking->min_ts = QF_MIN(taking->min_ts, sample->ts);
    taking->max_ts = QF_MAX(taking->max_ts, sample->ts);
    count(&taking->outcome->accepted, sample);
    return true;
}

/* Bytes that go into the log must be labels; those that have a number were looked at. */
static bool are_labels(struct in_intake *intake, struct qf_str bytes)
{
    struct qf_labels labels;

    qf_arena_reset(intake->scratch);
    return qf_labels_decode(intake->scratch, bytes, &labels, NULL) == QF_OK;
}

/* Pick those samples of a series that can be written. False: the bytes are malformed. */
static bool take_series(struct taking *taking, struct in_record_cursor *cursor,
                        struct in_raw_series *series)
{
    struct in_intake *intake = taking->intake;
    struct in_known_series *known = in_series_table_get(&taking->tenant->series, taking->hash);
    size_t first = intake->samples.count, wanted = series->sample_count;
    struct in_raw_sample sample;

    if (!series->fresh || (!known && !are_labels(intake, series->labels)))
        return false;
    series->fresh = false;
    for (size_t i = 0; i < wanted; i++) {
        if (!in_record_next_raw_sample(cursor, &sample))
            return false;
        if (take_sample(taking, series, &known, &sample))
            QF_VEC_PUSH(&intake->samples, sample);
    }
    series->sample_count = intake->samples.count - first;
    if (!series->sample_count)
        return true;
    series->number = known->number;
    series->samples = (const struct in_raw_sample *)(uintptr_t)first; /* the list moves: where */
    taking->outcome->accepted.series++;
    QF_VEC_PUSH(&intake->picked, *series);
    return true;
}

/* Hashes of the series to come, a few ahead, so that their places are in the cache by then. */
struct ahead {
    struct in_record_cursor cursor;
    uint32_t left, at;
    struct in_series_hash hashes[AHEAD];
};

static void look_ahead(struct taking *taking, struct ahead *ahead)
{
    struct in_raw_series series;

    if (!ahead->left || !in_record_next_raw_series(&ahead->cursor, &series))
        return; /* malformed: whoever takes the series will find it */
    ahead->left--;
    ahead->hashes[ahead->at % AHEAD] = in_series_hash(taking->intake->seed, series.labels);
    in_series_table_prefetch(&taking->tenant->series, ahead->hashes[ahead->at % AHEAD]);
    ahead->at++;
}

static bool take_all(struct taking *taking, const struct in_record *batch)
{
    struct in_intake *intake = taking->intake;
    struct in_record_cursor cursor = in_record_series_of(batch);
    struct ahead ahead = { .cursor = cursor, .left = batch->series_count };
    struct in_raw_series series;

    intake->picked.count = intake->samples.count = 0;
    for (size_t i = 0; i < AHEAD - 1; i++)
        look_ahead(taking, &ahead);
    for (uint32_t i = 0; i < batch->series_count; i++) {
        look_ahead(taking, &ahead);
        taking->hash = ahead.hashes[i % AHEAD];
        if (!in_record_next_raw_series(&cursor, &series) || !take_series(taking, &cursor, &series))
            return false;
    }
    for (size_t i = 0; i < intake->picked.count; i++)
        intake->picked.items[i].samples =
            intake->samples.items + (uintptr_t)intake->picked.items[i].samples;
    return true;
}

/* Metadata that say something new, and exemplars of a time that samples could have. */
static bool take_extra(struct taking *taking, const struct in_extra *extra)
{
    struct in_intake *intake = taking->intake;
    struct in_series_table *told = &taking->tenant->metadata;
    bool fresh = false;

    if (extra->kind == IN_EXTRA_METADATA) {
        if (told->count < intake->limits.metadata_max)
            (void)in_series_table_put(told, in_series_hash(intake->seed, extra->bytes), &fresh);
        return fresh;
    }
    if (extra->ts > taking->newest || extra->ts < taking->oldest) {
        taking->outcome->refused.exemplars++;
        if (!taking->outcome->first[0])
            (void)snprintf(taking->outcome->first, sizeof(taking->outcome->first),
                           "out of bounds: the time of an exemplar (%lld)", (long long)extra->ts);
        return false;
    }
    taking->outcome->accepted.exemplars++;
    return true;
}

static void take_extras(struct taking *taking, const struct in_record *batch)
{
    struct qf_str rest = batch->extras;
    struct in_extra extra;

    qf_strbuf_reset(&taking->intake->extras);
    while (in_extra_next(&rest, &extra))
        if (take_extra(taking, &extra))
            qf_strbuf_str(&taking->intake->extras, extra.bytes);
}

/* Samples that the tenant may send now: a bucket that fills with time. */
static bool within_rate(struct in_intake *intake, struct tenant *tenant,
                        const struct in_record *batch, int64_t mono_ms)
{
    double rate = (double)intake->limits.samples_rate,
           wanted = (double)batch->accepted.samples + (double)batch->accepted.histograms;

    if (!intake->limits.samples_rate)
        return true;
    tenant->tokens += rate * (double)(mono_ms - tenant->tokens_ms) / 1000;
    tenant->tokens_ms = mono_ms;
    tenant->tokens = QF_MIN(tenant->tokens, rate * RATE_SECONDS);
    /* A request larger than the bucket passes when it is full, and empties it for longer. */
    if (tenant->tokens < QF_MIN(wanted, rate * RATE_SECONDS))
        return false;
    tenant->tokens -= wanted;
    return true;
}

/* Whether the request was written before, or is being written. */
static bool seen_before(struct in_intake *intake, const struct in_ledger *ledger,
                        const struct in_request_key *key, struct in_outcome *outcome,
                        enum in_intake_verdict *ret_verdict)
{
    const struct in_key_entry *before = key->given ? in_ledger_key(ledger, key->key) : NULL;

    if (before && memcmp(before->body, key->body, IN_HASH_BYTES) != 0) {
        *ret_verdict = IN_INTAKE_OTHER;
        return true;
    }
    if (before) {
        outcome->accepted = before->accepted;
        outcome->refused = before->refused;
        if (before->refused.samples || before->refused.histograms)
            (void)snprintf(outcome->first, sizeof(outcome->first),
                           "samples were refused when this request was first written");
        *ret_verdict = IN_INTAKE_KNOWN;
        return true;
    }
    *ret_verdict = IN_INTAKE_WAIT;
    return key->given && find_pending(intake, key);
}

static struct tenant *admit_tenant(struct in_intake *intake, const struct in_ledger *ledger,
                                   struct qf_str name)
{
    struct tenant *tenant = find_tenant(intake, name);

    if (tenant)
        return tenant;
    /* Every tenant of the intake will be in the ledger or is there. */
    if (intake->tenants.count >= IN_TENANTS_MAX || !in_ledger_room(ledger, name))
        return NULL;
    return make_tenant(intake, name);
}

static struct in_pending *write_record(struct taking *taking, const struct in_record *batch,
                                       int64_t time_ms, int64_t mono_ms, struct qf_strbuf *buf)
{
    struct in_intake *intake = taking->intake;
    struct tenant *tenant = taking->tenant;
    struct in_record record = { .tenant = batch->tenant,
                                .time_ms = time_ms,
                                .key = batch->key,
                                .extras = qf_strbuf_view(&intake->extras),
                                .accepted = taking->outcome->accepted,
                                .refused = taking->outcome->refused };
    struct in_pending *pending;
    size_t before = buf->len;

    /* Who was refused for a limit tries again, and shall then be looked at again. */
    if (taking->outcome->limited)
        record.key.given = false;
    in_record_put_raw(buf, &record, intake->picked.items, intake->picked.count);
    pending = add_pending(intake, IN_SAMPLES, tenant, &record.key);
    pending->outcome = *taking->outcome;
    if (!tenant->open) {
        tenant->open = pending->opens = true;
        tenant->opened_ms = mono_ms;
        tenant->range_bytes = 0;
    }
    tenant->range_bytes += buf->len - before;
    tenant->max_ts = QF_MAX(tenant->max_ts, taking->max_ts);
    intake->min_under_way = QF_MIN(intake->min_under_way, taking->min_ts);
    return pending;
}

static enum in_intake_verdict nothing(struct in_outcome *outcome, const struct in_record *batch,
                                      const char *why)
{
    outcome->limited = true;
    outcome->refused = batch->accepted;
    (void)snprintf(outcome->first, sizeof(outcome->first), "%s", why);
    return IN_INTAKE_NOTHING;
}

enum in_intake_verdict in_intake_take(struct in_intake *intake, const struct in_ledger *ledger,
                                      const struct in_record *batch, int64_t wall_ms,
                                      int64_t mono_ms, struct qf_strbuf *buf,
                                      struct in_outcome *ret_outcome,
                                      struct in_pending **ret_pending)
{
    struct taking taking = { .intake = intake,
                             .outcome = ret_outcome,
                             .oldest = INT64_MIN,
                             .min_ts = INT64_MAX,
                             .max_ts = INT64_MIN };
    int64_t time_ms = record_time(intake, wall_ms, mono_ms);
    enum in_intake_verdict verdict;

    assert(intake->leads);
    *ret_outcome = (struct in_outcome){ 0 };
    *ret_pending = NULL;
    if (seen_before(intake, ledger, &batch->key, ret_outcome, &verdict))
        return verdict;
    taking.tenant = admit_tenant(intake, ledger, batch->tenant);
    if (!taking.tenant)
        return nothing(ret_outcome, batch, "there are too many tenants");
    if (!within_rate(intake, taking.tenant, batch, mono_ms))
        return nothing(ret_outcome, batch, "the tenant sends more samples a second than it may");
    taking.newest = time_ms + intake->limits.future_ms;
    if (taking.tenant->max_ts > INT64_MIN + intake->limits.out_of_order_ms)
        taking.oldest = taking.tenant->max_ts - intake->limits.out_of_order_ms;
    if (!take_all(&taking, batch)) {
        forget_told(taking.tenant); /* numbers that nobody will hear of */
        return nothing(ret_outcome, batch, "the request cannot be read");
    }
    take_extras(&taking, batch);
    if (!intake->samples.count && !intake->extras.len)
        return IN_INTAKE_NOTHING;
    *ret_pending = write_record(&taking, batch, time_ms, mono_ms, buf);
    return IN_INTAKE_RECORD;
}

/* --- the other records --- */

struct in_pending *in_intake_seal(struct in_intake *intake, const struct in_ledger *ledger,
                                  struct qf_str name, struct qf_strbuf *buf)
{
    const struct in_tenant *before = in_ledger_tenant(ledger, name);
    struct tenant *tenant = find_tenant(intake, name);
    struct in_pending *pending;

    if (!intake->leads || !tenant || !before || !tenant->open || tenant->sealing ||
        before->range_count + RANGES_LEFT > IN_RANGES_MAX)
        return NULL;
    in_record_put_seal(buf, name, before->generation + 1);
    pending = add_pending(intake, IN_SEAL, tenant, NULL);
    forget_told(tenant);
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
    return add_pending(intake, IN_FLOOR, NULL, NULL);
}

struct in_pending *in_intake_below(struct in_intake *intake, const struct in_ledger *ledger,
                                   const struct in_record *wanted, int64_t wall_ms, int64_t mono_ms,
                                   struct qf_strbuf *buf, uint64_t *ret_settled)
{
    const struct in_tenant *before = in_ledger_tenant(ledger, wanted->tenant);
    int64_t time_ms = record_time(intake, wall_ms, mono_ms);
    uint64_t now = time_ms > 0 && time_ms < INT64_MAX / 1000 ? (uint64_t)time_ms * 1000 : 0;
    /* Not ahead of the time: generations stay what the time is. */
    uint64_t settles = QF_MIN(wanted->generation, now ? now - 1 : 0);
    struct in_pending *pending;

    assert(intake->leads);
    if (before)
        settles = QF_MIN(settles, in_tenant_settled(before));
    *ret_settled = 0;
    if (!settles || !admit_tenant(intake, ledger, wanted->tenant))
        return NULL;
    *ret_settled = settles;
    if (before && settles <= before->below)
        return NULL;
    in_record_put_below(buf, wanted->tenant, settles, time_ms, wanted->keep_ms);
    pending = add_pending(intake, IN_BELOW, NULL, NULL);
    pending->settles = settles;
    return pending;
}

uint64_t in_pending_settles(const struct in_pending *pending)
{
    return pending->settles;
}

struct in_pending *in_intake_pass(struct in_intake *intake)
{
    return add_pending(intake, IN_SEALED, NULL, NULL);
}

bool in_intake_due(const struct in_intake *intake, size_t *i, int64_t mono_ms, int64_t age_ms,
                   uint64_t bytes, struct qf_str *ret_tenant)
{
    while (intake->leads && *i < intake->tenants.count) {
        const struct tenant *tenant = intake->tenants.items[(*i)++];

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
        series += intake->tenants.items[i]->series.count;
    return series;
}

uint64_t in_intake_open(const struct in_intake *intake)
{
    uint64_t open = 0;

    for (size_t i = 0; intake->leads && i < intake->tenants.count; i++)
        open += intake->tenants.items[i]->open;
    return open;
}
