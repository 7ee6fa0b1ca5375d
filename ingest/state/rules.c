/* rules.c - what is said of enrichment, by clients. */
#include "ingest/state/state_int.h"
#include "statemap/store/rule_text.h"
#include "statemap/store/rules.h"

qf_rc in_state_put_rule(struct in_state *state, struct qf_str tenant, const struct sm_rule *rule,
                        uint64_t expected, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct sm_rule said = *rule;
    char name[QC_NAME_SIZE];

    /* A node that does not know rules would write samples without their labels. */
    if (state->all_know && !state->all_know(state->ctx, name))
        return qf_err_set(err, QF_EUNAVAILABLE,
                          "node %s is of an older release, or was not seen since this node "
                          "started: rules begin when every node runs this release",
                          name);
    said.version = 0; /* the log's */
    sm_rule_print(&text, &said);
    return in_state_decide(state,
                           &(struct sm_entry){ .kind = SM_ENTRY_RULE,
                                               .tenant = tenant,
                                               .expected = expected,
                                               .bytes = qf_strbuf_view(&text) },
                           err);
}

/* The rules in force; NULL: there are none. */
static qf_rc take_rules(struct in_state *state, struct qf_str tenant, struct sm_rule_set **ret_set,
                        struct qf_err *err)
{
    struct sm_store *store;
    qf_rc rc = in_state_store(state, tenant, &store, err);

    *ret_set = NULL;
    if (rc == QF_ENOTFOUND) {
        *err = (struct qf_err){ 0 };
        return QF_OK;
    }
    return rc == QF_OK ? sm_rules_take(store, 0, ret_set, err) : rc;
}

static qf_rc find_rule(const struct sm_rule_set *set, struct qf_str name,
                       const struct sm_rule **ret_rule, struct qf_err *err)
{
    char folded[SM_NAME_MAX + 1];

    *ret_rule = sm_name_fold(name, folded) ? sm_rules_find(set, folded) : NULL;
    return *ret_rule ? QF_OK
                     : qf_err_set(err, QF_ENOTFOUND, "there is no rule %.*s",
                                  (int)QF_MIN(name.len, (size_t)SM_NAME_MAX), name.data);
}

qf_rc in_state_drop_rule(struct in_state *state, struct qf_str tenant, struct qf_str name,
                         uint64_t expected, struct qf_err *err)
{
    const struct sm_rule *rule;
    struct sm_rule_set *set;
    qf_rc rc = take_rules(state, tenant, &set, err);

    /* What is not there need not be written down. */
    if (rc == QF_OK)
        rc = find_rule(set, name, &rule, err);
    sm_rules_give_back(set);
    if (rc != QF_OK)
        return rc;
    return in_state_decide(
        state,
        &(struct sm_entry){
            .kind = SM_ENTRY_UNRULE, .tenant = tenant, .expected = expected, .bytes = name },
        err);
}

static void print_rules(struct qf_strbuf *json, const struct sm_rule_set *set)
{
    qf_strbuf_puts(json, "{\"rules\":[");
    for (size_t i = 0; set && i < set->count; i++) {
        if (i)
            qf_strbuf_putc(json, ',');
        sm_rule_print(json, &set->rules[i]);
    }
    qf_strbuf_puts(json, "]}");
}

qf_rc in_state_rules(struct in_state *state, struct qf_str tenant, struct qf_str name,
                     struct qf_strbuf *json, struct qf_err *err)
{
    const struct sm_rule *rule;
    struct sm_rule_set *set;
    qf_rc rc = take_rules(state, tenant, &set, err);

    if (rc == QF_OK && !name.len)
        print_rules(json, set);
    else if (rc == QF_OK)
        rc = find_rule(set, name, &rule, err);
    if (rc == QF_OK && name.len)
        sm_rule_print(json, rule);
    sm_rules_give_back(set);
    return rc;
}
