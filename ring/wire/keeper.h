/* keeper.h - what is said to a keeper over HTTP, and what it says: paths, bounds, bytes. Pure.
 *
 *     PUT    /v1/keep/blob?name=&slot=&epoch=&size=&sum=&upload=&from=   a part of a blob
 *     GET    /v1/keep/blob?name=&slot=&epoch=      its bytes; one range if asked (also HEAD)
 *     DELETE /v1/keep/blob?name=&slot=&epoch=      200 also if it was not there
 *     POST   /v1/keep/tell                         rg_told: the epochs of all slots
 *     POST   /v1/keep/hold?slot=&epoch=            rg_names -> rg_held: those that it lacks
 *     POST   /v1/keep/stream?slot=&epoch=          rg_names -> rg_held: fetch them; those it could not get
 *     POST   /v1/keep/clean?slot=&epoch=           -> rg_held: everything of the slot is dropped
 *     PUT    /v1/keep/doc?name=&slot=&epoch=&was=  a document's bytes, which mean nothing to the keeper. `was`: the checksum
 *                                                  of what they replace, zeros: nothing is there; else 428
 *     GET    /v1/keep/doc?name=&slot=&epoch=
 *     GET    /v1/keep/docs?slot=&epoch=&after=     rg_docs: the slot's documents, a page in the order of names
 *     GET    /v1/keep/digests                      rg_digests: of the documents of each slot
 *     GET    /v1/keep/sums?slot=&epoch=&after=     as docs, with checksums (RG_SUM_BYTES) instead of the documents
 *     GET    /v1/keep/heat                         as told: how much was read of each slot lately
 *     GET    /v1/keep/status                       JSON, for people; the headers below
 *
 * Every answer says which life of the disk it speaks for: RG_KEEP_INCARNATION, 16 hex digits; and whether that disk was told
 * the epochs of all slots, RG_KEEP_TOLD: 1 or 0. What an answer says is durable before it is said, epochs included (keep.h).
 *
 *     200  done, or it was there already        400  a request that cannot be
 *     201  a blob that was not there            404  no such blob or document
 *     202  a part: go on behind it              409  a later epoch of the slot is known: RG_KEEP_EPOCH says which
 *     412  the disk is new and was not told     413  too large
 *     428  the document is not what `was` says
 *     416  a part that is not the next one: begin again at 0
 *     422  the bytes do not have the checksum, or a blob of this name has another content
 *     503  too much is under way: later         507  no room
 *
 * Blobs: a name never changes its content. `sum` is XXH3-128 of all of it, 32 hex digits; GET and HEAD say it as
 * RG_KEEP_SUM. A blob comes in parts of at most RG_KEEP_PART_BYTES, one behind the other, each with the same `upload` (16 hex
 * digits that nobody else has chosen) and `from`, its offset; the last one ends at `size`. Then the checksum is verified, the
 * file synced and given its name. An upload that nobody goes on with is dropped after RG_KEEP_UPLOAD_MS. */
#ifndef RING_WIRE_KEEPER_H
#define RING_WIRE_KEEPER_H

#include "base/pure/err.h"
#include "base/pure/strbuf.h"
#include "ring/core/place.h"
#include "ring/core/sheet.h"

#define RG_KEEP_PATH "/v1/keep/"
#define RG_KEEP_BLOB RG_KEEP_PATH "blob"
#define RG_KEEP_TELL RG_KEEP_PATH "tell"
#define RG_KEEP_HOLD RG_KEEP_PATH "hold"
#define RG_KEEP_STREAM RG_KEEP_PATH "stream"
#define RG_KEEP_CLEAN RG_KEEP_PATH "clean"
#define RG_KEEP_DOC RG_KEEP_PATH "doc"
#define RG_KEEP_DOCS RG_KEEP_PATH "docs"
#define RG_KEEP_DIGESTS RG_KEEP_PATH "digests"
#define RG_KEEP_SUMS RG_KEEP_PATH "sums"
#define RG_KEEP_HEAT RG_KEEP_PATH "heat"
#define RG_KEEP_STATUS RG_KEEP_PATH "status"

/* Headers of answers, in lower case as clients look for them. */
#define RG_KEEP_INCARNATION "keep-incarnation"
#define RG_KEEP_TOLD "keep-told"
#define RG_KEEP_EPOCH "keep-epoch"
#define RG_KEEP_SUM "keep-sum"

enum {
    RG_KEEP_PART_BYTES = 4 << 20, /* of one request */
    RG_KEEP_NAMES_MAX = 4096,     /* of one request */
    RG_KEEP_SOURCES_MAX = 16,
    RG_KEEP_URL_MAX = 512, /* bytes of a keeper's URL */
    RG_KEEP_DOC_BYTES_MAX = RG_SHEET_BYTES_MAX,
    RG_KEEP_DOCS_MAX = 64,        /* of a page */
    RG_KEEP_DOCS_BYTES = 2 << 20, /* of a page; one document always fits */
    RG_SUM_BYTES = 16,
    RG_SUM_TEXT = 2 * RG_SUM_BYTES
};
#define RG_KEEP_BLOB_BYTES_MAX (UINT64_C(64) << 30)
#define RG_KEEP_UPLOAD_MS (INT64_C(10) * 60 * 1000)

