/* members.h - the value of a row as labels. */
#ifndef STATEMAP_INFO_MEMBERS_H
#define STATEMAP_INFO_MEMBERS_H

#include "base/pure/labels.h"
#include "statemap/core/value.h"

/* The labels that @value gives, with room for two more behind them; all of it in @arena. A JSON object: one for each member that can
 * be one (statemap/core/info.h); strings as they are, what is in arrays and objects as JSON, null none. Any other value:
 * `value`, as text. QF_ELIMIT: the arena is spent; QF_ECORRUPT: it is stored as JSON and is none. */
QF_MUST_CHECK qf_rc sm_members(struct qf_arena *arena, struct sm_value value,
                               struct qf_label **ret_members, size_t *ret_count,
                               struct qf_err *err);

#endif
