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
bool in_wire_next(struct in_wire *wire, struct in_field *ret_field);

/* The next number of packed ones; false as above. */
bool in_wire_varint(struct in_wire *wire, uint64_t *ret_value);
bool in_wire_fixed64(struct in_wire *wire, uint64_t *ret_value);

/* How many numbers the packed @bytes hold, if they are well formed. */
size_t in_wire_count_varints(struct qf_str bytes);

/* What the number of a field stands for; signed ones are qf_unzigzag() of it. */
double in_wire_double(uint64_t value);

#endif
