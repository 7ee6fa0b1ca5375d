/* shelf.h - small artifacts kept in memory, each under its token.
 *
 * Making and removing a file costs a small work more than its scan, so the spool puts what is small
 * here. Scan threads put, HTTP threads look up, the coordinator removes; one lock guards the table
 * for as long as a look-up takes (decision 0007). Who looks an artifact up keeps its bytes until it
 * lets them go, removed or not. */
#ifndef QUERYWORKER_ARTIFACT_SHELF_H
#define QUERYWORKER_ARTIFACT_SHELF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/slice.h"

struct qw_shelf;
struct qw_shelf_item;

/* At most @bytes_max in all; 0 takes nothing. */
struct qw_shelf *qw_shelf_new(uint64_t bytes_max);
/* No item may be held any more. Accepts NULL, returns NULL. */
struct qw_shelf *qw_shelf_free(struct qw_shelf *shelf);

/* Keep @bytes (from malloc, taken over) as @token; false if there is no room for them. */
bool qw_shelf_put(struct qw_shelf *shelf, struct qf_str token, struct qf_str bytes);
/* The item called @token, to be given back with qw_shelf_drop(); NULL if there is none. */
struct qw_shelf_item *qw_shelf_get(struct qw_shelf *shelf, struct qf_str token);
struct qf_str qw_shelf_bytes(const struct qw_shelf_item *item);
void qw_shelf_drop(struct qw_shelf_item *item);
/* Forget the item called @token; false if there is none. */
bool qw_shelf_remove(struct qw_shelf *shelf, struct qf_str token);

/* More than a sixteenth is taken: time to let go of what was acknowledged. */
bool qw_shelf_crowded(struct qw_shelf *shelf);

#endif
