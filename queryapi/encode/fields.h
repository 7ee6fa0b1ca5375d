/* fields.h - messages of protobuf, written field by field.
 *
 * A message inside of another is written into a buffer of its own first, since its length comes before
 * it: qa_put_inner() takes it over and empties that buffer for the next one. */
#ifndef QUERYAPI_ENCODE_FIELDS_H
#define QUERYAPI_ENCODE_FIELDS_H

#include <stdint.h>

#include "base/pure/strbuf.h"

enum qa_wire_type { QA_WIRE_VARINT = 0, QA_WIRE_FIXED64 = 1, QA_WIRE_BYTES = 2 };

/* Without a field's number: a varint; eight bytes, the lowest first. */
void qa_put_number(struct qf_strbuf *buf, uint64_t value);
void qa_put_bits(struct qf_strbuf *buf, uint64_t value);

void qa_put_tag(struct qf_strbuf *buf, unsigned field, enum qa_wire_type type);
/* Fields that are there whatever their value is: of proto2, and of a oneof. */
void qa_put_varint(struct qf_strbuf *buf, unsigned field, uint64_t value);
void qa_put_fixed(struct qf_strbuf *buf, unsigned field, double value);
void qa_put_bytes(struct qf_strbuf *buf, unsigned field, struct qf_str bytes);
void qa_put_inner(struct qf_strbuf *buf, unsigned field, struct qf_strbuf *inner);
/* What is zero is not written, as proto3 has it. */
void qa_put_uint(struct qf_strbuf *buf, unsigned field, uint64_t value);
void qa_put_double(struct qf_strbuf *buf, unsigned field, double value);

#endif
