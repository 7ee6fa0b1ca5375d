/* sheet.h - a document as keepers hold it: its values with their bytes, and which requests it has answered. Pure.
 *
 * A keeper stores the bytes of a sheet under the document's name and understands nothing of them. Whoever writes reads what
 * is there, joins it with what is new, and puts the sum of both, if nobody was quicker (`was`, ring/wire/keeper.h). Joining
 * sheets in whichever order gives equal bytes, so that a replica that would not change needs no put.
 *
 * What a sheet has no room for (RG_KEEP_DOC_BYTES_MAX) goes from the earliest sibling on; the winner always fits, and stays. */
#ifndef RING_CORE_SHEET_H
#define RING_CORE_SHEET_H

#include "base/pure/err.h"
#include "base/pure/strbuf.h"
#include "ring/core/clock.h"

enum {
    RG_VALUE_BYTES_MAX = 64 << 10,  /* of a value */
    RG_DOC_KEY_MAX = 512,           /* bytes of a document's key */
    RG_SHEET_BYTES_MAX = 160 << 10, /* two values of that size, clocks, requests */
    RG_REPEATS_MAX = 16,            /* requests that are remembered with a document */
    RG_DOC_NAME_TEXT = 64,          /* of a document at its keepers */
    RG_DIGEST_BYTES = 16,
    RG_CONTEXT_TEXT_MAX = 1024, /* of a context */
    RG_DOC_PART_TEXT = 6 + RG_DOC_NAME_TEXT + 1 + 2 * RG_DIGEST_BYTES,
};
#define RG_REPEAT_MS (INT64_C(24) * 60 * 60 * 1000) /* for so long */

/* What a client has read: it hands it back with the write that shall replace that. */
struct rg_context {
    struct rg_clock clock;
    int64_t time_ms; /* the greatest of the values read */
};

/* A request that the document has answered, by the key that its sender gave it. */
struct rg_repeat {
    uint8_t key[RG_DIGEST_BYTES];     /* of the key */
    uint8_t request[RG_DIGEST_BYTES]; /* of all that was asked */
    struct rg_context context;        /* what was answered */
};

struct rg_content {
    uint64_t id;
    char *data; /* owned */
    size_t len;
};

struct rg_sheet {
    struct rg_document document;
    uint8_t content_count, repeat_count;
    struct rg_content contents[RG_SIBLINGS_MAX];
    struct rg_repeat repeats[RG_REPEATS_MAX]; /* the latest first */
};

void rg_sheet_done(struct rg_sheet *sheet);
/* The bytes of a value; empty if it is a deletion. Borrowed. */
struct qf_str rg_sheet_bytes(const struct rg_sheet *sheet, const struct rg_value *value);
/* Add a value, of which @bytes are copied. */
void rg_sheet_add(struct rg_sheet *sheet, const struct rg_value *value, struct qf_str bytes);
/* Remember a request. */
void rg_sheet_remember(struct rg_sheet *sheet, const struct rg_repeat *repeat);
/* The request with this key, if it was answered less than RG_REPEAT_MS before @now_ms. NULL: none. */
const struct rg_repeat *rg_sheet_repeat(const struct rg_sheet *sheet,
                                        const uint8_t key[RG_DIGEST_BYTES], int64_t now_ms);
/* Add all of @other. */
void rg_sheet_join(struct rg_sheet *sheet, const struct rg_sheet *other);
/* What someone knows who has read all values of @sheet. */
struct rg_context rg_sheet_context(const struct rg_sheet *sheet);

/* Equal sheets give equal bytes, at most RG_SHEET_BYTES_MAX of them: siblings without room go from @sheet. Decoding is
 * strict: QF_ECORRUPT, and nothing to be freed. */
void rg_sheet_encode(struct qf_strbuf *buf, struct rg_sheet *sheet);
QF_MUST_CHECK qf_rc rg_sheet_decode(struct qf_str bytes, struct rg_sheet *ret_sheet);

/* What stands for @bytes in a value: equal bytes, equal ids; never 0, which is "deleted". */
uint64_t rg_content_id(struct qf_str bytes);
void rg_digest(struct qf_str bytes, uint8_t ret_digest[RG_DIGEST_BYTES]);

/* Where @tenant's document @key lies: its name at keepers, and its slot of a ring of @slots. */
void rg_doc_name(struct qf_str tenant, struct qf_str key, char ret_name[RG_DOC_NAME_TEXT + 1]);
uint32_t rg_doc_slot(struct qf_str tenant, struct qf_str key, uint32_t slots);

/* What a write of a document is called while hand-off keeps it for owners that are away: "_docs/NAME/DIGEST", of the
 * document's name and the sheet's bytes. No segment is called so. */
void rg_doc_part(const char *name, struct qf_str bytes, char ret_part[RG_DOC_PART_TEXT + 1]);
/* False: @part is something else. */
bool rg_doc_of_part(struct qf_str part, char ret_name[RG_DOC_NAME_TEXT + 1]);

/* A context as text that means nothing to clients. QF_EINVAL: it is none. */
void rg_context_print(struct qf_strbuf *buf, const struct rg_context *context);
QF_MUST_CHECK qf_rc rg_context_parse(struct qf_str text, struct rg_context *ret_context);
/* A value written now by someone who has read what @context says. */
struct rg_value rg_context_write(const struct rg_context *context, uint64_t coordinator,
                                 uint64_t counter, int64_t now_ms, uint64_t content);

#endif
