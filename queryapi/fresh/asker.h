/* asker.h - asks ingest nodes what is fresh, on a thread of its own.
 *
 * A question is given away with qa_asker_submit() and comes back through `done`, exactly once, with
 * a status (status.h) or with the reason why there is none. Any node can be asked: it confirms the
 * partitions that it leads and asks the leaders of the others. A node that does not answer, or that
 * misses a partition's leader, is not the end: the next one is asked, until wait_ms have passed since
 * the question came. Where nobody has answered for that long already, a question waits patience_ms.
 *
 * A question that waits while another one of its tenant is about to be sent shares its answer: it was
 * there before, so the answer is as fresh as its own would be. One thread drives all transfers
 * (libcurl multi), a bounded number at a time, over connections that are kept.
 *
 * Other questions that any node can answer (exemplars, metadata) are passed on likewise. One that is for
 * a certain node is asked of that one alone, once.
 *
 * An answer is used for one query: it names the nodes that are in the partitions now. Of two answers
 * that were given in this order the second has no lower epoch, since leaders confirm themselves.
 *
 * Beside a status the state maps of its tenant are asked for (atlas.h); both come back together.
 *
 * What an answer tells of segments goes to the catalogue before the answer is handed on, and is
 * covered from then on (covered.h). If it says that the store is to be listed, it is covered when
 * qa_asker_listed() says so. A question about times below the covered floor is answered at once, with
 * a status without partitions. */
#ifndef QUERYAPI_FRESH_ASKER_H
#define QUERYAPI_FRESH_ASKER_H

#include "base/pure/strbuf.h"
#include "base/sys/metrics.h"
#include "queryapi/fresh/maps.h"
#include "queryapi/fresh/roll.h"
#include "queryapi/fresh/status.h"

struct qa_asker;
struct qf_tls_files;

struct qa_question {
    /* Who asks; the asker does not look at it. */
    uint64_t query;
    char *tenant; /* owned */
    int64_t min_ts, max_ts;
    int64_t timeout_ms; /* the query's own time is up then; 0: no matter */
    bool anew;          /* what was known of state maps led to nothing: ask again */
    /* Another question than that for a status: who is told of its end, on the asker's thread. */
    const char *path; /* NULL: a status */
    char *node;       /* who is asked, with GET, and nobody else; NULL: any. Owned */
    struct qf_strbuf body;
    bool aside; /* of no query: neither counted nor told of in the log; nodes may not know of it */
    void (*done)(struct qa_question *question);
    void *ctx;

    /* How it went. */
    qf_rc rc;                 /* QF_OK, QF_EUNAVAILABLE or QF_ETIMEOUT */
    struct qa_status *status; /* if QF_OK; owned */
    struct qa_maps *maps;     /* likewise; NULL: they are not known */
    size_t
        lacking; /* of one that is aside, with QF_OK: no node knows of it, and there is no answer */
    struct qf_strbuf answer; /* of another question: the body of the answer */
    char reason[300];        /* if not, for the client: which partition does not answer */

    /* The asker's own. */
    struct qa_question *next;
    int64_t began_ms, deadline_ms, retry_ms;
    unsigned tries;
};
struct qa_question *
qa_question_free(struct qa_question *question); /* Accepts NULL, returns NULL. */

struct qa_asker_options {
    struct sg_catalog *catalog; /* borrowed */
    bool maps;                  /* ask for state maps, too */
    int64_t maps_age_ms_max;    /* see atlas.h */
    size_t questions_max;       /* waiting at once */
    int64_t wait_ms;            /* 0: 10 s */
    int64_t patience_ms;        /* 0: 1 s */
    int64_t try_ms;             /* how long one node may take; 0: 3 s */
    int64_t query_timeout_ms;   /* of this API; nodes that keep heads for less are warned of */
    const char *key_file;       /* a line with the operator's key of the ingest nodes, or NULL */
    const char *tls_ca_file;    /* nodes are asked over TLS and must be signed by these, or NULL */
    struct qf_metric *asked;    /* counters by enum qa_asked; histogram of seconds; may be NULL */
    struct qf_metric *seconds;
    void (*done)(void *ctx, struct qa_question *question); /* on the asker's thread; may wait */
    void *ctx;
};

/* Of QA_METRICS: how questions ended. */
enum qa_asked { QA_ASKED_OK, QA_ASKED_BELOW_FLOOR, QA_ASKED_FAILED, QA_ASKED__COUNT };

/* NULL and @err filled: the files cannot be used. */
struct qa_asker *qa_asker_new(const struct qa_asker_options *options, struct qf_err *err);
/* Questions that are left are freed without `done`. Accepts NULL, returns NULL. */
struct qa_asker *qa_asker_free(struct qa_asker *asker);

/* Any thread, and none of these waits. */

/* Where ingest nodes are now ("host:port"). Copied. */
void qa_asker_nodes(struct qa_asker *asker, const char *const *addresses, size_t count);
/* What all nodes say of themselves (roll.h). @heard is called once, on the asker's thread or, without an
 * answer, by who ends it. False: too many questions wait, and it is not called. */
QF_MUST_CHECK bool qa_asker_roll(struct qa_asker *asker, qa_roll_heard *heard, void *ctx);
/* False if too many questions wait: it stays the caller's. */
QF_MUST_CHECK bool qa_asker_submit(struct qa_asker *asker, struct qa_question *question);
/* The store was listed, in a listing that began after @status had been handed on: all that was sealed
 * until then is covered, for every tenant. */
void qa_asker_listed(struct qa_asker *asker, struct qa_status *status);

#endif
