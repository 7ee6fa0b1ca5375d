/* wire.c - protobuf's wire format, read in place. */
#include "ingest/core/wire.h"

#include <string.h>

#include "base/pure/varint.h"

static bool bad(struct in_wire *wire)
{
    wire->bad = true;
    wire->at = wire->end;
    return false;
}

bool in_wire_varint_slow(struct in_wire *wire, uint64_t *ret_value)
{
    struct qf_str rest = { wire->at, (size_t)(wire->end - wire->at) };
    size_t used;

    if (!rest.len)
        return false;
    used = qf_varint_get(rest, ret_value);
    wire->at += used;
    return used || bad(wire);
}

/* @size bytes, least significant first. */
static bool read_fixed(struct in_wire *wire, size_t size, uint64_t *ret_value)
{
    uint64_t value = 0;

    if ((size_t)(wire->end - wire->at) < size)
        return bad(wire);
    memcpy(&value, wire->at, size); /* this machine's order, too */
    wire->at += size;
    *ret_value = value;
    return true;
}

bool in_wire_fixed64(struct in_wire *wire, uint64_t *ret_value)
{
    return wire->at < wire->end && read_fixed(wire, sizeof(uint64_t), ret_value);
}

static bool read_bytes(struct in_wire *wire, struct qf_str *ret_bytes)
{
    uint64_t len;

    if (!in_wire_varint(wire, &len) || len > (uint64_t)(wire->end - wire->at))
        return bad(wire);
    *ret_bytes = (struct qf_str){ wire->at, (size_t)len };
    wire->at += len;
    return true;
}

bool in_wire_next_slow(struct in_wire *wire, struct in_field *ret_field)
{
    uint64_t key, value = 0;

    if (!in_wire_varint(wire, &key))
        return false;
    if (key >> 3 == 0 || key >> 3 > (UINT32_MAX >> 3))
        return bad(wire);
    *ret_field = (struct in_field){ .number = (uint32_t)(key >> 3), .bytes = { "", 0 } };
    switch (key & 7) {
    case IN_WIRE_VARINT:
        if (!in_wire_varint(wire, &value))
            return bad(wire);
        break;
    case IN_WIRE_FIXED64:
        if (!read_fixed(wire, sizeof(uint64_t), &value))
            return false;
        break;
    case IN_WIRE_FIXED32:
        if (!read_fixed(wire, sizeof(uint32_t), &value))
            return false;
        break;
    case IN_WIRE_BYTES:
        if (!read_bytes(wire, &ret_field->bytes))
            return false;
        break;
    default:
        return bad(wire);
    }
    ret_field->type = (enum in_wire_type)(key & 7);
    ret_field->value = value;
    return true;
}

size_t in_wire_count_varints(struct qf_str bytes)
{
    size_t count = 0;

    for (size_t i = 0; i < bytes.len; i++)
        count += (uint8_t)bytes.data[i] < 0x80;
    return count;
}

double in_wire_double(uint64_t value)
{
    double number;

    memcpy(&number, &value, sizeof(number));
    return number;
}
