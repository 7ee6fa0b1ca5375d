/* spec_codec.c - leaves as the bytes of proto/leaf_spec.proto, both ways. */
#include "base/pure/number.h"
#include "base/pure/varint.h"
#include "promql/leaf/leaf_int.h"
#include "promql/parse/pattern.h"

#define SPEC_VERSION 2

/* Wire types. */
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

static void put_varint(struct qf_strbuf *buf, uint64_t value)
{
    unsigned char bytes[QF_VARINT_MAX];

    qf_strbuf_add(buf, bytes, qf_varint_put(bytes, value));
}

static void put_tag(struct qf_strbuf *buf, unsigned field, unsigned wire)
{
    put_varint(buf, field << 3 | wire);
}

static void put_uint(struct qf_strbuf *buf, unsigned field, uint64_t value)
{
    if (value == 0)
        return;
    put_tag(buf, field, WIRE_VARINT);
    put_varint(buf, value);
}

static void put_sint(struct qf_strbuf *buf, unsigned field, int64_t value)
{
    put_uint(buf, field, qf_zigzag(value));
}

/* Elements of a repeated field are written even when they are empty. */
static void put_element(struct qf_strbuf *buf, unsigned field, struct qf_str bytes)
{
    put_tag(buf, field, WIRE_BYTES);
    put_varint(buf, bytes.len);
    qf_strbuf_str(buf, bytes);
}

static void put_bytes(struct qf_strbuf *buf, unsigned field, struct qf_str bytes)
{
    if (bytes.len)
        put_element(buf, field, bytes);
}

static void put_fixed64(struct qf_strbuf *buf, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        qf_strbuf_putc(buf, (char)(value >> (8 * i)));
}

static void put_double(struct qf_strbuf *buf, unsigned field, double value)
{
    if (qf_double_bits(value) == 0)
        return;
    put_tag(buf, field, WIRE_FIXED64);
    put_fixed64(buf, qf_double_bits(value));
}

static void encode_stage(struct qf_strbuf *buf, const struct pq_stage *stage)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf inner = QF_STRBUF_INIT;
    bool calls = stage->kind == PQ_STAGE_FUNCTION || stage->kind == PQ_STAGE_WINDOW;

    put_sint(&inner, 1, stage->grid.start_ms);
    put_sint(&inner, 2, stage->grid.step_ms);
    put_uint(&inner, 3, stage->grid.count);
    put_uint(buf, 1, (uint64_t)stage->kind);
    put_uint(buf, 2, stage->pos.start);
    put_uint(buf, 3, stage->pos.end);
    put_bytes(buf, 4, qf_strbuf_view(&inner));
    put_sint(buf, 5, stage->offset_ms);
    put_sint(buf, 6, stage->range_ms);
    put_sint(buf, 7, stage->lookback_ms);
    put_uint(buf, 8, stage->anchored);
    put_uint(buf, 9, stage->smoothed);
    put_uint(buf, 10, (uint64_t)stage->take);
    if (calls)
        put_bytes(buf, 11, qf_str_from(pq_function_get(stage->function)->name));
    qf_strbuf_reset(&inner);
    for (size_t i = 0; i < stage->param_count; i++)
        put_fixed64(&inner, qf_double_bits(stage->params[i]));
    put_bytes(buf, 12, qf_strbuf_view(&inner));
    if (stage->kind == PQ_STAGE_BINARY)
        put_bytes(buf, 13, qf_str_from(pq_op_text(stage->op)));
    put_uint(buf, 14, stage->scalar_left);
    put_uint(buf, 15, stage->return_bool);
}

