/* members.c - the value of a row as labels. */
#include "statemap/info/members.h"

#include <jansson.h>
#include <stdlib.h>

#include "base/pure/number.h"
#include "statemap/core/info.h"

/* A JSON value as a label's: text without its quotes. */
static void print(struct qf_strbuf *buf, const json_t *json)
{
    char number[QF_DOUBLE_TEXT_MAX], *text;

    qf_strbuf_reset(buf);
    if (json_is_string(json)) {
        qf_strbuf_add(buf, json_string_value(json), json_string_length(json));
    } else if (json_is_real(json)) {
        qf_strbuf_add(buf, number, qf_double_json(json_real_value(json), number));
    } else if (!json_is_null(json)) {
        text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
        qf_strbuf_puts(buf, text ? text : "");
        free(text);
    }
}

static void add(struct qf_arena *arena, struct qf_str name, const struct qf_strbuf *text,
                struct qf_label *members, size_t *count)
{
    members[(*count)++] =
        (struct qf_label){ qf_arena_str(arena, name), qf_arena_str(arena, qf_strbuf_view(text)) };
}

static void add_json(struct qf_arena *arena, json_t *json, struct qf_label *members, size_t *count)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    const char *name;
    json_t *member;

    if (!json_is_object(json)) {
        print(&text, json);
        add(arena, QF_STR(SM_INFO_VALUE), &text, members, count);
        return;
    }
    json_object_foreach(json, name, member)
    {
        print(&text, member);
        if (text.len && sm_info_member(qf_str_from(name)))
            add(arena, qf_str_from(name), &text, members, count);
    }
}

static json_t *parse(struct qf_str text, struct qf_err *err)
{
    json_error_t why;
    json_t *json = json_loadb(text.data, text.len, JSON_DECODE_ANY, &why);

    if (!json)
        (void)qf_err_set(err, QF_ECORRUPT, "a value that should be JSON is none: %s", why.text);
    return json;
}

qf_rc sm_members(struct qf_arena *arena, struct sm_value value, struct qf_label **ret_members,
                 size_t *ret_count, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    json_t *json = value.type == SM_JSON ? parse(value.bytes, err) : NULL;
    size_t count = 0, room = 3 + (json_is_object(json) ? json_object_size(json) : 0);
    struct qf_label *members;

    if (value.type == SM_JSON && !json)
        return QF_ECORRUPT;
    members = QF_ARENA_ARRAY(arena, struct qf_label, room);
    if (members && json) {
        add_json(arena, json, members, &count);
    } else if (members && value.type != SM_ANY) { /* sessions have none */
        sm_value_print(&text, value);
        add(arena, QF_STR(SM_INFO_VALUE), &text, members, &count);
    }
    json_decref(json);
    if (qf_arena_failed(arena))
        return qf_err_set(err, QF_ELIMIT, "no memory for the labels of a row");
    *ret_members = members;
    *ret_count = count;
    return QF_OK;
}
