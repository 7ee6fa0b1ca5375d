/* head.h - what was written not long ago, from ingest nodes: a head input becomes a local segment.
 *
 * POST /v1/heads/read (docs/PROTOCOL.md) is asked of the replicas in their order. One that is busy, or
 * away, or has not applied the log that far, is passed over and asked again, a few times; what no
 * replica has any more is QF_EGONE: the query must be planned anew. */
#ifndef QUERYWORKER_CACHE_HEAD_H
#define QUERYWORKER_CACHE_HEAD_H

#include "proto/codec/control.h"
#include "queryworker/cache/download.h"

/* The largest head input that is taken. */
#define QW_HEAD_BYTES_MAX (UINT64_C(1) << 30)
/* What one is taken to need on the disk before its size is known. Little: a query may have hundreds of
 * them while the store is away, most with a few series, and only some are on their way at a time. */
#define QW_HEAD_BYTES_GUESS (UINT64_C(1) << 16)

/* How ingest nodes are asked. Any number of threads may use one. */
struct qw_head_source;

struct qw_head_options {
    const char *key_file; /* a line with the operator's key of the ingest nodes, or NULL */
    const char *ca_file;  /* who signs their certificates; NULL: the system's authorities */
};
/* NULL and @err filled: the files cannot be used. */
struct qw_head_source *qw_head_source_new(const struct qw_head_options *options,
                                          struct qf_err *err);
/* Accepts NULL, returns NULL. */
struct qw_head_source *qw_head_source_free(struct qw_head_source *source);

/* One question, with who may be asked. */
struct qw_head_ask *qw_head_ask_new(struct qf_str tenant, const struct pb_heads *heads,
                                    const struct pb_head *head);
void qw_head_ask_free(struct qw_head_ask *ask); /* Accepts NULL. */
/* The bytes of the question: equal ones have equal answers, whoever gives them. */
struct qf_str qw_head_ask_text(const struct qw_head_ask *ask);

/* Fetch @download->head into the file @temp and rename it, or find that it has nothing. QF_EGONE;
 * QF_EUNAVAILABLE; QF_EDENIED; QF_EINVAL: they say that the question is wrong; QF_ELIMIT: too large;
 * those of the disk; QF_ECANCELED. */
QF_MUST_CHECK qf_rc qw_head_fetch(struct qw_download *download, const char *temp);

#endif
