/* json.c - JSON of OpenTelemetry's protocol, turned into protobuf as it is read. */
#include "ingest/otlp/json.h"

#include "base/pure/base64.h"
#include "base/pure/hex.h"
#include "base/pure/number.h"
#include "base/pure/utf8.h"
#include "base/pure/varint.h"
#include "ingest/core/wire.h"
#include "ingest/otlp/schema.h"

/* A message's length is known when it ends: room for one of up to 256 MiB, whatever it comes to. */
#define LENGTH_BYTES 4
#define LENGTH_MAX ((size_t)1 << (7 * LENGTH_BYTES))

/* Every function returns false once the text is no such JSON or too long; `what` says why. */
struct reader {
    const char *begin, *at, *end;
    struct qf_strbuf *out;
    struct qf_strbuf text; /* the last string that was read */
    size_t bytes_max;
    int depth;
    bool too_long;
    const char *what;
};

static bool fail(struct reader *r, const char *what)
{
    if (!r->what)
        r->what = what;
    return false;
}

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

/* The next character that is not blank, which stays; 0 at the end. */
static char peek(struct reader *r)
{
    skip_blanks(r);
    return r->at < r->end ? *r->at : 0;
}

static bool take(struct reader *r, char c)
{
    if (peek(r) != c || r->at >= r->end)
        return false;
    r->at++;
    return true;
}

static bool expect(struct reader *r, char c, const char *what)
{
    return take(r, c) || fail(r, what);
}

static bool deeper(struct reader *r)
{
    return ++r->depth <= IN_OTLP_JSON_DEPTH_MAX || fail(r, "values within values are too deep");
}

/* --- strings --- */

static bool read_hex4(struct reader *r, uint32_t *ret_code)
{
    uint32_t code = 0;

    if (r->end - r->at < 4)
        return fail(r, "a string ends in the middle");
    for (int i = 0; i < 4; i++) {
        int digit = qf_hex_digit(*r->at++);

        if (digit < 0)
            return fail(r, "an escape is not hexadecimal");
        code = code << 4 | (uint32_t)digit;
    }
    *ret_code = code;
    return true;
}

static void put_code(struct qf_strbuf *buf, uint32_t code)
{
    if (code < 0x80) {
        qf_strbuf_putc(buf, (char)code);
        return;
    }
    if (code < 0x800) {
        qf_strbuf_putc(buf, (char)(0xc0 | code >> 6));
    } else {
        if (code < 0x10000) {
            qf_strbuf_putc(buf, (char)(0xe0 | code >> 12));
        } else {
            qf_strbuf_putc(buf, (char)(0xf0 | code >> 18));
            qf_strbuf_putc(buf, (char)(0x80 | (code >> 12 & 0x3f)));
        }
        qf_strbuf_putc(buf, (char)(0x80 | (code >> 6 & 0x3f)));
    }
    qf_strbuf_putc(buf, (char)(0x80 | (code & 0x3f)));
}

/* Behind "\u". Halves of a pair come together. */
static bool read_code(struct reader *r)
{
    uint32_t code, low;

    if (!read_hex4(r, &code))
        return false;
    if (code >= 0xdc00 && code <= 0xdfff)
        return fail(r, "half of a pair of escapes");
    if (code >= 0xd800 && code <= 0xdbff) {
        if (r->end - r->at < 2 || r->at[0] != '\\' || r->at[1] != 'u')
            return fail(r, "half of a pair of escapes");
        r->at += 2;
        if (!read_hex4(r, &low))
            return false;
        if (low < 0xdc00 || low > 0xdfff)
            return fail(r, "half of a pair of escapes");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    put_code(&r->text, code);
    return true;
}

static bool read_escape(struct reader *r)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *found;
    char c = r->at < r->end ? *r->at++ : 0;

    if (c == 'u')
        return read_code(r);
    found = c ? strchr(from, c) : NULL;
    if (!found)
        return fail(r, "an escape that is none");
    qf_strbuf_putc(&r->text, to[found - from]);
    return true;
}

/* Into r->text. */
static bool read_string(struct reader *r)
{
    qf_strbuf_reset(&r->text);
    if (!expect(r, '"', "expected a string"))
        return false;
    while (r->at < r->end) {
        unsigned char c = (unsigned char)*r->at++;

        if (c == '"')
            return true;
        if (c < 0x20)
            return fail(r, "a string has a control character");
        if (c == '\\' ? !read_escape(r) : (qf_strbuf_putc(&r->text, (char)c), false))
            return false;
    }
    return fail(r, "a string ends in the middle");
}