/* 1 to RG_BLOB_NAME_MAX bytes of UTF-8 without control characters, '\\' or '~'; parts separated by single '/', none at the
 * ends, none of more than 200 bytes or beginning with '.': what is a path below a folder of the keeper's. */
bool rg_blob_name_valid(struct qf_str name);

/* The slot of a blob, which its name says: of tenant T ("tenant=T/" in it) and shard S ("_sSofN" in its last part, else 0).
 * @slots: how many the ring has. */
uint32_t rg_blob_slot(struct qf_str name, uint32_t placements, uint32_t slots);

/* A checksum, and as text. False: it is none. */
struct rg_sum {
    uint8_t bytes[RG_SUM_BYTES];
};
void rg_sum_print(const struct rg_sum *sum, char ret_text[RG_SUM_TEXT + 1]);
bool rg_sum_parse(struct qf_str text, struct rg_sum *ret_sum);

/* What a request says behind '?'. */
struct rg_keep_query {
    struct qf_str name; /* empty: none is said */
    uint32_t slot;
    uint64_t epoch;
    /* PUT of a blob: */
    bool upload;
    uint64_t size, from, upload_id;
    struct rg_sum sum;
    /* PUT of a document, or NULL: */
    const struct rg_sum *was;
    struct qf_str after; /* GET of documents: behind which name; empty: from the first on */
};
/* Append "?name=..." to a path. */
void rg_keep_query_print(struct qf_strbuf *buf, const struct rg_keep_query *query);

/* The epochs of slots 0 to @count - 1. Decoding: QF_ECORRUPT unless there are 1 to RG_SLOTS. */
void rg_told_encode(struct qf_strbuf *buf, const uint64_t *epochs, uint32_t count);
QF_MUST_CHECK qf_rc rg_told_decode(struct qf_str bytes, uint64_t ret_epochs[RG_SLOTS],
                                   uint32_t *ret_count);

/* Names of blobs of a slot, and where to fetch them (URLs of keepers, the first one first). What is decoded borrows from the
 * bytes, and from an array that rg_names_done() frees. QF_ECORRUPT. */
struct rg_names {
    struct qf_str *names;
    size_t count;
    struct qf_str sources[RG_KEEP_SOURCES_MAX];
    size_t source_count;
};
void rg_names_encode(struct qf_strbuf *buf, const struct rg_names *names);
QF_MUST_CHECK qf_rc rg_names_decode(struct qf_str bytes, struct rg_names *ret_names);
void rg_names_done(struct rg_names *names);

/* What came of hold, stream and clean: places of names in the request that are not there, ascending; and how much was
 * copied (stream) or dropped (clean). QF_ECORRUPT. */
struct rg_held {
    uint64_t incarnation;
    uint64_t blobs, bytes;
    uint32_t *missing;
    size_t missing_count;
};
void rg_held_encode(struct qf_strbuf *buf, const struct rg_held *held);
QF_MUST_CHECK qf_rc rg_held_decode(struct qf_str bytes, struct rg_held *ret_held);
void rg_held_done(struct rg_held *held);

/* Documents of a slot behind `after`, in the order of their names. Borrows as above. */
struct rg_doc {
    struct qf_str name, bytes;
};
struct rg_docs {
    struct rg_doc *items;
    size_t count;
    bool more; /* ask again, after the last one */
};
void rg_docs_encode(struct qf_strbuf *buf, const struct rg_docs *docs);
QF_MUST_CHECK qf_rc rg_docs_decode(struct qf_str bytes, struct rg_docs *ret_docs);
void rg_docs_done(struct rg_docs *docs);

/* What stands for all documents of a slot: equal documents, equal sums. Slots ascend; one that is not there has none. */
struct rg_digest {
    uint32_t slot;
    bool known; /* false: it was not made yet since something changed */
    struct rg_sum sum;
};
struct rg_digests {
    struct rg_digest *items;
    size_t count;
};
void rg_digests_encode(struct qf_strbuf *buf, const struct rg_digests *digests);
/* QF_ECORRUPT. Whoever decodes calls rg_digests_done(). */
QF_MUST_CHECK qf_rc rg_digests_decode(struct qf_str bytes, struct rg_digests *ret_digests);
void rg_digests_done(struct rg_digests *digests);
/* That of @slot; NULL: it has no documents. */
const struct rg_digest *rg_digests_of(const struct rg_digests *digests, uint32_t slot);

#endif
