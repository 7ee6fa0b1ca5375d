/* follow.h - follow the settings of tenants that ingest nodes agreed on (ring/tenant/page.h).
 *
 * A thread asks one node after the other, stays with one that answers, and is answered as soon as something changes. What it
 * has is a copy of all settings, so it knows of every tenant whether it has some; if nobody answers it goes on with what it
 * has, and says how old that is (queryapi/tenant/tenants.h). A node of an older release, which does not know the question,
 * belongs to a cluster without settings. */
#ifndef QUERYAPI_SETTINGS_FOLLOW_H
#define QUERYAPI_SETTINGS_FOLLOW_H

#include "base/pure/err.h"
#include "queryapi/tenant/tenants.h"

struct qa_follow;

struct qa_follow_options {
    const char *key_file, *ca_file; /* as of qa_asker_options; borrowed */
    struct qa_tenants *tenants;     /* borrowed: told what it heard */
    int64_t
        age_ms; /* settings that are older are stale: they are heard of several times as often */
};

/* NULL and @err: the key or the certificates cannot be read, or there is no thread. */
struct qa_follow *qa_follow_new(const struct qa_follow_options *options, struct qf_err *err);
struct qa_follow *qa_follow_free(struct qa_follow *follow); /* Accepts NULL, returns NULL. */

/* From now on these are the ingest nodes ("host:port"). Any thread. */
void qa_follow_nodes(struct qa_follow *follow, const char *const *addresses, size_t count);
/* Wait until settings are known, or every node was asked in vain, or for @timeout_ms. */
void qa_follow_wait(struct qa_follow *follow, int64_t timeout_ms);

#endif
