/* rule_text.c - a rule as a JSON object. */
#include "statemap/store/rule_text.h"

#include <jansson.h>
#include <string.h>

/* --- printing --- */

static void print_text(struct qf_strbuf *buf, const char *name, const char *text)
{
    qf_strbuf_printf(buf, ",\"%s\":", name);
    qf_strbuf_json(buf, qf_str_from(text));
}

static void print_members(struct qf_strbuf *buf, const struct sm_rule *rule)
{
    qf_strbuf_puts(buf, ",\"members\":{");
    for (size_t i = 0; i < rule->member_count; i++) {
        if (i)
            qf_strbuf_putc(buf, ',');
        qf_strbuf_json(buf, qf_str_from(rule->members[i].member));
        qf_strbuf_putc(buf, ':');
        qf_strbuf_json(buf, qf_str_from(rule->members[i].label));
    }
    qf_strbuf_putc(buf, '}');
}

void sm_rule_print(struct qf_strbuf *buf, const struct sm_rule *rule)
{
    qf_strbuf_printf(buf, "{\"name\":\"%s\",\"map\":\"%s\",\"from\":[", rule->name, rule->map);
    for (size_t i = 0; i < rule->from_count; i++) {
        if (i)
            qf_strbuf_putc(buf, ',');
        qf_strbuf_json(buf, qf_str_from(rule->from[i]));
    }
    qf_strbuf_putc(buf, ']');
    if (strcmp(rule->separator, ";") != 0)
        print_text(buf, "separator", rule->separator);
    if (rule->into == SM_INTO_LABEL)
        print_text(buf, "to", rule->to);
    else if (rule->into == SM_INTO_NAMED)
        print_members(buf, rule);
    else if (rule->to[0])
        print_text(buf, "prefix", rule->to);
    qf_strbuf_puts(buf, rule->leave ? ",\"missing\":\"leave\"" : "");
    qf_strbuf_puts(buf, rule->overwrite ? ",\"overwrite\":true" : "");
    if (rule->order)
        qf_strbuf_printf(buf, ",\"order\":%llu", (unsigned long long)rule->order);
    if (rule->version)
        qf_strbuf_printf(buf, ",\"version\":%llu", (unsigned long long)rule->version);
    qf_strbuf_putc(buf, '}');
}

/* --- reading --- */

/* Text without a NUL into @out of @size; @what for the message. */
static qf_rc copy_text(const char *what, const json_t *value, char *out, size_t size,
                       struct qf_err *err)
{
    size_t len = json_string_length(value);

    if (!json_is_string(value) || len >= size || memchr(json_string_value(value), 0, len))
        return qf_err_set(err, QF_EINVAL, "\"%s\": text of at most %zu bytes", what, size - 1);
    memcpy(out, json_string_value(value), len + 1);
    return QF_OK;
}

static qf_rc read_name(const char *what, const json_t *value, char out[SM_NAME_MAX + 1],
                       struct qf_err *err)
{
    if (json_is_string(value) &&
        sm_name_fold((struct qf_str){ json_string_value(value), json_string_length(value) }, out))
        return QF_OK;
    return qf_err_set(err, QF_EINVAL,
                      "\"%s\" is a name: letters, digits and underscores, no digit first, at most "
                      "%d",
                      what, SM_NAME_MAX);
}

static qf_rc read_from(const json_t *value, struct sm_rule *rule, struct qf_err *err)
{
    const json_t *item;
    size_t i;
    qf_rc rc = QF_OK;

    if (json_is_string(value)) {
        rule->from_count = 1;
        return copy_text("from", value, rule->from[0], sizeof(rule->from[0]), err);
    }
    if (!json_is_array(value) || json_array_size(value) > SM_RULE_FROM_MAX)
        return qf_err_set(err, QF_EINVAL, "\"from\" is a label, or a list of at most %d",
                          SM_RULE_FROM_MAX);
    json_array_foreach(value, i, item)
    {
        if (rc == QF_OK)
            rc = copy_text("from", item, rule->from[i], sizeof(rule->from[i]), err);
    }
    rule->from_count = json_array_size(value);
    return rc;
}

static qf_rc read_members(json_t *value, struct sm_rule *rule, struct qf_err *err)
{
    const char *name;
    json_t *label;
    qf_rc rc = QF_OK;

    if (!json_is_object(value) || json_object_size(value) > SM_RULE_MEMBERS_MAX)
        return qf_err_set(err, QF_EINVAL,
                          "\"members\" is an object of at most %d members to labels",
                          SM_RULE_MEMBERS_MAX);
    json_object_foreach(value, name, label)
    {
        struct sm_rule_member *member = &rule->members[rule->member_count++];

        if (rc == QF_OK && strlen(name) > SM_RULE_LABEL_MAX)
            rc = qf_err_set(err, QF_EINVAL, "the name of a member has at most %d bytes",
                            SM_RULE_LABEL_MAX);
        if (rc == QF_OK)
            rc = copy_text("members", label, member->label, sizeof(member->label), err);
        if (rc == QF_OK)
            memcpy(member->member, name, strlen(name) + 1);
    }
    return rc;
}

