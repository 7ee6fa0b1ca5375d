/* labels.c - label sets. */
#include "base/pure/labels.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/pure/varint.h"

static const struct qf_str metric_name = QF_STR_INIT(QF_METRIC_NAME);

/* Stable: sets are small, and equal names must keep the order in which they were given. */
static void insertion_sort(struct qf_label *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct qf_label item = items[i];
        size_t j = i;

        for (; j > 0 && qf_str_cmp(items[j - 1].name, item.name) > 0; j--)
            items[j] = items[j - 1];
        items[j] = item;
    }
}

struct qf_labels qf_labels_normalize(struct qf_label *items, size_t count)
{
    size_t kept = 0;

    insertion_sort(items, count);
    for (size_t i = 0; i < count; i++) {
        if (i + 1 < count && qf_str_eq(items[i].name, items[i + 1].name))
            continue;
        if (items[i].value.len)
            items[kept++] = items[i];
    }
    return (struct qf_labels){ items, kept };
}

bool qf_labels_copy(struct qf_arena *arena, struct qf_labels labels, struct qf_labels *ret_copy)
{
    struct qf_label *items = QF_ARENA_ARRAY(arena, struct qf_label, labels.count);

    if (!items)
        return false;
    for (size_t i = 0; i < labels.count; i++) {
        items[i].name = qf_arena_str(arena, labels.items[i].name);
        items[i].value = qf_arena_str(arena, labels.items[i].value);
        if (!items[i].name.data || !items[i].value.data)
            return false;
    }
    *ret_copy = (struct qf_labels){ items, labels.count };
    return true;
}

static const struct qf_label *find(struct qf_labels labels, struct qf_str name)
{
    for (size_t i = 0; i < labels.count; i++)
        if (qf_str_eq(labels.items[i].name, name))
            return &labels.items[i];
    return NULL;
}

struct qf_str qf_labels_get(struct qf_labels labels, struct qf_str name)
{
    const struct qf_label *label = find(labels, name);

    return label ? label->value : QF_STR("");
}

bool qf_labels_has(struct qf_labels labels, struct qf_str name)
{
    return find(labels, name) != NULL;
}

int qf_labels_cmp(struct qf_labels a, struct qf_labels b)
{
    size_t count = QF_MIN(a.count, b.count);

    for (size_t i = 0; i < count; i++) {
        int order = qf_str_cmp(a.items[i].name, b.items[i].name);

        if (order == 0)
            order = qf_str_cmp(a.items[i].value, b.items[i].value);
        if (order)
            return order;
    }
    return (a.count > b.count) - (a.count < b.count);
}

bool qf_labels_eq(struct qf_labels a, struct qf_labels b)
{
    return a.count == b.count && qf_labels_cmp(a, b) == 0;
}

static void hash_str(XXH3_state_t *state, struct qf_str s)
{
    unsigned char len[QF_VARINT_MAX];

    (void)XXH3_64bits_update(state, len, qf_varint_put(len, s.len));
    (void)XXH3_64bits_update(state, s.data, s.len);
}

static uint64_t hash(struct qf_labels labels, bool with_name)
{
    XXH3_state_t state;

    XXH3_INITSTATE(&state);
    (void)XXH3_64bits_reset(&state);
    for (size_t i = 0; i < labels.count; i++) {
        if (!with_name && qf_str_eq(labels.items[i].name, metric_name))
            continue;
        hash_str(&state, labels.items[i].name);
        hash_str(&state, labels.items[i].value);
    }
    return XXH3_64bits_digest(&state);
}

uint64_t qf_labels_hash(struct qf_labels labels)
{
    return hash(labels, true);
}

uint64_t qf_labels_shard_hash(struct qf_labels labels)
{
    return hash(labels, false);
}

static void prom_hash_str(XXH64_state_t *state, struct qf_str s)
{
    unsigned char len[4] = { (unsigned char)s.len };
    size_t len_size = 1;

    if (s.len >= 255) {
        len[0] = 0xff;
        len[1] = (unsigned char)s.len;
        len[2] = (unsigned char)(s.len >> 8);
        len[3] = (unsigned char)(s.len >> 16);
        len_size = 4;
    }
    (void)XXH64_update(state, len, len_size);
    (void)XXH64_update(state, s.data, s.len);
}

uint64_t qf_labels_prom_hash(struct qf_labels labels)
{
    XXH64_state_t state;

    (void)XXH64_reset(&state, 0);
    for (size_t i = 0; i < labels.count; i++) {
        prom_hash_str(&state, labels.items[i].name);
        prom_hash_str(&state, labels.items[i].value);
    }
    return XXH64_digest(&state);
}

static bool named(const struct qf_str *names, size_t count, struct qf_str name)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = qf_str_cmp(names[mid], name);

        if (order == 0)
            return true;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}

static bool filter(struct qf_arena *arena, struct qf_labels labels, const struct qf_str *names,
                   size_t name_count, bool keep, struct qf_labels *ret_labels)
{
    struct qf_label *items = QF_ARENA_ARRAY(arena, struct qf_label, labels.count);
    size_t count = 0;

    if (!items)
        return false;
    for (size_t i = 0; i < labels.count; i++)
        if (named(names, name_count, labels.items[i].name) == keep)
            items[count++] = labels.items[i];
    *ret_labels = (struct qf_labels){ items, count };
    return true;
}

bool qf_labels_keep(struct qf_arena *arena, struct qf_labels labels, const struct qf_str *names,
                    size_t name_count, struct qf_labels *ret_labels)
{
    return filter(arena, labels, names, name_count, true, ret_labels);
}

