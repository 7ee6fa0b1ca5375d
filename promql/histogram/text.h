/* text.h - a native histogram in one line, as count_values() labels it. */
#ifndef PROMQL_HISTOGRAM_TEXT_H
#define PROMQL_HISTOGRAM_TEXT_H

#include "base/pure/strbuf.h"
#include "promql/value.h"

/* {count:20, sum:10, [-2,-1):2, [-0.001,0.001]:2, (0.5,1]:1}; empty buckets are left out. */
void pq_histogram_print(struct qf_strbuf *buf, const struct pq_histogram *h);

#endif