static qf_rc read_number(const char *what, const json_t *value, uint64_t *ret_number,
                         struct qf_err *err)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return qf_err_set(err, QF_EINVAL, "\"%s\" is no whole number", what);
    *ret_number = (uint64_t)json_integer_value(value);
    return QF_OK;
}

static qf_rc read_missing(const json_t *value, struct sm_rule *rule, struct qf_err *err)
{
    struct qf_str text = { json_string_value(value), json_string_length(value) };

    rule->leave = text.data && qf_str_is(text, "leave");
    return text.data && (rule->leave || qf_str_is(text, "refuse"))
               ? QF_OK
               : qf_err_set(err, QF_EINVAL, "\"missing\" is refuse or leave");
}

/* Which labels the value becomes: said once at most. */
static qf_rc read_into(const char *member, json_t *value, bool *said, struct sm_rule *rule,
                       struct qf_err *err)
{
    if (*said)
        return qf_err_set(err, QF_EINVAL, "a rule has one of \"to\", \"prefix\" and \"members\"");
    *said = true;
    if (strcmp(member, "members") == 0) {
        rule->into = SM_INTO_NAMED;
        return read_members(value, rule, err);
    }
    rule->into = strcmp(member, "to") == 0 ? SM_INTO_LABEL : SM_INTO_MEMBERS;
    return copy_text(member, value, rule->to, sizeof(rule->to), err);
}

static qf_rc read_member(const char *member, json_t *value, bool *said, struct sm_rule *rule,
                         struct qf_err *err)
{
    if (strcmp(member, "name") == 0)
        return read_name(member, value, rule->name, err);
    if (strcmp(member, "map") == 0)
        return read_name(member, value, rule->map, err);
    if (strcmp(member, "from") == 0)
        return read_from(value, rule, err);
    if (strcmp(member, "to") == 0 || strcmp(member, "prefix") == 0 ||
        strcmp(member, "members") == 0)
        return read_into(member, value, said, rule, err);
    if (strcmp(member, "separator") == 0)
        return copy_text(member, value, rule->separator, sizeof(rule->separator), err);
    if (strcmp(member, "missing") == 0)
        return read_missing(value, rule, err);
    if (strcmp(member, "order") == 0)
        return read_number(member, value, &rule->order, err);
    if (strcmp(member, "version") == 0)
        return read_number(member, value, &rule->version, err);
    if (strcmp(member, "overwrite") == 0 && json_is_boolean(value)) {
        rule->overwrite = json_is_true(value);
        return QF_OK;
    }
    return qf_err_set(err, QF_EINVAL, "a rule has no member %.60s like this", member);
}

static qf_rc read_rule(json_t *json, struct sm_rule *rule, struct qf_err *err)
{
    bool said = false;
    const char *member;
    json_t *value;
    qf_rc rc = QF_OK;

    json_object_foreach(json, member, value)
    {
        if (rc == QF_OK)
            rc = read_member(member, value, &said, rule, err);
    }
    if (rc == QF_OK && (!rule->name[0] || !rule->map[0]))
        rc = qf_err_set(err, QF_EINVAL, "a rule has at least name, map and from");
    return rc == QF_OK ? sm_rule_check(rule, err) : rc;
}

qf_rc sm_rule_read(struct qf_str text, const char *name, struct sm_rule *ret_rule,
                   struct qf_err *err)
{
    struct sm_rule rule = { .separator = ";" };
    json_error_t why;
    json_t *json;
    qf_rc rc;

    if (*name && !sm_name_fold(qf_str_from(name), rule.name))
        return qf_err_set(err, QF_EINVAL, "%.100s is no name of a rule", name);
    if (text.len > SM_RULE_BYTES_MAX)
        return qf_err_set(err, QF_EINVAL, "a rule has at most %d bytes", (int)SM_RULE_BYTES_MAX);
    json = json_loadb(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(json))
        rc = qf_err_set(err, QF_EINVAL, "a rule is a JSON object%s%s", json ? "" : ": ",
                        json ? "" : why.text);
    else
        rc = read_rule(json, &rule, err);
    json_decref(json);
    if (rc == QF_OK)
        *ret_rule = rule;
    return rc;
}
