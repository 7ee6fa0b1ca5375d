/* row.c - a map's rows and the bytes they are stored as. */
#include "statemap/core/row.h"

#include "statemap/core/bytes.h"
#include "statemap/core/range.h"

enum { HASH = 8, CLASH = 4, LENGTH = 4, NUMBER = 8, LEVEL = 1, TYPE = 1 };

/* Bytes behind what the row is about. */
static size_t times_len(enum sm_kind kind)
{
    return kind == SM_SESSION ? 2 * NUMBER : sm_kind_timed(kind) ? NUMBER : 0;
}

static bool has_length(const struct sm_layout *layout)
{
    return layout->direct && layout->kind != SM_STATE;
}

size_t sm_key_max(const struct sm_layout *layout)
{
    if (!layout->direct)
        return SM_TEXT_KEY_MAX;
    return SM_STORED_KEY_MAX - times_len(layout->kind) - (has_length(layout) ? LENGTH : 0);
}

qf_rc sm_row_check(const struct sm_layout *layout, const struct sm_row *row, struct qf_err *err)
{
    if (sm_kind_keyed(layout->kind) && row->key.len == 0)
        return qf_err_set(err, QF_EINVAL, "the key is empty");
    if (sm_kind_keyed(layout->kind) && row->key.len > sm_key_max(layout))
        return qf_err_set(err, QF_EINVAL, "the key has %zu bytes, of this map at most %zu",
                          row->key.len, sm_key_max(layout));
    if (sm_kind_ranged(layout->kind) && row->from > row->to)
        return qf_err_set(err, QF_EINVAL, "the range ends before it begins");
    if (sm_kind_timed(layout->kind) && row->time == INT64_MAX)
        return qf_err_set(err, QF_EINVAL, "the time is too late");
    if (layout->kind == SM_SESSION && row->time >= row->end)
        return qf_err_set(err, QF_EINVAL, "the session does not end after its start");
    if (sm_kind_valued(layout->kind) && !sm_value_valid(row->value.type, row->value.bytes))
        return qf_err_set(err, QF_EINVAL, "the value is none, or longer than %d bytes",
                          SM_VALUE_MAX);
    return QF_OK;
}

static unsigned char *put(unsigned char *out, uint64_t value, int bytes)
{
    sm_write_be(out, value, bytes);
    return out + bytes;
}

static unsigned char *put_subject(const struct sm_layout *layout, const struct sm_row *row,
                                  struct sm_place place, unsigned char *out)
{
    if (sm_kind_ranged(layout->kind)) {
        out = put(out, sm_range_level(row->from, row->to), LEVEL);
        out = put(out, sm_ordered(row->from), NUMBER);
        return put(out, sm_ordered(row->to), NUMBER);
    }
    if (!layout->direct) {
        out = put(out, place.hash, HASH);
        return put(out, place.clash, CLASH);
    }
    if (has_length(layout))
        out = put(out, row->key.len, LENGTH);
    memcpy(out, row->key.data, row->key.len);
    return out + row->key.len;
}

size_t sm_row_key(const struct sm_layout *layout, const struct sm_row *row, struct sm_place place,
                  unsigned char out[SM_STORED_KEY_MAX])
{
    unsigned char *at = put_subject(layout, row, place, out);

    if (sm_kind_timed(layout->kind) || layout->kind == SM_SESSION)
        at = put(at, sm_ordered(row->time), NUMBER);
    if (layout->kind == SM_SESSION)
        at = put(at, sm_ordered(row->end), NUMBER);
    return (size_t)(at - out);
}

static void add_number(struct qf_strbuf *out, uint64_t value, int bytes)
{
    unsigned char number[8];

    sm_write_be(number, value, bytes);
    qf_strbuf_add(out, number, (size_t)bytes);
}

void sm_row_value(const struct sm_layout *layout, const struct sm_row *row, struct qf_strbuf *out)
{
    if (layout->kind == SM_SESSION) {
        if (!layout->direct)
            qf_strbuf_str(out, row->key);
        return;
    }
    if (sm_kind_ranged(layout->kind)) {
        add_number(out, row->load, NUMBER);
    } else if (!layout->direct) {
        add_number(out, row->key.len, LENGTH);
        qf_strbuf_str(out, row->key);
    }
    qf_strbuf_putc(out, (char)row->value.type);
    qf_strbuf_str(out, row->value.bytes);
}

static uint64_t take(struct qf_str *from, int bytes, bool *bad)
{
    uint64_t value;

    if (*bad || from->len < (size_t)bytes) {
        *bad = true;
        return 0;
    }
    value = sm_read_be(from->data, bytes);
    *from = qf_str_sub(*from, (size_t)bytes, from->len);
    return value;
}

static struct qf_str take_bytes(struct qf_str *from, size_t len, bool *bad)
{
    struct qf_str bytes = qf_str_sub(*from, 0, len);

    if (*bad || from->len < len) {
        *bad = true;
        return QF_STR("");
    }
    *from = qf_str_sub(*from, len, from->len);
    return bytes;
}

static void take_stored_key(const struct sm_layout *layout, struct qf_str *key, struct sm_row *row,
                            struct sm_place *place, bool *bad)
{
    size_t times = times_len(layout->kind);

    if (sm_kind_ranged(layout->kind)) {
        uint64_t level = take(key, LEVEL, bad);

        row->from = sm_unordered(take(key, NUMBER, bad));
        row->to = sm_unordered(take(key, NUMBER, bad));
        *bad |= row->from > row->to || level != sm_range_level(row->from, row->to);
    } else if (!layout->direct) {
        place->hash = take(key, HASH, bad);
        place->clash = (uint32_t)take(key, CLASH, bad);
    } else {
        size_t len = has_length(layout) ? take(key, LENGTH, bad) : key->len;

        *bad |= len > key->len || key->len - len != times;
        row->key = take_bytes(key, len, bad);
    }
    if (times)
        row->time = sm_unordered(take(key, NUMBER, bad));
    if (times > NUMBER)
        row->end = sm_unordered(take(key, NUMBER, bad));
    *bad |= key->len > 0;
}

static void take_stored_value(const struct sm_layout *layout, struct qf_str *value,
                              struct sm_row *row, bool *bad)
{
    if (layout->kind == SM_SESSION) {
        *bad |= layout->direct && value->len > 0;
        if (!layout->direct)
            row->key = *value;
        return;
    }
    if (sm_kind_ranged(layout->kind))
        row->load = take(value, NUMBER, bad);
    else if (!layout->direct)
        row->key = take_bytes(value, take(value, LENGTH, bad), bad);
    row->value.type = (enum sm_type)take(value, TYPE, bad);
    row->value.bytes = *value;
}

qf_rc sm_row_decode(const struct sm_layout *layout, struct qf_str key, struct qf_str value,
                    struct sm_row *ret_row, struct sm_place *ret_place, struct qf_err *err)
{
    struct sm_place place = { 0 };
    struct sm_row row = { 0 };
    bool bad = false;

    take_stored_key(layout, &key, &row, &place, &bad);
    take_stored_value(layout, &value, &row, &bad);
    if (bad || sm_row_check(layout, &row, NULL) != QF_OK)
        return qf_err_set(err, QF_ECORRUPT, "a row of a %s map is damaged",
                          sm_kind_name(layout->kind));
    *ret_row = row;
    *ret_place = place;
    return QF_OK;
}

size_t sm_subject_len(const struct sm_layout *layout, struct qf_str stored_key)
{
    size_t times = times_len(layout->kind);

    return stored_key.len > times ? stored_key.len - times : 0;
}
