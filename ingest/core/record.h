/* record.h - what the log of a partition says, as bytes. Pure.
 *
 *     SAMPLES  samples of one tenant, as they were accepted from one request
 *     SEAL     the tenant's open range ends here; the next one has this generation
 *     SEALED   the tenant's range FROM..TO is in the store, in these files
 *     FLOOR    no sample older than this will be accepted or is waiting to be sealed
 *     BELOW    the tenant will have no range of this generation or a smaller one any more
 *     ELECT    of this cluster of senders the samples of this replica are written (ha.h)
 *     PIN      the request with this key is enriched as of this position of the log of state maps
 *     NOTE     of the partition's manifest, where segments are on our own nodes (ring/core/manifest.h); a SEALED has one in it there
 *
 * Samples name their series by a number that is good within the tenant's open range; the first
 * record of the range that uses a number carries the series' labels. In steady state a sample takes
 * 11 bytes: a number relative to the one before, a time relative to the one before, the value's eight
 * bytes.
 *
 * A record is read in place: in_record_decode() looks at all of it and finds it whole, or says why
 * not; a cursor then walks over its series and samples and cannot fail but for memory. */
#ifndef INGEST_CORE_RECORD_H
#define INGEST_CORE_RECORD_H

#include "base/pure/err.h"
#include "base/pure/strbuf.h"
#include "ingest/core/request.h"

enum {
    IN_RECORD_VERSION = 1,
    IN_TENANT_MAX = 128,
    IN_HASH_BYTES = 16,
    IN_SEALED_FILES_MAX = 65536,
    IN_SERIES_MAX = 1 << 24 /* numbers of series in one range */
};

enum in_record_kind {
    IN_SAMPLES = 1,
    IN_SEAL = 2,
    IN_SEALED = 3,
    IN_FLOOR = 4,
    IN_BELOW = 5,
    IN_ELECT = 6,
    IN_NOTE = 7, /* 8 stands for a SEALED with a note */
    IN_PIN = 9
};

/* Which kinds a node knows, as it says to others: up to IN_FLOOR (older ones say nothing), up to IN_BELOW,
 * up to IN_NOTE and those of meta about storage nodes; all, and rules of state maps; those of meta about tenants, too. */
enum {
    IN_RECORDS_FLOOR = 0,
    IN_RECORDS_BELOW = 2,
    IN_RECORDS_ELECT = 3,
    IN_RECORDS_RING = 4,
    IN_RECORDS_PIN = 5,
    IN_RECORDS_TENANTS = 6
};

/* What makes two requests the same one. */
struct in_request_key {
    uint8_t key[IN_HASH_BYTES];  /* the sender's Idempotency-Key, or tenant and body, hashed */
    uint8_t body[IN_HASH_BYTES]; /* of the body alone: another one under the same key is an error */
    bool given;                  /* false: the request cannot be told from its repetition */
    bool explicit_key;           /* the sender's own; not part of a record */
};

struct in_sealed_file {
    struct qf_str name, etag;
    uint64_t size;
};

struct in_record {
    enum in_record_kind kind;
    struct qf_str tenant; /* FLOOR: empty */

    int64_t
        time_ms; /* SAMPLES, BELOW, ELECT, PIN: when the leader took it, by its clock, never less than before */

    /* SAMPLES; the key also PIN */
    struct in_request_key key;
    struct qf_str extras;                /* exemplars and metadata, extras.h; empty: none */
    struct in_amounts accepted, refused; /* what the sender is told, also when it asks again */
    struct qf_str series;                /* for the cursor */
    uint32_t series_count;
    uint64_t sample_count;  /* found when it is read, like these: */
    uint32_t numbers;       /* 1 + the greatest number of its series; 0: there are none */
    int64_t min_ts, max_ts; /* INT64_MAX, INT64_MIN if there is no sample */

    uint64_t generation; /* SEAL: of the next range; BELOW: the greatest that is over */
    uint64_t from, to;   /* SEALED: indices of the log */
    struct qf_str files; /* SEALED: for in_record_file() */
    uint32_t file_count;
    int64_t floor_ms;  /* FLOOR */
    uint64_t keep_ms;  /* BELOW: files that were sealed so long ago are not told of any more */
    uint64_t position; /* PIN */
    struct qf_str cluster, replica; /* ELECT */
    int64_t newest_ts;              /* ELECT: of the replica's samples */
    struct qf_str
        note; /* NOTE, and SEALED where there is a manifest: for rg_note_decode(); else empty */
};

