/* rule.c - rules of enrichment by the log. */
#include <inttypes.h>

#include "statemap/owner/owner_int.h"
#include "statemap/store/rule_text.h"
#include "statemap/store/rules.h"

/* False: the verdict says why. @former is NULL if there was none. */
static bool is_expected(uint64_t expected, const struct sm_rule *former, const char *name,
                        struct sm_verdict *verdict)
{
    if (expected == SM_EXPECT_ANY || expected == (former ? former->version : 0))
        return true;
    if (former)
        (void)qf_err_set(&verdict->err, QF_EEXIST,
                         "rule %s is of version %" PRIu64 ", not %" PRIu64, name, former->version,
                         expected);
    else
        (void)qf_err_set(&verdict->err, QF_EEXIST, "there is no rule %s of version %" PRIu64, name,
                         expected);
    return false;
}

/* Whether the map is there, and as the rule takes it to be. */
static qf_rc check_map(struct sm_store *store, const struct sm_rule *rule,
                       struct sm_verdict *verdict, struct qf_err *err)
{
    struct sm_definition definition;
    qf_rc rc = sm_store_definition(store, qf_str_from(rule->map), &definition, err);

    if (rc == QF_ENOTFOUND) {
        if (err)
            *err = (struct qf_err){ 0 };
        (void)qf_err_set(&verdict->err, QF_EINVAL, "rule %s: there is no map %s", rule->name,
                         rule->map);
        return QF_OK;
    }
    if (rc != QF_OK)
        return rc;
    if (sm_rule_check_map(rule, &definition, &verdict->err) != QF_OK)
        (void)qf_err_prefix(&verdict->err, QF_EINVAL, "rule %s", rule->name);
    return QF_OK;
}

/* Against what there is: *ret_done: it was done before. */
static qf_rc judge(struct sm_store *store, const struct sm_rule *rule, uint64_t position,
                   uint64_t expected, bool *ret_done, struct sm_verdict *verdict,
                   struct qf_err *err)
{
    const struct sm_rule *former;
    struct sm_rule_set *set;
    qf_rc rc = sm_rules_take(store, 0, &set, err);

    if (rc != QF_OK)
        return rc;
    former = sm_rules_find(set, rule->name);
    *ret_done =
        former && former->version == position; /* a crash came before the position was written */
    if (!*ret_done && is_expected(expected, former, rule->name, verdict)) {
        if (!former && set && set->count >= SM_RULES_MAX)
            (void)qf_err_set(&verdict->err, QF_ELIMIT, "a tenant has at most %d rules",
                             SM_RULES_MAX);
        else
            rc = check_map(store, rule, verdict, err);
    }
    sm_rules_give_back(set);
    return rc;
}

qf_rc sm_apply_rule(struct sm_owner *owner, uint64_t position, int64_t time_ms,
                    const struct sm_entry *entry, struct sm_verdict *verdict, struct qf_err *err)
{
    struct sm_tenant *tenant;
    struct sm_rule rule;
    bool done;
    qf_rc rc;

    if (sm_rule_read(entry->bytes, "", &rule, &verdict->err) != QF_OK)
        return QF_OK;
    rc = sm_owner_tenant(owner, entry->tenant, false, &tenant, err);
    if (rc == QF_ENOTFOUND) {
        if (err)
            *err = (struct qf_err){ 0 };
        (void)qf_err_set(&verdict->err, QF_EINVAL, "rule %s: there is no map %s", rule.name,
                         rule.map);
        return QF_OK;
    }
    if (rc == QF_OK)
        rc = judge(tenant->store, &rule, position, entry->expected, &done, verdict, err);
    if (rc != QF_OK || verdict->err.rc != QF_OK)
        return rc;
    verdict->version = rule.version = position;
    return done ? QF_OK : sm_rules_put(tenant->store, &rule, position, time_ms, err);
}

qf_rc sm_apply_unrule(struct sm_owner *owner, uint64_t position, int64_t time_ms,
                      const struct sm_entry *entry, struct sm_verdict *verdict, struct qf_err *err)
{
    const struct sm_rule *former = NULL;
    struct sm_rule_set *set = NULL;
    struct sm_tenant *tenant;
    char name[SM_NAME_MAX + 1];
    qf_rc rc;

    if (!sm_name_fold(entry->bytes, name)) {
        (void)qf_err_set(&verdict->err, QF_EINVAL, "not the name of a rule");
        return QF_OK;
    }
    rc = sm_owner_tenant(owner, entry->tenant, false, &tenant, err);
    if (rc == QF_OK)
        rc = sm_rules_take(tenant->store, 0, &set, err);
    if (rc != QF_OK && rc != QF_ENOTFOUND)
        return rc;
    former = rc == QF_OK ? sm_rules_find(set, name) : NULL;
    if (rc == QF_ENOTFOUND && err)
        *err = (struct qf_err){ 0 };
    rc = QF_OK;
    if (!former)
        (void)qf_err_set(&verdict->err, QF_ENOTFOUND, "there is no rule %s", name);
    else if (is_expected(entry->expected, former, name, verdict))
        rc = sm_rules_remove(tenant->store, name, position, time_ms, err);
    sm_rules_give_back(set);
    return rc;
}
