/* page_header.c - the header in front of a Parquet page: Thrift's compact form. */
#include "segments/parquet/page_header.h"

/* Statistics are the deepest there is. */
#define DEPTH_MAX 4

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
    TYPE_STRUCT = 12,
};

struct in {
    const unsigned char *at, *end;
    bool bad;
    unsigned depth;
};

static unsigned byte(struct in *in)
{
    if (in->at == in->end) {
        in->bad = true;
        return 0;
    }
    return *in->at++;
}

static uint64_t varint(struct in *in)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64 && !in->bad; shift += 7) {
        unsigned next = byte(in);

        value |= (uint64_t)(next & 127) << shift;
        if (next < 128)
            return value;
    }
    in->bad = true;
    return 0;
}

static void skip(struct in *in, uint64_t bytes)
{
    if (bytes > (uint64_t)(in->end - in->at))
        in->bad = true;
    else
        in->at += bytes;
}

/* A field of a struct: false at its end. */
struct field {
    unsigned type;
    uint64_t id;
};
static bool next_field(struct in *in, struct field *field)
{
    unsigned head = byte(in);

    if (in->bad || head == TYPE_STOP)
        return false;
    field->type = head & 15;
    field->id = head >> 4 ? field->id + (head >> 4) : varint(in) >> 1;
    return !in->bad;
}

static void skip_field(struct in *in, const struct field *field)
{
    struct field inner = { 0 };

    switch (field->type) {
    case TYPE_TRUE:
    case TYPE_FALSE:
        return;
    case TYPE_BYTE:
        skip(in, 1);
        return;
    case TYPE_I16:
    case TYPE_I32:
    case TYPE_I64:
        (void)varint(in);
        return;
    case TYPE_DOUBLE:
        skip(in, 8);
        return;
    case TYPE_BINARY:
        skip(in, varint(in));
        return;
    case TYPE_STRUCT:
        in->bad |= ++in->depth > DEPTH_MAX;
        while (!in->bad && next_field(in, &inner))
            skip_field(in, &inner);
        in->depth--;
        return;
    default: /* lists and maps: no page header has them */
        in->bad = true;
    }
}

static uint32_t number(struct in *in, const struct field *field)
{
    uint64_t value = varint(in);

    in->bad |= field->type != TYPE_I32 || (value & 1) || value >> 1 > INT32_MAX;
    return (uint32_t)(value >> 1);
}

/* The header of a data page. In version 1 levels lie within what is compressed. */
static void read_data(struct in *in, struct page_header *header)
{
    struct field field = { 0 };

    while (!in->bad && next_field(in, &field)) {
        if (field.id == 1)
            header->values = number(in, &field);
        else if (field.id == 2)
            header->encoding = (int32_t)number(in, &field);
        else
            skip_field(in, &field);
    }
}

static void read_data_v2(struct in *in, struct page_header *header)
{
    struct field field = { 0 };

    while (!in->bad && next_field(in, &field)) {
        if (field.id == 1)
            header->values = number(in, &field);
        else if (field.id == 2)
            header->nulls = number(in, &field);
        else if (field.id == 4)
            header->encoding = (int32_t)number(in, &field);
        else if (field.id == 5 || field.id == 6)
            header->level_bytes += number(in, &field);
        else if (field.id == 7)
            header->compressed = field.type == TYPE_TRUE;
        else
            skip_field(in, &field);
    }
}

bool page_header_read(const char *bytes, size_t size, struct page_header *ret_header,
                      size_t *ret_size)
{
    const unsigned char *start = (const unsigned char *)bytes;
    struct in in = { .at = start, .end = start + size };
    struct page_header header = { .type = -1, .encoding = -1, .compressed = true };
    struct field field = { 0 };

    while (!in.bad && next_field(&in, &field)) {
        if (field.id == 1)
            header.type = (int32_t)number(&in, &field);
        else if (field.id == 2)
            header.uncompressed_size = number(&in, &field);
        else if (field.id == 3)
            header.size = number(&in, &field);
        else if (field.id == 5 && field.type == TYPE_STRUCT)
            read_data(&in, &header);
        else if (field.id == 8 && field.type == TYPE_STRUCT)
            read_data_v2(&in, &header);
        else
            skip_field(&in, &field);
    }
    if (in.bad || header.type < 0)
        return false;
    *ret_header = header;
    *ret_size = (size_t)(in.at - start);
    return true;
}
