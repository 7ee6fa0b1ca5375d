/* quota.c - what tenants may send to the partitions that one node leads. */
#include "ingest/core/quota.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/pure/alloc.h"

/* A bucket holds what comes in so many seconds. */
#define BUCKET_SECONDS 2
#define WAIT_MS_MAX INT64_C(60000)
/* Metrics that a message names, and how much of a name it shows. */
enum { NOISIEST = 10, NAME_SHOWN = 60 };

struct bucket {
    double tokens;
    int64_t at_ms; /* when it had them; INT64_MIN: it was never looked at */
};

struct in_usage {
    struct in_quota *quota;
    char *name;
    uint64_t version; /* of the limits */
    uint64_t samples_rate, bytes_rate, series_max;
    struct bucket samples, bytes;
    uint64_t series;
    struct in_metric_counts metrics;
};

struct in_quota {
    in_quota_limits_fn *limits;
    void *ctx;
    uint64_t version;
    uint32_t led, partitions;
    struct qf_map names; /* to places in usages */
    QF_VEC(struct in_usage *) usages;
};

struct in_quota *in_quota_new(in_quota_limits_fn *limits, void *ctx)
{
    struct in_quota *quota = qf_xcalloc(1, sizeof(*quota));

    quota->limits = limits;
    quota->ctx = ctx;
    quota->version = quota->led = quota->partitions = 1;
    return quota;
}

struct in_quota *in_quota_free(struct in_quota *quota)
{
    if (!quota)
        return NULL;
    for (size_t i = 0; i < quota->usages.count; i++) {
        in_metric_counts_done(&quota->usages.items[i]->metrics);
        free(quota->usages.items[i]->name);
        free(quota->usages.items[i]);
    }
    QF_VEC_DONE(&quota->usages);
    qf_map_done(&quota->names);
    free(quota);
    return NULL;
}

void in_quota_share(struct in_quota *quota, uint32_t led, uint32_t partitions)
{
    quota->partitions = QF_MAX(partitions, UINT32_C(1));
    quota->led = QF_MIN(led, quota->partitions);
    quota->led = QF_MAX(quota->led, UINT32_C(1));
}

void in_quota_renew(struct in_quota *quota)
{
    quota->version++;
}

struct in_usage *in_quota_usage(struct in_quota *quota, struct qf_str tenant)
{
    const uint64_t *place = qf_map_get(&quota->names, tenant);
    struct in_usage *usage;

    if (place)
        return quota->usages.items[*place];
    usage = qf_xcalloc(1, sizeof(*usage));
    usage->quota = quota;
    usage->name = qf_xmemdup0(tenant.data, tenant.len);
    usage->samples.at_ms = usage->bytes.at_ms = INT64_MIN;
    (void)qf_map_put(&quota->names, (struct qf_str){ usage->name, tenant.len }, quota->usages.count,
                     NULL);
    QF_VEC_PUSH(&quota->usages, usage);
    return usage;
}

/* --- limits --- */

static void look_up(struct in_usage *usage)
{
    struct in_quota *quota = usage->quota;
    struct qf_limits limits;

    if (usage->version == quota->version)
        return;
    limits = quota->limits(quota->ctx, qf_str_from(usage->name));
    usage->samples_rate = limits.of[QF_LIMIT_SAMPLES_RATE];
    usage->bytes_rate = limits.of[QF_LIMIT_BYTES_RATE];
    usage->series_max = limits.of[QF_LIMIT_SERIES];
    usage->version = quota->version;
}

/* What this node gives out of @limit. */
static double share(const struct in_quota *quota, uint64_t limit)
{
    return (double)limit * quota->led / quota->partitions;
}

/* --- rates --- */

