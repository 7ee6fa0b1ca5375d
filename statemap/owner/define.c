/* define.c - definitions by the log. */
#include <inttypes.h>
#include <string.h>

#include "statemap/owner/owner_int.h"
#include "statemap/store/definition_text.h"
#include "statemap/store/rules.h"

static qf_rc refuse(struct sm_verdict *verdict, qf_rc rc, const char *name, const char *why)
{
    (void)qf_err_set(&verdict->err, rc, "map %s %s", name, why);
    return QF_OK;
}

/* False: the verdict says why. @former is empty if there was none. */
static bool is_expected(uint64_t expected, const struct sm_definition *former, const char *name,
                        struct sm_verdict *verdict)
{
    if (expected == SM_EXPECT_ANY || expected == former->version)
        return true;
    if (former->version)
        (void)qf_err_set(&verdict->err, QF_EEXIST, "map %s is of version %" PRIu64 ", not %" PRIu64,
                         name, former->version, expected);
    else
        (void)qf_err_set(&verdict->err, QF_EEXIST, "there is no map %s of version %" PRIu64, name,
                         expected);
    return false;
}

static qf_rc find_former(struct sm_store *store, const char *name, struct sm_definition *ret_former,
                         struct qf_err *err)
{
    qf_rc rc = sm_store_definition(store, qf_str_from(name), ret_former, err);

    if (rc == QF_ENOTFOUND)
        *ret_former = (struct sm_definition){ 0 };
    return rc == QF_ENOTFOUND ? QF_OK : rc;
}

/* Whether it goes with the other maps of its tenant. */
static qf_rc check_others(struct sm_store *store, const struct sm_definition *d, bool is_new,
                          struct sm_verdict *verdict, struct qf_err *err)
{
    sm_definitions all = { 0 };
    qf_rc rc = sm_store_definitions(store, &all, err);

    if (rc == QF_OK && is_new && all.count >= SM_TENANT_MAPS_MAX)
        (void)qf_err_set(&verdict->err, QF_ELIMIT, "a tenant has at most %d maps",
                         SM_TENANT_MAPS_MAX);
    for (size_t i = 0; rc == QF_OK && d->metric[0] && i < all.count; i++)
        if (strcmp(all.items[i].name, d->name) != 0 && strcmp(all.items[i].metric, d->metric) == 0)
            (void)qf_err_set(&verdict->err, QF_EEXIST, "metric %s is that of map %s", d->metric,
                             all.items[i].name);
    QF_VEC_DONE(&all);
    return rc;
}

qf_rc sm_apply_define(struct sm_owner *owner, uint64_t position, const struct sm_entry *entry,
                      struct sm_verdict *verdict, struct qf_err *err)
{
    struct sm_definition definition, former;
    struct sm_tenant *tenant;
    qf_rc rc;

    if (sm_definition_read(entry->bytes, &definition, &verdict->err) != QF_OK)
        return QF_OK;
    rc = sm_owner_tenant(owner, entry->tenant, true, &tenant, err);
    if (rc == QF_OK)
        rc = find_former(tenant->store, definition.name, &former, err);
    if (rc != QF_OK)
        return rc;
    verdict->version = position;
    if (former.version == position) /* a crash came before the position was written */
        return QF_OK;
    if (!is_expected(entry->expected, &former, definition.name, verdict))
        return QF_OK;
    if (former.version && (former.layout.kind != definition.layout.kind ||
                           former.layout.direct != definition.layout.direct))
        return refuse(verdict, QF_EEXIST, former.name,
                      "is there: its kind and short keys stay as they are");
    rc = check_others(tenant->store, &definition, !former.version, verdict, err);
    if (rc != QF_OK || verdict->err.rc != QF_OK)
        return rc;
    definition.version = position;
    definition.created = former.version ? former.created : position;
    rc = sm_store_put_definition(tenant->store, &definition, err);
    if (rc == QF_OK && tenant->waiting) /* it may be larger now */
        sm_tenant_merge(tenant);
    return rc;
}

/* A map that a rule names stays: samples would be refused, or lose their labels, without a word. */
static qf_rc check_rules(struct sm_store *store, const char *name, struct sm_verdict *verdict,
                         struct qf_err *err)
{
    struct sm_rule_set *set;
    const struct sm_rule *rule;
    qf_rc rc = sm_rules_take(store, 0, &set, err);

    if (rc != QF_OK)
        return rc;
    rule = sm_rules_about(set, name);
    if (rule)
        (void)qf_err_set(&verdict->err, QF_EEXIST, "map %s is what rule %s looks at", name,
                         rule->name);
    sm_rules_give_back(set);
    return QF_OK;
}

qf_rc sm_apply_drop(struct sm_owner *owner, uint64_t position, const struct sm_entry *entry,
                    struct sm_verdict *verdict, struct qf_err *err)
{
    struct sm_definition former;
    struct sm_tenant *tenant;
    char name[SM_NAME_MAX + 1];
    qf_rc rc;

    (void)position;
    if (!sm_name_fold(entry->bytes, name)) {
        (void)qf_err_set(&verdict->err, QF_EINVAL, "not the name of a map");
        return QF_OK;
    }
    rc = sm_owner_tenant(owner, entry->tenant, false, &tenant, err);
    if (rc == QF_ENOTFOUND)
        return refuse(verdict, QF_ENOTFOUND, name, "is not there");
    if (rc == QF_OK)
        rc = find_former(tenant->store, name, &former, err);
    if (rc != QF_OK)
        return rc;
    if (!former.version) {
        /* Or a crash came while its rows went. */
        rc = sm_store_drop(tenant->store, name, err);
        return rc == QF_OK ? refuse(verdict, QF_ENOTFOUND, name, "is not there") : rc;
    }
    if (!is_expected(entry->expected, &former, name, verdict))
        return QF_OK;
    rc = check_rules(tenant->store, name, verdict, err);
    if (rc != QF_OK || verdict->err.rc != QF_OK)
        return rc;
    return sm_store_drop(tenant->store, name, err);
}
