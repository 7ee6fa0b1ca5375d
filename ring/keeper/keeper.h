/* keeper.h - a node's part of the ring on its disk: blobs, documents, epochs. Blocks on the disk; any thread.
 *
 *     DIR/lock               held while it is open
 *     DIR/incarnation        16 hex digits: this life of the disk
 *     DIR/epochs             what rg_keep (ring/core/keep.h) has heard of
 *     DIR/blobs/SSSS/NAME~SUM  slot as 4 hex digits, name as a path, checksum of the content
 *     DIR/docs/SSSS/NAME
 *     DIR/tmp/               uploads under way; emptied at a start
 *
 * A blob has its name only once its bytes are synced and were found to have their checksum. Epochs are synced before
 * anything is answered that rests on them. A folder without a readable `incarnation` or `epochs` begins another life: it takes nothing
 * before it was told the epochs of all slots. What lies in blobs/ counts in any life: names say what it must be.
 *
 * Which blobs there are is kept in memory (their names and 80 bytes each) and read from the folders at a start. The age
 * of a blob (garbage, keep.h) begins anew with every start: it is never thought to be older than it is. */
#ifndef RING_KEEPER_KEEPER_H
#define RING_KEEPER_KEEPER_H

#include <stdatomic.h>

#include "ring/core/keep.h"
#include "ring/wire/keeper.h"
#include "segments/store/keep_client.h"

struct kp_keeper;

struct kp_options {
    const char *dir;        /* made if missing */
    uint64_t reserve_bytes; /* that nothing new may use of the disk */
    uint32_t uploads_max;   /* at a time; 0: 64 */
};

/* QF_EIO, QF_EDENIED: the folder cannot be used, or another process does. */
QF_MUST_CHECK qf_rc kp_open(const struct kp_options *options, struct kp_keeper **ret_keeper,
                            struct qf_err *err);
struct kp_keeper *kp_free(struct kp_keeper *keeper); /* Accepts NULL, returns NULL. */

/* What it says with every answer. */
struct kp_life {
    uint64_t incarnation;
    bool told;
};
struct kp_life kp_life(struct kp_keeper *keeper);

/* How a request ended: a status of ring/wire/keeper.h, and words for it. */
struct kp_said {
    int status;
    uint64_t epoch; /* 409: that it knows */
    char text[200];
};

/* A part of a blob, the last one or not. 200, 201, 202, 409, 412, 413, 416, 422, 503, 507, 500. */
void kp_put(struct kp_keeper *keeper, const struct rg_keep_query *query, struct qf_str part,
            struct kp_said *said);
struct kp_file {
    int fd; /* the caller's to close */
    uint64_t size;
    struct rg_sum sum;
};
/* 200 with the file open, 404. Its content was what it should be when it was put; readers verify. Epochs do not matter. */
void kp_get(struct kp_keeper *keeper, struct qf_str name, struct kp_file *ret_file,
            struct kp_said *said);
/* It holds @name. */
bool kp_has(struct kp_keeper *keeper, struct qf_str name);
/* It holds @name, and nobody found that damaged. */
bool kp_trusts(struct kp_keeper *keeper, struct qf_str name);
/* Somebody found @name damaged: it is trusted again once kp_check() found it whole. */
void kp_suspect(struct kp_keeper *keeper, struct qf_str name);
/* Verify those; a damaged one is put aside as by kp_scrub(). */
void kp_check(struct kp_keeper *keeper);
/* A blob goes. 200, 409, 412. */
void kp_delete(struct kp_keeper *keeper, const struct rg_keep_query *query, struct kp_said *said);
/* The epochs of all slots. 200, 500. */
void kp_tell(struct kp_keeper *keeper, const uint64_t *epochs, uint32_t count,
             struct kp_said *said);
/* Which of @names it lacks. The slot's epoch is heard of. 200, 409, 412. */
void kp_hold(struct kp_keeper *keeper, const struct rg_keep_query *query,
             const struct rg_names *names, struct rg_held *ret_held, struct kp_said *said);
