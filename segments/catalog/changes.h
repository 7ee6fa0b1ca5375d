/* changes.h - a log of what writers touched, in the bucket itself.
 *
 * A large bucket cannot be listed every few seconds. So whoever puts or deletes segments in a store
 * without tokens (store.h) then adds a small object that names the folders it touched:
 *
 *     _changes/TIME-ID          TIME: wall clock in ms, 13 digits; ID: 16 random hex digits
 *     tenant=T/date=YYYY-MM-DD/ its content, a line per folder
 *
 * Names sort by time, so that one listing of the last half hour tells a reader what to look at.
 * Notes older than a day say nothing any more and are removed by sg_changes_expire(). Who writes no
 * notes is still found, when the round through the whole bucket comes by. */
#ifndef SEGMENTS_CATALOG_CHANGES_H
#define SEGMENTS_CATALOG_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/vec.h"
#include "segments/store/store.h"

#define SG_CHANGES_PREFIX "_changes/"
/* How far back readers look: S3 refuses requests whose clock is more than 15 minutes off, so two
 * clocks that it accepts differ by no more than that. */
#define SG_CHANGES_WINDOW_MS INT64_C(1800000)
#define SG_CHANGES_EXPIRE_MS INT64_C(86400000)

/* --- writing --- */

/* Folders touched and not told yet. A zeroed one is empty. */
struct sg_changes_note {
    QF_VEC(char *) folders;
};
void sg_changes_note_done(struct sg_changes_note *note);
/* Note the folder of the segment @name. */
void sg_changes_note_add(struct sg_changes_note *note, struct qf_str name);
/* Tell readers, if there is anything to tell and the store needs it, and forget. Errors of
 * sg_store_put(). */
QF_MUST_CHECK qf_rc sg_changes_note_put(struct sg_changes_note *note, struct sg_store *store,
                                        const struct sg_store_call *call, struct qf_err *err);

/* Remove notes older than SG_CHANGES_EXPIRE_MS; @dry_run: only count them. */
QF_MUST_CHECK qf_rc sg_changes_expire(struct sg_store *store, bool dry_run,
                                      const struct sg_store_call *call, size_t *ret_removed,
                                      struct qf_err *err);

/* --- reading --- */

/* Names of the notes in the window that were seen before, sorted. A zeroed one has seen none. */
struct sg_changes_seen {
    QF_VEC(char *) names;
};
void sg_changes_seen_done(struct sg_changes_seen *seen);

struct sg_changes_folders {
    QF_VEC(char *) items; /* heap strings, sorted, each once */
};
void sg_changes_folders_done(struct sg_changes_folders *folders);

/* Append to @folders (NULL: do not read notes at all) what the notes say that are not among @seen.
 * *ret_now are the notes there are now: they replace @seen once their folders have been listed. */
QF_MUST_CHECK qf_rc sg_changes_read(const struct sg_changes_seen *seen, struct sg_store *store,
                                    const struct sg_store_call *call,
                                    struct sg_changes_folders *folders,
                                    struct sg_changes_seen *ret_now, struct qf_err *err);

#endif
