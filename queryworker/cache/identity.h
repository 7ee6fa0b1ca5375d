/* identity.h - which store the worker reads, found out beside its work.
 *
 * Statuses tell it, and an API that reads another store refuses the worker. It is looked up by a thread
 * of its own: at once, again and again until it is there, and every minute after that, for mounts come and
 * go. */
#ifndef QUERYWORKER_CACHE_IDENTITY_H
#define QUERYWORKER_CACHE_IDENTITY_H

#include "base/pure/duration.h"
#include "segments/store/identity.h"

struct qw_identity;

/* @store is borrowed. NULL and @err filled: no thread could be had. */
struct qw_identity *qw_identity_new(struct sg_store *store, struct qf_err *err);
/* Ends a look that is under way. Accepts NULL, returns NULL. */
struct qw_identity *qw_identity_free(struct qw_identity *identity);

/* Look if it is time to; returns at once. One thread calls this and the next. Accepts NULL. */
void qw_identity_beat(struct qw_identity *identity, qf_time_ms now);
/* What is known: the store's name, PB_STORE_NONE, or "". Good until the next call; of NULL "". */
const char *qw_identity_text(struct qw_identity *identity);

#endif
