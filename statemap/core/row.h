/* row.h - a map's rows and the bytes they are stored as. Pure.
 *
 *   kind              stored key                                  stored value
 *   state             HASH CLASH                                  LENGTH KEY TYPE VALUE
 *   temporal          HASH CLASH TIME                             LENGTH KEY TYPE VALUE
 *   session           HASH CLASH START END                        KEY
 *   ranged            LEVEL FROM TO                               LOAD TYPE VALUE
 *   temporal_ranged   LEVEL FROM TO TIME                          LOAD TYPE VALUE
 *
 * and where a map says that its keys are short ("direct")
 *
 *   state             KEY                                         TYPE VALUE
 *   temporal          LENGTH KEY TIME                             TYPE VALUE
 *   session           LENGTH KEY START END                        (empty)
 *
 * HASH (8 bytes) is XXH3 of the key; keys of one hash have different clash numbers (4), and the whole key decides. Numbers
 * and times (8, signed) and lengths (4) are in the order of bytes (bytes.h). LEVEL (1) says how wide a range is and puts narrow
 * ranges in front of wide ones; LOAD (8) counts loads (range.h). TYPE is enum sm_type. */
#ifndef STATEMAP_CORE_ROW_H
#define STATEMAP_CORE_ROW_H

#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/strbuf.h"
#include "statemap/core/value.h"

struct sm_layout {
    enum sm_kind kind;
    bool direct; /* of keyed kinds */
};

struct sm_row {
    struct qf_str key; /* keyed kinds; borrowed */
    int64_t from, to;  /* ranged kinds: both are in the range */
    int64_t time;  /* timed kinds: effective from here on; sessions: their start. Milliseconds */
    int64_t end;   /* sessions: the first moment that is not in it any more */
    uint64_t load; /* ranged kinds: later ones win, see range.h */
    struct sm_value value;
};

/* Where a key that is not stored directly lies. */
struct sm_place {
    uint64_t hash;
    uint32_t clash;
};

/* The longest key of @layout. */
size_t sm_key_max(const struct sm_layout *layout);

/* Whether @row may be put into a map of @layout: its key's length, ranges and sessions the right way around, a value.
 * QF_EINVAL says what is wrong. */
QF_MUST_CHECK qf_rc sm_row_check(const struct sm_layout *layout, const struct sm_row *row,
                                 struct qf_err *err);

/* The stored key of a row that may be put. Returns its length. @place counts unless keys are direct or the kind has none. */
size_t sm_row_key(const struct sm_layout *layout, const struct sm_row *row, struct sm_place place,
                  unsigned char out[SM_STORED_KEY_MAX]);
/* Its stored value, added to @out. */
void sm_row_value(const struct sm_layout *layout, const struct sm_row *row, struct qf_strbuf *out);

/* The row that lies at @key; @ret_row borrows from both. QF_ECORRUPT: no row is stored like this. Whether a hash is that of
 * the key is not looked at. */
QF_MUST_CHECK qf_rc sm_row_decode(const struct sm_layout *layout, struct qf_str key,
                                  struct qf_str value, struct sm_row *ret_row,
                                  struct sm_place *ret_place, struct qf_err *err);

/* How many bytes of a stored key say what the row is about: the same for all rows of a key, or of a range. */
size_t sm_subject_len(const struct sm_layout *layout, struct qf_str stored_key);

#endif
