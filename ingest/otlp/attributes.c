/* attributes.c - attributes of points and resources as labels. */
#include "base/pure/base64.h"
#include "ingest/otlp/names.h"
#include "ingest/otlp/otlp_int.h"

/* Attributes as they were sent. */
struct pairs {
    struct qf_label items[IN_OTLP_ATTRIBUTES_MAX];
    size_t count;
    const char *why; /* they cannot be labels; NULL: they can */
    bool unnamed;    /* and it is one that job and instance are made of */
};

/* A value on its way to being text. */
struct text {
    struct qf_strbuf buf;
    const char *why; /* it will not be; NULL: it may */
};

static bool read_pair(struct qf_str bytes, struct qf_str *ret_key, struct qf_str *ret_value)
{
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;

    *ret_key = *ret_value = QF_STR("");
    while (in_wire_next(&wire, &field)) {
        if (field.number != KEY_VALUE_KEY && field.number != KEY_VALUE_VALUE)
            continue;
        if (field.type != IN_WIRE_BYTES)
            return false;
        if (field.number == KEY_VALUE_KEY)
            *ret_key = field.bytes;
        else
            *ret_value = field.bytes;
    }
    return !wire.bad;
}

/* The one field of an AnyValue that counts, the last; number 0: it has none. */
static bool read_any(struct qf_str bytes, struct in_field *ret_field)
{
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;

    *ret_field = (struct in_field){ 0 };
    while (in_wire_next(&wire, &field)) {
        bool number = field.number == ANY_BOOL || field.number == ANY_INT;

        if (field.number > ANY_BYTES)
            continue;
        if (field.type != (number                       ? IN_WIRE_VARINT
                           : field.number == ANY_DOUBLE ? IN_WIRE_FIXED64
                                                        : IN_WIRE_BYTES))
            return false;
        *ret_field = field;
    }
    return !wire.bad;
}

/* --- values within values, as JSON --- */

static bool put_any(struct text *text, struct qf_str bytes, int depth);

static bool put_array(struct text *text, struct qf_str bytes, int depth)
{
    struct qf_strbuf *buf = &text->buf;
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;
    const char *between = "";

    qf_strbuf_putc(buf, '[');
    while (in_wire_next(&wire, &field)) {
        if (field.number != LIST_VALUES)
            continue;
        qf_strbuf_puts(buf, between);
        between = ",";
        if (field.type != IN_WIRE_BYTES || !put_any(text, field.bytes, depth + 1))
            return false;
        if (text->why)
            return true;
    }
    qf_strbuf_putc(buf, ']');
    return !wire.bad;
}

/* The member whose key comes next behind @after, or first; its value. Two of one key: the last. */
static bool next_member(struct qf_str bytes, const struct qf_str *after, struct qf_str *ret_key,
                        struct qf_str *ret_value, bool *ret_found)
{
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;
    struct qf_str key, value;

    *ret_found = false;
    while (in_wire_next(&wire, &field)) {
        if (field.number != LIST_VALUES)
            continue;
        if (field.type != IN_WIRE_BYTES || !read_pair(field.bytes, &key, &value))
            return false;
        if ((after && qf_str_cmp(key, *after) <= 0) ||
            (*ret_found && qf_str_cmp(key, *ret_key) > 0))
            continue;
        *ret_key = key;
        *ret_value = value;
        *ret_found = true;
    }
    return !wire.bad;
}

/* Members in the order of their keys, so that the same map is the same label: so many and no more. */
static bool put_map(struct text *text, struct qf_str bytes, int depth)
{
    struct qf_strbuf *buf = &text->buf;
    struct qf_str key, value, last;
    bool found;

    qf_strbuf_putc(buf, '{');
    for (size_t i = 0; i <= IN_OTLP_MEMBERS_MAX; i++) {
        if (!next_member(bytes, i ? &last : NULL, &key, &value, &found))
            return false;
        if (!found) {
            qf_strbuf_putc(buf, '}');
            return true;
        }
        qf_strbuf_puts(buf, i ? "," : "");
        qf_strbuf_json(buf, key);
        qf_strbuf_putc(buf, ':');
        if (!put_any(text, value, depth + 1))
            return false;
        if (text->why)
            return true;
        last = key;
    }
    text->why = "a map in an attribute has too many members";
    return true;
}

