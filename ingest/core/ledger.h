/* ledger.h - what the applied log of a partition amounts to, the samples themselves aside. Pure.
 *
 * A tenant's samples in a partition form ranges of the log: at most one open, some closed, the rest
 * sealed, that is in segments of the store.
 *
 *     SAMPLES  go into the open range, or open one
 *     SEAL     closes it; the next one has a greater generation
 *     SEALED   the oldest range is in the store: counts only if FROM is where the sealed part ends, so
 *              that of two nodes that sealed the same range one is heard
 *     FLOOR    samples before it count for nothing from now on
 *     BELOW    ranges open above it from now on: whoever merges segments up to there knows that none
 *              comes between them. Counts only if no range that is not sealed is at or below it
 *     ELECT    the replica is that of its cluster from now on, or still: whoever proposes it has decided
 *     PIN      its key is remembered, with the position
 *     NOTE     alters the manifest, where segments are on our own nodes (ring/core/manifest.h). There a SEALED counts only if
 *              the note in it does, too
 *
 * A generation is fixed when its range opens; where the same sample is in two ranges, the greater
 * generation wins. It is the time in microseconds, of which ranges have those of the first half of a
 * millisecond and imports the others (segments/write/claim.h): no two of them are ever equal. A SAMPLES record whose key was seen within the last minutes counts for nothing:
 * its sender asked again and is told what it was told before.
 *
 * Equal logs give equal ledgers on every node; in_ledger_encode() and _decode() carry one over in a
 * snapshot. Everything is bounded; whoever proposes looks first (in_ledger_room()). One thread owns
 * a ledger. */
#ifndef INGEST_CORE_LEDGER_H
#define INGEST_CORE_LEDGER_H

#include "ingest/core/keys.h"
#include "ring/core/manifest.h"

enum {
    IN_RANGES_MAX = 256,        /* of a tenant, not sealed yet */
    IN_TENANTS_MAX = 65536,     /* ever seen in a partition */
    IN_KEYS_MAX = 1 << 16,      /* remembered */
    IN_RECENT_FILES_MAX = 4096, /* of a tenant */
    IN_VOIDS_MAX = 65536,       /* records that counted for nothing; then the oldest is forgotten */
    IN_ELECTED_MAX = 1024       /* clusters of senders of a tenant */
};
/* Of what a SEAL may ask for: far behind any clock, and far from where numbers end. */
#define IN_GENERATION_MAX (UINT64_C(1) << 62)
#define IN_KEY_LIFE_MS (INT64_C(10) * 60 * 1000)
/* What one record adds to the age of keys at most: a calendar that leaps by days makes none old. */
#define IN_KEY_STEP_MS (INT64_C(60) * 1000)
#define IN_FILE_LIFE_MS (INT64_C(60) * 60 * 1000)
/* A cluster of senders that was not heard of for so long makes room for another. */
#define IN_ELECTED_LIFE_MS (INT64_C(60) * 60 * 1000)

struct in_range {
    uint64_t generation;
    uint64_t from; /* index of its first record */
    uint64_t to;   /* index of the SEAL that closed it; 0: it is open */
    int64_t min_ts, max_ts;
    uint64_t samples; /* of its records, floor and duplicates not looked at */
};

/* A file that was sealed not long ago. */
struct in_recent_file {
    char *name, *etag;
    uint64_t size;
    uint64_t index; /* of its SEALED */
    int64_t time_ms;
};

/* Of a cluster of senders, the replica whose samples are written. */
struct in_elected {
    char *cluster, *replica;
    int64_t newest_ts; /* of its samples, as far as the log knows */
    int64_t since_ms;  /* record time of its election, and of the last record */
    int64_t time_ms;
    uint64_t elections; /* of the cluster */
};

struct in_tenant {
    char *name;
    uint64_t sealed;          /* everything of the tenant up to this index is in the store */
    uint64_t generation;      /* of the last range that was opened */
    uint64_t next_generation; /* the least that the next one may have */
    uint64_t below;           /* and it is above this; 0: any */
    int64_t max_ts;           /* of all samples it ever had here; INT64_MIN: none */
    struct in_range *ranges;  /* that are not sealed, oldest first */
    size_t range_count, range_capacity;
    struct in_recent_file *files; /* oldest first */
    size_t file_count, file_capacity;
    uint64_t files_after;       /* files of SEALED at or before this index were forgotten */
    struct in_elected *elected; /* in the order of their first election */
    size_t elected_count, elected_capacity;
};

struct in_ledger;

struct in_ledger *in_ledger_new(void);
struct in_ledger *in_ledger_free(struct in_ledger *ledger); /* Accepts NULL, returns NULL. */

