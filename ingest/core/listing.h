/* listing.h - a question about a partition's manifest, and its answer, a page (ring/wire/listing.h). Pure. */
#ifndef INGEST_CORE_LISTING_H
#define INGEST_CORE_LISTING_H

#include "ingest/core/ledger.h"

/* The first byte of such a question (others: ingest/head/status.h). */
enum { IN_QUESTION_LISTING = 'L' };

struct in_listing_ask {
    uint64_t queue; /* that the rest is about; 0: nothing is known */
    uint64_t since, after;
};
void in_listing_ask_encode(struct qf_strbuf *buf, const struct in_listing_ask *ask);

/* Who answers. */
struct in_listing_of {
    uint64_t cluster, queue;
    uint32_t partitions;
};
/* Append the page. QF_ECORRUPT: not a question, nothing is appended. */
QF_MUST_CHECK qf_rc in_listing_answer(struct qf_str question, const struct in_ledger *ledger,
                                      const struct in_listing_of *of, struct qf_strbuf *buf);

#endif
