/* rule.c - what samples that come in are told of maps. */
#include "statemap/core/rule.h"

#include <string.h>

#include "base/pure/labels.h"
#include "base/pure/number.h"
#include "base/pure/utf8.h"

bool sm_rule_label(struct qf_str name)
{
    return name.len > 0 && name.len <= SM_RULE_LABEL_MAX && !qf_str_starts(name, QF_STR("__")) &&
           qf_utf8_valid(name);
}

static qf_rc no_label(const char *what, const char *name, struct qf_err *err)
{
    return qf_err_set(err, QF_EINVAL,
                      "%s: \"%.60s\" is no label that a rule may name: text of 1 to %d bytes that "
                      "does not begin with __",
                      what, name, SM_RULE_LABEL_MAX);
}

static qf_rc check_from(const struct sm_rule *rule, struct qf_err *err)
{
    if (!rule->from_count || rule->from_count > SM_RULE_FROM_MAX)
        return qf_err_set(err, QF_EINVAL, "\"from\" has 1 to %d labels", SM_RULE_FROM_MAX);
    for (size_t i = 0; i < rule->from_count; i++)
        if (strcmp(rule->from[i], QF_METRIC_NAME) != 0 &&
            !sm_rule_label(qf_str_from(rule->from[i])))
            return no_label("from", rule->from[i], err);
    return QF_OK;
}

static qf_rc check_members(const struct sm_rule *rule, struct qf_err *err)
{
    if (!rule->member_count || rule->member_count > SM_RULE_MEMBERS_MAX)
        return qf_err_set(err, QF_EINVAL, "\"members\" has 1 to %d members", SM_RULE_MEMBERS_MAX);
    for (size_t i = 0; i < rule->member_count; i++) {
        if (!sm_rule_label(qf_str_from(rule->members[i].label)))
            return no_label("members", rule->members[i].label, err);
        for (size_t j = 0; j < i; j++)
            if (strcmp(rule->members[i].label, rule->members[j].label) == 0)
                return qf_err_set(err, QF_EINVAL, "two members would be label %.60s",
                                  rule->members[i].label);
    }
    return QF_OK;
}

qf_rc sm_rule_check(const struct sm_rule *rule, struct qf_err *err)
{
    qf_rc rc = check_from(rule, err);

    if (rc != QF_OK)
        return rc;
    if (!qf_utf8_valid(qf_str_from(rule->separator)))
        return qf_err_set(err, QF_EINVAL, "\"separator\" is no text");
    if (rule->order > SM_RULE_ORDER_MAX)
        return qf_err_set(err, QF_EINVAL, "\"order\" is 0 to %d", SM_RULE_ORDER_MAX);
    switch (rule->into) {
    case SM_INTO_LABEL:
        return sm_rule_label(qf_str_from(rule->to)) ? QF_OK : no_label("to", rule->to, err);
    case SM_INTO_MEMBERS:
        return !rule->to[0] || sm_rule_label(qf_str_from(rule->to))
                   ? QF_OK
                   : no_label("prefix", rule->to, err);
    case SM_INTO_NAMED:
        break;
    }
    return check_members(rule, err);
}

qf_rc sm_rule_check_map(const struct sm_rule *rule, const struct sm_definition *definition,
                        struct qf_err *err)
{
    if (rule->into == SM_INTO_LABEL)
        return QF_OK;
    if (!sm_kind_valued(definition->layout.kind))
        return qf_err_set(err, QF_EINVAL,
                          "a %s map has no values: \"to\" names the label that is \"true\" while "
                          "there is a session",
                          sm_kind_name(definition->layout.kind));
    if (definition->type != SM_ANY && definition->type != SM_JSON)
        return qf_err_set(err, QF_EINVAL,
                          "values of map %s are of type %s and have no members: say \"to\"",
                          definition->name, sm_type_name(definition->type));
    return QF_OK;
}

int sm_rule_cmp(const struct sm_rule *a, const struct sm_rule *b)
{
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* One of the four numbers of an address, at the beginning of *@text. */
static bool take_octet(struct qf_str *text, int64_t *number)
{
    int64_t octet = 0;
    size_t i = 0;

    for (; i < text->len && i < 3 && text->data[i] >= '0' && text->data[i] <= '9'; i++)
        octet = octet * 10 + (text->data[i] - '0');
    *text = qf_str_sub(*text, i, text->len);
    *number = *number * 256 + octet;
    return i > 0 && octet <= 255;
}

static bool take_char(struct qf_str *text, char c)
{
    bool there = text->len > 0 && text->data[0] == c;

    if (there)
        *text = qf_str_sub(*text, 1, text->len);
    return there;
}

bool sm_rule_number(struct qf_str text, int64_t *ret_number)
{
    int64_t number = 0, port;

    if (qf_parse_i64(text, ret_number))
        return true;
    for (int i = 0; i < 4; i++)
        if ((i && !take_char(&text, '.')) || !take_octet(&text, &number))
            return false;
    if (text.len && (!take_char(&text, ':') || !qf_parse_i64(text, &port)))
        return false;
    *ret_number = number;
    return true;
}
