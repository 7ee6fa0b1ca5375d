/* wire.h - protobuf's wire format, read in place. Pure.
 *
 * Senders' requests are read without generated code: they are most of what an ingest node decodes,
 * their messages are few and will not change, and nothing is copied or allocated this way.
 *
 *     struct in_wire wire = in_wire_of(bytes);
 *     struct in_field field;
 *
 *     while (in_wire_next(&wire, &field))
 *         switch (field.number) ...
 *     if (wire.bad) ...                       it ended in the middle, or is no such format */
#ifndef INGEST_CORE_WIRE_H
#define INGEST_CORE_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/slice.h"

enum in_wire_type {
    IN_WIRE_VARINT = 0,
    IN_WIRE_FIXED64 = 1,
    IN_WIRE_BYTES = 2,
    IN_WIRE_FIXED32 = 5,
};

struct in_wire {
    const char *at, *end;
    bool bad;
};

struct in_field {
    uint32_t number;
    enum in_wire_type type;
    uint64_t value;      /* of all types but IN_WIRE_BYTES */
    struct qf_str bytes; /* of IN_WIRE_BYTES, else empty; borrowed */
};

static inline struct in_wire in_wire_of(struct qf_str bytes)
{
    const char *data = bytes.len ? bytes.data : "";

    return (struct in_wire){ data, data + bytes.len, false };
}

/* The next field; false at the end, or where wire->bad is true from then on. Groups, which no proto3
 * message has, are bad. */
static inline bool in_wire_next(struct in_wire *wire, struct in_field *ret_field);

/* The next number of packed ones; false as above. */
static inline bool in_wire_varint(struct in_wire *wire, uint64_t *ret_value);
bool in_wire_fixed64(struct in_wire *wire, uint64_t *ret_value);

/* How many numbers the packed @bytes hold, if they are well formed. */
size_t in_wire_count_varints(struct qf_str bytes);

/* What the number of a field stands for; signed ones are qf_unzigzag() of it. */
double in_wire_double(uint64_t value);

/* --- inline: a request has a few dozen fields per series --- */

/* What is neither a number of up to two bytes nor a short text. */
bool in_wire_next_slow(struct in_wire *wire, struct in_field *ret_field);
bool in_wire_varint_slow(struct in_wire *wire, uint64_t *ret_value);

static inline bool in_wire_varint(struct in_wire *wire, uint64_t *ret_value)
{
    if (wire->at < wire->end && (uint8_t)*wire->at < 0x80) {
        *ret_value = (uint8_t)*wire->at++;
        return true;
    }
    return in_wire_varint_slow(wire, ret_value);
}

static inline bool in_wire_next(struct in_wire *wire, struct in_field *ret_field)
{
    const char *at = wire->at;
    size_t left = (size_t)(wire->end - at);

    if (left >= 2 && (uint8_t)at[0] < 0x80 && (uint8_t)at[1] < 0x80 && (uint8_t)at[0] >> 3 &&
        (at[0] & 7) == IN_WIRE_BYTES && (size_t)(uint8_t)at[1] <= left - 2) {
        ret_field->number = (uint8_t)at[0] >> 3;
        ret_field->type = IN_WIRE_BYTES;
        ret_field->value = 0;
        ret_field->bytes = (struct qf_str){ at + 2, (uint8_t)at[1] };
        wire->at = at + 2 + (uint8_t)at[1];
        return true;
    }
    return in_wire_next_slow(wire, ret_field);
}

#endif