/* --- other values --- */

static bool take_word(struct reader *r, const char *word)
{
    size_t len = strlen(word);

    skip_blanks(r);
    if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0)
        return false;
    r->at += len;
    return true;
}

/* The text of a number, bare or as a string. */
static bool read_number_text(struct reader *r, struct qf_str *ret_text)
{
    const char *start;

    if (peek(r) == '"') {
        if (!read_string(r))
            return false;
        *ret_text = qf_strbuf_view(&r->text);
        return true;
    }
    start = r->at;
    while (r->at < r->end && *r->at && strchr("+-0123456789.eE", *r->at))
        r->at++;
    *ret_text = (struct qf_str){ start, (size_t)(r->at - start) };
    return ret_text->len || fail(r, "expected a number");
}

/* 64 bits of a whole number, signed or not; 1e3 and 5.0 are such. */
static bool read_whole(struct reader *r, uint64_t *ret_value)
{
    struct qf_str text;
    int64_t below;
    double number;

    if (!read_number_text(r, &text))
        return false;
    if (qf_parse_u64(text, ret_value))
        return true;
    if (qf_parse_i64(text, &below)) {
        *ret_value = (uint64_t)below;
        return true;
    }
    if (!qf_parse_double(text, &number) || !(number >= -0x1p53 && number <= 0x1p53) ||
        number != (double)(int64_t)number)
        return fail(r, "expected a whole number of 64 bits");
    *ret_value = (uint64_t)(int64_t)number;
    return true;
}

static bool read_double(struct reader *r, double *ret_value)
{
    struct qf_str text;

    return read_number_text(r, &text) &&
           (qf_parse_double(text, ret_value) || fail(r, "expected a number"));
}

static bool skip_value(struct reader *r);

static bool skip_members(struct reader *r, char close, bool named)
{
    if (take(r, close))
        return true;
    do {
        if (named && (!read_string(r) || !expect(r, ':', "expected a colon")))
            return false;
        if (!skip_value(r))
            return false;
    } while (take(r, ','));
    return expect(r, close, "a list or object does not end");
}

/* A value that nobody asked for. */
static bool skip_value(struct reader *r)
{
    struct qf_str text;
    double number;
    char c = peek(r);
    bool ok;

    if (c == '"')
        return read_string(r);
    if (c == '{' || c == '[') {
        r->at++;
        ok = deeper(r) && skip_members(r, c == '{' ? '}' : ']', c == '{');
        r->depth--;
        return ok;
    }
    if (take_word(r, "true") || take_word(r, "false") || take_word(r, "null"))
        return true;
    return read_number_text(r, &text) &&
           (qf_parse_double(text, &number) || fail(r, "expected a value"));
}

/* --- protobuf --- */

static bool put_key(struct reader *r, uint32_t number, enum in_wire_type type)
{
    unsigned char bytes[QF_VARINT_MAX];

    if (r->out->len > r->bytes_max) {
        r->too_long = true;
        return fail(r, "it is too long");
    }
    qf_strbuf_add(r->out, bytes, qf_varint_put(bytes, (uint64_t)number << 3 | (uint64_t)type));
    return true;
}

static bool put_varint(struct reader *r, uint32_t number, uint64_t value)
{
    unsigned char bytes[QF_VARINT_MAX];

    if (!put_key(r, number, IN_WIRE_VARINT))
        return false;
    qf_strbuf_add(r->out, bytes, qf_varint_put(bytes, value));
    return true;
}

static bool put_fixed(struct reader *r, uint32_t number, uint64_t value)
{
    if (!put_key(r, number, IN_WIRE_FIXED64))
        return false;
    qf_strbuf_add(r->out, &value, sizeof(value)); /* this machine's order, as in wire.c */
    return true;
}

static bool put_bytes(struct reader *r, uint32_t number, struct qf_str bytes)
{
    unsigned char length[QF_VARINT_MAX];

    if (!put_key(r, number, IN_WIRE_BYTES))
        return false;
    qf_strbuf_add(r->out, length, qf_varint_put(length, bytes.len));
    qf_strbuf_str(r->out, bytes);
    return true;
}

static bool put_hex(struct reader *r, uint32_t number)
{
    struct qf_str text = qf_strbuf_view(&r->text);
    char bytes[64];

    if (text.len / 2 > sizeof(bytes) || !qf_hex_decode(text, bytes))
        return fail(r, "an id is not hexadecimal");
    return put_bytes(r, number, (struct qf_str){ bytes, text.len / 2 });
}

