/* kind.h - what a map is: its name, its kind, the type of its values. Pure. */
#ifndef STATEMAP_CORE_KIND_H
#define STATEMAP_CORE_KIND_H

#include <stdbool.h>

#include "base/pure/slice.h"

enum sm_kind {
#define SM_KIND(code, name, keyed, ranged, timed, valued) SM_##code,
#include "statemap/core/kinds.def"
#undef SM_KIND
    SM_KIND__COUNT
};

/* As stored: numbers stay. */
enum sm_type {
    SM_ANY = 0,
    SM_STRING = 1,
    SM_INTEGER,
    SM_DOUBLE,
    SM_BOOLEAN,
    SM_JSON,
    SM_TYPE__COUNT
};

enum {
    SM_NAME_MAX = 100,
    SM_TEXT_KEY_MAX = 4096,   /* bytes of a row's key */
    SM_VALUE_MAX = 1 << 20,   /* bytes of a row's value */
    SM_STORED_KEY_MAX = 511,  /* what LMDB takes */
    SM_CLASHES_MAX = 1 << 10, /* keys that share a hash */
};

const char *sm_kind_name(enum sm_kind kind);
bool sm_kind_parse(struct qf_str name, enum sm_kind *ret_kind);
bool sm_kind_keyed(enum sm_kind kind);
bool sm_kind_ranged(enum sm_kind kind);
bool sm_kind_timed(enum sm_kind kind);
bool sm_kind_valued(enum sm_kind kind);

/* "any" (what a definition may say, no value is of it), "string", "integer", "double", "boolean", "json". */
const char *sm_type_name(enum sm_type type);
bool sm_type_parse(struct qf_str name, enum sm_type *ret_type);

/* The name of a map as it is stored: small letters, digits and underscores, no digit first, at most SM_NAME_MAX. Capital
 * letters of @name are the small ones. False if it is no name. */
bool sm_name_fold(struct qf_str name, char out[SM_NAME_MAX + 1]);

#endif
