/* sealed.h - a good file with bytes changed and its seal made right again: a seal is a checksum, and
 * whoever writes lies into a file can seal them. */
#ifndef TESTS_FUZZ_SEGMENTS_SEALED_H
#define TESTS_FUZZ_SEGMENTS_SEALED_H

#include "base/pure/strbuf.h"
#include "base/pure/vec.h"

struct sealed {
    struct qf_strbuf file;
    size_t offset;         /* where the chunks end */
    size_t footer;         /* where the footer begins; its length and magic are the last 8 bytes */
    QF_VEC(size_t) chunks; /* where each ends */
};

/* Take a good file apart; aborts if it is none. */
void sealed_learn(struct sealed *sealed, struct qf_str file);

/* Append the file to @out with the edits in @data: three bytes each, a place (counted from the end, in
 * two of them, so that the footer is easy to reach) and what is xored into it. */
void sealed_edit(const struct sealed *sealed, const uint8_t *data, size_t size,
                 struct qf_strbuf *out);

#endif