void pq_leaf_encode(const struct pq_leaf *leaf, struct qf_strbuf *buf)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf inner = QF_STRBUF_INIT;

    put_uint(buf, 1, SPEC_VERSION);
    put_uint(buf, 2, leaf->id);
    put_bytes(buf, 3, qf_str_from(leaf->kind->name));
    for (size_t i = 0; i < leaf->select.matcher_count; i++) {
        const struct pq_matcher *m = &leaf->select.matchers[i];

        qf_strbuf_reset(&inner);
        put_uint(&inner, 1, (uint64_t)m->type);
        put_bytes(&inner, 2, m->name);
        put_bytes(&inner, 3, m->value);
        put_element(buf, 4, qf_strbuf_view(&inner));
    }
    put_sint(buf, 5, leaf->select.min_ts);
    put_sint(buf, 6, leaf->select.max_ts);
    put_uint(buf, 7, leaf->start_timestamps);
    put_uint(buf, 8, leaf->delayed_name_removal);
    for (size_t i = 0; i < leaf->stage_count; i++) {
        qf_strbuf_reset(&inner);
        encode_stage(&inner, &leaf->stages[i]);
        put_element(buf, 9, qf_strbuf_view(&inner));
    }
    if (leaf->agg)
        put_bytes(buf, 10, qf_str_from(pq_agg_text(leaf->agg->id)));
    for (size_t i = 0; i < leaf->grouping_count; i++)
        put_element(buf, 11, leaf->grouping[i]);
    put_uint(buf, 12, leaf->without);
    put_double(buf, 13, leaf->param);
    put_bytes(buf, 14, leaf->label);
    put_uint(buf, 15, leaf->finds_resets);
    put_uint(buf, 16, leaf->agg_pos.start);
    put_uint(buf, 17, leaf->agg_pos.end);
    put_uint(buf, 18, leaf->ranks);
}

/* One field as it stands in the bytes. */
struct field {
    unsigned number, wire;
    uint64_t value; /* VARINT, FIXED64 */
    struct qf_str bytes;
};

/* Take the next field off @bytes. False: malformed. */
static bool next_field(struct qf_str *bytes, struct field *field)
{
    uint64_t tag;
    size_t used = qf_varint_get(*bytes, &tag);

    if (!used || tag >> 3 > 100)
        return false;
    *bytes = qf_str_sub(*bytes, used, bytes->len);
    *field = (struct field){ .number = (unsigned)(tag >> 3), .wire = tag & 7 };
    if (field->wire == WIRE_FIXED64) {
        if (bytes->len < 8)
            return false;
        for (int i = 7; i >= 0; i--)
            field->value = field->value << 8 | (unsigned char)bytes->data[i];
        *bytes = qf_str_sub(*bytes, 8, bytes->len);
        return true;
    }
    used = qf_varint_get(*bytes, &field->value);
    if (!used || (field->wire != WIRE_VARINT && field->wire != WIRE_BYTES))
        return false;
    *bytes = qf_str_sub(*bytes, used, bytes->len);
    if (field->wire == WIRE_VARINT)
        return true;
    if (field->value > bytes->len)
        return false;
    field->bytes = qf_str_sub(*bytes, 0, (size_t)field->value);
    *bytes = qf_str_sub(*bytes, (size_t)field->value, bytes->len);
    return true;
}

struct decoder {
    struct qf_arena *arena;
    struct pq_leaf *leaf;
    size_t matcher_capacity, stage_capacity, grouping_capacity;
    uint64_t version;
    bool no_memory;
};

static bool get_bool(const struct field *field, bool *ret)
{
    *ret = field->value == 1;
    return field->wire == WIRE_VARINT && field->value <= 1;
}

static bool get_sint(const struct field *field, int64_t *ret)
{
    *ret = qf_unzigzag(field->value);
    return field->wire == WIRE_VARINT;
}

static bool get_u32(const struct field *field, uint32_t *ret)
{
    *ret = (uint32_t)field->value;
    return field->wire == WIRE_VARINT && field->value <= UINT32_MAX;
}

static bool get_str(struct decoder *d, const struct field *field, struct qf_str *ret)
{
    if (field->wire != WIRE_BYTES)
        return false;
    *ret = qf_arena_str(d->arena, field->bytes);
    d->no_memory |= !ret->data;
    return ret->data != NULL;
}

/* Room for one more element of an array that grows by doubling. */
static bool more(struct decoder *d, void *array, size_t count, size_t *capacity, size_t size)
{
    size_t room = *capacity ? *capacity * 2 : 4;
    void **pointer = array;
    void *grown;

    if (count < *capacity)
        return true;
    grown = qf_arena_grow(d->arena, *pointer, *capacity, room, size);
    d->no_memory |= !grown;
    if (!grown)
        return false;
    *pointer = grown;
    *capacity = room;
    return true;
}

static bool compile(struct decoder *d, struct pq_matcher *m)
{
    struct qf_regex *regex;
    char msg[100];
    qf_rc rc;

    if (m->type != PQ_MATCH_REGEX && m->type != PQ_MATCH_NOT_REGEX)
        return true;
    rc = pq_pattern_compile(d->arena, m->value, &regex, msg, sizeof(msg));
    d->no_memory |= rc == QF_ELIMIT;
    if (rc != QF_OK)
        return false;
    m->regex = regex;
    return true;
}

