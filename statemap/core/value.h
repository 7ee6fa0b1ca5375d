/* value.h - values with a type: as bytes, as text, as JSON. Pure.
 *
 * Stored are strings and JSON as they are, integers and doubles as 8 bytes (bytes.h), booleans as one. Two values are the same
 * if type and bytes are. */
#ifndef STATEMAP_CORE_VALUE_H
#define STATEMAP_CORE_VALUE_H

#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/strbuf.h"
#include "statemap/core/kind.h"

struct sm_value {
    enum sm_type type;
    struct qf_str bytes; /* as stored; borrowed */
};

static inline bool sm_value_same(struct sm_value a, struct sm_value b)
{
    return a.type == b.type && qf_str_eq(a.bytes, b.bytes);
}

/* Each adds the value's bytes to @room, which the value borrows from until it changes. */
struct sm_value sm_value_string(struct qf_strbuf *room, struct qf_str text);
struct sm_value sm_value_integer(struct qf_strbuf *room, int64_t number);
struct sm_value sm_value_double(struct qf_strbuf *room, double number);
struct sm_value sm_value_boolean(struct qf_strbuf *room, bool yes);
struct sm_value sm_value_json_text(struct qf_strbuf *room, struct qf_str text); /* not checked */

int64_t sm_value_as_integer(struct sm_value value); /* of an integer */
double sm_value_as_double(struct sm_value value);   /* of a double */

/* Whether @bytes can be a stored value of @type: its length, a boolean's 0 or 1. What stands in a JSON text is not looked at. */
bool sm_value_valid(enum sm_type type, struct qf_str bytes);

void sm_value_print(struct qf_strbuf *buf, struct sm_value value); /* as text */
/* As JSON; doubles that JSON has no form for are strings. */
void sm_value_json(struct qf_strbuf *buf, struct sm_value value);

/* @text as a value of @type, which is not JSON; SM_ANY makes a string. QF_EINVAL: it is none. */
QF_MUST_CHECK qf_rc sm_value_parse(struct qf_strbuf *room, enum sm_type type, struct qf_str text,
                                   struct sm_value *ret_value, struct qf_err *err);

#endif
