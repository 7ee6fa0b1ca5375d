/* rules.h - the rules of a tenant (statemap/core/rule.h), in the file `rules.json` of its store.
 *
 * Rules change as a set. A set that was replaced is kept for a while: what was begun with it may have to be done again with it. */
#ifndef STATEMAP_STORE_RULES_H
#define STATEMAP_STORE_RULES_H

#include <stdatomic.h>

#include "statemap/core/rule.h"
#include "statemap/store/store.h"

/* Longer than a request's key is remembered (ingest/core/ledger.h). */
#define SM_RULES_KEEP_MS (INT64_C(20) * 60 * 1000)
enum { SM_RULE_SETS_MAX = 32 };

/* Rules that were in force at the same time, in their order. Nobody changes it. */
struct sm_rule_set {
    atomic_uint users;
    uint64_t from;       /* the position of the change that made it */
    int64_t replaced_ms; /* by the log; 0: it is in force */
    size_t count;
    struct sm_rule rules[];
};

/* The set that was in force at @position; 0: that is in force now. NULL: there were no rules yet. QF_EGONE: it was too long ago. */
QF_MUST_CHECK qf_rc sm_rules_take(struct sm_store *store, uint64_t position,
                                  struct sm_rule_set **ret_set, struct qf_err *err);
void sm_rules_give_back(struct sm_rule_set *set); /* Accepts NULL. */
/* Whether there are rules (about @map; NULL: about any), or were not long before @now_ms. */
QF_MUST_CHECK qf_rc sm_rules_matter(struct sm_store *store, const char *map, int64_t now_ms,
                                    bool *ret_matter, struct qf_err *err);

/* What the log decided at @position, which is behind all before; it was checked. */
QF_MUST_CHECK qf_rc sm_rules_put(struct sm_store *store, const struct sm_rule *rule,
                                 uint64_t position, int64_t now_ms, struct qf_err *err);
/* No such rule: QF_OK. */
QF_MUST_CHECK qf_rc sm_rules_remove(struct sm_store *store, const char *name, uint64_t position,
                                    int64_t now_ms, struct qf_err *err);

const struct sm_rule *sm_rules_find(const struct sm_rule_set *set, const char *name);
/* A rule of @set about this map; NULL: none. @set may be NULL, as above. */
const struct sm_rule *sm_rules_about(const struct sm_rule_set *set, const char *map);

#endif
