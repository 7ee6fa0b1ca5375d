/* intake_int.h - the intake's own state, shared by its files: intake.c (tenants, leading, what is under
 * way, records other than samples) and intake_take.c (requests). */
#ifndef INGEST_CORE_INTAKE_INT_H
#define INGEST_CORE_INTAKE_INT_H

#include "base/pure/map.h"
#include "base/pure/vec.h"
#include "ingest/core/intake.h"
#include "ingest/core/series_table.h"

enum { IN_PENDING_BUCKETS = 4096 };

struct in_intake_tenant {
    char *name;
    /* On every node. */
    uint32_t seen; /* 1 + the greatest number in its open range */
    /* On the leader. */
    struct in_usage *usage;
    struct in_series_table series;   /* that are active */
    struct in_series_table metadata; /* of the range, by all that they say */
    uint32_t range, told;            /* stamp of what is known of the range; series that have it */
    uint32_t swept;                  /* how far idle series were looked for */
    uint32_t next_number, resume_number; /* the second one: if a SEAL under way comes to nothing */
    int64_t max_ts;                      /* of what was taken; INT64_MIN: nothing */
    bool open, sealing;                  /* its range; a SEAL is under way */
    int64_t opened_ms;                   /* by the clock that never goes back */
    uint64_t range_bytes;
};

/* A cluster of senders, as the leader knows it beyond the log. */
struct in_election {
    char *key;         /* tenant and cluster */
    int64_t newest_ts; /* of the elected replica's samples */
    bool under_way;    /* an ELECT */
};

struct in_pending {
    enum in_record_kind kind;
    uint64_t epoch;
    struct in_intake_tenant *tenant; /* NULL: of none */
    struct in_request_key key;
    struct in_outcome outcome;
    bool opens;                     /* SAMPLES: the first of a range */
    uint64_t settles;               /* BELOW; PIN: the position */
    struct in_election *election;   /* ELECT */
    int64_t newest_ts;              /* ELECT */
    bool replaces;                  /* ELECT: another replica */
    struct in_pending *chain;       /* of its bucket of keys */
    struct in_pending *prev, *next; /* of all */
};

struct in_intake {
    struct in_intake_limits limits;
    struct in_quota *quota;
    uint64_t seed, epoch;
    bool leads;
    struct qf_map names; /* to places in tenants */
    QF_VEC(struct in_intake_tenant *) tenants;
    struct qf_map election_names; /* to places in elections; of this leadership */
    QF_VEC(struct in_election *) elections;
    struct in_pending *keys[IN_PENDING_BUCKETS], *all;
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
void in_intake_forget_told(struct in_intake_tenant *tenant);
/* The tenant called @name, made if there is room for it; else NULL. */
struct in_intake_tenant *in_intake_admit(struct in_intake *intake, const struct in_ledger *ledger,
                                         struct qf_str name);
/* The time of the next record: goes on at least as fast as the clock that never goes back, whatever the
 * calendar does: keys must get old. */
int64_t in_intake_time(struct in_intake *intake, int64_t wall_ms, int64_t mono_ms);
/* The request with this key that is under way; NULL: none. */
struct in_pending *in_intake_pending(struct in_intake *intake, const struct in_request_key *key);
/* intake_elect.c: an ELECT ended; what the leader knows of elections is forgotten. */
void in_intake_elected(struct in_pending *pending, qf_rc rc);
void in_intake_forget_elections(struct in_intake *intake);
/* One more; @tenant and @key may be NULL. */
struct in_pending *in_intake_add_pending(struct in_intake *intake, enum in_record_kind kind,
                                         struct in_intake_tenant *tenant,
                                         const struct in_request_key *key);

#endif
