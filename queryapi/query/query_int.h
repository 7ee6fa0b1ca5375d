/* query_int.h - the parts of a query's life, between the files of this folder. */
#ifndef QUERYAPI_QUERY_QUERY_INT_H
#define QUERYAPI_QUERY_QUERY_INT_H

#include "queryapi/query/query.h"

/* plan.c: parse, plan, look up segments, make work items. Sets next to WORK, also when there is
 * nothing to read; or to ASK, and qa_query_resume() does the rest. */
QF_MUST_CHECK qf_rc qa_query_plan(struct qa_query *query, struct qf_err *err);
QF_MUST_CHECK qf_rc qa_query_resume(struct qa_query *query, struct qf_err *err);

/* heads.c: what of the heads a leaf reads, besides segments. */
/* Add to @found the shard groups that only heads have, and to *@ret_samples how many samples heads
 * have in the leaf's time range. QF_ELIMIT. */
QF_MUST_CHECK qf_rc qa_heads_groups(const struct qa_query *query, const struct pq_select *select,
                                    struct sg_catalog_answer *found, double *ret_samples,
                                    struct qf_err *err);
/* Give @item, which has @count of the groups, what of the heads is in them. QF_ELIMIT. */
QF_MUST_CHECK qf_rc qa_heads_add(struct qa_query *query, const struct pq_select *select,
                                 const struct sg_catalog_group *groups, size_t count, bool all,
                                 struct qa_item *item, struct qf_err *err);
/* Widen [*@min_ts, *@max_ts] to the samples that heads have. */
void qa_heads_widen(const struct qa_query *query, int64_t *min_ts, int64_t *max_ts);

/* maps.c: which state maps a leaf reads as info series, likewise. */
/* Those that @select may select, without a shard. QF_EUNAVAILABLE: what is known of one is too old, or too little; QF_ELIMIT. */
QF_MUST_CHECK qf_rc qa_maps_find(struct qa_query *query, const struct pq_select *select,
                                 struct pb_maps *ret_maps, struct qf_err *err);
/* If there are any: add all shards to @found that it does not have. QF_ELIMIT. */
QF_MUST_CHECK qf_rc qa_maps_groups(const struct qa_query *query, const struct pb_maps *maps,
                                   struct sg_catalog_answer *found, struct qf_err *err);
/* What the work of @group reads of them, or that of @all groups. */
struct pb_maps qa_maps_part(const struct pb_maps *maps, const struct sg_catalog_group *group,
                            bool all);
/* Widen [*@min_ts, *@max_ts] to all times, if there are info series. */
void qa_maps_widen(const struct qa_query *query, int64_t *min_ts, int64_t *max_ts);

/* owners.c: which workers keep what an item reads, if the store is a ring of storage nodes (segments/store/ring.h). */
/* Before the first item: have a ring that is not too old. */
void qa_owners_follow(struct qa_query *query);
/* Give @item the owners of @group, most of which it reads. */
void qa_owners_add(const struct qa_query *query, const struct sg_catalog_group *group,
                   struct qa_item *item);

/* answer.c: there will be an answer. Events begin with that, so that a client sees progress;
 * documents begin with their first piece, so that until then an error has a status of its own. */
void qa_answer_begin(struct qa_query *query);
/* answer.c: evaluate and write until the stream is full (next ROOM) or all is said (next OVER). */
QF_MUST_CHECK qf_rc qa_query_answer(struct qa_query *query, struct qf_err *err);
void qa_answer_done(struct qa_query *query);

/* What a leaf of this query is called in env->costs. */
uint64_t qa_leaf_key(const struct qa_query *query, uint32_t part, uint32_t leaf);

#endif