static bool decode_matcher(struct decoder *d, struct qf_str bytes)
{
    struct pq_matcher m = { .name = QF_STR(""), .value = QF_STR("") };
    struct pq_matcher *matchers = (struct pq_matcher *)(uintptr_t)d->leaf->select.matchers;
    struct field field;

    while (bytes.len) {
        bool ok = next_field(&bytes, &field);

        if (ok && field.number == 1) {
            ok = field.wire == WIRE_VARINT && field.value <= PQ_MATCH_NOT_REGEX;
            m.type = (enum pq_match_type)field.value;
        } else if (ok && field.number == 2) {
            ok = get_str(d, &field, &m.name);
        } else if (ok && field.number == 3) {
            ok = get_str(d, &field, &m.value);
        } else {
            ok = false;
        }
        if (!ok)
            return false;
    }
    if (m.name.len == 0 || d->leaf->select.matcher_count == PQ_LEAF_MATCHERS_MAX ||
        !compile(d, &m) ||
        !more(d, &matchers, d->leaf->select.matcher_count, &d->matcher_capacity, sizeof(m)))
        return false;
    matchers[d->leaf->select.matcher_count++] = m;
    d->leaf->select.matchers = matchers;
    return true;
}

static bool decode_grid(struct qf_str bytes, struct pq_grid *grid)
{
    struct field field;

    while (bytes.len) {
        bool ok = next_field(&bytes, &field);

        if (ok && field.number == 1)
            ok = get_sint(&field, &grid->start_ms);
        else if (ok && field.number == 2)
            ok = get_sint(&field, &grid->step_ms);
        else if (ok && field.number == 3 && field.wire == WIRE_VARINT)
            grid->count = field.value;
        else
            ok = false;
        if (!ok)
            return false;
    }
    return true;
}

static bool decode_params(struct qf_str bytes, struct pq_stage *stage)
{
    if (bytes.len % 8 || bytes.len / 8 > PQ_STAGE_PARAMS_MAX || stage->param_count)
        return false;
    for (size_t i = 0; i < bytes.len / 8; i++) {
        uint64_t bits = 0;

        for (size_t j = 8; j > 0; j--)
            bits = bits << 8 | (unsigned char)bytes.data[8 * i + j - 1];
        stage->params[stage->param_count++] = qf_double_from_bits(bits);
    }
    return true;
}

static bool find_op(struct qf_str text, enum pq_op *ret)
{
    for (int op = PQ_OP_ADD; op <= PQ_OP_GTR; op++)
        if (qf_str_is(text, pq_op_text((enum pq_op)op))) {
            *ret = (enum pq_op)op;
            return true;
        }
    return false;
}

static bool find_function(struct qf_str name, enum pq_function_id *ret)
{
    const struct pq_function *function = pq_function_find(name);

    if (function)
        *ret = function->id;
    return function != NULL;
}

static bool decode_stage_field(const struct field *field, struct pq_stage *stage)
{
    switch (field->number) {
    case 1:
        stage->kind = (enum pq_stage_kind)field->value;
        return field->wire == WIRE_VARINT && field->value < PQ_STAGE__COUNT;
    case 2:
        return get_u32(field, &stage->pos.start);
    case 3:
        return get_u32(field, &stage->pos.end);
    case 4:
        return field->wire == WIRE_BYTES && decode_grid(field->bytes, &stage->grid);
    case 5:
        return get_sint(field, &stage->offset_ms);
    case 6:
        return get_sint(field, &stage->range_ms);
    case 7:
        return get_sint(field, &stage->lookback_ms);
    case 8:
        return get_bool(field, &stage->anchored);
    case 9:
        return get_bool(field, &stage->smoothed);
    case 10:
        stage->take = (enum pq_take)field->value;
        return field->wire == WIRE_VARINT && field->value < PQ_TAKE__COUNT;
    case 11:
        return field->wire == WIRE_BYTES && find_function(field->bytes, &stage->function);
    case 12:
        return field->wire == WIRE_BYTES && decode_params(field->bytes, stage);
    case 13:
        return field->wire == WIRE_BYTES && find_op(field->bytes, &stage->op);
    case 14:
        return get_bool(field, &stage->scalar_left);
    case 15:
        return get_bool(field, &stage->return_bool);
    default:
        return false;
    }
}

