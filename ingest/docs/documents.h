/* documents.h - small values under tenant and key, written and read through any ingest node.
 *
 * A write is stamped with what its sender has read (the context), this node's incarnation and a counter that is durable before
 * (counter.h), and joined into the document at all of its owners (replicas.h). Without a context it has seen nothing of
 * what other nodes wrote, and stands beside it; of what came through this node before it replaces all.
 *
 * A request with an idempotency key is looked for in the document itself, wherever it was sent to: at the level of
 * the write, for RG_REPEAT_MS, among the RG_REPEATS_MAX latest of the document. Of two at this node at the same moment the
 * second is refused, QF_ECONFLICT: it hears what came of the first one by asking again. Any thread. */
#ifndef INGEST_DOCS_DOCUMENTS_H
#define INGEST_DOCS_DOCUMENTS_H

#include "base/http/stream.h"
#include "ingest/docs/replicas.h"

struct in_documents;
struct in_metrics;

enum {
    IN_DOCUMENT_THREADS = 8,
    IN_DOCUMENTS_MAX = 128, /* requests that wait */
};

struct in_documents_options {
    struct sg_keep_client_options keepers;
    const char *data; /* of the node; "documents" below it is ours */
    const struct sg_ring_handoff
        *handoff; /* keeps what owners miss; outlives this. NULL: nobody does */
};

/* QF_EIO, QF_ECORRUPT: the counter; QF_EUNAVAILABLE: no threads; or the keepers' key. @board and @metrics are borrowed. */
QF_MUST_CHECK qf_rc in_documents_start(const struct in_documents_options *options,
                                       struct rg_board *board, struct in_metrics *metrics,
                                       struct in_documents **ret_documents, struct qf_err *err);
/* When nobody asks any more. Accepts NULL, returns NULL. */
struct in_documents *in_documents_stop(struct in_documents *documents);

/* As documents_requests counts them; ingest/metrics.c names them. */
enum in_document_outcome {
    IN_DOCUMENT_DONE,
    IN_DOCUMENT_REPEATED,
    IN_DOCUMENT_NOT_FOUND,
    IN_DOCUMENT_REFUSED,
    IN_DOCUMENT_NOT_MET,
    IN_DOCUMENT_FAILED
};

enum in_document_verb { IN_DOCUMENT_GET, IN_DOCUMENT_PUT, IN_DOCUMENT_DELETE };

struct in_document_ask {
    enum in_document_verb verb;
    struct qf_str tenant, key;
    struct qf_str value; /* PUT */
    enum rg_level level;
    struct rg_context context; /* zero: the sender has read nothing */
    struct qf_str repeat_key;  /* empty: none */
    bool operates;             /* hears what keepers said in words, addresses too */
};

/* Have @ask, which is copied, answered on @stream. False: too much is under way, and nothing was taken. */
QF_MUST_CHECK bool in_documents_submit(struct in_documents *documents,
                                       const struct in_document_ask *ask, struct qh_stream *stream);

/* Owners of the document @name in @slot lack something: have them repaired. Does not wait; any thread. */
void in_documents_lacking(struct in_documents *documents, uint32_t slot, const char *name);

void in_documents_figures(struct in_documents *documents, struct in_replicas_figures *ret_figures);

#endif
