/* value.c - values with a type. */
#include "statemap/core/value.h"

#include "base/pure/number.h"
#include "base/pure/utf8.h"
#include "statemap/core/bytes.h"

static struct sm_value add(struct qf_strbuf *room, enum sm_type type, const void *data, size_t len)
{
    size_t start = room->len;

    qf_strbuf_add(room, data, len);
    return (struct sm_value){ type, { qf_strbuf_cstr(room) + start, len } };
}

static struct sm_value add_number(struct qf_strbuf *room, enum sm_type type, uint64_t bits)
{
    unsigned char bytes[8];

    sm_write_be(bytes, bits, 8);
    return add(room, type, bytes, sizeof(bytes));
}

struct sm_value sm_value_string(struct qf_strbuf *room, struct qf_str text)
{
    return add(room, SM_STRING, text.data, text.len);
}

struct sm_value sm_value_integer(struct qf_strbuf *room, int64_t number)
{
    return add_number(room, SM_INTEGER, sm_ordered(number));
}

struct sm_value sm_value_double(struct qf_strbuf *room, double number)
{
    return add_number(room, SM_DOUBLE, qf_double_bits(number));
}

struct sm_value sm_value_boolean(struct qf_strbuf *room, bool yes)
{
    return add(room, SM_BOOLEAN, yes ? "\1" : "\0", 1);
}

struct sm_value sm_value_json_text(struct qf_strbuf *room, struct qf_str text)
{
    return add(room, SM_JSON, text.data, text.len);
}

int64_t sm_value_as_integer(struct sm_value value)
{
    return sm_unordered(sm_read_be(value.bytes.data, 8));
}

double sm_value_as_double(struct sm_value value)
{
    return qf_double_from_bits(sm_read_be(value.bytes.data, 8));
}

bool sm_value_valid(enum sm_type type, struct qf_str bytes)
{
    switch (type) {
    case SM_STRING:
        return bytes.len <= SM_VALUE_MAX;
    case SM_JSON:
        return bytes.len > 0 && bytes.len <= SM_VALUE_MAX;
    case SM_INTEGER:
    case SM_DOUBLE:
        return bytes.len == 8;
    case SM_BOOLEAN:
        return bytes.len == 1 && (unsigned char)bytes.data[0] <= 1;
    case SM_ANY:
    case SM_TYPE__COUNT:
        break;
    }
    return false;
}

void sm_value_print(struct qf_strbuf *buf, struct sm_value value)
{
    char text[QF_DOUBLE_TEXT_MAX];

    switch (value.type) {
    case SM_INTEGER:
        qf_strbuf_i64(buf, sm_value_as_integer(value));
        return;
    case SM_DOUBLE:
        qf_strbuf_add(buf, text, qf_double_g(sm_value_as_double(value), text));
        return;
    case SM_BOOLEAN:
        qf_strbuf_puts(buf, value.bytes.data[0] ? "true" : "false");
        return;
    case SM_STRING:
    case SM_JSON:
        qf_strbuf_str(buf, value.bytes);
        return;
    case SM_ANY:
    case SM_TYPE__COUNT:
        return;
    }
}

void sm_value_json(struct qf_strbuf *buf, struct sm_value value)
{
    char text[QF_DOUBLE_TEXT_MAX];

    if (value.type == SM_STRING) {
        qf_strbuf_json(buf, value.bytes);
    } else if (value.type == SM_DOUBLE) {
        double number = sm_value_as_double(value);
        struct qf_str printed = { text, qf_double_json(number, text) };

        if (number - number != 0) { /* an infinity, or no number */
            qf_strbuf_json(buf, printed);
            return;
        }
        qf_strbuf_str(buf, printed);
        /* What is read again must not be an integer. */
        if (!memchr(text, '.', printed.len) && !memchr(text, 'e', printed.len))
            qf_strbuf_puts(buf, ".0");
    } else {
        sm_value_print(buf, value);
    }
}

static qf_rc parse_boolean(struct qf_strbuf *room, struct qf_str text, struct sm_value *ret_value,
                           struct qf_err *err)
{
    bool yes = qf_str_is(text, "true");

    if (!yes && !qf_str_is(text, "false"))
        return qf_err_set(err, QF_EINVAL, "the value is no boolean: say true or false");
    *ret_value = sm_value_boolean(room, yes);
    return QF_OK;
}

static qf_rc parse_string(struct qf_strbuf *room, struct qf_str text, struct sm_value *ret_value,
                          struct qf_err *err)
{
    if (text.len > SM_VALUE_MAX)
        return qf_err_set(err, QF_EINVAL, "the value is longer than %d bytes", SM_VALUE_MAX);
    if (!qf_utf8_valid(text))
        return qf_err_set(err, QF_EINVAL, "the value is not UTF-8");
    *ret_value = sm_value_string(room, text);
    return QF_OK;
}

qf_rc sm_value_parse(struct qf_strbuf *room, enum sm_type type, struct qf_str text,
                     struct sm_value *ret_value, struct qf_err *err)
{
    int64_t integer;
    double number;

    switch (type) {
    case SM_INTEGER:
        if (!qf_parse_i64(text, &integer))
            return qf_err_set(err, QF_EINVAL, "the value is no integer of 64 bits");
        *ret_value = sm_value_integer(room, integer);
        return QF_OK;
    case SM_DOUBLE:
        if (!qf_parse_double(text, &number))
            return qf_err_set(err, QF_EINVAL, "the value is no number");
        *ret_value = sm_value_double(room, number);
        return QF_OK;
    case SM_BOOLEAN:
        return parse_boolean(room, text, ret_value, err);
    case SM_ANY:
    case SM_STRING:
        return parse_string(room, text, ret_value, err);
    case SM_JSON:
    case SM_TYPE__COUNT:
        break;
    }
    return qf_err_set(err, QF_EINVAL, "the value cannot be read as %s", sm_type_name(type));
}
