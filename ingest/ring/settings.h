/* settings.h - the settings of tenants that were agreed on, for the parts of this node that heed them.
 *
 * What writing heeds is in the file of limits as this node has it (base/sys/limits_file.h): what `meta` says comes before
 * what the file says, within a tick of the moment it was applied here. Every few seconds the leader of `meta` is asked how far
 * settings are, so that this node can tell others how old its own are. */
#ifndef INGEST_RING_SETTINGS_H
#define INGEST_RING_SETTINGS_H

#include "base/sys/limits_file.h"
#include "queue/node/node.h"
#include "ring/coord/tenants.h"

struct in_settings;

/* All are borrowed. */
struct in_settings *in_settings_new(struct rg_tenants *tenants, struct qf_limits_file *limits,
                                    struct qn_node *node);
/* After the node has ended. Accepts NULL, returns NULL. */
struct in_settings *in_settings_free(struct in_settings *settings);

/* Every now and then, by one thread. */
void in_settings_tick(struct in_settings *settings, int64_t mono_ms);

#endif
