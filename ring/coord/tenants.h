/* tenants.h - the settings of tenants as this node knows them: of the application of `meta`, for whoever asks, and for
 * whoever waits for later ones.
 *
 * The node's thread changes them; everybody may read. Requests that wait for a version are answered by the change that has
 * it, or by the tick after their time. */
#ifndef RING_COORD_TENANTS_H
#define RING_COORD_TENANTS_H

#include "base/http/stream.h"
#include "queue/node/ask.h"
#include "ring/tenant/page.h"

enum { RG_TENANT_WAITERS_MAX = 256 };

struct rg_tenants;

struct rg_tenants *rg_tenants_new(void);
/* Nobody waits any more. Accepts NULL, returns NULL. */
struct rg_tenants *rg_tenants_free(struct rg_tenants *tenants);

/* --- the node's thread --- */

/* Begin anew with what save() gave at @index; empty: with nothing. QF_ECORRUPT, QF_EUNSUPPORTED: as before. */
QF_MUST_CHECK qf_rc rg_tenants_restore(struct rg_tenants *tenants, uint64_t index,
                                       struct qf_str bytes);
/* Errors of rg_tenant_record_decode(). */
QF_MUST_CHECK qf_rc rg_tenants_apply(struct rg_tenants *tenants, uint64_t index,
                                     struct qf_str record, uint8_t kept);
void rg_tenants_save(struct qf_strbuf *buf, const struct rg_tenants *tenants);
enum rg_tenant_verdict rg_tenants_try(const struct rg_tenants *tenants,
                                      const struct rg_tenant_entry *entry, uint8_t kept);
/* What the asker of the entry at @index hears. False: it is forgotten, or was about something else. */
bool rg_tenants_ended(const struct rg_tenants *tenants, uint64_t index, uint8_t copies,
                      struct qn_answer *answer);
/* The tenant as it is by now, or the error of @verdict. @copies: that the ring keeps. */
void rg_tenants_tell(const struct rg_tenants *tenants, enum rg_tenant_verdict verdict,
                     struct qf_str name, uint8_t copies, struct qn_answer *answer);
/* A page of them, behind the one called @after. */
void rg_tenants_show(const struct rg_tenants *tenants, struct qf_str after, uint8_t copies,
                     struct qn_answer *answer);
uint8_t rg_tenants_copies(const struct rg_tenants *tenants);

/* --- any thread --- */

/* The greatest version; 0: there are none. */
uint64_t rg_tenants_version(const struct rg_tenants *tenants);
/* The level of documents of the tenant called @name. */
enum rg_level rg_tenants_level(struct rg_tenants *tenants, struct qf_str name);
/* What they may have, of one moment, as limits_file.h takes it; *ret_version says which. */
struct qf_limits_table *rg_tenants_limits(struct rg_tenants *tenants, uint64_t *ret_version);
size_t rg_tenants_count(struct rg_tenants *tenants);

/* At @mono_ms the leader of `meta` said that @version is the greatest; @cluster is theirs. It counts once this node has it. */
void rg_tenants_confirm(struct rg_tenants *tenants, uint64_t cluster, uint64_t version,
                        int64_t mono_ms);
/* How long ago that was; -1: never. */
int64_t rg_tenants_age_ms(struct rg_tenants *tenants, int64_t mono_ms);

/* Answer @stream with a page of what is above @since, of cluster @cluster (0, or another one: of all), as soon as there is
 * something, or at @due_ms of the monotonic clock. QF_EUNAVAILABLE: nothing was confirmed yet; QF_EBUSY: too many wait. Then
 * @stream is not answered. */
QF_MUST_CHECK qf_rc rg_tenants_wait(struct rg_tenants *tenants, struct qh_stream *stream,
                                    uint64_t cluster, uint64_t since, int64_t due_ms);
/* Answer those whose time has come at @now_ms; @all: everybody. */
void rg_tenants_tick(struct rg_tenants *tenants, int64_t now_ms, bool all);

#endif