static bool put_base64(struct reader *r, uint32_t number)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;

    if (!qf_base64_decode(&bytes, qf_strbuf_view(&r->text)))
        return fail(r, "bytes are not base64");
    return put_bytes(r, number, qf_strbuf_view(&bytes));
}

static bool read_message(struct reader *r, const struct in_otlp_message *message);

static bool put_message(struct reader *r, const struct in_otlp_field *field)
{
    size_t start, len;

    if (!put_key(r, field->number, IN_WIRE_BYTES))
        return false;
    start = r->out->len;
    qf_strbuf_add(r->out, "\0\0\0\0", LENGTH_BYTES);
    if (!read_message(r, field->message))
        return false;
    len = r->out->len - start - LENGTH_BYTES;
    if (len >= LENGTH_MAX) {
        r->too_long = true;
        return fail(r, "it is too long");
    }
    for (size_t i = 0; i < LENGTH_BYTES; i++)
        r->out->data[start + i] =
            (char)((len >> (7 * i) & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0));
    return true;
}

static bool put_value(struct reader *r, const struct in_otlp_field *field)
{
    uint64_t whole;
    double number;

    switch (field->form) {
    case IN_OTLP_MESSAGE:
        return put_message(r, field);
    case IN_OTLP_TEXT:
        return read_string(r) && put_bytes(r, field->number, qf_strbuf_view(&r->text));
    case IN_OTLP_BASE64:
        return read_string(r) && put_base64(r, field->number);
    case IN_OTLP_HEX:
        return read_string(r) && put_hex(r, field->number);
    case IN_OTLP_DOUBLE:
        return read_double(r, &number) && put_fixed(r, field->number, qf_double_bits(number));
    case IN_OTLP_FIXED:
        return read_whole(r, &whole) && put_fixed(r, field->number, whole);
    case IN_OTLP_VARINT:
        return read_whole(r, &whole) && put_varint(r, field->number, whole);
    case IN_OTLP_ZIGZAG:
        return read_whole(r, &whole) && put_varint(r, field->number, qf_zigzag((int64_t)whole));
    case IN_OTLP_BOOL:
        break;
    }
    if (take_word(r, "true"))
        return put_varint(r, field->number, 1);
    return (take_word(r, "false") || fail(r, "expected true or false")) &&
           put_varint(r, field->number, 0);
}

static bool put_values(struct reader *r, const struct in_otlp_field *field)
{
    if (!expect(r, '[', "expected a list"))
        return false;
    if (take(r, ']'))
        return true;
    do {
        if (!put_value(r, field))
            return false;
    } while (take(r, ','));
    return expect(r, ']', "a list does not end");
}

static bool read_member(struct reader *r, const struct in_otlp_message *message)
{
    const struct in_otlp_field *field;

    if (!read_string(r))
        return false;
    field = in_otlp_find_field(message, qf_strbuf_view(&r->text));
    if (!expect(r, ':', "expected a colon"))
        return false;
    if (take_word(r, "null"))
        return true;
    if (!field)
        return skip_value(r);
    return field->repeated ? put_values(r, field) : put_value(r, field);
}

static bool read_message(struct reader *r, const struct in_otlp_message *message)
{
    if (!deeper(r) || !expect(r, '{', "expected an object"))
        return false;
    if (!take(r, '}')) {
        do {
            if (!read_member(r, message))
                return false;
        } while (take(r, ','));
        if (!expect(r, '}', "an object does not end"))
            return false;
    }
    r->depth--;
    return true;
}

qf_rc in_otlp_json_decode(struct qf_str text, size_t bytes_max, struct qf_strbuf *buf,
                          struct qf_err *err)
{
    const char *data = text.len ? text.data : "";
    struct reader r = { .begin = data,
                        .at = data,
                        .end = data + text.len,
                        .out = buf,
                        .text = QF_STRBUF_INIT,
                        .bytes_max = bytes_max };
    bool ok = read_message(&r, &in_otlp_request) &&
              (peek(&r) == 0 && r.at == r.end ? true : fail(&r, "something follows its end"));

    qf_strbuf_done(&r.text);
    if (ok)
        return QF_OK;
    if (r.too_long)
        return qf_err_set(err, QF_ELIMIT,
                          "the body has more than %zu bytes as a message: split the request",
                          bytes_max);
    return qf_err_set(err, QF_EPARSE, "the body is no OTLP request in JSON: byte %zu: %s",
                      (size_t)(r.at - r.begin), r.what);
}
