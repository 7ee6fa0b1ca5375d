/* status.h - what a query must know of a partition before it is planned. Pure.
 *
 * The question travels to the partition's leader, which answers out of its ledger once it has
 * confirmed itself. The answer is an object of JSON:
 *
 *     partition, queue    number, and id of its queue as hex
 *     leader              who answers
 *     applied             the cut: the last record that is applied
 *     sealed_index        everything sealed up to here is told, or covered
 *     list                true: the caller must list the store, files that it does not know were
 *                         forgotten here
 *     files               sealed after what the caller covers: name, size, etag, index
 *     floor               no sample before it is unsealed, nor will be; null: none
 *     shards              of segments
 *     ranges              of the tenant, not sealed, that overlap the times asked for: generation,
 *                         from, to (0: open), min_ts, max_ts, samples */
#ifndef INGEST_HEAD_STATUS_H
#define INGEST_HEAD_STATUS_H

#include "ingest/core/ledger.h"

/* The first byte of such a question; of one about elected replicas, which the tenant follows. */
enum { IN_QUESTION_STATUS = 'S', IN_QUESTION_ELECTED = 'E' };

/* Append the tenant's elected replicas, each an object of JSON with a comma before it. */
void in_elected_answer(struct qf_str question, const struct in_ledger *ledger,
                       struct qf_strbuf *buf);

struct in_status_ask {
    struct qf_str tenant;
    int64_t min_ts, max_ts;
    uint64_t covered_queue, covered_index; /* 0: nothing is covered */
};
void in_status_ask_encode(struct qf_strbuf *buf, const struct in_status_ask *ask);
/* @ret_ask borrows from @bytes. QF_ECORRUPT. */
QF_MUST_CHECK qf_rc in_status_ask_decode(struct qf_str bytes, struct in_status_ask *ret_ask);

/* Who answers. */
struct in_status_of {
    uint32_t partition;
    uint64_t queue_id;
    uint32_t shards;
    const char *node;
    /* Who is in the partition, and the index of the change that made it so; none: not told. */
    const char *members[16];
    size_t member_count;
    uint64_t epoch;
};
/* Append the answer to @question, without its closing brace: whoever was asked adds what it knows.
 * QF_ECORRUPT: not a question, nothing is appended. */
QF_MUST_CHECK qf_rc in_status_answer(struct qf_str question, const struct in_ledger *ledger,
                                     const struct in_status_of *of, struct qf_strbuf *buf);

#endif