/* Everything of the slot goes. 200, 409. */
void kp_clean(struct kp_keeper *keeper, const struct rg_keep_query *query, struct rg_held *ret_held,
              struct kp_said *said);
/* Fetch those of @names that it lacks, each from the first source that has it. Slow. 200 (with what is missing still), 409, 412. */
void kp_stream(struct kp_keeper *keeper, struct sg_keep_client *client,
               const struct rg_keep_query *query, const struct rg_names *names,
               const struct sg_store_limit *limit, struct rg_held *ret_held, struct kp_said *said);

/* A document. @was: the checksum of what is to be replaced, all zeros: there must be none; NULL: whatever. 200, 409, 412,
 * 428 (it is another one), 413, 507. */
void kp_doc_put(struct kp_keeper *keeper, const struct rg_keep_query *query, struct qf_str bytes,
                const struct rg_sum *was, struct kp_said *said);
/* 200, 404, 409, 412. */
void kp_doc_get(struct kp_keeper *keeper, const struct rg_keep_query *query,
                struct qf_strbuf *ret_bytes, struct kp_said *said);
/* A page of the slot's documents behind @after, encoded. 200, 409, 412. */
void kp_docs(struct kp_keeper *keeper, const struct rg_keep_query *query, struct qf_str after,
             struct qf_strbuf *ret_page, struct kp_said *said);

/* A page of checksums of the slot's documents behind @after, encoded. 200, 409, 412. */
void kp_doc_sums(struct kp_keeper *keeper, const struct rg_keep_query *query, struct qf_str after,
                 struct qf_strbuf *ret_page, struct kp_said *said);
/* Digests of slots are made of their documents, by: read documents of slots that have none, at least @bytes of them, or all.
 * Whatever changes a slot's documents takes its digest away. Returns how many bytes were read; 0: all slots have one. */
uint64_t kp_digest_docs(struct kp_keeper *keeper, uint64_t bytes);
/* Those there are: of slots with documents, and of those that have none yet. rg_digests_done() them. */
void kp_doc_digests(struct kp_keeper *keeper, struct rg_digests *ret_digests);

/* How often blobs of each slot were asked for lately: halved every KP_HEAT_MS. */
enum { KP_HEAT_MS = 10 * 60 * 1000 };
void kp_heat(struct kp_keeper *keeper, int64_t now_ms, uint64_t ret_heat[RG_SLOTS]);

/* Verify the next blobs, @bytes of content or the end; from the beginning again after that. A damaged one is put aside and
 * counts as missing. Returns how many bytes were read; 0: there are no blobs. */
uint64_t kp_scrub(struct kp_keeper *keeper, uint64_t bytes);

/* Walk over what is held: the @at'th of a list that only grows; false: the end. @ret_blob borrows until the keeper is freed. */
struct kp_blob {
    struct qf_str name;
    uint32_t slot;
    uint64_t size;
    int64_t put_ms; /* last time, on the monotonic clock; 0: it is not held any more */
};
bool kp_blob_at(struct kp_keeper *keeper, size_t at, struct kp_blob *ret_blob);
/* @name goes, unless it was put after @asked_ms (monotonic), when it was found that nothing names it, or less than
 * @grace_ms ago. */
bool kp_drop(struct kp_keeper *keeper, struct qf_str name, int64_t asked_ms, int64_t grace_ms);

struct kp_figures {
    uint64_t blobs, bytes;    /* held */
    uint64_t puts, put_bytes; /* that were not there */
    uint64_t repeated;        /* puts of what was there */
    uint64_t refused;         /* for their epoch, or since it was not told */
    uint64_t full;            /* refused for want of room */
    uint64_t streamed, streamed_bytes;
    uint64_t scrubbed_bytes, damaged, dropped; /* dropped: deleted, cleaned, garbage */
    uint64_t uploads;                          /* under way */
    uint64_t free_bytes;                       /* of the disk, above the reserve */
    uint64_t documents;                        /* of slots whose digest is made */
};
struct kp_figures kp_figures(struct kp_keeper *keeper);

#endif