static void put_number(struct qf_strbuf *buf, const struct in_field *field)
{
    char text[QF_DOUBLE_TEXT_MAX];

    if (field->number == ANY_BOOL)
        qf_strbuf_puts(buf, field->value ? "true" : "false");
    else if (field->number == ANY_INT)
        qf_strbuf_i64(buf, (int64_t)field->value);
    else
        qf_strbuf_add(buf, text, qf_double_json(in_wire_double(field->value), text));
}

/* A value within another one. */
static bool put_any(struct text *text, struct qf_str bytes, int depth)
{
    struct qf_strbuf *buf = &text->buf;
    struct in_field field;

    if (depth > IN_OTLP_DEPTH_MAX) {
        text->why = "an attribute's value is nested too deeply";
        return true;
    }
    if (!read_any(bytes, &field))
        return false;
    switch (field.number) {
    case ANY_STRING:
        qf_strbuf_json(buf, field.bytes);
        return true;
    case ANY_ARRAY:
        return put_array(text, field.bytes, depth);
    case ANY_MAP:
        return put_map(text, field.bytes, depth);
    case ANY_BYTES:
        qf_strbuf_putc(buf, '"');
        qf_base64_encode(buf, field.bytes);
        qf_strbuf_putc(buf, '"');
        return true;
    case 0:
        qf_strbuf_puts(buf, "null");
        return true;
    default:
        put_number(buf, &field);
        return true;
    }
}

static void text_done(struct text *text)
{
    qf_strbuf_done(&text->buf);
}

bool in_otlp_value_text(struct in_otlp *otlp, struct qf_str bytes, struct qf_str *ret_text,
                        const char **ret_why)
{
    QF_CLEANUP(text_done) struct text text = { 0 };
    struct in_field field;

    *ret_why = NULL;
    if (!read_any(bytes, &field))
        return false;
    *ret_text = field.bytes.data ? field.bytes : QF_STR("");
    if (field.number == ANY_STRING || field.number == 0)
        return true;
    if (field.number == ANY_BYTES)
        qf_base64_encode(&text.buf, field.bytes);
    else if (!put_any(&text, bytes, 0))
        return false;
    *ret_why = text.why;
    if (text.why)
        return true;
    *ret_text = qf_arena_str(otlp->arena, qf_strbuf_view(&text.buf));
    return ret_text->data != NULL;
}

/* --- labels --- */

static bool is_identity(struct qf_str key)
{
    return qf_str_is(key, "service.name") || qf_str_is(key, "service.namespace") ||
           qf_str_is(key, "service.instance.id");
}

static bool gather(struct in_otlp *otlp, struct qf_str bytes, uint32_t number, struct pairs *pairs)
{
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;

    pairs->count = 0;
    pairs->why = NULL;
    pairs->unnamed = false;
    while (in_wire_next(&wire, &field)) {
        struct qf_label *pair = &pairs->items[pairs->count];
        const char *why;

        if (field.number != number)
            continue;
        if (field.type != IN_WIRE_BYTES)
            return false;
        if (pairs->count == IN_OTLP_ATTRIBUTES_MAX) {
            pairs->why = "it has too many attributes";
            continue;
        }
        if (!read_pair(field.bytes, &pair->name, &pair->value) ||
            !in_otlp_value_text(otlp, pair->value, &pair->value, &why))
            return false;
        pairs->unnamed |= why && is_identity(pair->name);
        if (why)
            pairs->why = why;
        else
            pairs->count++;
    }
    return !wire.bad;
}

