/* intake_take.c - what the leader of a partition makes of requests with samples. */
#include <assert.h>
#include <stdio.h>

#include "ingest/core/extras.h"
#include "ingest/core/intake_int.h"

enum { LABELS_SHOWN = 200, AHEAD = 16 };

struct taking {
    struct in_intake *intake;
    struct in_intake_tenant *tenant;
    struct in_outcome *outcome;
    int64_t oldest, newest;     /* samples before and behind these are refused */
    int64_t min_ts, max_ts;     /* of what is taken */
    uint32_t now_s;             /* by the clock that never goes back */
    struct in_series_hash hash; /* of the series that is looked at */
    bool explained;             /* which series there are too many of */
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

/* The name of the metric that encoded labels, which were looked at, are of. */
static struct qf_str metric_of(struct in_intake *intake, struct qf_str bytes)
{
    struct qf_labels labels;

    qf_arena_reset(intake->scratch);
    if (qf_labels_decode(intake->scratch, bytes, &labels, NULL) != QF_OK)
        return QF_STR("");
    return qf_labels_get(labels, QF_STR(QF_METRIC_NAME));
}

/* Give the series a number in the range. NULL: the tenant may not have one more. */
static struct in_known_series *number_series(struct taking *taking, struct in_raw_series *series)
{
    struct in_intake_tenant *tenant = taking->tenant;
    struct in_known_series *known = in_series_table_get(&tenant->series, taking->hash);
    bool added;

    if (tenant->next_number >= IN_SERIES_MAX || (!known && !in_usage_has_room(tenant->usage)))
        return NULL;
    if (!known) {
        known = in_series_table_put(&tenant->series, taking->hash, &added);
        known->metric = in_usage_add(tenant->usage, metric_of(taking->intake, series->labels));
    }
    known->range = tenant->range;
    known->ts = INT64_MIN;
    known->number = tenant->next_number++;
    tenant->told++;
    series->fresh = true;
    return known;
}

static void note_no_room(struct taking *taking)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct in_outcome *outcome = taking->outcome;

    outcome->limited = true;
    outcome->limited_by[QF_LIMIT_SERIES - QF_LIMIT_WRITE_FIRST]++;
    /* It says more than any sample that was refused before. */
    if (taking->explained)
        return;
    taking->explained = true;
    in_usage_explain(taking->tenant->usage, sizeof(outcome->first) - 1, &text);
    (void)snprintf(outcome->first, sizeof(outcome->first), "%s", qf_strbuf_cstr(&text));
}

/* Whether a sample of a series, which gets a number if it has none, can be written. */
static bool take_sample(struct taking *taking, struct in_raw_series *series,
                        struct in_known_series **known, const struct in_raw_sample *sample)
{
    uint64_t value = value_of(taking->intake, sample);
    const char *why = judge(taking, *known, sample, value);

    if (why) {
        count(&taking->outcome->refused, sample);
        note(taking, why, series->labels, sample);
        return false;
    }
    if (!*known)
        *known = number_series(taking, series);
    if (!*known) {
        count(&taking->outcome->refused, sample);
        note_no_room(taking);
        return false;
    }
    (*known)->seen_s = taking->now_s;
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

    if (known && known->range != taking->tenant->range)
        known = NULL; /* active, but this range has not heard of it */
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

/* What the tenant's rates say; what it needs to hear if they say no. */
static bool within_rates(struct taking *taking, const struct in_record *batch, int64_t mono_ms)
{
    struct in_outcome *outcome = taking->outcome;
    uint64_t samples = batch->accepted.samples + batch->accepted.histograms;
    enum qf_limit limit;

    if (in_usage_spend(taking->tenant->usage, samples, batch->series.len + batch->extras.len,
                       mono_ms, &limit, &outcome->wait_ms))
        return true;
    outcome->limited_by[limit - QF_LIMIT_WRITE_FIRST] = samples;
    (void)snprintf(outcome->first, sizeof(outcome->first),
                   "the tenant sends more %s a second than its limit %s allows",
                   limit == QF_LIMIT_BYTES_RATE ? "bytes" : "samples", qf_limit_name(limit));
    return false;
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
    return key->given && in_intake_pending(intake, key);
}

static struct in_pending *write_record(struct taking *taking, const struct in_record *batch,
                                       int64_t time_ms, int64_t mono_ms, struct qf_strbuf *buf)
{
    struct in_intake *intake = taking->intake;
    struct in_intake_tenant *tenant = taking->tenant;
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
    pending = in_intake_add_pending(intake, IN_SAMPLES, tenant, &record.key);
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

/* @why may be NULL: the outcome says it already. */
static enum in_intake_verdict nothing(struct in_outcome *outcome, const struct in_record *batch,
                                      const char *why)
{
    outcome->limited = true;
    outcome->refused = batch->accepted;
    if (why)
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
                             .max_ts = INT64_MIN,
                             .now_s = (uint32_t)(mono_ms / 1000) };
    int64_t time_ms = in_intake_time(intake, wall_ms, mono_ms);
    enum in_intake_verdict verdict;

    assert(intake->leads);
    *ret_outcome = (struct in_outcome){ 0 };
    *ret_pending = NULL;
    if (seen_before(intake, ledger, &batch->key, ret_outcome, &verdict))
        return verdict;
    taking.tenant = in_intake_admit(intake, ledger, batch->tenant);
    if (!taking.tenant)
        return nothing(ret_outcome, batch, "there are too many tenants");
    if (!within_rates(&taking, batch, mono_ms))
        return nothing(ret_outcome, batch, NULL);
    taking.newest = time_ms + intake->limits.future_ms;
    if (taking.tenant->max_ts > INT64_MIN + intake->limits.out_of_order_ms)
        taking.oldest = taking.tenant->max_ts - intake->limits.out_of_order_ms;
    if (!take_all(&taking, batch)) {
        in_intake_forget_told(taking.tenant); /* numbers that nobody will hear of */
        return nothing(ret_outcome, batch, "the request cannot be read");
    }
    take_extras(&taking, batch);
    if (!intake->samples.count && !intake->extras.len)
        return IN_INTAKE_NOTHING;
    *ret_pending = write_record(&taking, batch, time_ms, mono_ms, buf);
    return IN_INTAKE_RECORD;
}
