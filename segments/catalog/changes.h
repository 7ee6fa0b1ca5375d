/* changes.h - a log of what writers touched, in the bucket itself.
 *
 * A large bucket cannot be listed every few seconds. So whoever puts or deletes segments in a store
 * without tokens (store.h) then adds a small object that names the folders it touched:
 *
 *     _changes/TIME-ID          TIME: wall clock in ms, 13 digits; ID: 16 random hex digits
 *     tenant=T/date=YYYY-MM-DD/ its content, a line per folder
 *
 * Names sort by time, so that one listing of the last half hour tells a reader what to look at.
 * Notes older than a day say nothing any more and are removed by changes_expire(). Who writes no
 * notes is still found, when the round through the whole bucket comes by. */
#ifndef SEGMENTS_CATALOG_CHANGES_H
#define SEGMENTS_CATALOG_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/vec.h"
#include "segments/store/store.h"

#define CHANGES_PREFIX "_changes/"
/* How far back readers look: S3 refuses requests whose clock is more than 15 minutes off, so two
 * clocks that it accepts differ by no more than that. */
#define CHANGES_WINDOW_MS INT64_C(1800000)
#define CHANGES_EXPIRE_MS INT64_C(86400000)

/* --- writing --- */

/* Folders touched and not told yet. A zeroed one is empty. */
struct changes_note {
    QF_VEC(char *) folders;
};
void changes_note_done(struct changes_note *note);
/* Note the folder of the segment @name. */
void changes_note_add(struct changes_note *note, struct qf_str name);
/* Tell readers, if there is anything to tell and the store needs it, and forget. Errors of
 * store_put(). */
QF_MUST_CHECK qf_rc changes_note_put(struct changes_note *note, struct store *store,
                                     const struct store_call *call, struct qf_err *err);

/* Remove notes older than CHANGES_EXPIRE_MS. */
QF_MUST_CHECK qf_rc changes_expire(struct store *store, const struct store_call *call,
                                   size_t *ret_removed, struct qf_err *err);

/* --- reading --- */

/* Names of the notes in the window that were seen before, sorted. A zeroed one has seen none. */
struct changes_seen {
    QF_VEC(char *) names;
};
void changes_seen_done(struct changes_seen *seen);

struct changes_folders {
    QF_VEC(char *) items; /* heap strings, sorted, each once */
};
void changes_folders_done(struct changes_folders *folders);

/* Append to @folders (NULL: do not read notes at all) what the notes say that are not among @seen.
 * *ret_now are the notes there are now: they replace @seen once their folders have been listed. */
QF_MUST_CHECK qf_rc changes_read(const struct changes_seen *seen, struct store *store,
                                 const struct store_call *call, struct changes_folders *folders,
                                 struct changes_seen *ret_now, struct qf_err *err);

#endif
