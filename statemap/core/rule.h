/* rule.h - what samples that come in are told of maps: from these labels, by this map, to those labels. Pure.
 *
 * The rules of a tenant are applied in their order: by `order`, then by name. A later one sees the labels that an earlier one
 * added. */
#ifndef STATEMAP_CORE_RULE_H
#define STATEMAP_CORE_RULE_H

#include "statemap/core/definition.h"

enum {
    SM_RULES_MAX = 64, /* of a tenant */
    SM_RULE_FROM_MAX = 8,
    SM_RULE_MEMBERS_MAX = 32,
    SM_RULE_LABEL_MAX = 200, /* bytes of a label's name */
    SM_RULE_SEPARATOR_MAX = 16,
    SM_RULE_ORDER_MAX = 1000000
};

enum sm_rule_into {
    SM_INTO_MEMBERS, /* of JSON objects: each member is a label of its name, behind a prefix */
    SM_INTO_LABEL,   /* the value is one label */
    SM_INTO_NAMED    /* of JSON objects: these members are these labels */
};

struct sm_rule_member {
    char member[SM_RULE_LABEL_MAX + 1], label[SM_RULE_LABEL_MAX + 1];
};

struct sm_rule {
    char name[SM_NAME_MAX + 1], map[SM_NAME_MAX + 1];
    char from[SM_RULE_FROM_MAX]
             [SM_RULE_LABEL_MAX + 1]; /* a series that lacks one of them is left */
    size_t from_count;
    char separator[SM_RULE_SEPARATOR_MAX + 1]; /* between the values of several */
    enum sm_rule_into into;
    char to[SM_RULE_LABEL_MAX + 1];                     /* LABEL: which; MEMBERS: the prefix */
    struct sm_rule_member members[SM_RULE_MEMBERS_MAX]; /* NAMED */
    size_t member_count;
    bool leave; /* a map that has no rows here: samples stay as they are; else they are refused */
    bool overwrite; /* a label that is there; else it stays */
    uint64_t order;
    uint64_t version; /* the position in the log of its last change; 0: there is no log */
};

/* Whether a series' label may be called so by a rule. */
bool sm_rule_label(struct qf_str name);

/* QF_EINVAL says what is wrong with @rule by itself. */
QF_MUST_CHECK qf_rc sm_rule_check(const struct sm_rule *rule, struct qf_err *err);
/* And whether it goes with the map that it is about. */
QF_MUST_CHECK qf_rc sm_rule_check_map(const struct sm_rule *rule,
                                      const struct sm_definition *definition, struct qf_err *err);

/* Rules in their order. */
int sm_rule_cmp(const struct sm_rule *a, const struct sm_rule *b);

/* What a ranged map is asked for, if @text is a number, or an IPv4 address, with or without a port behind it. */
bool sm_rule_number(struct qf_str text, int64_t *ret_number);

#endif