bool qf_labels_drop(struct qf_arena *arena, struct qf_labels labels, const struct qf_str *names,
                    size_t name_count, struct qf_labels *ret_labels)
{
    return filter(arena, labels, names, name_count, false, ret_labels);
}

struct qf_labels qf_labels_set_in(struct qf_label *items, struct qf_labels labels,
                                  struct qf_str name, struct qf_str value)
{
    if (labels.count)
        memcpy(items, labels.items, labels.count * sizeof(*items));
    items[labels.count] = (struct qf_label){ name, value };
    return qf_labels_normalize(items, labels.count + 1);
}

bool qf_labels_set(struct qf_arena *arena, struct qf_labels labels, struct qf_str name,
                   struct qf_str value, struct qf_labels *ret_labels)
{
    struct qf_label *items = QF_ARENA_ARRAY(arena, struct qf_label, labels.count + 1);

    if (!items)
        return false;
    *ret_labels = qf_labels_set_in(items, labels, name, value);
    return true;
}

static void encode_str(struct qf_strbuf *buf, struct qf_str s)
{
    unsigned char len[QF_VARINT_MAX];

    qf_strbuf_add(buf, len, qf_varint_put(len, s.len));
    qf_strbuf_str(buf, s);
}

void qf_labels_encode(struct qf_strbuf *buf, struct qf_labels labels)
{
    for (size_t i = 0; i < labels.count; i++) {
        encode_str(buf, labels.items[i].name);
        encode_str(buf, labels.items[i].value);
    }
}

static bool decode_str(struct qf_str *bytes, struct qf_str *ret_s)
{
    uint64_t len;
    size_t used = qf_varint_get(*bytes, &len);

    if (used == 0 || len == 0 || len > bytes->len - used)
        return false;
    *ret_s = (struct qf_str){ bytes->data + used, (size_t)len };
    *bytes = qf_str_sub(*bytes, used + (size_t)len, bytes->len);
    return true;
}

static bool skip_str(struct qf_str *bytes)
{
    struct qf_str s;

    return decode_str(bytes, &s);
}

qf_rc qf_labels_decode(struct qf_arena *arena, struct qf_str bytes, struct qf_labels *ret_labels,
                       struct qf_err *err)
{
    struct qf_str scan = bytes;
    struct qf_label *items;
    size_t count = 0;

    for (; scan.len; count++)
        if (!skip_str(&scan) || !skip_str(&scan))
            return qf_err_set(err, QF_ECORRUPT, "label set: malformed at label %zu", count);
    items = QF_ARENA_ARRAY(arena, struct qf_label, count);
    if (!items)
        return qf_err_set(err, QF_ELIMIT, "label set: memory limit reached");
    scan = bytes;
    for (size_t i = 0; i < count; i++) {
        if (!decode_str(&scan, &items[i].name) || !decode_str(&scan, &items[i].value))
            return qf_err_set(err, QF_ECORRUPT, "label set: malformed at label %zu", i);
        if (i && qf_str_cmp(items[i - 1].name, items[i].name) >= 0)
            return qf_err_set(err, QF_ECORRUPT, "label set: names out of order at label %zu", i);
    }
    *ret_labels = (struct qf_labels){ items, count };
    return QF_OK;
}

static bool word_char(char c, bool first, bool colon)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_')
        return true;
    if (c == ':')
        return colon;
    return !first && c >= '0' && c <= '9';
}

static bool word(struct qf_str s, bool colon)
{
    for (size_t i = 0; i < s.len; i++)
        if (!word_char(s.data[i], i == 0, colon))
            return false;
    return s.len > 0;
}

bool qf_label_name_plain(struct qf_str name)
{
    return word(name, false);
}

bool qf_metric_name_plain(struct qf_str name)
{
    return word(name, true);
}

static void print_pair(struct qf_strbuf *buf, const struct qf_label *label)
{
    if (qf_label_name_plain(label->name))
        qf_strbuf_str(buf, label->name);
    else
        qf_strbuf_quote(buf, label->name);
    qf_strbuf_putc(buf, '=');
    qf_strbuf_quote(buf, label->value);
}

void qf_labels_print(struct qf_strbuf *buf, struct qf_labels labels)
{
    qf_strbuf_putc(buf, '{');
    for (size_t i = 0; i < labels.count; i++) {
        if (i)
            qf_strbuf_puts(buf, ", ");
        print_pair(buf, &labels.items[i]);
    }
    qf_strbuf_putc(buf, '}');
}

void qf_labels_print_series(struct qf_strbuf *buf, struct qf_labels labels)
{
    const struct qf_label *name = find(labels, metric_name);
    bool outside = name && qf_metric_name_plain(name->value);
    size_t printed = 0;

    if (outside)
        qf_strbuf_str(buf, name->value);
    if (outside && labels.count == 1)
        return;
    qf_strbuf_putc(buf, '{');
    if (name && !outside) {
        qf_strbuf_quote(buf, name->value);
        printed++;
    }
    for (size_t i = 0; i < labels.count; i++) {
        if (&labels.items[i] == name)
            continue;
        if (printed++)
            qf_strbuf_puts(buf, ", ");
        print_pair(buf, &labels.items[i]);
    }
    qf_strbuf_putc(buf, '}');
}

void qf_labels_json(struct qf_strbuf *buf, struct qf_labels labels)
{
    qf_strbuf_putc(buf, '{');
    for (size_t i = 0; i < labels.count; i++) {
        if (i)
            qf_strbuf_putc(buf, ',');
        qf_strbuf_json(buf, labels.items[i].name);
        qf_strbuf_putc(buf, ':');
        qf_strbuf_json(buf, labels.items[i].value);
    }
    qf_strbuf_putc(buf, '}');
}