static bool decode_stage(struct decoder *d, struct qf_str bytes)
{
    struct pq_stage stage = { .function = PQ_FN__COUNT };
    struct field field;

    while (bytes.len)
        if (!next_field(&bytes, &field) || !decode_stage_field(&field, &stage))
            return false;
    if (stage.kind != PQ_STAGE_WINDOW && stage.kind != PQ_STAGE_FUNCTION)
        stage.function = (enum pq_function_id)0;
    if (d->leaf->stage_count == PQ_LEAF_STAGES_MAX ||
        !more(d, &d->leaf->stages, d->leaf->stage_count, &d->stage_capacity, sizeof(stage)))
        return false;
    d->leaf->stages[d->leaf->stage_count++] = stage;
    return true;
}

static bool decode_grouping(struct decoder *d, const struct field *field)
{
    struct qf_str *names = (struct qf_str *)(uintptr_t)d->leaf->grouping;
    struct qf_str name;

    if (d->leaf->grouping_count == PQ_LEAF_GROUPING_MAX || !get_str(d, field, &name) ||
        !more(d, &names, d->leaf->grouping_count, &d->grouping_capacity, sizeof(name)))
        return false;
    names[d->leaf->grouping_count++] = name;
    d->leaf->grouping = names;
    return true;
}

static bool decode_field(struct decoder *d, const struct field *field)
{
    struct pq_leaf *leaf = d->leaf;

    switch (field->number) {
    case 1:
        d->version = field->value;
        return field->wire == WIRE_VARINT;
    case 2:
        return get_u32(field, &leaf->id);
    case 3:
        leaf->kind = field->wire == WIRE_BYTES ? pq_leaf_kind_find(field->bytes) : NULL;
        return leaf->kind != NULL;
    case 4:
        return field->wire == WIRE_BYTES && decode_matcher(d, field->bytes);
    case 5:
        return get_sint(field, &leaf->select.min_ts);
    case 6:
        return get_sint(field, &leaf->select.max_ts);
    case 7:
        return get_bool(field, &leaf->start_timestamps);
    case 8:
        return get_bool(field, &leaf->delayed_name_removal);
    case 9:
        return field->wire == WIRE_BYTES && decode_stage(d, field->bytes);
    case 10:
        leaf->agg = field->wire == WIRE_BYTES ? pq_aggregation_find(field->bytes) : NULL;
        return leaf->agg != NULL;
    case 11:
        return decode_grouping(d, field);
    case 12:
        return get_bool(field, &leaf->without);
    case 13:
        leaf->param = qf_double_from_bits(field->value);
        return field->wire == WIRE_FIXED64;
    case 14:
        return get_str(d, field, &leaf->label);
    case 15:
        return get_bool(field, &leaf->finds_resets);
    case 16:
        return get_u32(field, &leaf->agg_pos.start);
    case 17:
        return get_u32(field, &leaf->agg_pos.end);
    case 18:
        return get_bool(field, &leaf->ranks);
    default:
        return false;
    }
}

qf_rc pq_leaf_decode(struct qf_arena *arena, struct qf_str bytes, struct pq_leaf **ret_leaf,
                     struct qf_err *err)
{
    struct decoder d = { .arena = arena, .leaf = QF_ARENA_NEW(arena, struct pq_leaf) };
    struct field field;

    if (!d.leaf)
        return pq_leaf_no_memory(err);
    d.leaf->label = QF_STR("");
    while (bytes.len) {
        bool ok = next_field(&bytes, &field) && decode_field(&d, &field);

        if (d.no_memory)
            return pq_leaf_no_memory(err);
        /* The version comes first: another one may look quite different further on. */
        if (d.version != SPEC_VERSION)
            return qf_err_set(err, QF_EPROTO, "leaf spec of version %llu, this program reads %d",
                              (unsigned long long)d.version, SPEC_VERSION);
        if (!ok)
            return qf_err_set(err, QF_ECORRUPT, "malformed leaf spec");
    }
    if (!pq_leaf_valid(d.leaf))
        return qf_err_set(err, QF_ECORRUPT, "a leaf spec that cannot be run");
    *ret_leaf = d.leaf;
    return QF_OK;
}
