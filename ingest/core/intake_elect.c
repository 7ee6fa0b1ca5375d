/* intake_elect.c - which replica of a cluster of senders is written. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "ingest/core/intake_int.h"

/* The log hears of the elected replica's newest sample when it is so much newer. Whoever leads next takes
 * it to have sent until then. */
#define STEP_MS INT64_C(10000)
/* Clusters known beyond the log: those that come and go are forgotten together. */
#define ELECTIONS_MAX 65536

void in_intake_forget_elections(struct in_intake *intake)
{
    for (size_t i = 0; i < intake->elections.count; i++) {
        free(intake->elections.items[i]->key);
        free(intake->elections.items[i]);
    }
    QF_VEC_DONE(&intake->elections);
    qf_map_done(&intake->election_names);
    intake->election_names = (struct qf_map){ 0 };
}

void in_intake_elected(struct in_pending *pending, qf_rc rc)
{
    pending->election->under_way = false;
    if (rc == QF_OK)
        pending->election->newest_ts = QF_MAX(pending->election->newest_ts, pending->newest_ts);
}

bool in_pending_elects(const struct in_pending *pending, bool *ret_replaces)
{
    *ret_replaces = pending->replaces;
    return pending->kind == IN_ELECT;
}

/* What this leader knows of a cluster. */
static struct in_election *find(struct in_intake *intake, const struct in_record *wanted,
                                const struct in_elected *elected)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf key = QF_STRBUF_INIT;
    struct in_election *election;
    const uint64_t *place;

    qf_strbuf_str(&key, wanted->tenant);
    qf_strbuf_putc(&key, 0);
    qf_strbuf_str(&key, wanted->cluster);
    place = qf_map_get(&intake->election_names, qf_strbuf_view(&key));
    if (place)
        return intake->elections.items[*place];
    if (intake->elections.count >= ELECTIONS_MAX && !intake->under_way)
        in_intake_forget_elections(intake);
    election = qf_xcalloc(1, sizeof(*election));
    election->key = qf_xmemdup0(key.data, key.len);
    election->newest_ts = elected ? elected->newest_ts + STEP_MS : INT64_MIN;
    (void)qf_map_put(&intake->election_names, (struct qf_str){ election->key, key.len },
                     intake->elections.count, NULL);
    QF_VEC_PUSH(&intake->elections, election);
    return election;
}

static enum in_elect_verdict decide(const struct in_intake *intake, struct in_election *election,
                                    const struct in_elected *elected, struct qf_str replica,
                                    int64_t newest_ts)
{
    if (election->under_way)
        return IN_ELECT_WAIT;
    if (!elected)
        return IN_ELECT_RECORD;
    election->newest_ts = QF_MAX(election->newest_ts, elected->newest_ts);
    if (!qf_str_is(replica, elected->replica))
        return newest_ts > election->newest_ts + intake->limits.ha_failover_ms ? IN_ELECT_RECORD
                                                                               : IN_ELECT_IS_NOT;
    election->newest_ts = QF_MAX(election->newest_ts, newest_ts);
    return newest_ts >= elected->newest_ts + STEP_MS ? IN_ELECT_RECORD : IN_ELECT_IS;
}

enum in_elect_verdict in_intake_elect(struct in_intake *intake, const struct in_ledger *ledger,
                                      const struct in_record *wanted, int64_t wall_ms,
                                      int64_t mono_ms, struct qf_strbuf *buf,
                                      struct in_pending **ret_pending)
{
    const struct in_tenant *tenant = in_ledger_tenant(ledger, wanted->tenant);
    const struct in_elected *elected = tenant ? in_tenant_elected(tenant, wanted->cluster) : NULL;
    int64_t time_ms = in_intake_time(intake, wall_ms, mono_ms);
    struct in_record record = *wanted;
    struct in_election *election;
    enum in_elect_verdict verdict;

    *ret_pending = NULL;
    if (!elected && (!in_ledger_room_to_elect(ledger, wanted->tenant) ||
                     !in_intake_admit(intake, ledger, wanted->tenant)))
        return IN_ELECT_FULL;
    /* A sender whose calendar is ahead is not further ahead than its samples may be. */
    record.newest_ts = QF_MIN(record.newest_ts, time_ms + intake->limits.future_ms);
    record.newest_ts = QF_MAX(record.newest_ts, INT64_C(0));
    record.time_ms = time_ms;
    election = find(intake, wanted, elected);
    verdict = decide(intake, election, elected, wanted->replica, record.newest_ts);
    if (verdict != IN_ELECT_RECORD)
        return verdict;
    in_record_put_elect(buf, &record);
    *ret_pending = in_intake_add_pending(intake, IN_ELECT, NULL, NULL);
    (*ret_pending)->election = election;
    (*ret_pending)->newest_ts = record.newest_ts;
    (*ret_pending)->replaces = elected && !qf_str_is(wanted->replica, elected->replica);
    election->under_way = true;
    return verdict;
}
