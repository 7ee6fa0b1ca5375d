/* keep.h - which rows condensation and retention let go of. Pure.
 *
 * Neither changes an answer that it must not change:
 *
 *   condensation   of a key (or a range) a row whose value is that of the row before it is not needed: whoever asks for a moment
 *                  from it on gets the same value. Sessions that overlap or touch are one session. Rows younger than the cutoff stay:
 *                  what is loaded late may still come between them
 *   retention      of a key, a row that another one replaced at the cutoff or before is not needed by anybody who asks for the
 *                  cutoff or later; the last one is, however old. A session goes when all that it overlaps with has ended
 *
 * Where two equally wide ranges overlap, effective times decide between them: a confirmation is a decision there and
 * stays ("contested"). State and ranged maps have neither. */
#ifndef STATEMAP_CORE_KEEP_H
#define STATEMAP_CORE_KEEP_H

#include "statemap/core/row.h"

/* What a definition says, at a moment. INT64_MIN: it is off. */
struct sm_cutoffs {
    int64_t condense, retain;
};

/* Of two rows of one key or range, one behind the other. */
enum sm_fate {
    SM_KEEP_BOTH,
    SM_DROP_FORMER, /* it is behind the retention */
    SM_DROP_LATTER, /* it says again what the former said */
};

/* @contested: another range decides with the latter's effective time, see sm_range_contends(). */
enum sm_fate sm_rows_fate(const struct sm_row *former, const struct sm_row *latter, bool contested,
                          struct sm_cutoffs cutoffs);

/* Sessions of one key, in the order of their starts, that overlap or touch. */
struct sm_span {
    int64_t start, end;
};

/* Whether @row, which does not start before @span does, belongs to it; then it is in it. */
bool sm_span_join(struct sm_span *span, const struct sm_row *row);
/* Whether all sessions of a whole span go. */
bool sm_span_retired(const struct sm_span *span, struct sm_cutoffs cutoffs);
/* Whether a session may become one with others. */
bool sm_session_condensable(const struct sm_row *row, struct sm_cutoffs cutoffs);

#endif
