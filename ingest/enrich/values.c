/* values.c - what a map says, as labels. */
#include <jansson.h>
#include <stdlib.h>

#include "base/pure/number.h"
#include "ingest/enrich/enrich_int.h"

struct making {
    struct qf_arena *arena;
    const struct sm_rule *rule;
    struct qf_label *labels;
    size_t count;
    struct qf_strbuf text; /* of a value */
};

static void add(struct making *m, struct qf_str name)
{
    if (!m->text.len ||
        !sm_rule_label(name)) /* no label, as everywhere in PromQL; or none that may be */
        return;
    m->labels[m->count++] = (struct qf_label){ qf_arena_str(m->arena, name),
                                               qf_arena_str(m->arena, qf_strbuf_view(&m->text)) };
}

/* Text without its quotes; null is no text. */
static void print_json(struct making *m, const json_t *json)
{
    char number[QF_DOUBLE_TEXT_MAX], *text;

    qf_strbuf_reset(&m->text);
    switch (json_typeof(json)) {
    case JSON_STRING:
        qf_strbuf_add(&m->text, json_string_value(json), json_string_length(json));
        return;
    case JSON_REAL:
        qf_strbuf_add(&m->text, number, qf_double_json(json_real_value(json), number));
        return;
    case JSON_NULL:
        return;
    case JSON_OBJECT:
    case JSON_ARRAY:
    case JSON_INTEGER:
    case JSON_TRUE:
    case JSON_FALSE:
        break;
    }
    text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    qf_strbuf_puts(&m->text, text ? text : "");
    free(text);
}

/* Each member behind the prefix. */
static void add_members(struct making *m, json_t *json)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;
    const char *member;
    json_t *value;

    json_object_foreach(json, member, value)
    {
        qf_strbuf_reset(&name);
        qf_strbuf_puts(&name, m->rule->to);
        qf_strbuf_puts(&name, member);
        print_json(m, value);
        add(m, qf_strbuf_view(&name));
    }
}

/* Those that the rule names. */
static void add_named(struct making *m, const json_t *json)
{
    for (size_t i = 0; i < m->rule->member_count; i++) {
        const json_t *value = json_object_get(json, m->rule->members[i].member);

        if (!value)
            continue;
        print_json(m, value);
        add(m, qf_str_from(m->rule->members[i].label));
    }
}

static size_t room_for(const struct sm_rule *rule, const json_t *json)
{
    return rule->into == SM_INTO_LABEL   ? 1
           : rule->into == SM_INTO_NAMED ? rule->member_count
                                         : json_object_size(json);
}

struct qf_label *in_enrich_labels(struct qf_arena *arena, const struct sm_rule *rule,
                                  struct sm_value value, size_t *ret_count)
{
    struct making m = { .arena = arena, .rule = rule };
    json_t *json = value.type == SM_JSON
                       ? json_loadb(value.bytes.data, value.bytes.len, JSON_DECODE_ANY, NULL)
                       : NULL;

    m.labels = QF_ARENA_ARRAY(arena, struct qf_label, room_for(rule, json) + 1);
    if (m.labels && rule->into == SM_INTO_LABEL) {
        if (value.type == SM_ANY)
            qf_strbuf_puts(&m.text, "true");
        else if (json)
            print_json(&m, json);
        else if (value.type != SM_JSON)
            sm_value_print(&m.text, value);
        add(&m, qf_str_from(rule->to));
    } else if (m.labels && json_is_object(json)) { /* other values have no members */
        if (rule->into == SM_INTO_NAMED)
            add_named(&m, json);
        else
            add_members(&m, json);
    }
    json_decref(json);
    qf_strbuf_done(&m.text);
    *ret_count = m.count;
    return qf_arena_failed(arena) ? NULL : m.labels;
}
