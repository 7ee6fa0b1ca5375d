/* enrich_int.h - the inside of enrichment. */
#ifndef INGEST_ENRICH_ENRICH_INT_H
#define INGEST_ENRICH_ENRICH_INT_H

#include "ingest/enrich/enrich.h"

/* values.c: the labels that @value is by @rule, in @arena. NULL: the arena is spent. */
struct qf_label *in_enrich_labels(struct qf_arena *arena, const struct sm_rule *rule,
                                  struct sm_value value, size_t *ret_count);

#endif
