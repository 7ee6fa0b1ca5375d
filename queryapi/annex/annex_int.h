/* annex_int.h - an answer between its files: read.c reads the store, heads.c what ingest nodes said, annex.c answers. */
#ifndef QUERYAPI_ANNEX_ANNEX_INT_H
#define QUERYAPI_ANNEX_ANNEX_INT_H

#include "base/sys/thread.h"
#include "queryapi/annex/annex.h"
#include "segments/annex/files.h"
#include "segments/annex/found.h"

/* A file that was read. */
struct qa_annex_bytes {
    atomic_uint refs;
    char *name, *data;
    size_t len;
};

/* Files that were read before, each in the place that the hash of its name says. */
enum { QA_ANNEX_PLACES = 4096 };
#define QA_ANNEX_KEPT_BYTES ((size_t)64 << 20)

struct qa_annex {
    struct qa_annex_options options;
    struct qf_pool *pool;
    atomic_bool stopping;
    struct qf_lock *lock; /* of: */
    struct qa_annex_bytes *places[QA_ANNEX_PLACES];
    size_t kept_bytes, hand;
};

/* What an answer is made of. */
struct qa_annex_answer {
    struct qa_annex_ask *ask;
    struct sg_found found;     /* exemplars; in the ask's arena */
    struct sg_annex *metadata; /* everything, of whatever metric */
};

QF_MUST_CHECK qf_rc qa_annex_read(struct qa_annex_answer *answer, struct qf_err *err);
QF_MUST_CHECK qf_rc qa_annex_read_heads(struct qa_annex_answer *answer, struct qf_err *err);

bool qa_annex_matches(const struct qa_annex_ask *ask, struct qf_labels series);
qf_rc qa_annex_spent(const struct qa_annex_ask *ask, struct qf_err *err);

struct qa_annex_bytes *qa_annex_bytes_drop(struct qa_annex_bytes *bytes);
void qa_annex_forget(struct qa_annex *annex); /* All that was kept. */

#endif
