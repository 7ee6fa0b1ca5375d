/* thrift_scan.c - what a Thrift structure will cost in memory, before anybody builds it. */
#include "segments/parquet/thrift_scan.h"

/* Deeper than any footer; each level is a call. */
#define DEPTH_MAX 16

/* What an element of a list takes once it is built. Row groups and column chunks are the largest
 * structures of a footer; lists inside of them hold small ones. */
#define LARGE_STRUCT 1536
#define SMALL_STRUCT 128
#define LARGE_LISTS 2
#define TEXT 64 /* and its bytes */
#define NUMBER 8

enum type {
    TYPE_STOP,
    TYPE_TRUE,
    TYPE_FALSE,
    TYPE_BYTE,
    TYPE_I16,
    TYPE_I32,
    TYPE_I64,
    TYPE_DOUBLE,
    TYPE_BINARY,
    TYPE_LIST,
    TYPE_SET,
    TYPE_MAP,
    TYPE_STRUCT,
    TYPE_UUID,
};

struct scan {
    const unsigned char *at, *end;
    uint64_t cost, cost_max;
    int depth, lists; /* how many of what surrounds this place */
};

/* Each answers QF_OK, QF_ECORRUPT or QF_ELIMIT; words are added at the end. */
static qf_rc value(struct scan *s, unsigned type);

static qf_rc charge(struct scan *s, uint64_t count, uint64_t each)
{
    if (count > (s->cost_max - s->cost) / each)
        return QF_ELIMIT;
    s->cost += count * each;
    return QF_OK;
}

static qf_rc skip(struct scan *s, uint64_t bytes)
{
    if (bytes > (uint64_t)(s->end - s->at))
        return QF_ECORRUPT;
    s->at += bytes;
    return QF_OK;
}

static qf_rc byte(struct scan *s, unsigned *ret_byte)
{
    if (s->at == s->end)
        return QF_ECORRUPT;
    *ret_byte = *s->at++;
    return QF_OK;
}

static qf_rc varint(struct scan *s, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        unsigned next;

        if (byte(s, &next))
            return QF_ECORRUPT;
        value |= (uint64_t)(next & 127) << shift;
        if (next < 128) {
            *ret_value = value;
            return QF_OK;
        }
    }
    return QF_ECORRUPT;
}

static qf_rc text(struct scan *s)
{
    uint64_t len = 0;
    qf_rc rc = varint(s, &len);

    if (rc == QF_OK)
        rc = skip(s, len);
    return rc ? rc : charge(s, len + TEXT, 1);
}

static uint64_t size_of(const struct scan *s, unsigned type)
{
    if (type == TYPE_STRUCT)
        return s->lists < LARGE_LISTS ? LARGE_STRUCT : SMALL_STRUCT;
    return type == TYPE_LIST || type == TYPE_SET || type == TYPE_MAP ? TEXT : NUMBER;
}

static qf_rc elements(struct scan *s, unsigned type, uint64_t count)
{
    /* Memory is taken for as many as are announced, there or not. */
    qf_rc rc = charge(s, count, size_of(s, type));

    s->lists++;
    for (uint64_t i = 0; rc == QF_OK && i < count; i++)
        rc = type == TYPE_TRUE || type == TYPE_FALSE ? skip(s, 1) : value(s, type);
    s->lists--;
    return rc;
}

static qf_rc list(struct scan *s)
{
    unsigned head = 0;
    uint64_t count;
    qf_rc rc = byte(s, &head);

    count = head >> 4;
    if (rc == QF_OK && count == 15)
        rc = varint(s, &count);
    return rc ? rc : elements(s, head & 15, count);
}

static qf_rc map(struct scan *s)
{
    uint64_t count = 0;
    unsigned types = 0;
    qf_rc rc = varint(s, &count);

    if (rc == QF_OK && count)
        rc = byte(s, &types);
    if (rc == QF_OK)
        rc = charge(s, count, TEXT + 2 * SMALL_STRUCT);
    for (uint64_t i = 0; rc == QF_OK && i < count; i++) {
        rc = value(s, types >> 4);
        if (rc == QF_OK)
            rc = value(s, types & 15);
    }
    return rc;
}

static qf_rc fields(struct scan *s)
{
    for (;;) {
        unsigned head = 0, type;
        uint64_t id;
        qf_rc rc = byte(s, &head);

        if (rc || head == TYPE_STOP)
            return rc;
        type = head & 15;
        if (head >> 4 == 0)
            rc = varint(s, &id);
        if (rc == QF_OK && type != TYPE_TRUE && type != TYPE_FALSE)
            rc = value(s, type);
        if (rc)
            return rc;
    }
}

static qf_rc nested(struct scan *s, unsigned type)
{
    qf_rc rc = QF_ECORRUPT;

    if (++s->depth <= DEPTH_MAX)
        rc = type == TYPE_STRUCT ? fields(s) : type == TYPE_MAP ? map(s) : list(s);
    s->depth--;
    return rc;
}

static qf_rc value(struct scan *s, unsigned type)
{
    uint64_t number;

    switch (type) {
    case TYPE_TRUE:
    case TYPE_FALSE:
    case TYPE_BYTE:
        return skip(s, 1);
    case TYPE_I16:
    case TYPE_I32:
    case TYPE_I64:
        return varint(s, &number);
    case TYPE_DOUBLE:
        return skip(s, 8);
    case TYPE_UUID:
        return skip(s, 16);
    case TYPE_BINARY:
        return text(s);
    case TYPE_LIST:
    case TYPE_SET:
    case TYPE_MAP:
    case TYPE_STRUCT:
        return nested(s, type);
    default: /* a number no type has */
        return QF_ECORRUPT;
    }
}

qf_rc thrift_scan(struct qf_str bytes, uint64_t cost_max, uint64_t *ret_cost, struct qf_err *err)
{
    const unsigned char *start = (const unsigned char *)bytes.data;
    struct scan s = { .at = start, .end = start + bytes.len, .cost_max = cost_max };
    qf_rc rc = nested(&s, TYPE_STRUCT);

    if (rc == QF_ELIMIT)
        return qf_err_set(err, rc, "the footer would take more than %llu bytes of memory",
                          (unsigned long long)cost_max);
    if (rc || s.at != s.end)
        return qf_err_set(err, QF_ECORRUPT, "the footer is malformed");
    *ret_cost = s.cost;
    return QF_OK;
}
