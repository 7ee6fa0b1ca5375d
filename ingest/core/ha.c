/* ha.c - pairs of senders: which series are whose. */
#include "ingest/core/ha.h"

#include <string.h>

/* The pair of @cluster and @replica, added if there is room; NULL: there is none. */
static struct in_ha_pair *find_pair(struct in_ha *ha, struct qf_str cluster, struct qf_str replica)
{
    for (size_t i = 0; i < ha->count; i++)
        if (qf_str_eq(ha->pairs[i].cluster, cluster) && qf_str_eq(ha->pairs[i].replica, replica))
            return &ha->pairs[i];
    if (ha->count == IN_HA_PAIRS_MAX)
        return NULL;
    ha->pairs[ha->count] = (struct in_ha_pair){ cluster, replica, INT64_MIN };
    return &ha->pairs[ha->count++];
}

static void drop_label(struct in_series *series, struct qf_str name)
{
    size_t kept = 0;

    for (size_t i = 0; i < series->label_count; i++)
        if (!qf_str_eq(series->labels[i].name, name))
            series->labels[kept++] = series->labels[i];
    series->label_count = kept;
}

static void note_newest(struct in_ha_pair *pair, const struct in_series *series)
{
    for (size_t i = 0; i < series->sample_count; i++)
        pair->newest_ts = QF_MAX(pair->newest_ts, series->samples[i].ts);
}

static qf_rc too_long(struct qf_err *err)
{
    return qf_err_set(err, QF_ELIMIT, "the name of a cluster or replica has more than %d bytes",
                      IN_HA_NAME_BYTES_MAX);
}

qf_rc in_ha_find(struct in_request *request, const struct in_ha_labels *labels,
                 struct qf_arena *arena, struct in_ha *ret_ha, struct qf_err *err)
{
    *ret_ha = (struct in_ha){ 0 };
    for (size_t i = 0; i < request->series_count; i++) {
        struct in_series *series = &request->series[i];
        struct qf_str cluster = qf_labels_get(in_series_labels(series), labels->cluster);
        struct qf_str replica = qf_labels_get(in_series_labels(series), labels->replica);
        struct in_ha_pair *pair;

        if (!cluster.len || !replica.len)
            continue;
        if (cluster.len > IN_HA_NAME_BYTES_MAX || replica.len > IN_HA_NAME_BYTES_MAX)
            return too_long(err);
        if (!ret_ha->of)
            ret_ha->of = qf_arena_calloc(arena, request->series_count, 1);
        pair = ret_ha->of ? find_pair(ret_ha, cluster, replica) : NULL;
        if (!pair)
            return qf_err_set(err, QF_ELIMIT,
                              "a request has samples of more than %d replicas: split it",
                              IN_HA_PAIRS_MAX);
        ret_ha->of[i] = (uint8_t)(1 + (pair - ret_ha->pairs));
        drop_label(series, labels->replica);
        note_newest(pair, series);
    }
    return QF_OK;
}