/* What applying a record came to. */
enum in_verdict {
    IN_APPLIED,
    IN_REPEATED,   /* SAMPLES, PIN: its key was seen before; *@ret_before says what was told then */
    IN_OTHER_BODY, /* SAMPLES, PIN: its key was seen with another body */
    IN_OUT_OF_TURN, /* SEAL without an open range or of an impossible generation, SEALED of
                       another range, FLOOR that goes back or above what is not sealed, BELOW of an
                       impossible generation or with a range at or below it; a note that counts for nothing */
    IN_NO_ROOM      /* a bound is reached: the record counts for nothing, on every node */
};

/* Apply the record at @index, which is above all before. @ret_before may be NULL. */
enum in_verdict in_ledger_apply(struct in_ledger *ledger, uint64_t index,
                                const struct in_record *record,
                                const struct in_key_entry **ret_before);

/* Whether a SAMPLES record of @tenant would find room. */
bool in_ledger_room(const struct in_ledger *ledger, struct qf_str tenant);

/* NULL: not seen yet. Good until the next record is applied. */
const struct in_tenant *in_ledger_tenant(const struct in_ledger *ledger, struct qf_str name);
size_t in_ledger_tenant_count(const struct in_ledger *ledger);
const struct in_tenant *in_ledger_tenant_at(const struct in_ledger *ledger, size_t i);
/* The range that samples go into; NULL: the next one opens one. */
const struct in_range *in_tenant_open(const struct in_tenant *tenant);
/* The oldest range that waits to be sealed; NULL if none is closed. */
const struct in_range *in_tenant_next_to_seal(const struct in_tenant *tenant);
/* The greatest generation up to which BELOW would count now, UINT64_MAX if the tenant has no range that
 * is not sealed. */
uint64_t in_tenant_settled(const struct in_tenant *tenant);
/* Some tenant had a BELOW: every node of the cluster knows what it is. */
bool in_ledger_knows_below(const struct in_ledger *ledger);
/* The replica of @cluster; NULL: none was elected. */
const struct in_elected *in_tenant_elected(const struct in_tenant *tenant, struct qf_str cluster);
/* Whether an ELECT of a cluster that has none would find room. */
bool in_ledger_room_to_elect(const struct in_ledger *ledger, struct qf_str tenant);
/* Some tenant had an ELECT: every node of the cluster knows what it is. */
bool in_ledger_knows_elect(const struct in_ledger *ledger);
/* The request with @key, if it was applied within IN_KEY_LIFE_MS; else NULL. */
const struct in_key_entry *in_ledger_key(const struct in_ledger *ledger,
                                         const uint8_t key[IN_HASH_BYTES]);

/* Which blobs the partition has; NULL: nothing was ever noted. Good until the next record is applied. */
const struct rg_manifest *in_ledger_manifest(const struct in_ledger *ledger);
/* The last record that altered it; 0: none did. */
uint64_t in_ledger_manifest_changed(const struct in_ledger *ledger);

uint64_t in_ledger_applied(const struct in_ledger *ledger); /* index of the last record applied */
int64_t in_ledger_time(const struct in_ledger *ledger);     /* greatest record time */
int64_t in_ledger_floor(const struct in_ledger *ledger);    /* INT64_MIN: none */
int64_t in_ledger_oldest(const struct in_ledger *ledger);   /* sample not sealed; INT64_MAX: none */
/* How high the floor may be if it is to be @age_ms behind: behind the calendar and, since that may be days
 * ahead, behind the newest sample; and never above what is not sealed. */
int64_t in_ledger_floor_due(const struct in_ledger *ledger, int64_t wall_ms, int64_t age_ms);
/* The log is needed from here on: the first record of the oldest range that is not sealed. */
uint64_t in_ledger_needed_from(const struct in_ledger *ledger);

/* Who reads the log again from there on, up to in_ledger_applied(), is told: */

/* The tenant's range that the record at @index is in; NULL: none, or it is sealed. */
const struct in_range *in_tenant_range_at(const struct in_tenant *tenant, uint64_t index);
/* The SAMPLES record at @index counted for nothing though a range was open. */
bool in_ledger_is_void(const struct in_ledger *ledger, uint64_t index);

/* For snapshots: equal ledgers give equal bytes. Decoding is strict. QF_ECORRUPT; QF_EUNSUPPORTED: of a newer
 * version. */
void in_ledger_encode(struct qf_strbuf *buf, const struct in_ledger *ledger);
QF_MUST_CHECK qf_rc in_ledger_decode(struct qf_str bytes, struct in_ledger **ret_ledger);

#endif
