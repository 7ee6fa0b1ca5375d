/* definition.c - what is said of a map before it has rows. */
#include "statemap/core/definition.h"

#define INTERVAL_MS_MIN 1000
#define INTERVAL_MS_MAX 3600000

static bool is_metric_name(const char *name)
{
    for (const char *c = name; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_' || *c == ':' ||
              (*c >= '0' && *c <= '9' && c > name)))
            return false;
    return true;
}

static qf_rc check_metric(const struct sm_definition *d, struct qf_err *err)
{
    if (d->interval_ms && !d->metric[0])
        return qf_err_set(err, QF_EINVAL, "an interval is of a map that has a metric");
    if (!d->metric[0])
        return QF_OK;
    if (!sm_kind_keyed(d->layout.kind))
        return qf_err_set(err, QF_EINVAL,
                          "a %s map cannot be a metric: equality does not join ranges",
                          sm_kind_name(d->layout.kind));
    if (!is_metric_name(d->metric))
        return qf_err_set(err, QF_EINVAL, "%s is no name of a metric", d->metric);
    if (d->interval_ms && (d->interval_ms < INTERVAL_MS_MIN || d->interval_ms > INTERVAL_MS_MAX))
        return qf_err_set(err, QF_EINVAL, "an interval is 1s to 1h");
    return QF_OK;
}

qf_rc sm_definition_check(const struct sm_definition *d, struct qf_err *err)
{
    enum sm_kind kind = d->layout.kind;
    const char *name = sm_kind_name(kind);

    if (d->layout.direct && !sm_kind_keyed(kind))
        return qf_err_set(err, QF_EINVAL, "a %s map has no keys that could be short", name);
    if (d->type != SM_ANY && !sm_kind_valued(kind))
        return qf_err_set(err, QF_EINVAL, "a %s map has no values that could have a type", name);
    if ((d->condense_ms || d->retention_ms) && !sm_kind_timed(kind) && kind != SM_SESSION)
        return qf_err_set(err, QF_EINVAL, "a %s map has no times: no condensation and no retention",
                          name);
    if (d->timeout_ms && kind != SM_SESSION)
        return qf_err_set(err, QF_EINVAL, "a %s map has no sessions that could time out", name);
    if (d->condense_ms < 0 || d->retention_ms < 0 || d->timeout_ms < 0)
        return qf_err_set(err, QF_EINVAL, "a duration of a map is below zero");
    if (d->map_bytes && (d->map_bytes < SM_MAP_BYTES_MIN || d->map_bytes > SM_MAP_BYTES_MAX))
        return qf_err_set(err, QF_EINVAL, "a map may have 1 MiB to 1 TiB");
    if (d->readers > SM_MAP_READERS_MAX)
        return qf_err_set(err, QF_EINVAL, "a map may have at most %d readers", SM_MAP_READERS_MAX);
    return check_metric(d, err);
}

static int64_t cutoff(int64_t now_ms, int64_t age_ms)
{
    return age_ms ? now_ms - age_ms : INT64_MIN;
}

struct sm_cutoffs sm_definition_cutoffs(const struct sm_definition *definition, int64_t now_ms)
{
    return (struct sm_cutoffs){ cutoff(now_ms, definition->condense_ms),
                                cutoff(now_ms, definition->retention_ms) };
}