/* --- writing --- */

struct in_record_series {
    uint32_t number;
    bool fresh;              /* its labels follow: nobody has heard of the number in this range */
    struct qf_labels labels; /* if fresh */
    const struct in_sample *samples;
    size_t sample_count; /* a reader has none here: it asks the cursor */
};

/* Append a SAMPLES record with @count series; @record's own series are not looked at. Its tenant is
 * 1 to IN_TENANT_MAX bytes, numbers of series are below IN_SERIES_MAX. */
void in_record_put_samples(struct qf_strbuf *buf, const struct in_record *record,
                           const struct in_record_series *series, size_t count);
void in_record_put_seal(struct qf_strbuf *buf, struct qf_str tenant, uint64_t generation);
/* The same out of bytes that were read from a record: labels as qf_labels_encode() writes them, a
 * value of eight bytes or a histogram as pq_histogram_encode() does. */
struct in_raw_sample {
    int64_t ts, start_ts;
    struct qf_str value;
    bool histogram;
};
struct in_raw_series {
    uint32_t number;
    bool fresh;
    struct qf_str labels;
    const struct in_raw_sample *samples;
    size_t sample_count; /* for a reader: how many in_record_next_raw_sample() will give */
};
void in_record_put_raw(struct qf_strbuf *buf, const struct in_record *record,
                       const struct in_raw_series *series, size_t count);
/* At most IN_SEALED_FILES_MAX files. */
void in_record_put_sealed(struct qf_strbuf *buf, struct qf_str tenant, uint64_t from, uint64_t to,
                          const struct in_sealed_file *files, size_t count);
/* The same with a note (SEALED, as rg_note_encode() writes it) of these files and of others that go with them. */
void in_record_put_sealed_note(struct qf_strbuf *buf, struct qf_str tenant, uint64_t from,
                               uint64_t to, const struct in_sealed_file *files, size_t count,
                               struct qf_str note);
/* Any other note. */
void in_record_put_note(struct qf_strbuf *buf, struct qf_str note);
void in_record_put_floor(struct qf_strbuf *buf, int64_t floor_ms);
void in_record_put_below(struct qf_strbuf *buf, struct qf_str tenant, uint64_t generation,
                         int64_t time_ms, uint64_t keep_ms);
/* Of @record: tenant, time_ms, cluster, replica, newest_ts. */
void in_record_put_elect(struct qf_strbuf *buf, const struct in_record *record);

/* Of @record: tenant, time_ms, key, which is given, position. */
void in_record_put_pin(struct qf_strbuf *buf, const struct in_record *record);

/* --- reading --- */

/* @ret_record borrows from @bytes. QF_ECORRUPT: nobody of ours wrote it. QF_EUNSUPPORTED: a later
 * version did. */
QF_MUST_CHECK qf_rc in_record_decode(struct qf_str bytes, struct in_record *ret_record,
                                     struct qf_err *err);

/* The same of bytes that were checked when they were made, in this process: @ret_record's series are
 * not looked at, nor counted. */
QF_MUST_CHECK qf_rc in_record_decode_own(struct qf_str bytes, struct in_record *ret_record,
                                         struct qf_err *err);

/* Over the series of a SAMPLES record and their samples. */
struct in_record_cursor {
    struct qf_str rest;
    uint32_t series_left;
    uint64_t samples_left; /* of the current series */
    uint32_t number;
    int64_t ts;
    bool starts, histograms; /* of the current series: its samples have these */
};

struct in_record_cursor in_record_series_of(const struct in_record *record);
/* The next series, whose labels, if it is fresh, are in @arena and borrow from the record. False at
 * the end, or when the arena is spent, which it then says. */
bool in_record_next_series(struct in_record_cursor *cursor, struct qf_arena *arena,
                           struct in_record_series *ret_series);
/* The next sample of that series; a histogram is in @arena. The rest of a series need not be read. */
bool in_record_next_sample(struct in_record_cursor *cursor, struct qf_arena *arena,
                           struct in_sample *ret_sample);

/* The same without making anything of the bytes: needs no memory. */
bool in_record_next_raw_series(struct in_record_cursor *cursor, struct in_raw_series *ret_series);
bool in_record_next_raw_sample(struct in_record_cursor *cursor, struct in_raw_sample *ret_sample);

/* The next file of SEALED, out of *@rest, which begins as record->files; false at the end. */
bool in_record_next_file(struct qf_str *rest, struct in_sealed_file *ret_file);

#endif
