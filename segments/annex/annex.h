/* annex.h - exemplars and metadata in a store: small files beside the segments.
 *
 *     annex/tenant=T/exemplars/date=YYYY-MM-DD/MIN_MAX_ID.annex
 *     annex/tenant=T/metadata/date=YYYY-MM-DD/MIN_MAX_ID.annex
 *
 * MIN and MAX are the times (ms, inclusive, 13 digits) of the first and last exemplar, which are all of one
 * day in UTC; of metadata, when it was told: its generation, a wall clock in microseconds. ID is the hash of the content:
 * a name never changes its content, and equal content has one name.
 *
 * What counts is the union of all files: of exemplars each that differs once, of a metric's metadata the one of
 * the greatest generation. So it does not matter how often something was put, nor whether files and what they
 * were merged into are there together, and nobody has to agree on anything before files are put or merged
 * (merge.h). A file may go once all it has is in another one.
 *
 *     "PFANNEX" 1 | kind, 3 zeros | count: u32 | MIN, MAX: i64 | length of what follows: u64      little endian
 *     exemplars   for each series, ascending: its labels; how many; for each of them, ascending:
 *                 time (difference), value (8 bytes), labels
 *     metadata    for each, by name: name, type, help, unit, generation
 *     XXH3 of all before: u64
 *
 * Numbers are varints, texts have their lengths before them, labels are as qf_labels_encode() writes them. Nothing
 * is compressed: series are named once, and a size says what reading takes. */
#ifndef SEGMENTS_ANNEX_ANNEX_H
#define SEGMENTS_ANNEX_ANNEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/metric_type.h"
#include "base/pure/strbuf.h"

enum sg_annex_kind { SG_ANNEX_EXEMPLARS = 1, SG_ANNEX_METADATA = 2 };

#define SG_ANNEX_PREFIX "annex/"
/* A file is finished when it has so much; no reader takes more than SG_ANNEX_BYTES_MAX. */
#define SG_ANNEX_BYTES_AIM ((size_t)8 << 20)
#define SG_ANNEX_BYTES_MAX ((size_t)16 << 20)
/* Of one exemplar or one metric's metadata; longer ones are not kept. */
#define SG_ANNEX_ENTRY_MAX ((size_t)64 << 10)

/* Metadata that is still told is in the store once a day (ingest/head/annex.h), not more often: a retention leaves what was told so
 * much earlier. */
#define SG_ANNEX_TOLD_MS INT64_C(172800000)

struct sg_exemplar {
    struct qf_str series, labels; /* encoded; a series has labels, an exemplar may have none */
    int64_t ts;
    double value; /* exact bits */
};

struct sg_metadata {
    struct qf_str name;
    enum qf_metric_type type;
    struct qf_str help, unit;
    uint64_t generation;
};

/* --- names --- */

struct sg_annex_name {
    struct qf_str tenant;
    enum sg_annex_kind kind;
    int64_t min_ts, max_ts;
    uint64_t id;
};

/* Append "annex/tenant=T/KIND/", and the whole name. The tenant must be valid. */
void sg_annex_print_prefix(struct qf_strbuf *buf, struct qf_str tenant, enum sg_annex_kind kind);
void sg_annex_print_folder(struct qf_strbuf *buf, struct qf_str tenant, enum sg_annex_kind kind,
                           int64_t min_ts);
void sg_annex_name_print(struct qf_strbuf *buf, const struct sg_annex_name *name);
/* Read a name back, the tenant borrowed from @text. False if it is not the name of an annex. */
bool sg_annex_name_parse(struct qf_str text, struct sg_annex_name *ret_name);

/* --- reading --- */

struct sg_annex_contents {
    enum sg_annex_kind kind;
    size_t count; /* of: */
    struct sg_exemplar *exemplars;
    struct sg_metadata *metadata;
};

/* What a file has: arrays in @arena, texts borrowed from @bytes. @name, if it is not NULL, must tell the truth.
 * QF_ECORRUPT: not whole, or nobody of ours wrote it; QF_EUNSUPPORTED: a later version did; QF_ELIMIT: the arena
 * is spent. */
QF_MUST_CHECK qf_rc sg_annex_decode(struct qf_str bytes, const struct sg_annex_name *name,
                                    struct qf_arena *arena, struct sg_annex_contents *ret_contents,
                                    struct qf_err *err);

/* --- writing --- */

/* A collection, in memory. One thread at a time. */
struct sg_annex;

/* @bytes_max: that it may take. */
struct sg_annex *sg_annex_new(size_t bytes_max);
struct sg_annex *sg_annex_free(struct sg_annex *annex); /* Accepts NULL, returns NULL. */

/* Copies. False: there is no room, it is too long, or its time is none that a sample may have. */
bool sg_annex_add_exemplar(struct sg_annex *annex, const struct sg_exemplar *exemplar);
/* Of a name's metadata the greatest generation stays; of equal ones the last added (@later), or, so that the order of
 * adding does not matter, the greater text. */
bool sg_annex_add_metadata(struct sg_annex *annex, const struct sg_metadata *metadata, bool later);
/* What is known of a metric; NULL: nothing. Good until the next addition. */
const struct sg_metadata *sg_annex_find_metadata(const struct sg_annex *annex, struct qf_str name);
/* Everything that a file has; false as above. */
bool sg_annex_add_contents(struct sg_annex *annex, const struct sg_annex_contents *contents);

/* The metadata by name, @wants (if it is not NULL) says which; free() it. */
const struct sg_metadata **sg_annex_metadata(const struct sg_annex *annex,
                                             bool (*wants)(void *ctx,
                                                           const struct sg_metadata *metadata),
                                             void *ctx, size_t *ret_count);

size_t sg_annex_metadata_count(const struct sg_annex *annex);
bool sg_annex_is_empty(const struct sg_annex *annex);
size_t sg_annex_bytes(const struct sg_annex *annex);

/* The files that the collection comes to: exemplars by day, metadata by name, each of about SG_ANNEX_BYTES_AIM at most.
 * Equal collections give equal files. */
struct sg_annex_files {
    struct qf_str tenant;
    bool (*wants)(void *ctx, const struct sg_metadata *metadata); /* NULL: all of it */
    /* Errors end it. @name and @bytes are borrowed. */
    qf_rc (*file)(void *ctx, const char *name, struct qf_str bytes, struct qf_err *err);
    void *ctx;
};
QF_MUST_CHECK qf_rc sg_annex_write(struct sg_annex *annex, const struct sg_annex_files *files,
                                   struct qf_err *err);

#endif