/* Milliseconds until @wanted can be taken at @rate a second; 0: now. */
static int64_t fill(struct bucket *bucket, double rate, double wanted, int64_t mono_ms)
{
    double full = rate * BUCKET_SECONDS, need = QF_MIN(wanted, full);

    if (bucket->at_ms == INT64_MIN)
        bucket->tokens = full;
    else if (mono_ms > bucket->at_ms)
        bucket->tokens += rate * (double)(mono_ms - bucket->at_ms) / 1000;
    bucket->tokens = QF_MIN(bucket->tokens, full);
    bucket->at_ms = QF_MAX(mono_ms, bucket->at_ms);
    if (bucket->tokens >= need)
        return 0;
    need = ceil((need - bucket->tokens) * 1000 / rate);
    return need < (double)WAIT_MS_MAX ? QF_MAX((int64_t)need, INT64_C(1)) : WAIT_MS_MAX;
}

bool in_usage_spend(struct in_usage *usage, uint64_t samples, uint64_t bytes, int64_t mono_ms,
                    enum qf_limit *ret_limit, int64_t *ret_wait_ms)
{
    int64_t wait = 0;

    look_up(usage);
    if (usage->samples_rate)
        wait = fill(&usage->samples, share(usage->quota, usage->samples_rate), (double)samples,
                    mono_ms);
    *ret_limit = QF_LIMIT_SAMPLES_RATE;
    if (!wait && usage->bytes_rate) {
        wait = fill(&usage->bytes, share(usage->quota, usage->bytes_rate), (double)bytes, mono_ms);
        *ret_limit = QF_LIMIT_BYTES_RATE;
    }
    *ret_wait_ms = wait;
    if (wait)
        return false;
    usage->samples.tokens -= usage->samples_rate ? (double)samples : 0;
    usage->bytes.tokens -= usage->bytes_rate ? (double)bytes : 0;
    return true;
}

/* --- series --- */

bool in_usage_has_room(struct in_usage *usage)
{
    look_up(usage);
    return !usage->series_max ||
           (double)usage->series < ceil(share(usage->quota, usage->series_max));
}

uint32_t in_usage_add(struct in_usage *usage, struct qf_str metric)
{
    usage->series++;
    return in_metric_counts_add(&usage->metrics, metric);
}

void in_usage_remove(struct in_usage *usage, uint32_t number)
{
    assert(usage->series > 0);
    usage->series--;
    in_metric_counts_remove(&usage->metrics, number);
}

uint64_t in_usage_series(const struct in_usage *usage)
{
    return usage->series;
}

/* A message is text: whatever is not, is left out. */
static void show_name(struct qf_strbuf *buf, const struct in_metric_count *metric)
{
    size_t shown = QF_MIN(metric->len, (size_t)NAME_SHOWN);

    for (size_t i = 0; i < shown; i++)
        qf_strbuf_putc(buf,
                       metric->name[i] >= ' ' && metric->name[i] < 0x7f ? metric->name[i] : '?');
    qf_strbuf_printf(buf, "%s %" PRIu64, shown < metric->len ? "..." : "", metric->series);
}

void in_usage_explain(struct in_usage *usage, size_t bytes_max, struct qf_strbuf *buf)
{
    const struct in_quota *quota = usage->quota;
    const struct in_metric_count *top[NOISIEST];
    size_t count = in_metric_counts_top(&usage->metrics, NOISIEST, top), before = buf->len;

    look_up(usage);
    qf_strbuf_printf(buf, "the tenant has too many series: %" PRIu64 " active", usage->series);
    if (quota->led < quota->partitions)
        qf_strbuf_printf(buf, " in %" PRIu32 " of %" PRIu32 " partitions", quota->led,
                         quota->partitions);
    qf_strbuf_printf(buf, ", its limit series=%" PRIu64, usage->series_max);
    for (size_t i = 0; i < count; i++) {
        size_t end = buf->len;

        qf_strbuf_puts(buf, i ? ", " : "; most are of ");
        show_name(buf, top[i]);
        if (buf->len - before <= bytes_max)
            continue;
        buf->len = end; /* the rest does not fit */
        buf->data[end] = 0;
        return;
    }
}