/* By name; equal ones stay in their order. Bounded by IN_OTLP_ATTRIBUTES_MAX. */
static void sort(struct qf_label *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct qf_label item = items[i];
        size_t at = i;

        for (; at > 0 && qf_str_cmp(items[at - 1].name, item.name) > 0; at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

/* What the series gets whatever the point says. */
static bool is_set(const struct in_otlp *otlp, struct qf_str name)
{
    return qf_str_is(name, QF_METRIC_NAME) || (otlp->job.len && qf_str_is(name, "job")) ||
           (otlp->instance.len && qf_str_is(name, "instance"));
}

/* Any bytes: values may have a NUL. */
static struct qf_str concat(struct in_otlp *otlp, struct qf_str a, char between, struct qf_str b)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;

    qf_strbuf_str(&buf, a);
    qf_strbuf_putc(&buf, between);
    qf_strbuf_str(&buf, b);
    return qf_arena_str(otlp->arena, qf_strbuf_view(&buf));
}

static bool join(struct in_otlp *otlp, struct qf_label *into, struct qf_str value)
{
    into->value = concat(otlp, into->value, ';', value);
    return into->value.data != NULL;
}

/* Translate the names of what stays, in the order of the names as they were sent. */
static bool translate(struct in_otlp *otlp, struct pairs *pairs, bool info)
{
    size_t kept = 0;

    sort(pairs->items, pairs->count);
    for (size_t i = 0; i < pairs->count; i++) {
        struct qf_label pair = pairs->items[i];

        if (info && is_identity(pair.name))
            continue;
        pair.name = in_otlp_label_name(otlp->arena, pair.name);
        if (!is_set(otlp, pair.name))
            pairs->items[kept++] = pair;
    }
    pairs->count = kept;
    sort(pairs->items, kept);
    return !qf_arena_failed(otlp->arena);
}

static void put_label(struct in_otlp_labels *labels, const char *name, struct qf_str value)
{
    if (value.len)
        labels->items[labels->count++] = (struct qf_label){ qf_str_from(name), value };
}

bool in_otlp_labels(struct in_otlp *otlp, struct qf_str bytes, uint32_t number, bool info,
                    struct in_otlp_labels *ret_labels, const char **ret_why)
{
    struct pairs pairs;

    *ret_labels = (struct in_otlp_labels){ 0 };
    *ret_why = NULL;
    if (!gather(otlp, bytes, number, &pairs))
        return false;
    *ret_why = pairs.why;
    if (pairs.why)
        return true;
    if (!translate(otlp, &pairs, info))
        return false;
    ret_labels->items = QF_ARENA_ARRAY(otlp->arena, struct qf_label, pairs.count + 4);
    if (!ret_labels->items)
        return false;
    for (size_t i = 0; i < pairs.count; i++) {
        struct qf_label *last = ret_labels->items + ret_labels->count - (ret_labels->count > 0);

        if (!ret_labels->count || !qf_str_eq(last->name, pairs.items[i].name))
            ret_labels->items[ret_labels->count++] = pairs.items[i];
        else if (!join(otlp, last, pairs.items[i].value))
            return false;
    }
    put_label(ret_labels, "job", otlp->job);
    put_label(ret_labels, "instance", otlp->instance);
    return true;
}

bool in_otlp_plain_labels(struct in_otlp *otlp, struct qf_str bytes, uint32_t number,
                          struct qf_label *labels, size_t *count, const char **ret_why)
{
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;

    *ret_why = NULL;
    while (!*ret_why && in_wire_next(&wire, &field)) {
        struct qf_label *label = &labels[*count];

        if (field.number != number)
            continue;
        if (field.type != IN_WIRE_BYTES || !read_pair(field.bytes, &label->name, &label->value) ||
            !in_otlp_value_text(otlp, label->value, &label->value, ret_why))
            return false;
        ++*count;
    }
    return !wire.bad;
}

bool in_otlp_identify(struct in_otlp *otlp, struct qf_str resource, size_t *ret_others)
{
    struct qf_str space = { "", 0 }, name = { "", 0 };
    struct pairs pairs;

    otlp->job = otlp->instance = QF_STR("");
    *ret_others = 0;
    if (!gather(otlp, resource, RESOURCE_ATTRIBUTES, &pairs))
        return false;
    otlp->why = pairs.unnamed ? pairs.why : NULL;
    *ret_others += pairs.why != NULL; /* what is not among the pairs */
    for (size_t i = 0; i < pairs.count; i++) {
        *ret_others += !is_identity(pairs.items[i].name);
        if (qf_str_is(pairs.items[i].name, "service.name"))
            name = pairs.items[i].value;
        if (qf_str_is(pairs.items[i].name, "service.namespace"))
            space = pairs.items[i].value;
        if (qf_str_is(pairs.items[i].name, "service.instance.id"))
            otlp->instance = pairs.items[i].value;
    }
    otlp->job = name;
    if (!name.len || !space.len)
        return true;
    otlp->job = concat(otlp, space, '/', name);
    return otlp->job.data != NULL;
}
